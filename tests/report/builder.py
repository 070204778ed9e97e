"""Invented evidence for the report: a pass, a fail, an undecided one, and one full of hostile text."""

import math
from dataclasses import replace

from report_pieces import (
    COLUMNS,
    SHARES,
    answering,
    blind,
    closest_record,
    errored,
    info,
    marginals,
    measurement,
    named,
    not_applicable,
    quantity,
    response,
    restated,
    singling_out,
    unimportable,
    utility,
    with_subgroups,
)

from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.dp.guarantee import Mechanism, MechanismRecord, Neighbouring, PrivacyGuarantee, Unit
from synth_audit.findings.measurement import Interval, MeasurementId, Series
from synth_audit.findings.sensitivity import WORST_SUBGROUP, ExposedGroup, PlantedLeaks, RecordView, Subgroup
from synth_audit.findings.verdict import GateReport, GateResult, Result, TableCheck
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.store.evidence import ColumnRecord, Evidence, GeneratorRecord, TableRecord

PLANTING = PlantedLeaks(19542, 9758, 19541, SHARES)
OF_SEX = WORST_SUBGROUP.derived(MeasurementId("singling_out", "risk", "3 columns"), "sex")
OF_RACE = WORST_SUBGROUP.derived(MeasurementId("closest_record", "share"), "race")
RECORDS = RecordView(
    39084,
    812,
    9758,
    None,
    (
        ExposedGroup(
            MeasurementId("singling_out", "risk", "3 columns"), ("age", "workclass"), 2000, 154, 2000, 121
        ),
        ExposedGroup(MeasurementId("singling_out", "risk", "4 columns"), ("age",), 2000, None, 2000, 0),
        ExposedGroup(MeasurementId("closest_record", "share"), (), 39084, 812, 0, 0),
    ),
    (
        Subgroup(OF_SEX, "Female", 410, 0.11, Interval(0.06, 0.16, 0.95, "w")),
        Subgroup(OF_RACE, "Other", 88, 0.07, Interval(0.02, 0.12, 0.95, "w")),
    ),
)
HOSTILE = "<script>alert('x')</script>\"&amp;\u202egnp.exe data-gate ="
MANY_COPIES: dict[str, object] = {
    "value": 0.0214,
    "low": 0.0196,
    "high": 0.0233,
    "explanation": "Even the lower end of the interval is above the limit.",
    "advice": "Use a generator that memorises less, or a formal guarantee.",
}


def gate(
    name: str,
    title: str,
    result: Result = Result.PASS,
    *,
    measurement: str | MeasurementId = "",
    setting: str = "",
    **more: object,
) -> GateResult:
    if isinstance(measurement, MeasurementId):
        more["measurement"] = measurement
    elif measurement:
        more["measurement"] = named(measurement, setting)
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
            "synthetic": TableRecord(39084, "44" * 32, "55" * 32 if report.verdict is Result.PASS else None),
        },
        generator=GeneratorRecord(
            "ctgan", {"epochs": 300}, PrivacyAccount(guarantee=None, reason="It was trained without noise")
        ),
        outcomes=outcomes,
        table_checks=(TableCheck("columns match", True, "all 13 columns in order"),),
        gates=report,
        verdict=report.verdict,
        fitness=report.fitness,
        salt_commitment="66" * 32,
        versions={"synth-audit": "0.1.0", "numpy": "2.3.0"},
        created="2026-11-14T10:32:00+00:00",
        timings={"split": 0.41, "audits": 73.2},
    )
    return replace(built, **more).sealed()  # type: ignore[arg-type]


def judged(outcome: AuditOutcome, *results: GateResult) -> Evidence:
    """One audit, tried on planted leaks, with its gates."""
    return evidence((outcome,), report_of(results), planting=PLANTING)


def passing() -> Evidence:
    outcomes = (
        with_subgroups(answering(singling_out())),
        answering(closest_record()),
        marginals(),
        utility(),
        not_applicable(),
    )
    return evidence(
        outcomes,
        report_of(gates()),
        warnings=("column age was inferred as integer",),
        planting=PLANTING,
        records=RECORDS,
    )


def failing() -> Evidence:
    outcomes = (
        singling_out(), answering(closest_record(), every=False), marginals(), utility(), errored()
    )  # fmt: skip
    gated = report_of(gates(copies=Result.FAIL, risk=Result.INSUFFICIENT))
    return evidence(outcomes, gated, planting=PLANTING)


