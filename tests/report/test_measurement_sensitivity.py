from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest
from report_reading import found_in, line_of, text, view_of  # made importable by conftest.py

from synth_audit.findings.measurement import MeasurementId
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, WORST_SUBGROUP, PlantedLeaks
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import render_report, words
from synth_audit.report.known_answer import SensitivityLine, sharpest


def test_gates_on_a_number_its_restatement_or_its_subgroups_rest_on_it(
    build: ModuleType, one: AuditOutcome
) -> None:
    outcome = build.answering(build.singling_out())

    def risk(setting: str = "") -> MeasurementId:
        return MeasurementId("singling_out", "risk", setting)

    control = MeasurementId("singling_out", "control_rate")
    made = (
        build.gate("itself", "t", measurement=risk()),
        build.gate("scoped", "t", measurement=risk("3 columns")),
        build.gate("restated", "t", measurement=LEAK_EQUIVALENT.derived(risk("4 columns"))),
        build.gate("groups", "t", measurement=WORST_SUBGROUP.derived(risk("5 columns"), "sex")),
        build.gate("other", "t", measurement=control),
        build.gate("table", "t"),
    )
    found = found_in(build.judged(outcome, *made))
    relied = {w.response.id: [g.result.gate for g in w.gates] for w in found if w.gates}
    assert relied == {
        risk(): ["itself"],
        risk("3 columns"): ["scoped"],
        risk("4 columns"): ["restated"],
        risk("5 columns"): ["groups"],
        control: ["other"],
    }


def test_a_gate_on_every_scope_is_a_gate_on_each(build: ModuleType) -> None:
    assert all([g.result.gate for g in w.gates] == ["link"] for w in found_in(build.crowded()))


def test_a_number_out_of_proportion_is_not_the_sharpest(build: ModuleType, one: AuditOutcome) -> None:
    assert one.info is not None
    still = tuple(replace(q, proportional=q.name != "share") for q in one.info.quantities)
    changed = replace(one, info=replace(one.info, quantities=still))
    first = sharpest(found_in(build.judged(one)))
    second = sharpest(found_in(build.judged(changed)))
    assert first is not None
    assert second is not None
    assert str(first.response.id) == "closest_record.share"
    assert str(second.response.id) == "closest_record.exact_copies"
    assert "not in proportion, so not known" in [r.shows for r in view_of(build.judged(changed)).rows]


def test_the_first_screen_says_what_the_deciding_numbers_would_have_seen(build: ModuleType) -> None:
    evidence = build.passing()
    least = min(
        w.response.minimum_detectable or 1.0
        for w in found_in(evidence)
        if any(g.result.blocking for g in w.gates)
    )
    line = line_of(evidence)
    assert line == SensitivityLine(
        "pass",
        f"Had {words.detectable(least)} of the rows or more been copies, this audit would have seen it.",
    )
    top = render_report(evidence).split('<section class="gates"')[0]
    assert line.text in top
    assert 'href="#known-answer"' in top


def test_a_sharper_number_that_decides_nothing_does_not_count(build: ModuleType, one: AuditOutcome) -> None:
    dull = build.judged(one, build.gate("g", "t", measurement="closest_record.exact_copies"))
    both = build.judged(one, build.gate("g", "t", measurement="closest_record.share"))
    assert line_of(dull).text != line_of(both).text
    advisory = build.gate("g", "t", measurement="closest_record.share", blocking=False)
    line = line_of(build.judged(one, advisory))
    assert line.kind == "open"
    assert line.text.startswith("No deciding gate rests on")


def test_blind_numbers_behind_gates_are_named(build: ModuleType) -> None:
    line = line_of(build.failing())
    assert line.kind == "open"
    assert "1 of 2 measurements behind its deciding gates is blind here" in line.warning
    assert "Synthetic rows equal to a train row" in line.warning


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("nothing planted", "No leak could be planted (too few rows)"),
        ("all blind", "would not have seen even a full copy"),
        ("no limit", "but no smaller leak with certainty"),
        ("no answers", "it is not known whether one would have shown"),
        ("no privacy", "it would not have seen any leak"),
    ],
)
def test_what_is_not_known_is_said(build: ModuleType, one: AuditOutcome, change: str, said: str) -> None:
    planting, outcome = build.PLANTING, one
    if change == "nothing planted":
        planting = PlantedLeaks(reason="too few rows")
    elif change == "all blind":
        outcome = replace(one, responses=tuple(build.blind(m) for m in one.measurements[:2]))
    elif change == "no limit":
        outcome = replace(one, responses=tuple(replace(r, minimum_detectable=None) for r in one.responses))
    elif change == "no answers":
        outcome = replace(one, responses=())
    else:
        outcome = build.marginals()
    gate = build.gate("g", "t", measurement="closest_record.share")
    evidence = build.evidence((outcome,), build.report_of((gate,)), planting=planting)
    assert said in line_of(evidence).text
    assert line_of(evidence).kind != "pass"
    assert said in text(render_report(evidence))
