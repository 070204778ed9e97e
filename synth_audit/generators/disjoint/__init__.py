"""Parts of the columns drawn by generators of their own, and joined."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import accumulate
from operator import or_
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from synth_audit.errors import PlanError, PluginError, SynthAuditError
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import as_int_seed
from synth_audit.files import temporary_folder
from synth_audit.generators._model_files import read_model, write_model
from synth_audit.generators.disjoint.join import FEWEST, Joiner, Validation
from synth_audit.generators.disjoint.partition import (
    WHERE,
    Groups,
    Partition,
    number_of_parts,
    partition_pictures,
    partitioned,
)
from synth_audit.plugins import generator as contract
from synth_audit.plugins.fitting import fitted_model
from synth_audit.plugins.generator import FitContext, Generator, GeneratorInfo, Model, Needs, TrainingCourse
from synth_audit.plugins.plugin_config import build_generator
from synth_audit.table.schema import PublicDomain, Schema
from synth_audit.table.table import Table, load_table, save_table

_BY_VALIDATION = "the validated join has seen real rows, which ends what the parts guarantee"
_BY_CORRELATION = "the parts were chosen by the real rows' correlations, without noise"

TRAIN = "train"
"""Name of the file of real rows from which a validator is learnt again."""


@dataclass(frozen=True)
class Part:
    """Columns and the generator that draws them.

    Attributes:
        place: from 0 on. choice: the generator, as the plan names it.
        columns: names. reached: the ε that all spendings may reach with this part; None without a budget.
    """

    place: int
    choice: str | Mapping[str, Any]
    columns: tuple[str, ...]
    reached: float | None = None

    @property
    def title(self) -> str:
        """Which part it is, for a reader."""
        name = self.choice if isinstance(self.choice, str) else next(iter(self.choice), "")
        return f"part {self.place + 1} ({name})"

    @property
    def where(self) -> str:
        """Its generator's key in the plan."""
        return f"{WHERE}.generators[{self.place}]"

    def rows(self, train: Table) -> Table:
        """The columns of the part, with the rules that speak of no others."""
        rules = tuple(r for r in train.schema.rules if set(r.columns) <= set(self.columns))
        return train.under(Schema(tuple(train.schema[name] for name in self.columns), rules))

    def context(self, whole: FitContext) -> FitContext:
        """What the generator of the part is handed: draws of its own, and what is public of its columns."""
        known = {n: c for n, c in whole.public_domain.columns.items() if n in self.columns}
        inner = whole.inner(f"part{self.place + 1}")
        return replace(
            inner, public_domain=PublicDomain(known), course=TrainingCourse(whole.course.suppression)
        )


def fit_parts(parts: Sequence[Part], train: Table, context: FitContext) -> tuple[Model, ...]:
    """Fit every part; what they spend, and why nothing can be claimed, stands in the context's account.

    Nothing depends on where a part is fitted: each has draws of its own. Under a budget they are fitted here
    and in turn, since an account cannot be handed to another process.
    """
    handed = [part.context(context) for part in parts]
    if context.accountant.budget is None and context.executor.pool is not None and len(parts) > 1:
        return _beside(parts, handed, train, context)
    models = []
    for part, own in zip(parts, handed, strict=True):
        context.progress(part.title, part.place, len(parts))
        accountant = context.accountant
        with nullcontext() if accountant.budget is None else accountant.part(part.title, part.reached):
            models.append(_fitted(part, part.rows(train), own))
        context.course.follow(own.course)
    return tuple(models)


def _fitted(part: Part, train: Table, context: FitContext) -> Model:
    """The model of a part; an error says which part it is of.

    Raises:
        PluginError: a package is not installed.
    """
    try:
        return fitted_model(context.build(part.choice, part.where), train, context)
    except SynthAuditError as error:
        if not error.where.startswith(part.title):
            error.where = f"{part.title}: {error.where or part.where}"
        raise
    except ModuleNotFoundError as error:
        raise PluginError(
            f"{part.title} needs the package {error.name!r}, which is not installed",
            where=part.where,
            expected="what the generator is made of",
            fix=f"install {error.name}, or the extra of synth-audit that holds it (`deep` for networks)",
        ) from None


