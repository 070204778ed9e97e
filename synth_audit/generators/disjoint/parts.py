"""Parts fitted apart from one another, and rows joined from theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from synth_audit.errors import PluginError, SynthAuditError
from synth_audit.execution.context import RunContext
from synth_audit.files import temporary_folder
from synth_audit.generators._model_files import write_model
from synth_audit.generators.disjoint.join import Joiner
from synth_audit.generators.disjoint.partition import WHERE, Groups
from synth_audit.plugins.fitting import fitted_model
from synth_audit.plugins.generator import FitContext, Generator, Model, TrainingCourse, column_groups
from synth_audit.table.schema import PublicDomain, Schema
from synth_audit.table.table import Table, save_table

TRAIN = "train"
"""Name of the file of real rows from which a validator is learnt again."""


@dataclass(frozen=True)
class Part:
    """Columns and the generator that draws them.

    Attributes:
        place: from 0 on. name: of the generator. choice: as the plan names it.
        columns: names. reached: the ε that all spendings may reach with this part; None without a budget.
    """

    place: int
    name: str
    choice: str | Mapping[str, Any]
    columns: tuple[str, ...]
    reached: float | None = None

    @property
    def title(self) -> str:
        """Which part it is, for a reader."""
        return f"part {self.place + 1} ({self.name})"

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
    with _named(part):
        return fitted_model(context.build(part.choice, part.where), train, context)


@contextmanager
def _named(part: Part) -> Iterator[None]:
    """Say of an error which part it is of.

    Raises:
        PluginError: a package is not installed.
    """
    try:
        yield
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


@dataclass(frozen=True, eq=False)
class _PartFit:
    """What comes back: the files of a saved model, why nothing can be claimed, and how the training went."""

    files: Mapping[str, bytes] = field(repr=False)
    voids: tuple[str, ...]
    course: TrainingCourse = field(repr=False)


def _beside(
    parts: Sequence[Part], handed: Sequence[FitContext], train: Table, context: FitContext
) -> tuple[Model, ...]:
    shared = {name: getattr(context, name) for name in ("executor", "progress", "deadline", "scratch")}
    run = RunContext(**shared)
    entities = None if context.entities is None else partial(np.asarray, context.entities())
    tasks = [
        (
            part,
            part.rows(train),
            partial(
                FitContext,
                rng=own.rng,
                public_domain=own.public_domain,
                device=own.device,
                deadline=own.deadline,
                checkpoint=own.checkpoint,
                base=own.base,
                entities=entities,
            ),
        )
        for part, own in zip(parts, handed, strict=True)
    ]
    models = []
    for part, fit in zip(parts, run.map("part", _elsewhere, tasks), strict=True):
        for reason in fit.voids:
            context.accountant.void(reason)
        context.course.follow(fit.course)
        models.append(_unpacked(context.build(part.choice, part.where), fit.files, context.scratch))
    return tuple(models)


def _elsewhere(task: _Task) -> _PartFit:
    """Fit a part and save its model, which as data can travel whatever it is made of."""
    part, train, made = task
    context = made()
    model = _fitted(part, train, context)
    with temporary_folder() as place:
        folder = Path(place)
        model.save(folder)
        files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return _PartFit(files, context.accountant.voids, context.course)


def _unpacked(generator: Generator, files: Mapping[str, bytes], scratch: Path | None) -> Model:
    with temporary_folder(scratch) as place:
        for name, content in files.items():
            path = Path(place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return generator.load(Path(place))


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
        return tuple(group for whole, model in pairs for group in column_groups(model) or (whole,))

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw rows of every part and put them beside one another, each used once at most.

        Raises:
            DataError: the validator admitted fewer than ``n``.
        """
        if self.joiner is None:
            return side_by_side(self.schema, shuffled(self.drawn(n, rng), rng))
        drawn = self.drawn(self.joiner.pool(n), rng)
        return side_by_side(self.schema, self.joiner.joined(drawn, n, rng))

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


def shuffled(tables: Sequence[Table], rng: np.random.Generator) -> list[Table]:
    """The rows of each table in a random order of their own.

    A generator may draw in an order that says something, such as that of train: two of them would then join
    what is one person's.
    """
    return [table.take(rng.permutation(table.n_rows)) for table in tables]


def side_by_side(schema: Schema, tables: Sequence[Table]) -> Table:
    """Rows of the parts beside one another, in the order of the schema's columns."""
    columns = {name: table.column(name) for table in tables for name in table.names}
    return Table(schema, pa.table({c.name: columns[c.name] for c in schema}))
