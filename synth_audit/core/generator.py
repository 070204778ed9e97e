"""The contract of a generator and its model: what it is handed, and what either may implement beyond it.

A generator is one file in its room, or a folder of that name, holding one frozen dataclass with a class
variable ``info``. What is optional is a ``Protocol`` here, with what holds for a generator without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from synth_audit.core.accounting.accountant import Accountant
from synth_audit.core.accounting.guarantee import Unit
from synth_audit.core.context import Progress, silent
from synth_audit.core.errors import PluginError
from synth_audit.core.execution import Executor
from synth_audit.core.execution.deadline import NEVER, Deadline
from synth_audit.core.generator_needs import Needs
from synth_audit.core.noise import Noise
from synth_audit.core.public_domain import PublicDomain
from synth_audit.core.training_course import TrainingCourse
from synth_audit.core.workplace import Device

if TYPE_CHECKING:
    import numpy as np

    from synth_audit.core.arrays import Floats, Integers
    from synth_audit.core.schema import Schema
    from synth_audit.core.table import Table

BATCH = 100_000
"""Rows that are drawn at a time; a constant, since another number would give other rows."""

FEWEST_PEOPLE = 20
"""People who have a label that is learnt, where a generator says nothing else; as in a leaf of its trees."""


@dataclass(frozen=True, kw_only=True)
class GeneratorInfo:
    """What the catalogue says of a generator.

    Attributes:
        trial: settings with which a fit of few rows takes a second and shows nothing but that it runs.
    """

    title: str
    summary: str
    cost: Literal["instant", "seconds", "minutes", "hours"] = "seconds"
    needs: Needs = field(default_factory=Needs)
    source: str = ""
    trial: Mapping[str, Any] = field(default_factory=dict)


def _without_budget() -> Accountant:
    return Accountant(None, unit=Unit.ROW)


@dataclass(frozen=True, eq=False, kw_only=True)
class FitContext:
    """What a generator is handed when it fits.

    Attributes:
        rng: draws that nobody need be protected from; the same rows, settings and draws give the same model.
        public_domain: what is known of the columns without a look at the rows.
        accountant: sells privacy: spend on every mechanism *before* it runs. The guarantee is read off it; a
            generator that buys none may tell it why with ``void``.
        device: what networks are computed on. deadline: to be checked between steps. progress: to be told.
        course: collects what :meth:`trained` is told.
        entities: gives the number of each row's entity, shape (n,); None where each row is an entity of its
            own.
        checkpoint: a private folder in which a long fit may leave what it would resume from; None for none.
        scratch: where temporary folders are made; the system's place for them if None.
        base: where relative paths in settings start.
        executor: where fits that do not hang on one another may be made beside one another.
    """

    rng: np.random.Generator
    public_domain: PublicDomain = field(default_factory=PublicDomain)
    accountant: Accountant = field(default_factory=_without_budget)
    device: Device = "cpu"
    deadline: Deadline = NEVER
    progress: Progress = silent
    course: TrainingCourse = field(default_factory=TrainingCourse)
    entities: Callable[[], Integers] | None = None
    checkpoint: Path | None = None
    scratch: Path | None = None
    base: Path = field(default_factory=Path.cwd)
    executor: Executor = field(default_factory=Executor)

    @property
    def noise(self) -> type[Noise]:
        """Noise that buys privacy: from the operating system's entropy, and never seeded."""
        return Noise

    @property
    def resumable(self) -> Path | None:
        """:attr:`checkpoint` where nothing private depends on it: None under a budget, whose noise a training
        that is taken up again would draw twice."""
        return None if self.accountant.budget is not None else self.checkpoint

    def weights(self, n: int) -> Floats:
        """What each of ``n`` rows weighs so that those of an entity sum to 1, shape (n,): with weights of at
        least k in one place, k entities are there.

        Raises:
            PluginError: the fit was handed another number of rows, so that nobody knows whose these are.
        """
        import numpy as np

        if self.entities is None:
            return np.ones(n)
        entities = self.entities()
        if len(entities) != n:
            raise PluginError(
                "weights are asked for other rows than those that are fitted",
                where=f"{n:,} rows",
                expected=f"{len(entities):,}, as the fit was handed",
                fix="weigh the rows of train before any are left out",
            )
        weights: Floats = 1 / np.bincount(entities)[entities]
        return weights

    def trained(self, what: str, done: int, steps: int, loss: float) -> None:
        """Tell of step ``done`` of ``steps`` and its loss: for progress, and for the curves of the report.

        Args:
            what: which training it is, in a word or two.

        Raises:
            OutOfTime: the deadline is over.
        """
        self.deadline.check()
        self.progress(f"{what}, loss {loss:.3g}", done, steps)
        self.course.step(what, done, steps, loss)

    def build(self, choice: str | Mapping[str, Any], where: str = "generator") -> Generator:
        """An inner generator, named as in a plan: ``vine``, or ``{vine: {truncation: 3}}``.

        Args:
            where: the key of the plan that names it, for messages.

        Raises:
            PlanError: there is no such generator, or it refuses its settings.
        """
        from synth_audit.core.plugin_config import build_generator

        return build_generator(choice, where)

    def inner(self, name: str) -> FitContext:
        """What to hand to an inner generator: draws of its own, and the same accountant."""
        return replace(
            self,
            rng=self.rng.spawn(1)[0],
            checkpoint=None if self.checkpoint is None else self.checkpoint / name,
        )


