"""What columns and settings are called decides nothing: checks, gates, file and report under any names."""

from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synth_audit.examination.examine import with_ratios
from synth_audit.examination.exposed_records import as_measurements
from synth_audit.examination.known_answer import with_answers
from synth_audit.findings.measurement import Findings, Interval, MeasurementId, Quantity, Reference
from synth_audit.findings.sensitivity import WORST_SUBGROUP, PlantedLeaks, RecordView, Subgroup
from synth_audit.findings.verdict import Result, TableCheck
from synth_audit.plugins.audit import AuditInfo, AuditOutcome, Status
from synth_audit.report import render_report
from synth_audit.report.known_answer import sensitivities
from synth_audit.store.evidence import Evidence, parse_evidence
from synth_audit.verdict.judge import judge, sensitivity_checked_rows
from synth_audit.verdict.suite import parse_suite
from synth_audit.verdict.table_checks import contract_key

RISK, GAP = Quantity("risk", "Risk"), Quantity("gap", "Gap")
PLANTING = PlantedLeaks(500, 100, 500, (0.0, 0.01, 1.0))
CHECKS = (TableCheck(contract_key({"type": "expect_table_columns_to_match_set", "kwargs": {}}), True, "ok"),)
PLAIN = ("secret", "other", "region", "deep")
Names = tuple[str, str, str, str]


def info(quantity: Quantity, risk: str) -> AuditInfo:
    return AuditInfo(
        title="t",
        question="q",
        threat_model="m",
        not_covered="n",
        quantities=(quantity,),
        risk=risk,  # type: ignore[arg-type]
    )


PRIVACY = AuditOutcome("probe", "privacy", Status.MEASURED, info(RISK, "inference"))
USE = AuditOutcome("use", "fidelity", Status.MEASURED, info(GAP, "fidelity"))


def around(value: float, half: float = 0.01) -> Interval:
    return Interval(value - half, value + half, 0.95, "test")


def numbers(names: Names, secret: float, other: float, deep: float) -> Findings:
    """Attacks on two columns and one in a setting of its own."""
    a, b, _, setting = names
    return Findings(
        tuple(
            RISK.at(v, interval=around(v), n_achieved=300, column=column, setting=s)
            for v, column, s in ((secret, a, ""), (other, b, ""), (deep, "", setting))
        )
    )


def subgroups(names: Names) -> list[Subgroup]:
    """Those of every attack by one column, whatever the attack sees."""
    a, b, region, setting = names
    attacks = (RISK.id(column=a), RISK.id(column=b), RISK.id(setting))
    return [
        Subgroup(WORST_SUBGROUP.derived(x.stamped("probe"), region), "north", 200, 0.02, around(0.02))
        for x in attacks
    ]


def examined(names: Names) -> tuple[AuditOutcome, ...]:
    """One attack sees a full copy; that on the other column, and that in the setting, are blind."""
    planted = [
        PRIVACY.with_findings(numbers(names, *values))
        for values in ((0.0, 0.0, 0.2), (0.01, 0.0, 0.2), (0.9, 0.0, 0.1))
    ]
    privacy = with_answers(PRIVACY.with_findings(numbers(names, 0.01, 0.01, 0.01)), PLANTING, planted)
    groups = as_measurements(subgroups(names))["probe"]
    privacy = replace(privacy, measurements=(*privacy.measurements, *groups))
    reference = Reference(0.1, "control", around(0.1))
    gaps = [
        GAP.at(v, interval=around(v), column=c, reference=reference)
        for c, v in zip(names, (0.1, 0.2, 0.3, 0.4), strict=True)
    ]
    return privacy, with_ratios(USE.with_findings(Findings(tuple(gaps))))


def gates_on(outcomes: tuple[AuditOutcome, ...]) -> list[dict[str, object]]:
    """A gate on every number by its text, and one on all numbers of each quantity."""
    ids = [m.id for o in outcomes for m in o.measurements]
    asked = [(x.name, x.scope) for x in ids] + [(name, "*") for name in dict.fromkeys(x.name for x in ids)]
    return [
        {
            "type": "expect_measurement_to_be_within",
            "kwargs": {"name": name, "scope": scope, "maximum": 2.5 if "ratio" in name else 0.1},
            "meta": {"id": f"g{i}", "reason": "r"},
            "severity": "critical" if i % 3 else "warning",
        }
        for i, (name, scope) in enumerate(asked)
    ]


def unnamed(x: MeasurementId | None, names: Names) -> tuple[object, ...]:
    """An identity with the places of its names instead of them."""
    if x is None:
        return ()
    place = {"": -1} | {name: i for i, name in enumerate(names)}
    return (x.audit, x.quantity, place[x.setting], place[x.column], unnamed(x.derived_from, names))


