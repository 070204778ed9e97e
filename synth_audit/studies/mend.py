"""Looks for the smallest coarsening with which a refused release would pass, and counts what it tried.

A mend is no way past the gates. Where a gate that coarser values cannot move has refused, nothing is tried.
Each candidate is attacked by somebody who knows the rule. And every one that may be judged is a chance of a
wrong pass: all intervals, and those of the plan that comes of it, share the plan's level among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.compute as pc

from synth_audit.core.context import SERIAL, RunContext
from synth_audit.core.errors import DataError, PlanError
from synth_audit.core.files import temporary_folder
from synth_audit.core.identity import MeasurementId
from synth_audit.core.plan import Plan
from synth_audit.core.plan_sections.coarsen import CoarsenSpec, ColumnCoarsening
from synth_audit.core.table import Table
from synth_audit.core.verdict import GateResult, Result
from synth_audit.judging.judge import load_suite
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.coarsening import coarsening_of
from synth_audit.pipeline.made_candidate import MadeCandidate
from synth_audit.store.attempts import begin_attempt, table_ledger
from synth_audit.store.checked_evidence import newest_evidence
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_records import TableRecord
from synth_audit.store.journal import read_journal
from synth_audit.store.workspace import Workspace
from synth_audit.studies.mend_ladder import RUNGS, rung
from synth_audit.studies.mend_record import MendRecord, MendTry, write_mend

MENDABLE = ("singling_out", "novel_content")
"""Audits that refuse a release for what single columns give away: coarser values are their remedy. All others
tell of remembered people, of which a coarser copy is one still."""

_UTILITY = MeasurementId("marginals", "total_variation")


@dataclass(frozen=True, eq=False)
class Refused:
    """A refused release and what it was made from."""

    plan: Plan
    workspace: Workspace
    evidence: Evidence
    made: MadeCandidate

    @property
    def gates(self) -> tuple[GateResult, ...]:
        """The blocking gates that did not pass."""
        return tuple(g for g in self.evidence.gates.results if g.blocking and g.result is not Result.PASS)

    @property
    def hopeless(self) -> tuple[str, ...]:
        """Those that no coarsening can move."""
        return tuple(g.gate for g in self.gates if not g.measurement or g.measurement.audit not in MENDABLE)


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
    with temporary_folder(workspace.scratch) as folder:
        refused = _refused(plan, workspace, Path(folder))
        record = MendRecord.of(refused.evidence, refused.hopeless, _utility(refused.evidence))
        record = replace(record, tries_counted=_counted(refused, min(tries, RUNGS)))
        write_mend(record, workspace)
        if not refused.hopeless:
            record = climb(refused, record, replace(context, scratch=workspace.scratch), min(tries, RUNGS))
        write_mend(record, workspace)
    return record


def _counted(refused: Refused, tries: int) -> int:
    """The refused candidate, all that mends of these rows may have judged before, and all that this one may.

    Entered before a candidate is attacked, so that a mend that is broken off counts too.
    """
    ledger = table_ledger(refused.workspace, read_journal(refused.workspace))
    train = refused.evidence.tables["train"].identity
    if refused.hopeless:
        return max(ledger.chosen_among(train), 1)
    return ledger.choice(train=train, candidates=1 + tries)


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
    plan = refused.plan.model_copy(update={"coarsen": _as_written(spec)}).located(refused.plan.base)
    rules = coarsening_of(plan, refused.made.train.schema)
    subject = pipeline.subject_of(
        plan, refused.made.train, refused.made.control, rules.applied(refused.made.synthetic)
    )
    candidate = TableRecord.of(subject.synthetic, refused.made.salt).identity
    suite, salt = load_suite(plan.gates, plan.base), refused.made.salt
    begin_attempt(refused.workspace, plan=plan.digest, candidate=candidate, suite=suite.sha256)
    every = pipeline.audits_of(plan, suite)
    wanted = {g.measurement.audit for g in refused.gates if g.measurement} | {_UTILITY.audit}
    few = {name: audit for name, audit in every.items() if name in wanted}
    refusing = {g.gate for g in refused.gates}
    for audits in (few, every) if few else (every,):
        found = pipeline.examine(
            plan, subject, refused.made.making.generator, context, salt, draws=salt, audits=audits
        ).evidence
        if any(g.result is not Result.PASS for g in found.gates.results if g.gate in refusing):
            return found
    return found


def _as_written(spec: CoarsenSpec) -> CoarsenSpec:
    """As it comes back from a plan file, so that the plan's digest is the same."""
    return CoarsenSpec.model_validate(spec.model_dump(mode="json"))


def _try(spec: CoarsenSpec, evidence: Evidence) -> MendTry:
    asked = {o.audit for o in evidence.outcomes}
    return MendTry(
        coarsen=spec.model_dump(mode="json", exclude_defaults=True),
        words=tuple(f"{name} {rule.words}" for name, rule in spec.columns.items()),
        verdict=str(evidence.verdict),
        refused_by=tuple(
            g.gate
            for g in evidence.gates.results
            if g.blocking and g.result is not Result.PASS
            if g.measurement is None or g.measurement.audit in asked
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
    found = [m.value for m in evidence.measurements if m.id == _UTILITY]
    return found[0] if found else None


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
    if made.identity != evidence.tables["synthetic"].identity:
        raise _wrong("the candidate here is not the one that was audited", "run this plan again")
    return Refused(plan, workspace, evidence, made)


def _wrong(what: str, fix: str) -> DataError:
    return DataError(
        what, where="mend", expected="the workspace of a run of this plan that was not released", fix=fix
    )
