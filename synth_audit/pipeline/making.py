"""Makes what an audit is about: tables pulled and split, a candidate fitted and drawn, a budget to pay from;
and refuses tables that every audit would misread."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa

from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.dp.mechanisms import bound_contributions
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import DataError, OutOfTime, PluginError
from synth_audit.execution.context import SERIAL, RunContext
from synth_audit.execution.seeds import Salt
from synth_audit.pipeline.coarsening import coarsening_of
from synth_audit.plan.plan import Plan
from synth_audit.plugins import generator as generators
from synth_audit.plugins import source as sources
from synth_audit.plugins.fitting import fit, fit_context
from synth_audit.plugins.generator import FitContext, Generator, Model
from synth_audit.registry import config_of
from synth_audit.store.evidence import (
    GeneratorRecord,
    SplitRecord,
    SyntheticRecord,
    TableRecord,
    column_records,
)
from synth_audit.store.files import as_filed, delete, map_parquet
from synth_audit.store.journal import read_journal
from synth_audit.store.ledger import Ledger, table_ledger
from synth_audit.store.salts import known_salt
from synth_audit.store.workspace import Workspace
from synth_audit.table.arrow import PlacedRows, kept
from synth_audit.table.coarsening import NO_COARSENING, BoundClipping, Coarsening
from synth_audit.table.people import entities_of, set_aside
from synth_audit.table.schema import Schema, quantitative
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.storage_types import refuse_huge
from synth_audit.table.table import Table, read_table

Given: TypeAlias = pa.Table | PlacedRows | Table
"""A table before it is read under the schema of a plan."""

_LUCK = 1e-6
"""Probability at most that tables which were divided at random are refused."""

_SHARE_OF_CONTROL = 0.05
"""Share of the control rows that must occur in train before chance is asked."""

_DECIMAL_DIGITS = re.compile(r"decimal\d+\(.*?\)")
"""How many digits decimals have follows from their values where a warehouse does not say."""


def refuse_seen_control(train: Table, control: Table | None) -> None:
    """Stop where control rows occur in train more often than a division at random explains.

    Take the rows that occur exactly twice in train and control together. Division at random puts the two into
    different tables with probability 2 n m / ((n + m)(n + m − 1)), for n and m rows. So the number of pairs
    divided is about binomial. A control drawn from train divides them all. Tables of few bits, whose rows
    occur many times, have few pairs and are not refused.

    Raises:
        DataError: with a probability of at most 1e-6 where rows were divided at random.
    """
    from scipy.stats import binom  # lazy import: keeps CLI start fast

    if control is None:
        return
    known, other = Encoded([train, control], train.schema.features).groups()
    shared = float(np.isin(other, known).mean())
    n, m = len(known), len(other)
    size = max(known.max(initial=-1), other.max(initial=-1)) + 1
    here, there = np.bincount(known, minlength=size), np.bincount(other, minlength=size)
    pairs = here + there == 2
    divided = 2 * n * m / ((n + m) * (n + m - 1))
    apart = int((pairs & (here == 1)).sum())
    if shared > _SHARE_OF_CONTROL and binom.sf(apart - 1, int(pairs.sum()), divided) < _LUCK:
        raise DataError(
            f"{shared:.0%} of the control rows occur in train, more than chance explains",
            where="control",
            expected="rows of the same population that the generator never saw",
            fix="give rows that were held back before the fit",
        )


def refuse_drift(plan: Plan, workspace: Workspace, schema: Schema) -> None:
    """Raise where columns were added, dropped or retyped since the same plan was split here last.

    What the plan says of the columns was decided on another table: a new one may be sensitive, and one that
    changed its type is measured in another way. Another plan is a new decision.

    Raises:
        DataError: naming each column and what became of it; nothing has been fitted.
    """
    if not workspace.split_record.is_file():
        return
    try:
        before = SplitRecord.read(workspace.split_record)
    except DataError:  # of another version, or damaged: it is about to be replaced
        return
    if before.plan_sha256 != plan.digest:
        return
    then = {c.name: _DECIMAL_DIGITS.sub("decimal", c.storage) for c in before.columns}
    now = {c.name: _DECIMAL_DIGITS.sub("decimal", str(c.storage)) for c in schema.columns}
    found = [
        *(f"{name!r} was added" for name in now if name not in then),
        *(f"{name!r} was dropped" for name in then if name not in now),
        *(f"{n!r} was {then[n]} and is {now[n]}" for n in then if n in now and then[n] != now[n]),
    ]
    if found:
        raise DataError(
            f"the source has changed since this plan was run: {'; '.join(found)}",
            where="source",
            expected="the columns and types of the last run of this plan",
            fix="declare the column under `columns:`, or leave it out by `query:`, and run the changed plan",
        )


def spending_ledger(workspace: Workspace) -> Ledger:
    """The ledger that a fit in this workspace spends from: the table's own, for candidates of a sweep too."""
    ledger, home = table_ledger(workspace, read_journal(workspace)), workspace.home
    records = [home.synthetic_record]
    if os.path.isdir(home.candidates):
        records += (home.candidate(p.name).synthetic_record for p in home.candidates.iterdir())
    # Where a candidate lies whose fit was debited, there must be a ledger.
    spent = any(map(SyntheticRecord.tells_of_spending, records))
    return replace(ledger, history=ledger.history or spent)