def undecided() -> Evidence:
    reason = "half of train has fewer than 20 rows"
    outcomes = tuple(
        replace(o, responses=tuple(blind(m, f"no leak could be planted: {reason}") for m in o.measurements))
        for o in (singling_out(), closest_record())
    )
    outcomes += (errored(), not_applicable(), unimportable())
    blockers = ("the audit density_ratio ended in an error",)
    gated = report_of(gates(risk=Result.INSUFFICIENT), blockers)
    return evidence(outcomes, gated, planting=PlantedLeaks(reason=reason))


def crowded() -> Evidence:
    """Forty measurements: a few blind, one without a number, the others from sharp to dull."""
    name = "linkability"
    scopes = [f"{i} columns beside {HOSTILE} and others" for i in range(40)]
    ms = [measurement(f"{name}.risk", 0.01 * i, 0.02, setting=s) for i, s in enumerate(scopes)]
    responses = [response(m, 0.9 - 0.01 * i, 0.001 * 1.2**i) for i, m in enumerate(ms)]
    responses[7] = replace(responses[7], half_width=math.nan, minimum_detectable=None)
    responses[30:] = [blind(m, HOSTILE) for m in ms[30:]]
    extra = [restated(m, -0.3 + 0.05 * i, 0.02 + 0.005 * i) for i, m in enumerate(ms[:30])]
    extra[3] = restated(ms[3], math.nan, math.nan)
    title = quantity("risk", "Risk of being linked")
    outcome = AuditOutcome(
        audit=name,
        family="privacy",
        status=Status.MEASURED,
        info=info("linkability", "Linking two halves of a record", title),
        measurements=(*ms, *extra),
        responses=tuple(responses),
    )
    gated = gate(
        "link", "Nobody is linked", Result.INSUFFICIENT, measurement=f"{name}.risk", setting=scopes[35],
        every=True, value=0.35, low=0.33, high=0.37, maximum=0.09,
    )  # fmt: skip
    report = report_of((gated,))
    groups = tuple(ExposedGroup(m.id, (HOSTILE,), 100, 50, 100, None) for m in ms)
    span = Interval(math.nan, math.inf, 0.95, "w")
    subgroups = tuple(
        Subgroup(WORST_SUBGROUP.derived(m.id, HOSTILE), HOSTILE, 100, math.nan, span) for m in ms[:20]
    )
    records = RecordView(39084, None, 9758, 0, groups, subgroups)
    return evidence((outcome,), report, planting=PLANTING, records=records)


def promised(name: str) -> PrivacyAccount:
    """A guarantee, every word of which is this one."""
    spent = (MechanismRecord(what=name, mechanism=Mechanism.PURE, epsilon=1.0),)
    guarantee = PrivacyGuarantee(
        unit=Unit.ENTITY,
        neighbouring=Neighbouring.REPLACE,
        epsilon=1.0,
        delta=1e-5,
        accountant=name,
        mechanisms=spent,
        assumptions=(name,),
        not_protected=(name,),
    )
    return PrivacyAccount(guarantee=guarantee, mechanisms=spent)


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
            *(measurement(f"{name}.tv", i / many, 0.01, column=f"{name}{i}") for i in range(many)),
        ),
        series=(
            Series(
                MeasurementId("", name, column=name), name, "bar", name, name,
                tuple(f"{name}{i}" for i in range(60)), {name: tuple(float(i) for i in range(60))},
            ),
        ),
        notes=(name,),
    )  # fmt: skip
    failed = replace(errored(), reason=name)
    bad = gate(name, name, Result.FAIL, setting=name, measurement=f"{name}.tv", value=math.nan, maximum=0.1,
               reason=name, explanation=name, advice=name)  # fmt: skip
    return evidence(
        (audit, failed),
        report_of((bad,), (name,)),
        table=name,
        columns=columns,
        warnings=(name,),
        plan={name: name},
        generator=GeneratorRecord(name, {name: name}, promised(name)),
        versions={name: name},
    )


def unfit(result: Result = Result.FAIL) -> Evidence:
    """A pass whose columns no longer depend on each other."""
    lost = gate(
        "ties", "Columns still depend on each other", result, blocking=False, fitness=True,
        explanation="The columns are independent.",
    )  # fmt: skip
    return evidence((singling_out(),), report_of((*gates(), lost)))
