"""Invented evidence for the report: a pass, a fail, an undecided one, and one full of hostile text."""

from __future__ import annotations

import math
from dataclasses import replace

from report_pieces import (  # made importable by conftest.py
    COLUMNS,
    closest_record,
    errored,
    info,
    marginals,
    measurement,
    not_applicable,
    quantity,
    singling_out,
    unimportable,
    utility,
)

from synth_audit.core.measurement import Series
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.plugin import PrivacyCertificate
from synth_audit.workflow.evidence import (
    ColumnRecord,
    Evidence,
    GateReport,
    GateResult,
    GeneratorRecord,
    Result,
    TableCheck,
    TableRecord,
)

HOSTILE = "<script>alert('x')</script>\"&amp;\u202egnp.exe"
MANY_COPIES: dict[str, object] = {
    "value": 0.0214,
    "low": 0.0196,
    "high": 0.0233,
    "explanation": "Even the lower end of the interval is above the limit.",
    "advice": "Use a generator that memorises less, or a formal guarantee.",
}


def gate(name: str, title: str, result: Result = Result.PASS, **more: object) -> GateResult:
    fields = {
        "blocking": True,
        "reason": "A limit that supervisors have published.",
        "explanation": "It holds.",
    }
    return GateResult(gate=name, title=title, result=result, **{**fields, **more})  # type: ignore[arg-type]


def gates(*, copies: Result = Result.PASS, risk: Result = Result.PASS) -> tuple[GateResult, ...]:
    return (
        gate(
            "risk.max", "At most 9 % of guesses single somebody out", risk, measurement="singling_out.risk",
            value=0.0123 if risk is Result.PASS else 0.0823, low=0.0062 if risk is Result.PASS else 0.0671,
            high=0.0184 if risk is Result.PASS else 0.0975, level=0.95, maximum=0.09, bound="upper",
            explanation="The upper end of the interval keeps the limit." if risk is Result.PASS
            else "The interval reaches from the allowed side to the other.",
            advice="" if risk is Result.PASS else "Run the audit with more guesses.",
            n_needed=None if risk is Result.PASS else 5400,
        ),
        gate(
            "share.max", "Synthetic rows are no closer to train than to control",
            measurement="closest_record.share",
            value=0.8007, low=0.7965, high=0.8049, level=0.95, maximum=0.81, bound="upper",
        ),
        gate(
            "copies.max", "Exact copies are no more frequent than by chance", copies,
            measurement="closest_record.exact_copies", level=0.95, maximum=0.001, bound="upper",
            **({"value": 0.00031, "low": 0.00013, "high": 0.00049} if copies is Result.PASS else MANY_COPIES),
        ),
        gate(
            "auroc.min", "A model trained on synthetic rows still ranks well", blocking=False,
            measurement="tstr.auroc", value=0.884, low=0.878, high=0.89, level=0.95, minimum=0.85,
            bound="lower",
        ),
        gate("columns", "The columns are those of the real table, in order", explanation="All 13 are there."),
    )  # fmt: skip


def report_of(results: tuple[GateResult, ...], blockers: tuple[str, ...] = ()) -> GateReport:
    return GateReport("release", {"name": "release", "expectations": []}, "ab" * 32, results, blockers)


def evidence(
    outcomes: tuple[AuditOutcome, ...], report: GateReport, *, table: str = "adult", **more: object
) -> Evidence:
    columns = tuple(
        ColumnRecord(c, "categorical", "string", ("feature",), i % 3 == 0, False, 4 + i)
        for i, c in enumerate(COLUMNS)
    )
    built = Evidence(
        table=table,
        plan={"name": table, "source": {"name": "parquet", "config": {"path": "adult.parquet"}}, "seed": 7},
        plan_sha256="cd" * 32,
        seed=7,
        level=0.95,
        suppression=10,
        columns=columns,
        tables={
            "source": TableRecord(48842, "11" * 32),
            "train": TableRecord(39084, "22" * 32),
            "control": TableRecord(9758, "33" * 32),
            "synthetic": TableRecord(39084, "44" * 32),
        },
        generator=GeneratorRecord(
            "ctgan", {"epochs": 300}, PrivacyCertificate("none", "It was trained without noise")
        ),
        outcomes=outcomes,
        table_checks=(TableCheck("columns match", True, "all 13 columns in order"),),
        gates=report,
        verdict=report.verdict,
        versions={"synth-audit": "0.1.0", "numpy": "2.3.0"},
        created="2026-11-14T10:32:00+00:00",
        timings={"split": 0.41, "audits": 73.2},
    )
    return replace(built, **more).sealed()  # type: ignore[arg-type]


def passing() -> Evidence:
    outcomes = (singling_out(), closest_record(), marginals(), utility(), not_applicable())
    return evidence(outcomes, report_of(gates()), warnings=("column age was inferred as integer",))


def failing() -> Evidence:
    outcomes = (singling_out(), closest_record(), marginals(), utility(), errored())
    return evidence(outcomes, report_of(gates(copies=Result.FAIL, risk=Result.INSUFFICIENT)))


def undecided() -> Evidence:
    outcomes = (singling_out(), closest_record(), errored(), not_applicable(), unimportable())
    blockers = ("the audit density_ratio ended in an error",)
    return evidence(outcomes, report_of(gates(risk=Result.INSUFFICIENT), blockers))


def hostile() -> Evidence:
    name, many = HOSTILE, 300
    columns = tuple(ColumnRecord(f"{name}{i}", name, name, (name,), False, True, None) for i in range(many))
    audit = AuditOutcome(
        audit=name,
        family="fidelity",
        status=Status.MEASURED,
        info=replace(
            info("fidelity", name, quantity("tv", name)), question=name, not_covered=name, source=name
        ),
        config={name: [name]},
        measurements=(
            measurement(f"{name}.tv", math.nan, n_requested=100, n_achieved=3, n_minimum=50),
            *(measurement(f"{name}.tv", i / many, 0.01, scope=f"{name}{i}") for i in range(many)),
        ),
        series=(
            Series(
                name, name, "bar", name, name, tuple(f"{name}{i}" for i in range(60)),
                {name: tuple(float(i) for i in range(60))}, scope=name,
            ),
        ),
        notes=(name,),
    )  # fmt: skip
    failed = replace(errored(), reason=name)
    bad = gate(name, name, Result.FAIL, scope=name, measurement=f"{name}.tv", value=math.nan, maximum=0.1,
               reason=name, explanation=name, advice=name)  # fmt: skip
    return evidence(
        (audit, failed),
        report_of((bad,), (name,)),
        table=name,
        columns=columns,
        warnings=(name,),
        plan={name: name},
        generator=GeneratorRecord(
            name, {name: name}, PrivacyCertificate("differential privacy", name, 1.0, 1e-5)
        ),
        versions={name: name},
    )