class Model(Protocol):
    """A fitted generator; immutable."""

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` synthetic rows with the columns and types of the features of train."""
        ...

    def save(self, folder: Path) -> None:
        """Write the model into an empty folder as data (JSON, Arrow, npz), never as pickled code.

        The files hold what was learnt from real rows: whoever gives the folder keeps it restricted.
        """
        ...


@runtime_checkable
class Generator(Protocol):
    """Learns a table; the dataclass is configuration only, what is learnt lives in the model."""

    info: ClassVar[GeneratorInfo]

    def fit(self, train: Table, context: FitContext) -> Model:
        """Fit on ``train``, whose identifier columns have been removed."""
        ...

    def load(self, folder: Path) -> Model:
        """The model that :meth:`Model.save` wrote under this configuration; its draws are the same."""
        ...


# What follows a generator or a model may implement or leave out.


@runtime_checkable
class Batching(Protocol):
    """A model that hands out its rows by batches itself; one without ``batches`` draws them one by one."""

    def batches(self, n: int, rng: np.random.Generator, size: int) -> Iterator[Table]:
        """The rows that one ``sample(n, rng)`` would give, in its order, at most ``size`` at a time."""
        ...


def batches(model: Model, n: int, rng: np.random.Generator, size: int = BATCH) -> Iterator[Table]:
    """``n`` rows of a model, at most ``size`` at a time; of a finished table all of its rows, once."""
    if isinstance(model, Batching):
        yield from model.batches(n, rng, size)
        return
    for start in range(0, n, size):
        yield model.sample(min(size, n - start), rng)


@runtime_checkable
class Demanding(Protocol):
    """A generator whose needs follow from its settings, such as those of an inner one; one without ``needs``
    has those of its ``info``."""

    @property
    def needs(self) -> Needs:
        """What a fit under these settings cannot do without."""
        ...


def needs_of(generator: Generator) -> Needs:
    """What a fit of this generator cannot do without."""
    return generator.needs if isinstance(generator, Demanding) else generator.info.needs


@runtime_checkable
class Refitting(Protocol):
    """A generator that may be unable to learn other rows; one without ``refits`` always can."""

    @property
    def refits(self) -> bool:
        """False for a finished table, which cannot be made again from other rows."""
        ...


def refits(generator: Generator) -> bool:
    """Whether the generator can be fitted to other rows."""
    return generator.refits if isinstance(generator, Refitting) else True


@runtime_checkable
class Repeating(Protocol):
    """A generator that may give other rows from the same seeds; one without ``repeats`` never does."""

    @property
    def repeats(self) -> bool:
        """False for a finished table, which others may replace, and for what takes no seed."""
        ...


def repeats(generator: Generator) -> bool:
    """Whether the same rows and seeds give the same candidate, as far as the generator knows."""
    return generator.repeats if isinstance(generator, Repeating) else True


@runtime_checkable
class Finished(Protocol):
    """A generator whose table may lie ready somewhere; one without ``finished`` draws its own."""

    def finished(self, schema: Schema, base: Path) -> Table | None:
        """The table as it lies there now, under the schema of train's features; None when it is drawn.

        Args:
            base: where relative paths in settings start.
        """
        ...


def finished(generator: Generator, schema: Schema, base: Path) -> Table | None:
    """The table that lies ready, read without a fit or a draw; None when the generator draws its own."""
    return generator.finished(schema, base) if isinstance(generator, Finished) else None


@runtime_checkable
class Truncatable(Protocol):
    """A generator of which one fit holds all its truncations; without it each setting is a fit of its own."""

    @property
    def truncation(self) -> int | None:
        """The level it keeps; None for all."""
        ...

    def untruncated(self) -> Generator:
        """The same configuration that keeps all levels."""
        ...


@runtime_checkable
class BoundedTruncation(Protocol):
    """A truncatable generator that knows from which level on its sensitive columns are tied to all others."""

    def deepest(self, n_columns: int, sensitive: Collection[str]) -> int | None:
        """The last level that is of use, for a table of so many columns; None where all are."""
        ...


@runtime_checkable
class Thresholding(Protocol):
    """A generator that says of how many people a label must be; one without ``minimum_people`` learns none of
    fewer than ``FEWEST_PEOPLE``."""

    @property
    def minimum_people(self) -> int:
        """People who have a label that is learnt without a budget; 1 where it is handed every label, since it
        sees to rare ones itself or means to draw them."""
        ...


def minimum_people(generator: Generator) -> int:
    """People who have a label that is learnt where no budget is spent and the plan does not declare it."""
    return generator.minimum_people if isinstance(generator, Thresholding) else FEWEST_PEOPLE


@runtime_checkable
class DrawnApart(Protocol):
    """A model that draws groups of columns apart; one without ``column_groups`` draws all together."""

    @property
    def column_groups(self) -> tuple[tuple[str, ...], ...]:
        """Names of the columns that are drawn together, each column once."""
        ...


def column_groups(model: Model) -> tuple[tuple[str, ...], ...]:
    """The columns that a model draws together, group by group; empty where it draws all together."""
    return model.column_groups if isinstance(model, DrawnApart) else ()


class TruncatableModel(Model, Protocol):
    """A fitted model that can give up its higher levels: what a truncatable generator fits."""

    def truncated(self, level: int) -> Model:
        """The same model with only its first ``level`` levels; unchanged when it has no more than these."""
        ...