_Task = tuple[Part, Table, Callable[[], FitContext]]
"""All that the fit of a part rests on, as it travels to another process, where its context is made."""


def _beside(
    parts: Sequence[Part], handed: Sequence[FitContext], train: Table, context: FitContext
) -> tuple[Model, ...]:
    shared = {name: getattr(context, name) for name in ("executor", "progress", "deadline", "scratch")}
    run = RunContext(**shared)
    entities = None if context.entities is None else partial(np.asarray, context.entities())
    known = "rng", "public_domain", "device", "deadline", "checkpoint", "base"
    tasks = []
    for part, own in zip(parts, handed, strict=True):
        made = partial(FitContext, entities=entities, **{name: getattr(own, name) for name in known})
        tasks.append((part, part.rows(train), made))
    models = []
    for part, (files, voids, course) in zip(parts, run.map("part", _elsewhere, tasks), strict=True):
        for reason in voids:
            context.accountant.void(reason)
        context.course.follow(course)
        with temporary_folder(context.scratch) as place:
            for name, content in files.items():
                path = Path(place) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            models.append(context.build(part.choice, part.where).load(Path(place)))
    return tuple(models)


def _elsewhere(task: _Task) -> tuple[dict[str, bytes], tuple[str, ...], TrainingCourse]:
    """Fit a part and save its model, which as data can travel whatever it is made of.

    Returns:
        Its files, why nothing can be claimed, and how the training went.
    """
    part, train, made = task
    context = made()
    model = _fitted(part, train, context)
    with temporary_folder() as place:
        folder = Path(place)
        model.save(folder)
        files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return files, context.accountant.voids, context.course


