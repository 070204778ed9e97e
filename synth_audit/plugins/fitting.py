"""Fits generators, shares fits among games, and leaves out labels that too few people have."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self, cast

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Bools, Floats, Labels
from synth_audit.dp.accountant import NO_BUDGET, Accountant, FitTerms
from synth_audit.dp.guarantee import PrivacyGuarantee
from synth_audit.errors import PluginError
from synth_audit.execution.context import RunContext
from synth_audit.plugins import generator as generators
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.generator import FitContext, Generator, Model
from synth_audit.registry import config_of
from synth_audit.table.coarsening import NO_COARSENING, Coarsening
from synth_audit.table.people import key_columns, persons
from synth_audit.table.schema import Column, PublicDomain, Schema, nominal
from synth_audit.table.table import Table


def publicly_known(column: Column) -> bool:
    """Whether the labels of a column may leave however few rows have them: they are declared, the same for
    every column of the kind, or text that the plan releases."""
    return bool(column.declared_categories or column.kind.fixed_domain or column.release_text)


def may_leave(column: Column, codes: Floats, weights: Floats, size: int, fewest: float) -> Bools:
    """Which labels of a column leave, shape (size,): all where they are public, else those of enough people.

    Args:
        codes: of each row, shape (n,), NaN where missing.
        weights: of each row, shape (n,); those of one person sum to 1 at most.
        size: how many labels there are. fewest: people who have a label that leaves.
    """
    if publicly_known(column):
        return np.ones(size, dtype=bool)
    known = ~np.isnan(codes)
    people = np.bincount(codes[known].astype(np.intp), weights=weights[known], minlength=size)
    enough: Bools = people >= fewest - 1e-9  # weights of one person may sum to a little less than 1
    return enough


def as_learnt(generator: Generator, train: Table, context: FitContext) -> Table:
    """Train, whose released columns hold no label of fewer people than :func:`minimum_people` says.

    Other labels of the column take their place, as often as these occur; none does where there are no others.
    Which labels these are is read off train: under a budget train stays as it is.
    """
    fewest = generators.minimum_people(generator)
    if fewest <= 1 or context.accountant.budget is not None:
        return train
    train, rng = train.released_only(), context.rng
    replaced = {
        column.name: column.kind.stored(_replaced(labels, stay, rng), column.storage)
        for column, labels, stay in _with_rare_labels(train, context.weights(train.n_rows), fewest)
    }
    stored = {name: train.column(name) for name in train.names}
    return Table(train.schema, pa.table(stored | replaced)) if replaced else train


def rare_label_columns(
    train: Table, weights: Floats, fewest: float, drawn: Table | None = None
) -> tuple[str, ...]:
    """Names of the columns in train of which some label is learnt from nobody; see :func:`as_learnt`.

    Args:
        weights: of each row, shape (n,); those of one person sum to 1 at most.
        drawn: leave out columns all of whose rare labels are in this table.
    """
    return tuple(
        column.name
        for column, labels, stay in _with_rare_labels(train.released_only(), weights, fewest)
        if drawn is None or not set(labels[~stay]) <= set(drawn.labels(column.name))
    )


def _with_rare_labels(train: Table, weights: Floats, fewest: float) -> Iterator[tuple[Column, Labels, Bools]]:
    """Such columns, their labels, and which rows' labels stay, shape (n,) each."""
    from pandas import factorize  # here, so that looking around stays light

    for column in nominal(train.schema):
        if publicly_known(column):
            continue
        labels = train.labels(column.name)
        places, names = factorize(labels)
        stays = may_leave(column, np.where(places >= 0, places, np.nan), weights, len(names), fewest)
        if not stays.all():
            yield column, labels, (places < 0) | stays[places]


def _replaced(labels: Labels, stay: Bools, rng: np.random.Generator) -> Labels:
    """Others of the labels that are there and stay in place of the rest, as often as they occur."""
    others = labels[stay]
    others = others[[label is not None for label in others]]
    kept, rare = labels.copy(), np.flatnonzero(~stay)
    kept[rare] = rng.choice(others, len(rare)) if len(others) else None
    return kept


@dataclass(frozen=True)
class FitRecipe:
    """A generator and the terms it is fitted under.

    Attributes:
        terms: under which it may spend on privacy. base: where relative paths in its settings start.
        coarsening: what becomes of the rows that its models draw.
    """

    generator: Generator
    terms: FitTerms = NO_BUDGET
    base: Path = field(default_factory=Path.cwd)
    coarsening: Coarsening = NO_COARSENING

    @classmethod
    def of(cls, subject: Subject) -> Self:
        """How the generator of a subject is fitted again; it must have one."""
        assert subject.generator is not None
        return cls(subject.generator, subject.terms, subject.base, subject.coarsening)


@dataclass(frozen=True, eq=False)
class CoarsenedModel:
    """A model of which all that it draws is made coarser, as the release is."""

    model: Model
    coarsening: Coarsening

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; what is rare among them, they say themselves."""
        return self.coarsening.applied(self.model.sample(n, rng))

    def save(self, folder: Path) -> None:
        """Write the model; the rules are the plan's."""
        self.model.save(folder)


@dataclass(frozen=True)
class Fitted:
    """A model, what its accountant guarantees of all drawn from it, and whether anything was spent."""

    model: Model
    guarantee: PrivacyGuarantee | None = None
    spent: bool = False


