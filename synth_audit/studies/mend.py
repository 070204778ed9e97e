"""Looks for the smallest coarsening with which a refused release would pass, and counts what it tried."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from pydantic import ConfigDict, with_config

from synth_audit.arrays import Floats
from synth_audit.errors import DataError, PlanError
from synth_audit.execution.context import SERIAL, RunContext
from synth_audit.files import temporary_folder
from synth_audit.findings.measurement import MeasurementId
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.pipeline import stages
from synth_audit.pipeline.coarsening import coarsening_of
from synth_audit.pipeline.making import MadeCandidate
from synth_audit.plan.plan import Plan
from synth_audit.plan.sections import INTO, CoarsenSpec, ColumnCoarsening, span_grid
from synth_audit.store.evidence import Evidence, TableRecord
from synth_audit.store.files import write_text
from synth_audit.store.journal import read_journal
from synth_audit.store.ledger import begin_attempt, table_ledger
from synth_audit.store.locate import newest_evidence
from synth_audit.store.records import to_json
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace
from synth_audit.table.coarsening import holds_label, spacing
from synth_audit.table.kind import Order
from synth_audit.table.resolution import ValueGrid
from synth_audit.table.schema import Column, quantitative
from synth_audit.table.table import Table
from synth_audit.verdict.suite import load_suite

_PARTS = (100, 50, 25, 12, 6)
"""Into how many steps a rung divides the middle nine tenths of a column of numbers."""

_TAILS = (0.005, 0.01, 0.02, 0.05, 0.1)
"""Share of the release beyond either end of a rung, but at least :data:`_TOGETHER` rows."""

_TOGETHER = 20
"""Rows beyond an end of a rung at least: twice the ten below which counts are suppressed."""

_RARE = (5, 10, 20, 50, 100)
"""Rows below which a rung merges labels."""

_SPANS = ("1 minute", "1 hour", "1 day", "7 days", "1 month", "1 year")

_NICE = (1, 2, 5)
"""Steps that people read easily."""

RUNGS = len(_PARTS)

SCHEMA_VERSION = "1.0"

MENDABLE = ("singling_out", "novel_content")
"""Audits that refuse a release for what single columns give away: coarser values are their remedy. All others
tell of remembered people, of which a coarser copy is one still."""

_UTILITY = MeasurementId("marginals", "total_variation")


def rung(number: int, names: Iterable[str], release: Table) -> dict[str, ColumnCoarsening]:
    """Rules for the columns, ``number`` in 0 … RUNGS − 1; without those of which nothing can be made coarser.

    Args:
        release: as the generator drew it.
    """
    rules = {name: _rule(number, release.schema[name], release) for name in names}
    return {name: ColumnCoarsening.model_validate(rule) for name, rule in rules.items() if rule}


def _rule(number: int, column: Column, release: Table) -> Mapping[str, Any]:
    if quantitative([column]):
        values = release.numbers(column.name)
        known = values[~np.isnan(values)]
        if not len(known):
            return {}
        return (_moments if column.kind.order is Order.DATES else _numbers)(number, column, known)
    if column.kind.fixed_domain is not None or not holds_label(column, INTO):
        return {}
    counts = pc.value_counts(release.texts(column.name).drop_null()).to_pylist()
    rarer = any(x["counts"] < _RARE[number] for x in counts)
    return {"merge_rarer_than": _RARE[number]} if rarer else {}


def _numbers(number: int, column: Column, values: Floats) -> Mapping[str, Any]:
    known = column.resolution.grid if column.resolution and not column.resolution.rounded else ValueGrid(0.0)
    least = max(known.step, spacing(column))
    low, high = np.quantile(values, (0.05, 0.95))
    step = _nice(((high - low) or float(np.ptp(values))) / _PARTS[number], least)
    grid = ValueGrid.of_step(step) if step else None
    found: dict[str, Any] = {"round_to": _plain(step)} if step > least else {}
    return found | {key: _plain(end) for key, end in _ends(number, values, grid).items()}


def _moments(number: int, column: Column, values: Floats) -> Mapping[str, Any]:
    least = max(spacing(column), column.resolution.grid.step if column.resolution else 0.0)
    coarser = [s for s in _SPANS if span_grid(s).step > least]
    if not coarser:
        return {}
    span = coarser[min(number, len(coarser) - 1)]
    ends = _ends(number, values, span_grid(span))
    start = datetime(1970, 1, 1)
    return {"round_to": span} | {key: start + timedelta(microseconds=end) for key, end in ends.items()}


def _ends(number: int, values: Floats, grid: ValueGrid | None) -> dict[str, float]:
    """Bottom and top, as far as values lie beyond them; on the grid, inwards."""
    ordered = np.sort(values)
    for beyond in (max(_TOGETHER, int(_TAILS[number] * len(ordered))), _TOGETHER):
        if 2 * beyond > len(ordered):
            continue
        low, high = float(ordered[beyond - 1]), float(ordered[-beyond])
        if grid is not None:
            low, high = _on_grid(grid, low, up=True), _on_grid(grid, high, up=False)
        if low < high:
            break  # else most rows hold one and the same number, and few others are left beside it
    else:
        return {}
    found = {"bottom": low} if low > ordered[0] else {}
    return found | ({"top": high} if high < ordered[-1] else {})


def _on_grid(grid: ValueGrid, value: float, *, up: bool) -> float:
    """The next number on the grid, upwards or downwards."""
    near = float(grid.nearest(np.array([value]))[0])
    if (near < value) if up else (near > value):
        step = {"M": 31 * 86_400e6, "Y": 372 * 86_400e6}.get(grid.calendar or "", grid.step)
        near = float(grid.nearest(np.array([near + step if up else near - step]))[0])
    return near


def _nice(step: float, least: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is no smaller; a multiple of ``least`` if that is one
    itself, and that at least."""
    if least and step <= least:
        return least
    unit = least or 1.0
    power = np.floor(np.log10(step / unit)) if step > 0 else 0.0
    sizes = (n * 10.0 ** (power + i) * unit for i in (0, 1) for n in _NICE)
    return float(f"{next((x for x in sizes if x >= step * (1 - 1e-9)), step):.12g}")


