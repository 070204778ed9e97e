"""Parts fitted apart from one another: beside one another by the executor, in turn under a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from synth_audit.core.accounting import Accountant, Unit
from synth_audit.core.arrays import Integers
from synth_audit.core.context import RunContext
from synth_audit.core.errors import PluginError, SynthAuditError
from synth_audit.core.execution.deadline import Deadline
from synth_audit.core.files import temporary_folder
from synth_audit.core.fitting import fitted_model
from synth_audit.core.generator import FitContext, Generator, Model
from synth_audit.core.public_domain import PublicDomain
from synth_audit.core.schema import Schema
from synth_audit.core.table import Table
from synth_audit.core.training_course import TrainingCourse
from synth_audit.core.workplace import Device
from synth_audit.generators.disjoint.partition import WHERE


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
        with _accounted(part, context.accountant):
            models.append(_fitted(part, part.rows(train), own))
        context.course.follow(own.course)
    return tuple(models)


def _fitted(part: Part, train: Table, context: FitContext) -> Model:
    with _named(part):
        return fitted_model(context.build(part.choice, part.where), train, context)


@contextmanager
def _accounted(part: Part, accountant: Accountant) -> Iterator[None]:
    if accountant.budget is None:
        yield
        return
    with accountant.part(part.title, part.reached):
        yield


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


@dataclass(frozen=True, eq=False)
class _Task:
    """All that the fit of a part rests on, as it travels to another process; see :class:`FitContext`."""

    part: Part
    train: Table = field(repr=False)
    rng: np.random.Generator = field(repr=False)
    public_domain: PublicDomain = field(repr=False)
    device: Device
    deadline: Deadline
    checkpoint: Path | None
    base: Path
    entities: Integers | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class _PartFit:
    """What comes back: the files of a saved model, why nothing can be claimed, and how the training went."""

    files: Mapping[str, bytes] = field(repr=False)
    voids: tuple[str, ...]
    course: TrainingCourse = field(repr=False)


def _beside(
    parts: Sequence[Part], handed: Sequence[FitContext], train: Table, context: FitContext
) -> tuple[Model, ...]:
    run = RunContext(
        executor=context.executor,
        progress=context.progress,
        deadline=context.deadline,
        scratch=context.scratch,
    )
    entities = None if context.entities is None else context.entities()
    tasks = [
        _Task(
            part=part,
            train=part.rows(train),
            rng=c.rng,
            public_domain=c.public_domain,
            device=c.device,
            deadline=c.deadline,
            checkpoint=c.checkpoint,
            base=c.base,
            entities=entities,
        )
        for part, c in zip(parts, handed, strict=True)
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
    entities = task.entities
    context = FitContext(
        rng=task.rng,
        public_domain=task.public_domain,
        accountant=Accountant(None, unit=Unit.ROW),
        device=task.device,
        deadline=task.deadline,
        entities=None if entities is None else lambda: entities,
        checkpoint=task.checkpoint,
        base=task.base,
    )
    model = _fitted(task.part, task.train, context)
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