def pull_source(plan: Plan, clipping: BoundClipping | None = None) -> Table:
    """The sensitive table.

    Args:
        clipping: of the plan's columns; to be told what it counts.

    Raises:
        DataError: it cannot be read, or holds no rows for both train and control.
    """
    clipping = clipping or BoundClipping(plan.columns)
    data = kept(clipping.applied(sources.batches(plan.build_source(), plan.base)), None)
    schema = infer_schema(data, plan.columns, rules=plan.stated_rules, where="source")
    source = read_table(data, schema, where="source")
    if source.n_rows < 2:
        raise DataError(
            "the source has a single row",
            where="source",
            expected="rows for both train and control",
            fix="check the query or file that the plan's source reads",
        )
    return source


def split_again(plan: Plan, workspace: Workspace) -> tuple[Table, Table]:
    """Train and control from the source, which must give the rows, and their order, that it gave the split.

    Raises:
        DataError: it gives others, or it cannot be read or split.
    """
    splitting, salt = SplitRecord.read(workspace.split_record), known_salt(workspace)
    train, control = split_source(plan, pull_source(plan), salt)
    found = (TableRecord.of(train, salt), TableRecord.of(control, salt), column_records(train.schema))
    fix = "run all stages again"
    if not splitting.order:
        problem = "the split was made by a plan that lets real rows be written"
    elif found != (splitting.train, splitting.control, splitting.columns):
        problem = "the source has other rows, or types, than it had for the split"
    elif order_of(train, control, salt) != splitting.order:
        problem = "the source gives its rows in another order than it gave them for the split"
        fix = "order them in its `query:`, and run all stages again"
    else:
        filed = as_filed(train), as_filed(control)
        return (train, control) if filed[0] is None else anchored(*filed, plan)
    raise DataError(problem, where="source", expected="the same table in every stage of a run", fix=fix)


def delete_rows(workspace: Workspace) -> None:
    """Delete the real rows that a workspace holds, with those of its candidates."""
    rooms = [workspace]
    if os.path.isdir(workspace.candidates):
        rooms += (workspace.candidate(p.name) for p in workspace.candidates.iterdir())
    for room in rooms:
        delete(room.train)
        delete(room.control)


def order_of(train: Table, control: Table, salt: Salt) -> str:
    """A keyed hash of the rows of train and control in their order."""
    return salt.digest((train.ordered_hash + control.ordered_hash).encode())


def split_source(plan: Plan, source: Table, salt: Salt) -> tuple[Table, Table]:
    """Train and control; raises ``DataError`` when one would be too small."""
    aside = set_aside(source, plan.split.control, salt.key("split"), apart=divides_equals(plan))
    train, control = source.divided(aside)
    known, other = anchored(train, control, plan)
    return known, other


def divides_equals(plan: Plan) -> bool:
    """Whether equal rows without a key get coins of their own where chance explains them.

    Not where differential privacy is promised: one person more would then move others.
    """
    return plan.privacy is None


def anchored(train: Given, control: Given | None, plan: Plan) -> tuple[Table, Any]:
    """Real tables under the schema that is read off train and the plan."""
    schema = infer_schema(train, plan.columns, rules=plan.stated_rules)
    known = read_table(train, schema, where="train")
    if known.n_rows < 2:
        raise DataError(
            "train has a single row",
            where="train",
            expected="at least two rows",
            fix="check the file, or set fewer rows aside",
        )
    return known, None if control is None else read_table(control, schema, where="control")