def _plain(number: float) -> float:
    return int(number) if float(number).is_integer() else float(number)


@dataclass(frozen=True)
class MendTry:
    """One candidate that was judged.

    Attributes:
        coarsen: as it would stand in the plan. words: the same for a reader, a column each.
        refused_by: blocking gates that did not pass, of those whose audits were run.
        total_variation: of the columns on average, from real rows as they are; None if not measured.
    """

    coarsen: Mapping[str, Any]
    words: tuple[str, ...]
    verdict: str
    refused_by: tuple[str, ...]
    total_variation: float | None


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class MendRecord:
    """What was tried on a refused release.

    Attributes:
        plan_sha256: of the plan that was refused. train: identity of its training rows.
        refused_by: the blocking gates that did not pass. hopeless: those that no coarsening moves; with any,
            nothing was tried.
        tries_counted: the refused candidate, all that earlier mends of these rows may have judged, and all
            that this one may have.
        total_variation: of the refused release.
    """

    table: str
    plan_sha256: str
    train: str
    refused_by: tuple[str, ...]
    hopeless: tuple[str, ...]
    total_variation: float | None
    tries: tuple[MendTry, ...] = ()
    tries_counted: int = 1
    schema_version: str = SCHEMA_VERSION

    @property
    def mended(self) -> MendTry | None:
        """The try that passed."""
        return next((t for t in self.tries if t.verdict == Result.PASS), None)

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Gates that refused the release and every try."""
        return tuple(g for g in self.refused_by if all(g in t.refused_by for t in self.tries))

    @property
    def reason(self) -> str:
        """What came of it, in a sentence or two."""
        if self.hopeless:
            return (
                f"Nothing was tried: {', '.join(self.hopeless)} refused the release too, and no coarsening "
                "mends a generator that remembers people, or brings evidence where rows are few."
            )
        if self.mended is not None:
            return f"Coarser values of {len(self.mended.words)} columns would pass every gate."
        if not self.tries:
            return "Nothing was tried: no column is named that could be made coarser."
        never = f"{', '.join(self.unmoved)} never moved" if self.unmoved else "other gates refused instead"
        return (
            f"None of {len(self.tries)} tries passed: {never}. No coarsening mends a generator that "
            "remembers people: use a simpler one."
        )

    def to_json(self) -> str:
        """The record as JSON text."""
        return to_json(self)


@dataclass(frozen=True, eq=False)
class Refused:
    """A refused release and what it was made from."""

    plan: Plan
    workspace: Workspace
    evidence: Evidence
    made: MadeCandidate

    @property
    def hopeless(self) -> tuple[str, ...]:
        """The blocking gates that did not pass and that no coarsening can move."""
        return _hopeless(self.evidence.gates.held)

    def record(self, tries: int) -> MendRecord:
        """What is known before anything is tried, of which there are at most so many.

        The tries are counted before a candidate is attacked, so that a mend that is broken off counts too.
        """
        ledger = table_ledger(self.workspace, read_journal(self.workspace))
        train = self.evidence.tables["train"].hmac
        counted = max(ledger.chosen_among(train), 1) if self.hopeless else None
        return MendRecord(
            table=self.evidence.table,
            plan_sha256=self.evidence.plan_sha256,
            train=train,
            refused_by=tuple(g.gate for g in self.evidence.gates.held),
            hopeless=self.hopeless,
            total_variation=_utility(self.evidence),
            tries_counted=counted or ledger.choice(train=train, candidates=1 + tries),
        )


def _hopeless(gates: Iterable[GateResult]) -> tuple[str, ...]:
    return tuple(g.gate for g in gates if not g.measurement or g.measurement.audit not in MENDABLE)


def mendable(plan: Plan, evidence: Evidence) -> bool:
    """Return whether :func:`mend` would try anything on a release of the plan that these gates refused."""
    held = evidence.gates.held
    ready = plan.privacy is None and plan.coarsen is None and not evidence.errored
    return ready and bool(held) and not _hopeless(held)


def mend(plan: Plan, workspace: Workspace, context: RunContext = SERIAL, *, tries: int = RUNGS) -> MendRecord:
    """Try coarser values on the candidate that the workspace holds, from small changes to large.

    The generator is not fitted again. A try is judged by the gates that refused; one that passes these, by
    all. The first that passes all is the mend.

    Args:
        tries: the most candidates to judge, from 1 to the number of rungs.

    Raises:
        DataError: the workspace holds no refused candidate of this plan, or an audit of it errored.
        PlanError: the plan declares a privacy budget, or coarsens already.
    """
    _refuse_plan(plan)
    with (
        in_use(workspace, write_rows=plan.execution.write_real_rows) as scratch,
        temporary_folder(scratch) as folder,
    ):
        refused = _refused(plan, workspace, Path(folder))
        record = refused.record(min(tries, RUNGS))
        write_text(workspace.mend, record.to_json())
        if not record.hopeless:
            record = climb(refused, record, replace(context, scratch=scratch), min(tries, RUNGS))
        # For readers: what later mends count on is in the ledger of the table.
        write_text(workspace.mend, record.to_json())
    return record


def climb(refused: Refused, record: MendRecord, context: RunContext, tries: int) -> MendRecord:
    """The record with every rung that was tried, whatever gates have refused."""
    names, done = _named(refused.evidence) or _telling(refused.made.synthetic), list[MendTry]()
    before: Mapping[str, ColumnCoarsening] = {}
    for number in range(tries):
        rules = rung(number, names, refused.made.synthetic)
        if not rules or rules == before:
            continue
        before = rules
        spec = CoarsenSpec(columns=rules, chosen_on="real data", tries=record.tries_counted)
        evidence = _judged(refused, spec, context.within(f"try {number + 1} of {tries}: "))
        done.append(_try(spec, evidence))
        if evidence.verdict is Result.PASS:
            break
        names = tuple(dict.fromkeys((*names, *_named(evidence))))
    return replace(record, tries=tuple(done))


def _judged(refused: Refused, spec: CoarsenSpec, context: RunContext) -> Evidence:
    """Evidence of one try, by the audits that refused alone where they refuse it again."""
    # As it comes back from a plan file, so that the plan's digest is the same.
    written = CoarsenSpec.model_validate(spec.model_dump(mode="json"))
    plan = refused.plan.model_copy(update={"coarsen": written}).located(refused.plan.base)
    rules = coarsening_of(plan, refused.made.train.schema)
    subject = stages.subject_of(
        plan, refused.made.train, refused.made.control, rules.applied(refused.made.synthetic)
    )
    candidate = TableRecord.of(subject.synthetic, refused.made.salt).hmac
    suite, salt = load_suite(plan.gates, plan.base), refused.made.salt
    begin_attempt(refused.workspace, plan=plan.digest, candidate=candidate, suite=suite.sha256)
    every = stages.audits_of(plan, suite)
    held = refused.evidence.gates.held
    wanted = {g.measurement.audit for g in held if g.measurement} | {_UTILITY.audit}
    few = {name: audit for name, audit in every.items() if name in wanted}
    refusing = {g.gate for g in held}
    for audits in (few, every) if few else (every,):
        found = stages.examine(
            plan, subject, refused.made.making.generator, context, salt, draws=salt, audits=audits
        ).evidence
        if any(g.result is not Result.PASS for g in found.gates.results if g.gate in refusing):
            return found
    return found


def _try(spec: CoarsenSpec, evidence: Evidence) -> MendTry:
    asked = {o.audit for o in evidence.outcomes}
    return MendTry(
        coarsen=spec.model_dump(mode="json", exclude_defaults=True),
        words=tuple(f"{name} {rule.words}" for name, rule in spec.columns.items()),
        verdict=str(evidence.verdict),
        refused_by=tuple(
            g.gate for g in evidence.gates.held if g.measurement is None or g.measurement.audit in asked
        ),
        total_variation=_utility(evidence),
    )


def _named(evidence: Evidence) -> tuple[str, ...]:
    """The columns that the audits name: exact values of real people, the worst first, and novel content."""
    exact = [
        m for m in evidence.measurements if m.id.quantity == "exact_values" and m.interval and m.id.column
    ]
    proven = [m for m in exact if m.interval and m.interval.low > 0] or [m for m in exact if m.value > 0]
    novel = [
        m for m in evidence.measurements
        if m.id.audit == "novel_content" and m.id.column and m.value == 1
    ]  # fmt: skip
    found = [*sorted(proven, key=lambda m: -m.value), *novel]
    return tuple(dict.fromkeys(m.id.column for m in found if m.id.column))


def _telling(release: Table) -> tuple[str, ...]:
    """The columns in which some row of the release has a value for itself, where the audits name none."""
    columns = release.schema.features
    return tuple(
        c.name for c in columns if pc.min(release.texts(c.name).value_counts().field(1)).as_py() == 1
    )


def _utility(evidence: Evidence) -> float | None:
    return next((m.value for m in evidence.measurements if m.id == _UTILITY), None)


def _refuse_plan(plan: Plan) -> None:
    if plan.privacy is not None:
        raise PlanError(
            "a mend chosen on real data would void the plan's guarantee of differential privacy",
            where="privacy",
            expected="a plan without a privacy budget",
            fix="state `coarsen` in the plan by what is known of the columns anyway, before the first fit",
        )
    if plan.coarsen is not None:
        raise PlanError(
            "the plan coarsens already, and a mend starts from the values that the generator draws",
            where="coarsen",
            expected="the plan that was refused, without `coarsen`",
            fix="run and mend the plan without it; what mends of these rows tried before counts on",
        )


def _refused(plan: Plan, workspace: Workspace, folder: Path) -> Refused:
    evidence = newest_evidence(workspace)
    if evidence.plan_sha256 != plan.digest:
        raise _wrong("the newest evidence here is of another plan", "run this plan first")
    if evidence.verdict is Result.PASS:
        raise _wrong("the release passed, so there is nothing to mend", "release it")
    if evidence.errored:
        raise _wrong("an audit ended in an error", "mend its cause and run the plan again")
    made = MadeCandidate.of(plan, workspace, workspace.synthetic, folder)
    if TableRecord.of(made.synthetic, made.salt).hmac != evidence.tables["synthetic"].hmac:
        raise _wrong("the candidate here is not the one that was audited", "run this plan again")
    return Refused(plan, workspace, evidence, made)


def _wrong(what: str, fix: str) -> DataError:
    return DataError(
        what, where="mend", expected="the workspace of a run of this plan that was not released", fix=fix
    )