def story(build: ModuleType, names: Names, *, pages: bool = False) -> tuple[object, ...]:
    """All that is decided, without names: rows and whether they are vouched for, gates, verdict.

    Args:
        pages: write the report too, which takes longer than all else.
    """
    outcomes = examined(names)
    rows = [
        (unnamed(row.id, names), bool(row.blind), row.value, row.low, row.high, row.copy_low, row.worse)
        for o in outcomes
        for row in sensitivity_checked_rows(o)
    ]
    suite = parse_suite({"name": "s", "expectations": gates_on(outcomes)}, installed=False)
    report = judge(suite, outcomes, CHECKS)
    results = [(r.gate, r.result, r.value, r.every, unnamed(r.measurement, names)) for r in report.results]
    records = RecordView(600, 90, 200, 0, (), tuple(subgroups(names)))
    evidence: Evidence = build.evidence(outcomes, report, planting=PLANTING, records=records)
    again = parse_evidence(evidence.to_json())
    assert again == evidence
    assert judge(suite, again.outcomes, CHECKS) == report
    relied = [(unnamed(w.response.id, names), [g.result.gate for g in w.gates]) for w in sensitivities(again)]
    if pages:
        render_report(again)
    return rows, results, report.verdict, relied


@pytest.fixture(scope="session")
def plain(build: ModuleType) -> tuple[object, ...]:
    return story(build, PLAIN)


hostile = st.sampled_from([
    "by", "of", "a by b", "a", "b", "by a", "baby weight", "risk", "risk[by a]", "x[y]", "]", "[", "a.b", ".",
    ",", '"', '" by "', "*", "😀", "\x00", "\n", "\\", " ", "of risk", "secret by region", "gap",
])  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(hostile | st.text(min_size=1, max_size=6), min_size=4, max_size=4, unique=True).map(tuple))
def test_no_name_changes_a_decision(build: ModuleType, plain: tuple[object, ...], names: Names) -> None:
    assert story(build, names) == plain


@pytest.mark.parametrize(
    "names",
    [
        ("a", "a by b", "c", "by"),
        ("baby weight", "weight", "by", "ba"),
        ("*", " by *", "[*]", '"*"'),
        ("a", "ab", "abc", "abcd"),
        ("a by", "by b", "c", "*"),
        ("risk", "risk[of]", "of risk", "probe.risk"),
        ("\x00", "😀", "\u202e", "<b>"),
    ],
)
def test_a_report_is_written_under_any_names(
    build: ModuleType, plain: tuple[object, ...], names: Names
) -> None:
    assert story(build, names, pages=True) == plain


def vouched(names: Names) -> dict[str, bool]:
    privacy, _ = examined(names)
    return {str(r.id): not r.blind for r in sensitivity_checked_rows(privacy)}


def test_a_seeing_attack_does_not_vouch_for_subgroups_of_a_blind_one_with_a_name_like_its_own() -> None:
    found = vouched(("a", "a by b", "c", "deep"))
    assert found["probe.worst_subgroup[by c of risk[by a]]"] is True
    assert found['probe.worst_subgroup[by c of risk[by "a by b"]]'] is False
    assert found["probe.worst_subgroup[by c of risk[deep]]"] is False
    gate = {"name": "probe.worst_subgroup", "scope": 'by c of risk[by "a by b"]', "maximum": 0.1}
    plain = {"type": "expect_measurement_to_be_within", "kwargs": gate, "meta": {"id": "g", "reason": "r"}}
    suite = parse_suite({"name": "s", "expectations": [plain]}, installed=False)
    report = judge(suite, examined(("a", "a by b", "c", "deep")), CHECKS)
    assert report.verdict is Result.INSUFFICIENT
    assert "cannot tell even a full copy" in report.results[-1].explanation


def test_a_column_whose_name_holds_by_is_read_whole(build: ModuleType) -> None:
    found = vouched(("weight", "a", "baby weight", "ba"))
    assert found['probe.worst_subgroup[by "baby weight" of risk[by weight]]'] is True
    outcomes = examined(("weight", "a", "baby weight", "ba"))
    judged = WORST_SUBGROUP.derived(MeasurementId("probe", "risk", column="weight"), "baby weight")
    gate = build.gate("g", "t", measurement=judged)
    evidence = build.evidence(outcomes, build.report_of((gate,)), planting=PLANTING)
    [relied] = [w for w in sensitivities(evidence) if w.gates]
    assert relied.response.id == MeasurementId("probe", "risk", column="weight")


def test_the_story_tells_seeing_blind_pass_and_fail_apart(plain: tuple[object, ...]) -> None:
    """So that two stories that are equal are equal in something."""
    rows, results, verdict, relied = plain
    assert {blind for _, blind, *_ in rows} == {True, False}  # type: ignore[attr-defined]
    assert {result for _, result, *_ in results} == set(Result)  # type: ignore[attr-defined]
    assert verdict is Result.FAIL
    assert len(relied) == 3  # type: ignore[arg-type]
