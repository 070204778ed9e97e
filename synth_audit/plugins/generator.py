"""The contract of a generator and its model: what it is handed, what it needs, and how its training went."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, get_type_hints, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from synth_audit.arrays import Floats, Integers
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.composition import by_basic, by_rdp
from synth_audit.dp.guarantee import MechanismRecord, PrivacyGuarantee, Unit
from synth_audit.dp.mechanisms import Noise
from synth_audit.errors import DataError, PlanError, PluginError
from synth_audit.execution import Device
from synth_audit.execution.context import Progress, silent
from synth_audit.execution.executor import NEVER, Deadline, Executor
from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.table.schema import PublicDomain, Schema
from synth_audit.table.table import Table

_DRIVER = Path("/dev/nvidiactl")

LOSS, EPSILON = MeasurementId("generator", "loss"), MeasurementId("generator", "epsilon")

_POINTS = 100
"""Points of a curve of losses at most; each is the mean of as many steps as the others."""

_CURVES = 8
"""Trainings that are kept; a generator may fit others many times over."""

_SPENDINGS = 12
"""Points of a curve of ε, beside the ends of what was bought."""

_DIGITS = 4
"""Significant digits of a loss: of the last ones another machine would make others."""

BATCH = 100_000
"""Rows that are drawn at a time; a constant, since another number would give other rows."""

FEWEST_PEOPLE = 20
"""People who have a label that is learnt, where a generator says nothing else; as in a leaf of its trees."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a fit cannot do without.

    Attributes:
        gpu: it computes on a GPU; the plan's ``execution.device`` must allow one.
        memory: GiB beyond the table, roughly; 0 for little. Fits that need much do not run beside others.
        rows: fewest training rows.
    """

    gpu: bool = False
    memory: float = 0.0
    rows: int = 1

    @property
    def words(self) -> str:
        """As a person reads it."""
        size = f"about {self.memory:g} GiB of memory" if self.memory else ""
        rows = f"{self.rows:,} rows" if self.rows > 1 else ""
        return ", ".join(filter(None, ["a GPU" if self.gpu else "", size, rows])) or "nothing beside train"

    def __or__(self, other: Needs) -> Needs:
        """What both need, one after the other."""
        return Needs(
            gpu=self.gpu or other.gpu,
            memory=max(self.memory, other.memory),
            rows=max(self.rows, other.rows),
        )

    def check(self, train: Table, device: Device, title: str) -> None:
        """Refuse a fit that lacks something.

        Raises:
            DataError: train has too few rows.
            PluginError: a GPU is needed, and the device is the processor or the machine has none.
        """
        if train.n_rows < self.rows:
            raise DataError(
                f"train has {train.n_rows} rows, too few for the generator {title!r}",
                where="train",
                expected=f"at least {self.rows} rows",
                fix="use more rows, or the generator `independent`",
            )
        if not self.gpu:
            return
        if device == "cpu":
            raise PluginError(
                f"the generator {title!r} needs a GPU, and the plan computes on the processor",
                where="execution.device: cpu",
                expected="cuda, or auto",
                fix="where there is a GPU, say `--device cuda`, or `execution: {device: cuda}` in the plan",
            )
        if not gpu_found():
            raise PluginError(
                f"the generator {title!r} needs a GPU, and none was found on this machine",
                where=f"execution.device: {device}",
                expected="a CUDA device with its driver",
                fix="run it on a machine with a GPU (in Dagster: pool `gpu`), or choose another generator",
            )


def gpu_found() -> bool:
    """True when this machine has a GPU that torch sees; without torch, when it has the driver."""
    if find_spec("torch") is None:
        return _DRIVER.exists()
    from torch import cuda

    return bool(cuda.is_available())


@dataclass(eq=False)
class _Run:
    """The losses of one training, by step."""

    steps: int
    done: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)


@dataclass(eq=False)
class TrainingCourse:
    """Collects the loss of every step of a fit. What comes of it is told by :func:`training_series` alone.

    A loss is a number about real rows that nobody paid for: it leaves only where no protection is claimed.

    Attributes:
        suppression: the fewest rows that a picture may tell of.
    """

    suppression: int = 10
    _runs: list[tuple[str, _Run]] = field(default_factory=list)
    _pictures: dict[MeasurementId, Series] = field(default_factory=dict)

    def step(self, what: str, done: int, steps: int, loss: float) -> None:
        """Note the loss of step ``done`` of ``steps``; one before the last begins a new training."""
        found = [run for name, run in self._runs if name == what]
        if not found or (found[-1].done and found[-1].done[-1] >= done):
            found = [_Run(steps)]
            self._runs.append((what, found[0]))
        if math.isfinite(loss) and len(self._runs) <= _CURVES:
            found[-1].done.append(done)
            found[-1].losses.append(loss)

    def show(self, series: Series) -> None:
        """Have a picture of the fit or of its draws stand with the curves; of several of an id the last."""
        self._pictures[series.id] = series

    @property
    def pictures(self) -> tuple[Series, ...]:
        """What was shown, in order."""
        return tuple(self._pictures.values())

    def follow(self, other: TrainingCourse) -> None:
        """Add the trainings that another course noted, behind its own."""
        self._runs += other._runs

    def state(self) -> dict[str, NDArray[np.str_]]:
        """All that was noted, as a text in an array, for a training that is taken up again."""
        return {"runs": np.array(json.dumps([(what, r.steps, r.done, r.losses) for what, r in self._runs]))}

    def restore(self, state: Mapping[str, NDArray[np.str_]]) -> None:
        """Be as when ``state`` was taken."""
        runs = json.loads(str(state["runs"]))
        self._runs[:] = [(what, _Run(steps, done, losses)) for what, steps, done, losses in runs]

    def of_losses(self) -> tuple[Series, ...]:
        """A curve for each training, in order: the mean loss of stretches of equal length, by their ends."""
        kept = [(what, run) for what, run in self._runs[:_CURVES] if len(run.done) > 1]
        return tuple(_losses(what, i, len(kept), run) for i, (what, run) in enumerate(kept, 1))


def training_series(course: TrainingCourse, accountant: Accountant) -> tuple[Series, ...]:
    """The curves that may be shown of a fit: of ε where it is guaranteed, of losses where nothing was spent,
    and with these the pictures that it shows itself.

    A fit that spent and has no guarantee shows neither.
    """
    guarantee = accountant.guarantee()
    if guarantee is not None:
        return (epsilon_series(guarantee),)
    return () if accountant.mechanisms else (*course.of_losses(), *course.pictures)


def epsilon_series(guarantee: PrivacyGuarantee) -> Series:
    """ε at the guarantee's δ after so many runs of its mechanisms, in the order in which they were bought.

    At each point it is the least of basic composition, Rényi differential privacy, and the ε of the whole
    fit, which no part exceeds and which the costlier sum may have made smaller; at the end it is the latter.
    """
    records = guarantee.mechanisms
    ends = np.cumsum([r.count for r in records]).tolist()
    between = np.linspace(0, ends[-1], _SPENDINGS + 1).round().astype(int).tolist()
    # Of many small spendings not every end is worth a sum.
    points = sorted({0, *between, *(ends if len(ends) <= _SPENDINGS else ())})
    return Series(
        id=EPSILON,
        title="Privacy spent by the fit: an upper bound at each step, at the end what is claimed",
        kind="line",
        x_label="mechanisms run (steps)",
        y_label=f"ε at δ = {guarantee.delta:g}",
        x=tuple(map(float, points)),
        lines={"spent at most": tuple(_spent_after(n, records, guarantee) for n in points)},
    )


def _spent_after(runs: int, records: Sequence[MechanismRecord], guarantee: PrivacyGuarantee) -> float:
    """The ε of the first ``runs`` runs."""
    taken, left = [], runs
    for record in records:
        if left:
            taken.append(replace(record, count=min(left, record.count)))
            left -= taken[-1].count
    if not taken:
        return 0.0
    if taken == list(records):
        return guarantee.epsilon
    sums = [by_basic(taken, guarantee.delta, guarantee.neighbouring)]
    if guarantee.delta:
        sums.append(by_rdp(taken, guarantee.delta, guarantee.neighbouring))
    return min(guarantee.epsilon, *(s.epsilon for s in sums))


def _losses(what: str, i: int, of: int, run: _Run) -> Series:
    stretch = -(-run.steps // _POINTS)
    numbers = (np.array(run.done) - 1) // stretch
    places = np.unique(numbers).tolist()
    losses = np.array(run.losses)
    means = [float(f"{losses[numbers == place].mean():.{_DIGITS}g}") for place in places]
    return Series(
        id=replace(LOSS, setting=what if of == 1 else f"{what} {i}"),
        title="Loss in training",
        kind="line",
        x_label="step" if stretch == 1 else f"step (means of {stretch:,})",
        y_label="loss",
        x=tuple(float(min((place + 1) * stretch, run.steps)) for place in places),
        lines={what: tuple(means)},
    )


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
    accountant: Accountant = field(default_factory=partial(Accountant, None, unit=Unit.ROW))
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
        from synth_audit.plugins.plugin_config import build_generator

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


@dataclass(frozen=True)
class SettingRange:
    """What a number among the settings may be, in its annotation; both ends are allowed."""

    least: float
    most: float
    words: str


Count = Annotated[int, SettingRange(1, math.inf, "1 or more")]
Size = Annotated[float, SettingRange(math.ulp(0), sys.float_info.max, "above 0")]
Weight = Annotated[float, SettingRange(0, sys.float_info.max, "0 or more")]
Rate = Annotated[float, SettingRange(math.ulp(0), 1, "above 0 to 1")]
Share = Annotated[float, SettingRange(0, math.nextafter(1, 0), "0 to below 1")]
Part = Annotated[float, SettingRange(math.ulp(0), math.nextafter(1, 0), "above 0 and below 1")]


class CheckedSettings:
    """A dataclass whose numbers lie within what their annotations say; None is none.

    Attributes:
        where: the key of the plan under which they stand.

    Raises:
        PlanError: a number does not.
    """

    where: ClassVar[str] = "generator"

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            for within in getattr(hint, "__metadata__", ()):
                value = getattr(self, name)
                if value is not None and not within.least <= value <= within.most:
                    where = f"{self.where}.{name}"
                    raise PlanError(f"{name} is {value:g}", where=where, expected=within.words)


# What follows a generator or a model may have or leave out; without it the default holds.


def batches(model: Model, n: int, rng: np.random.Generator, size: int = BATCH) -> Iterator[Table]:
    """``n`` rows of a model, at most ``size`` at a time; of a finished table all of its rows, once.

    A model may have a method ``batches(n, rng, size)``: the rows that one ``sample(n, rng)`` would give, in
    its order. Without it rows are drawn batch by batch.
    """
    if (own := getattr(model, "batches", None)) is not None:
        yield from own(n, rng, size)
        return
    for start in range(0, n, size):
        yield model.sample(min(size, n - start), rng)


def column_groups(model: Model) -> tuple[tuple[str, ...], ...]:
    """The columns that a model draws together, group by group: its ``column_groups``, each column once.

    Empty where it draws all together.
    """
    found: tuple[tuple[str, ...], ...] = getattr(model, "column_groups", ())
    return found


def needs_of(generator: Generator) -> Needs:
    """What a fit cannot do without: its ``needs`` where they follow from settings, else those of its info."""
    found: Needs = getattr(generator, "needs", generator.info.needs)
    return found


def refits(generator: Generator) -> bool:
    """Whether it can be fitted to other rows; ``refits`` is False for a finished table."""
    return bool(getattr(generator, "refits", True))


def repeats(generator: Generator) -> bool:
    """Whether the same rows and seeds give the same candidate, as far as the generator knows.

    ``repeats`` is False for a finished table, which others may replace, and for what takes no seed.
    """
    return bool(getattr(generator, "repeats", True))


def finished(generator: Generator, schema: Schema, base: Path) -> Table | None:
    """The table that lies ready, read without a fit or a draw: what ``finished(schema, base)`` returns.

    Args:
        schema: of train's features. base: where relative paths in settings start.

    Returns:
        None when the generator draws its own.
    """
    found: Table | None = generator.finished(schema, base) if hasattr(generator, "finished") else None
    return found


def minimum_people(generator: Generator) -> int:
    """People who have a label that is learnt where no budget is spent and the plan does not declare it.

    ``minimum_people`` is 1 where a generator is handed every label, since it sees to rare ones itself or
    means to draw them; :data:`FEWEST_PEOPLE` where it says nothing.
    """
    return int(getattr(generator, "minimum_people", FEWEST_PEOPLE))


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


class TruncatableModel(Model, Protocol):
    """A fitted model that can give up its higher levels: what a truncatable generator fits."""

    def truncated(self, level: int) -> Model:
        """The same model with only its first ``level`` levels; unchanged when it has no more than these."""
        ...