@dataclass(frozen=True, eq=False)
class FittedPlan:
    """A plan's generator, fitted and about to be drawn from.

    Attributes:
        fitted: who it is, how it was configured, and what it spent.
        handed: what its fit was handed, where it and what it draws may show how they went.
        schema: of the training rows. rows: to be drawn.
        coarsening: what becomes of the rows that the model draws, before anybody else meets them.
    """

    model: Model
    fitted: GeneratorRecord
    handed: FitContext
    schema: Schema
    rows: int
    draws: np.random.Generator
    coarsening: Coarsening = NO_COARSENING

    @property
    def record(self) -> GeneratorRecord:
        """Of the fit and of what has been drawn by now."""
        return replace(
            self.fitted, training=generators.training_series(self.handed.course, self.handed.accountant)
        )

    def batches(self, folder: Path | None = None) -> Iterator[Table]:
        """The candidate by batches of a constant size, each checked against the schema; to be used once.

        Args:
            folder: a private one in which all rows are laid out before, where coarsening rests on all.

        Raises:
            DataError: the generator drew other columns or kinds than train's, or no rows.
        """
        coarsening, drawn = self.coarsening, self._drawn()
        if coarsening.needs_release:
            whole = self._whole(drawn, folder)
            coarsening, drawn = coarsening.fixed_on(whole), whole.parts(generators.BATCH)
        for part in drawn:
            yield coarsening.of(part) if coarsening else part

    def _drawn(self) -> Iterator[Table]:
        """The rows as the model draws them."""
        try:
            for batch in generators.batches(self.model, self.rows, self.draws):
                yield read_table(batch, self.schema, where="synthetic", partial=True)
        except OSError as error:  # not to be taken for one of the file that the batches go into
            raise PluginError("the generator failed", where=type(error).__name__) from None

    def table(self, folder: Path) -> Table:
        """The whole candidate; many rows are laid out in a private folder and mapped."""
        return self._whole(self.batches(folder), folder)

    def _whole(self, parts: Iterator[Table], folder: Path | None) -> Table:
        rows = kept((batch for part in parts for batch in part.batches()), folder)
        return read_table(rows, self.schema, where="synthetic", partial=True)


def fit_plan(
    plan: Plan,
    train: Table,
    salt: Salt,
    context: RunContext = SERIAL,
    ledger: Ledger | None = None,
    checkpoint: Path | None = None,
) -> FittedPlan:
    """Fit the plan's generator on train. Fit and draws are seeded from the salt and these rows of train.

    Other rows get other streams: two releases whose tables differ by one person would otherwise share every
    random number, and their difference would be that person's.

    Args:
        ledger: what a generator that spends is paid from; without it none can spend.
        checkpoint: where a long fit may leave what it would resume from.

    Raises:
        BudgetSpent: the table's budget does not bear the fit.
        DataError: the generator ran out of time, or train has too few rows for it, or numbers so large that
            none could be fitted.
    """
    generator, coarsening = plan.build_generator(), coarsening_of(plan, train.schema)
    assert plan.generator is not None
    name = plan.generator.name
    streams = ("generator", name, TableRecord.of(train, salt).hmac)
    for column in quantitative(train.schema.features):
        refuse_huge(column.name, train.column(column.name), where="train")
    known = bounded(plan, train, salt.rng(*streams, "contributions"))
    terms = plan.fit_terms
    accountant = ledger.accountant(terms, plan=plan.digest) if ledger else terms.detached()
    timed = replace(context, deadline=context.deadline.again())
    rng = salt.rng(*streams, "fit")
    context.progress(f"fit {name}", 0, 2)
    handed = fit_context(known, rng, accountant, timed, plan.base, checkpoint, plan.suppression)
    try:
        fitted = fit(generator, known.released_only(), handed)
    except OutOfTime as late:
        raise DataError(
            f"the generator {late.what}",
            where=f"generator.{name}",
            expected="a fit within `execution.deadline`",
            fix="allow more time, or let it do less",
        ) from None
    context.progress(f"sample {name}", 1, 2)
    account = PrivacyAccount(
        guarantee=accountant.guarantee(), reason=accountant.why_none, mechanisms=accountant.mechanisms
    )
    if ledger is not None and (terms.total is not None or accountant.mechanisms):
        spent = ledger.spent(terms.total.delta) if terms.total is not None else accountant.spent()
        entities = entities_of(known)
        account = replace(
            account,
            several_rows=len(set(entities)) < len(entities),
            table_epsilon=spent.epsilon,
            table_delta=spent.delta,
        )
    record = GeneratorRecord(
        name, config_of(generator), account, column_groups=generators.column_groups(fitted.model)
    )
    rows = plan.rows or train.n_rows
    draws = salt.rng(*streams, "sample")
    return FittedPlan(fitted.model, record, handed, train.schema, rows, draws, coarsening)