@dataclass(frozen=True, eq=False)
class DisjointModel:
    """Models of the parts.

    Attributes:
        schema: of the features of train. groups: names of the columns of each part. models: of each part.
        joiner: what admits rows of the parts together; None for a join at random.
    """

    schema: Schema = field(repr=False)
    groups: Groups
    models: tuple[Model, ...] = field(repr=False)
    joiner: Joiner | None = field(default=None, repr=False)

    @property
    def column_groups(self) -> Groups:
        """The columns that are drawn together; those of a part that is divided itself are its groups."""
        pairs = zip(self.groups, self.models, strict=True)
        return tuple(group for whole, model in pairs for group in contract.column_groups(model) or (whole,))

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw rows of every part and put them beside one another, each used once at most.

        Raises:
            DataError: the validator admitted fewer than ``n``.
        """
        if self.joiner is not None:
            tables = self.joiner.joined(self.drawn(self.joiner.pool(n), rng), n, rng)
        else:
            # A generator may draw in an order that says something, such as that of train: two of them would
            # then join what is one person's.
            tables = [table.take(rng.permutation(table.n_rows)) for table in self.drawn(n, rng)]
        columns = {name: table.column(name) for table in tables for name in table.names}
        return Table(self.schema, pa.table({c.name: columns[c.name] for c in self.schema}))

    def batches(self, n: int, rng: np.random.Generator, size: int) -> Iterator[Table]:
        """The rows by batches; those of a validated join are joined all at once, and then handed out."""
        if self.joiner is not None:
            yield from self.sample(n, rng).parts(size)
            return
        for start in range(0, n, size):
            yield self.sample(min(size, n - start), rng)

    def drawn(self, n: int, rng: np.random.Generator) -> list[Table]:
        """``n`` rows of every part, each by a stream of its own.

        Raises:
            PluginError: a part drew another number of rows, or other columns.
        """
        tables = []
        for i, (group, model, own) in enumerate(
            zip(self.groups, self.models, rng.spawn(len(self.models)), strict=True)
        ):
            table = model.sample(n, own)
            if table.n_rows != n or set(table.names) != set(group):
                raise PluginError(
                    f"part {i + 1} drew other columns, or another number of rows, than it was asked for",
                    where=f"{WHERE}.generators[{i}]",
                    expected="as many rows as are asked for, of the columns of its part",
                )
            tables.append(table)
        return tables

    def save(self, folder: Path) -> None:
        """Write what is divided how, and each part into a folder of its own.

        A validator is learnt again from the real rows, which are written too: as data it has no other form.
        """
        seed = None if self.joiner is None else self.joiner.seed
        write_model(folder, (self.schema, self.groups, seed))
        if self.joiner is not None:
            save_table(self.joiner.train, folder, TRAIN)
        for i, model in enumerate(self.models):
            own = part_folder(folder, i)
            own.mkdir()
            model.save(own)


def part_folder(folder: Path, i: int) -> Path:
    """Where the model of a part is saved."""
    return folder / f"part{i + 1}"


@dataclass(frozen=True, kw_only=True)
class Disjoint:
    """P(x) = Π_p P_p(x_p): each part of the columns by a generator of its own, rows joined at random.

    What relates columns of different parts is lost, and no row that leaves was drawn whole. Who knows which
    columns belong together meets each part as its generator made it: the audits that know a few columns are
    told the parts, and attack them one by one.

    Under a budget the parts are fitted one after the other and spend from one account: their mechanisms
    compose as those of one fit, over the same people. A part that buys nothing ends the claim, and so does
    ``correlated``, which looks at real rows.

    Attributes:
        generators: of each part, by name or ``{name: {setting: value}}``; one alone fits all parts. Another
            ``disjoint`` may be among them.
        partition: ``correlated`` puts the columns of the strongest relation into different parts, again and
            again, which leaves most to a validated join; ``random`` at equal sizes; ``explicit`` as in
            ``columns``.
        parts: how many; as many as generators where left out, or 2 (1 for fewer than four columns).
        columns: names of the columns of each part, for ``explicit``.
        shares: of ε for each part, under a budget; equal where left out.
        join: ``concatenate`` puts rows of the parts beside one another at random; ``validated`` keeps those
            in which a model that has seen real rows finds that the parts belong together, and with that voids
            any guarantee of theirs.
        validation: of a validated join.

    Raises:
        PlanError: an unknown generator, one that refuses its settings or cannot be fitted anew; numbers of
            parts, generators and shares that do not agree; a column twice.

    Source: Lautrup, Rajabinasab, Hyrup, Zimek & Schneider-Kamp 2025.
    """

    generators: tuple[str | dict[str, Any], ...]
    partition: Partition = "correlated"
    parts: int | None = None
    columns: tuple[tuple[str, ...], ...] = ()
    shares: tuple[float, ...] = ()
    join: Literal["concatenate", "validated"] = "concatenate"
    validation: Validation = field(default_factory=Validation)
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Disjoint models",
        summary="Divides the columns among generators of any kind and joins what they draw.",
        source="Lautrup et al. 2025",
        trial={"generators": ["independent"]},
    )
    minimum_people: ClassVar[int] = 1
    """Each part is learnt as its generator learns."""

    def __post_init__(self) -> None:
        if not self.generators:
            raise _wrong("no generator is named", "one for each part, or one for all", "generators")
        known = number_of_parts(self.partition, self.parts, self.columns, len(self.generators))
        for name, given in (("generators", self.generators), ("shares", self.shares)):
            if len(given) not in (0, 1, known or len(given)) or (name == "shares" and len(given) == 1):
                raise _wrong(
                    f"{len(given)} {name} for {known} parts", "as many as parts, or one generator", name
                )
        if self.shares and (known is None or min(self.shares) <= 0 or abs(sum(self.shares) - 1) > 1e-9):
            raise _wrong("the shares of the budget do not add up", "shares above 0 that sum to 1", "shares")
        if self.join == "concatenate" and self.validation != Validation():
            raise _wrong("a join at random has nothing to validate", "`join: validated`", "validation")
        for i, generator in enumerate(self._inner(len(self.generators))):
            if not contract.refits(generator):
                raise _wrong(
                    "a finished table cannot be a part", "a generator that is fitted", f"generators[{i}]"
                )

    @property
    def needs(self) -> Needs:
        """What any of the parts cannot do without."""
        own = Needs(rows=FEWEST if self.join == "validated" else 1)
        return reduce(or_, map(contract.needs_of, self._inner(len(self.generators))), own)

    @property
    def repeats(self) -> bool:
        """Whether every part does."""
        return all(map(contract.repeats, self._inner(len(self.generators))))

    def fit(self, train: Table, context: FitContext) -> DisjointModel:
        """Divide the columns and fit each part to its own, apart from the others.

        Raises:
            PlanError: a column has no part, or there are more parts than columns, or one of the target alone.
            DataError: train has too few rows for a part, or for a validated join.
            BudgetSpent: the budget does not bear the parts.
        """
        train = train.released_only()
        if self.partition == "correlated":
            context.accountant.void(_BY_CORRELATION)
        if self.join == "validated":
            context.accountant.void(_BY_VALIDATION)
        n_parts = number_of_parts(self.partition, self.parts, self.columns, len(self.generators))
        n_parts = n_parts or (2 if len(train.names) > 3 else 1)
        groups = partitioned(train, self.partition, n_parts, self.columns, context.rng)
        reached = self._reached(len(groups), context)
        parts = [Part(i, self._choice(i), group, reached[i]) for i, group in enumerate(groups)]
        models = fit_parts(parts, train, context)
        if len(groups) > 1 and context.accountant.budget is None:
            for series in partition_pictures(train, groups, context.course.suppression, context.rng):
                context.course.show(series)
        joiner = None
        if self.join == "validated" and len(groups) > 1:
            joiner = Joiner.of(self.validation, train, groups, as_int_seed(context.rng), context.course)
        return DisjointModel(train.schema, groups, models, joiner)

    def load(self, folder: Path) -> DisjointModel:
        """The model that was saved there."""
        schema, groups, seed = read_model(folder, tuple)
        models = tuple(
            generator.load(part_folder(folder, i)) for i, generator in enumerate(self._inner(len(groups)))
        )
        joiner = None
        if seed is not None:
            joiner = Joiner.of(self.validation, load_table(folder, TRAIN), groups, seed)
        return DisjointModel(schema, groups, models, joiner)

    def _inner(self, n_parts: int) -> tuple[Generator, ...]:
        return tuple(_built(self._choice(i), f"{WHERE}.generators[{i}]") for i in range(n_parts))

    def _choice(self, i: int) -> str | dict[str, Any]:
        return self.generators[i if len(self.generators) > 1 else 0]

    def _reached(self, n_parts: int, context: FitContext) -> list[float | None]:
        """The ε that all spendings may reach with each part; None without a budget."""
        accountant = context.accountant
        if accountant.budget is None:
            return [None] * n_parts
        sums = [*accumulate(self.shares or [1 / n_parts] * n_parts)]
        return [*map(accountant.reached, sums[:-1]), accountant.budget.epsilon]


def _built(choice: str | dict[str, Any], place: str) -> Generator:
    """The generator of a part; an error of its own says which part it is of."""
    try:
        return build_generator(choice, place)
    except PlanError as error:
        if not error.where.startswith(place):
            error.where = f"{place}: {error.where}"
        raise


def _wrong(what: str, expected: str, key: str) -> PlanError:
    return PlanError(what, where=f"{WHERE}.{key}", expected=expected)
