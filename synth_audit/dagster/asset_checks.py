"""The gates as asset checks on ``report``: where a blocking one fails, ``release`` leaves nothing."""

# Without `from __future__ import annotations`: Dagster reads the annotations of what it decorates.

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import dagster as dg

from synth_audit.dagster import metadata
from synth_audit.dagster.entry import TableEntry
from synth_audit.dagster.outcomes import GateCheckResult, without_values
from synth_audit.errors import GateError, NotAsAudited
from synth_audit.findings.verdict import Fitness, Result
from synth_audit.pipeline.verify import OUT_THERE, Check, verify_filed
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.locate import locate_evidence
from synth_audit.verdict.criteria import OWN_GATES, PRIVACY_BUDGET, REFUTED
from synth_audit.verdict.judge import BUILT_IN
from synth_audit.verdict.suite import Gate

VERDICT = "_verdict"
"""The whole decision: also held up by what is no gate, such as an audit that ended in an error. Dagster lists
checks by name, and ``_`` comes before any letter."""


@dataclass(frozen=True)
class GateCheck:
    """A gate as Dagster sees it; Dagster's own badge says whether it blocks.

    Attributes:
        skipped: when it has no result, which Dagster shows as skipped; empty for one that always has.
    """

    gate: str
    title: str
    blocking: bool
    skipped: str = ""

    @property
    def name(self) -> str:
        """Name of the asset check: the gate's id in the characters that Dagster allows."""
        return re.sub(r"\W", "_", self.gate)

    @property
    def asks(self) -> str:
        """What the check asks. It is shown in every state, so it must not read as an answer."""
        wanted = "Required" if self.blocking else "Desired"
        asked = self.title if self.title.endswith("?") else f"{wanted}: {self.title}"
        return f"{asked}. Skipped where {self.skipped}." if self.skipped else asked


WHOLE = GateCheck(VERDICT, "May the table be released?", True)
FIT = GateCheck("fit_for_purpose", "Is the release fit for its purpose?", False)
"""Warns where it is not; there only for suites that judge it. One that blocks holds the verdict."""


def gate_checks(table: TableEntry) -> dg.AssetChecksDefinition:
    """One check for the schema contract, one for each gate of the suite and one for each of the two answers.

    They hang on ``report``, so a failed audit still renders and only ``release`` stands behind them.
    """
    specs = [
        dg.AssetCheckSpec(
            c.name,
            asset=table.asset("report"),
            description=c.asks,
            blocking=c.blocking,
            partitions_def=table.partitions,
        )
        for c in sorted([*_answers(table), *known_gates(table)], key=lambda c: c.name)
    ]

    @dg.multi_asset_check(name=f"{table.key}__gates", specs=specs, can_subset=True)
    def judge(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        context.log.addFilter(_left_out_on_purpose)
        with without_values("gates"):
            results = list(_results(table.at(context)))
        chosen = {key.name for key in context.selected_asset_check_keys}
        yield from (r for r in results if r.check_name in chosen)

    return judge


def _left_out_on_purpose(record: logging.LogRecord) -> bool:
    """Drop what Dagster logs of checks without a result: gates that a suite leaves out are no mistake."""
    return "did not yield or return expected outputs" not in record.getMessage()


def known_gates(table: TableEntry) -> list[GateCheck]:
    """Every gate that the evidence may judge.

    Raises:
        GateError: two gates would share a check.
    """
    promised = (PRIVACY_BUDGET, REFUTED) if table.plan.privacy is not None else ()
    built_in = (GateCheck(name, OWN_GATES[name].title, True) for name in (*BUILT_IN, *promised))
    checks = [*built_in, *(GateCheck(g.id, g.title, g.blocking, _skipped(g)) for g in table.suite.gates)]
    names = [*(c.name for c in _answers(table)), *(c.name for c in checks)]
    for check in checks:
        if names.count(check.name) > 1:
            raise GateError(
                f"gate {check.gate!r} would share the check {check.name!r} with another",
                where=table.plan.gates,
                expected="ids that differ in letters or digits",
                fix="rename the gate",
            )
    return checks


def _skipped(gate: Gate) -> str:
    """When a gate is left out; see :func:`synth_audit.verdict.judge.judge`."""
    if not gate.optional or gate.limit is None:
        return ""
    unfit = {"target": "the plan names no target", "no target": "the plan names a target"}
    return unfit.get(gate.fitness, f"the audit {gate.limit.audit} is not applicable, as the report explains")


def _answers(table: TableEntry) -> list[GateCheck]:
    """The checks of the whole: the verdict, and fitness where the suite judges it."""
    return [WHOLE, *([FIT] if any(g.fitness for g in table.suite.gates) else [])]


def _results(table: TableEntry) -> Iterator[dg.AssetCheckResult]:
    from synth_audit.report.gates import gates_of, two_answers

    evidence, found = verify_filed(locate_evidence(table.workspace.root))
    _refuse_altered(table, found)
    table.refuse_foreign(evidence)
    judged = {view.result.gate: view for view in gates_of(evidence)}
    for check in known_gates(table):
        # The evidence was judged anew just now: a gate that it does not hold is one that `judge` leaves out.
        if view := judged.get(check.gate):
            result = view.result
            told = f"{view.found}." if view.nothing_to_search else result.explanation
            yield _result(table, check, result.result is Result.PASS, told, metadata.gate(result))
        elif check.blocking:  # without any result Dagster tells people that nothing gates the release
            yield _result(table, check, False, "Not judged: what it asks was not measured.", {}, held=False)
    pages, reasons = metadata.pages(table, evidence), metadata.reasons(evidence)
    safe, fit = two_answers(evidence)
    answers = [f"{x.label}: {x.answer}." for x in (safe, fit)]
    told = " ".join((*(reasons or ["Pass."])[:1], *answers))
    yield _result(table, WHOLE, evidence.passed, told, metadata.verdict(evidence, pages, reasons))
    if FIT in _answers(table):
        why = [fit.detail] if fit.detail else []
        told = " ".join((answers[1], *why))
        passed = evidence.fitness is Fitness.YES and evidence.gates.safe is not Result.FAIL
        yield _result(table, FIT, passed, told, metadata.verdict(evidence, pages, why))


def _refuse_altered(table: TableEntry, found: "Iterable[Check]") -> None:
    """Checks must speak of what was filed; ``release`` makes sure of it once more."""
    if faults := [f"{c.what}: {c.detail}" for c in found if c.holds is False and c.what != OUT_THERE]:
        raise NotAsAudited(
            f"the evidence was altered ({faults[0]})",
            where=str(evidence_store(table.workspace).where()["evidence"]),
            expected="evidence as it was filed",
            fix="run the table from its split; `synth-audit verify` shows all that does not agree",
        )


def _result(
    table: TableEntry,
    check: GateCheck,
    passed: bool,
    description: str,
    told: metadata.Metadata,
    *,
    held: bool = True,
) -> dg.AssetCheckResult:
    """The result of a check; one that does not pass warns where the gate holds no release."""
    return GateCheckResult(
        check_name=check.name,
        asset_key=table.asset("report"),
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR if check.blocking and held else dg.AssetCheckSeverity.WARN,
        description=description,
        metadata=told,
    )