def bounded(plan: Plan, train: Table, rng: np.random.Generator) -> Table:
    """Train with no more rows of any entity than the plan declares."""
    most = plan.privacy.rows_per_entity if plan.privacy else None
    if most is None:
        return train
    keys = [entity.hex() for entity in entities_of(train)]
    return train.take(bound_contributions(keys, most, rng))


def kept_because(generator: Generator, record: GeneratorRecord) -> str:
    """Why a candidate is kept and compared by its hash, never drawn again; empty when it can be repeated."""
    if record.privacy.mechanisms:
        return "its fit spent privacy budget, and another fit would spend it again"
    return "" if generators.repeats(generator) else "its generator does not repeat what it made"


@dataclass(frozen=True, eq=False)
class MadeCandidate:
    """What the stages before an audit left, each of the same plan and data."""

    train: Table
    control: Table
    synthetic: Table
    splitting: SplitRecord
    making: SyntheticRecord
    salt: Salt

    @classmethod
    def of(cls, plan: Plan, workspace: Workspace, rows: Path, folder: Path) -> Self:
        """Read the three tables.

        Args:
            rows: file of the candidate. folder: where tables are laid out, to be mapped.

        Raises:
            DataError: a stage did not run, or with another plan or on other data than the others.
        """
        splitting = SplitRecord.read(workspace.split_record)
        making = SyntheticRecord.read(workspace.synthetic_record)
        train, control = real_tables(plan, workspace, folder)
        synthetic = read_candidate(rows, train.schema, folder, named=workspace.synthetic)
        made = cls(train, control, synthetic, splitting, making, known_salt(workspace))
        # An audit must describe one run of one plan: nothing may have changed between the stages.
        known, other, drawn = (TableRecord.of(t, made.salt) for t in (train, control, synthetic))
        stale = ""
        if (plan.digest, known, other) != (splitting.plan_sha256, splitting.train, splitting.control):
            stale = "split"
        elif (plan.digest, known, drawn) != (making.plan_sha256, making.train, making.table):
            stale = "synthetic"
        if stale:
            raise DataError(
                f"the output of the {stale} stage does not belong to this plan and data",
                where="workspace",
                expected="all stages run with the same plan, in order",
                fix=f"run the {stale} stage and those after it again",
            )
        return made


def read_candidate(path: Path, schema: Schema, folder: Path, named: Path | None = None) -> Table:
    """A candidate in a file, under the schema of train; see :func:`map_parquet`."""
    data = map_parquet(path, made_by="synthetic", named=named, folder=folder)
    return read_table(data, schema, where="synthetic", partial=True)


def training_rows(plan: Plan, workspace: Workspace, folder: Path) -> Table:
    """Train alone, see :func:`real_tables`."""
    if not plan.execution.write_real_rows:
        return split_again(plan, workspace)[0]
    return anchored(map_parquet(workspace.train, made_by="split", folder=folder), None, plan)[0]


def real_tables(plan: Plan, workspace: Workspace, folder: Path | None = None) -> tuple[Table, Table]:
    """Train and control as the split left them, or from the source where it must not leave them.

    Args:
        folder: see :func:`map_parquet`.
    """
    if not plan.execution.write_real_rows:
        again = split_again(plan, workspace)
        return again if folder is None else (again[0].laid_out(folder), again[1].laid_out(folder))
    paths = (workspace.train, workspace.control)
    train, control = (map_parquet(p, made_by="split", folder=folder) for p in paths)
    known, other = anchored(train, control, plan)
    return known, other
