"""Releases exactly the audited bytes, or refuses. The guard is here, so it holds for every caller."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from synth_audit.core.errors import PlanError, ReleaseRefused
from synth_audit.core.fingerprint import fingerprint
from synth_audit.core.plan import Plan
from synth_audit.core.source import Locatable, Target
from synth_audit.core.verdict import Result
from synth_audit.judging import judge as gate
from synth_audit.pipeline.warnings import about_formulas
from synth_audit.store.evidence import Evidence, TableRecord


@dataclass(frozen=True)
class ReleaseRecord:
    """Where the audited table went, and what its readers should beware of."""

    where: str
    table: TableRecord
    warnings: tuple[str, ...] = ()


def release(plan: Plan, evidence: Evidence, synthetic: pa.Table) -> ReleaseRecord:
    """Write the synthetic table to the plan's target if, and only if, the evidence allows these bytes.

    Raises:
        ReleaseRefused: the evidence was altered, is of another plan or suite, does not pass when judged
            anew, or is about other bytes.
        PlanError: the plan names no target, one that only reads, or the source itself.
        DataError: writing failed; what was released before is intact.
    """
    target = release_target(plan)
    refuse_unless_allowed(plan, evidence, synthetic)
    where = target.write(_rows_only(synthetic), plan.base)
    return ReleaseRecord(where, evidence.tables["synthetic"], about_formulas(plan, synthetic))


def release_target(plan: Plan) -> Target:
    """The place a passing table goes to.

    Raises:
        PlanError: the plan names none, one that only reads, or one whose writing would replace the source,
            however the two are spelt.
    """
    target = plan.build_release()
    if not isinstance(target, Target):
        raise PlanError(
            "the release target cannot be written",
            where="release",
            expected="a source that can also write, such as duckdb or parquet",
            fix="name another `release` in the plan",
        )
    if _replaces_source(plan, target):
        raise PlanError(
            "the release would replace the source itself",
            where="release",
            expected="another place than `source`; links and other spellings lead to the same one",
            fix="name another file or table under `release`",
        )
    return target


def _replaces_source(plan: Plan, target: Target) -> bool:
    """True when the source lies at or within the place that a release would write to."""
    if plan.source is None:
        return False
    source = plan.build_source()
    if not isinstance(source, Locatable):
        return False
    there = target.place(plan.base)
    return source.place(plan.base)[: len(there)] == there


def refuse_unless_allowed(plan: Plan, evidence: Evidence, synthetic: pa.Table) -> None:
    """Raise ``ReleaseRefused`` with the first reason why these bytes may not leave under this plan."""
    if not evidence.intact:
        raise _refusal("the evidence was altered after the audit", "run the audit again")
    if evidence.plan_sha256 != plan.digest:
        raise _refusal("the evidence is of another plan", "run the audit again with this plan")
    suite = gate.load_suite(plan.gates, plan.base)
    if evidence.gates.suite_sha256 != suite.sha256:
        raise _refusal("the gate suite has changed since the audit", "run the audit again")
    verdict = gate.judge(suite, evidence.outcomes, evidence.table_checks).verdict
    if verdict is not Result.PASS or evidence.verdict is not Result.PASS:
        raise _refusal(
            f"the verdict is {verdict if evidence.verdict is Result.PASS else evidence.verdict}",
            "the report says which gate holds the release and what to do about it",
        )
    audited = evidence.tables.get("synthetic")
    if audited is None or fingerprint(synthetic) != audited.sha256:
        raise _refusal("these are not the bytes that were audited", "audit this table, then release it")


def _rows_only(data: pa.Table) -> pa.Table:
    """The rows and nothing that travels beside them unseen by the audit.

    A dictionary may list labels that no row has, such as those of real people, and fields may carry
    metadata; the content hash sees neither, and Parquet would write both.
    """
    columns: dict[str, pa.ChunkedArray] = {}
    for name, values in zip(data.column_names, data.columns, strict=True):
        coded = pa.types.is_dictionary(values.type)
        columns[name] = values.cast(values.type.value_type) if coded else values
    return pa.table(columns)


def _refusal(what: str, fix: str) -> ReleaseRefused:
    return ReleaseRefused(
        f"release refused: {what}",
        where="release",
        expected="untouched evidence of this plan that passes, about exactly these bytes",
        fix=fix,
    )