def fit(generator: Generator, train: Table, context: FitContext) -> Fitted:
    """Fit a generator that has what it needs.

    Raises:
        DataError: train has too few rows for it.
        PluginError: it needs a GPU, and the device is the processor or the machine has none.
        BudgetSpent: the budget does not bear it; nothing ran that was not paid for.
    """
    model, accountant = fitted_model(generator, train, context), context.accountant
    return Fitted(model, accountant.guarantee(), bool(accountant.mechanisms))


def fitted_model(generator: Generator, train: Table, context: FitContext) -> Model:
    """What a generator, of a table or of a part of its columns, learns of all that it may.

    Raises: as :func:`fit`.
    """
    generators.needs_of(generator).check(train, context.device, generator.info.title)
    if context.accountant.budget is not None:  # digits of train are private: they are rounded to the plan's
        train = train.under(train.schema.without_inferred_resolution())
    return generator.fit(as_learnt(generator, train, context), context)


def fit_context(
    train: Table,
    rng: np.random.Generator,
    accountant: Accountant,
    context: RunContext,
    base: Path,
    checkpoint: Path | None = None,
    suppression: int = 10,
) -> FitContext:
    """What a generator is handed within a run; its pictures tell of no fewer rows than ``suppression``."""
    return FitContext(
        rng=rng,
        public_domain=PublicDomain.of(train.schema),
        accountant=accountant,
        device=context.device,
        deadline=context.deadline,
        progress=context.progress,
        entities=partial(persons, train) if key_columns(train.schema) else None,
        checkpoint=checkpoint,
        scratch=context.scratch,
        base=base,
        executor=context.executor,
        course=generators.TrainingCourse(suppression),
    )


@contextmanager
def untrusted() -> Iterator[None]:
    """Any failure of a generator inside as one of the plug-in's.

    Its text may hold a cell value, and its kind may mean something else to whoever runs the audit: a
    generator that says "not applicable" must not make an audit of it so.

    Raises:
        PluginError: the code inside failed; says the kind of error alone.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        raise PluginError("the generator failed", where=type(error).__name__) from None


def draw(model: Model, n: int, schema: Schema, rng: np.random.Generator) -> Table:
    """Draw ``n`` rows that hold the columns of ``schema`` and finite numbers.

    Raises:
        PluginError: the model failed or returned something else.
    """
    with untrusted():
        made = model.sample(n, rng)
        fits = set(made.names) == set(schema.names) and made.n_rows == n
        finite = fits and all(c.kind.finite(made.column(c.name)) for c in schema)
    if not finite:
        what = (
            "infinite numbers" if fits else "other columns, or another number of rows, than it was asked for"
        )
        raise PluginError(f"the generator drew {what}", expected="the columns it was fitted to, finite")
    return made


def fit_shared(recipe: FitRecipe, train: Table, seed: int, context: RunContext) -> Fitted:
    """Fit a generator to ``train`` for a game, or take the fit from the run's cache if levels can share it.

    A fit is known by the untruncated configuration, the rows and the seed: a sweep over levels costs one
    fit, and the levels differ by what is cut off alone. A fit that spent on privacy is never kept, since its
    noise would be met again. Whatever it spends is nobody's budget: see :meth:`FitTerms.detached`.

    Raises:
        PluginError: the generator failed.
    """
    generator = recipe.generator
    if isinstance(generator, generators.Truncatable):
        whole, level = generator.untruncated(), generator.truncation
        fitted = _kept_fit(replace(recipe, generator=whole), train, seed, context)
        if level is not None:
            with untrusted():
                model = cast("generators.TruncatableModel", fitted.model).truncated(level)
            fitted = replace(fitted, model=model)
    else:
        fitted = _fit(recipe, train, seed, context)
    if not recipe.coarsening:
        return fitted
    return replace(fitted, model=CoarsenedModel(fitted.model, recipe.coarsening))


def _kept_fit(recipe: FitRecipe, train: Table, seed: int, context: RunContext) -> Fitted:
    """The fit as the cache has it, or a new one, which it then keeps if it may."""
    generator = recipe.generator
    kind = type(generator)
    inputs = (
        "fit",
        f"{kind.__module__}.{kind.__qualname__}",
        json.dumps(config_of(generator), sort_keys=True),
        train.fingerprint,
        repr(train.schema),
        str(seed),
    )

    made: list[Fitted] = []

    def fill(folder: Path) -> bool:
        made.append(_fit(recipe, train, seed, context))
        if made[0].spent:
            return False
        with untrusted():
            made[0].model.save(folder)
        return True

    folder = context.cache.folder_of(*inputs, fill=fill) if context.cache.keeps else None
    if folder is not None:
        with untrusted():
            return Fitted(generator.load(folder))
    return made[0] if made else _fit(recipe, train, seed, context)


def _fit(recipe: FitRecipe, train: Table, seed: int, context: RunContext) -> Fitted:
    generator, accountant = recipe.generator, recipe.terms.detached()
    with untrusted():
        needs, title = generators.needs_of(generator), generator.info.title
    needs.check(train, context.device, title)  # its words are ours, and say what to do
    try:
        with untrusted():
            handed = fit_context(train, np.random.default_rng(seed), accountant, context, recipe.base)
            return fit(generator, train, handed)
    except PluginError:
        context.deadline.check()  # out of time is then the reason, whatever the generator made of it
        raise
