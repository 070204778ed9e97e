import re
from dataclasses import replace
from html import unescape
from types import ModuleType

import pytest
from report_reading import chapter, found_in, line_of, text, view_of  # made importable by conftest.py

from synth_audit.findings.measurement import Measurement, MeasurementId, read
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, WORST_SUBGROUP, PlantedLeaks, SensitivityCurve
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report import render_report, words
from synth_audit.report.known_answer import SensitivityLine, best_of_audits, sharpest

NB = "\u00a0"


def test_it_follows_the_gates_in_every_report(build: ModuleType) -> None:
    for evidence in (build.passing(), build.undecided(), build.evidence((), build.report_of(()))):
        assert (
            re.findall(r'<section class="chapter" id="([^"]+)"', render_report(evidence))[0] == "known-answer"
        )


def test_its_numbers_are_those_of_the_evidence(build: ModuleType) -> None:
    evidence = build.passing()
    said = chapter(render_report(evidence, full=True), "known-answer")
    rows = {
        m[1]: text(m[0]) for m in re.findall(r'(<tr>\n<th scope="row">(.*?)</th>.*?</tr>)', said, re.DOTALL)
    }
    assert len(rows) == sum(len(o.responses) for o in evidence.outcomes)
    for w in found_in(evidence):
        (row,) = (
            t for h, t in rows.items() if text(h) == text(f"{w.title} {w.response.id.label} {w.audit_title}")
        )
        assert words.detectable(w.response.minimum_detectable or 0.0).replace(NB, " ") in row
        for answer in w.response.answers:
            interval = words.interval(answer.low, answer.high, "share").replace(NB, " ")
            called = w.response.flags(answer)
            verdict = ("noticed" if called else "not noticed") if answer.share else "no alarm"
            assert f"{interval} {verdict}" in row
    planted = evidence.planting
    for n in (planted.train_rows, planted.control_rows, planted.release_rows):
        assert f"{n:,}" in said


def test_false_alarms_are_called_by_their_name(build: ModuleType, one: AuditOutcome) -> None:
    answer = one.responses[0].answers[0]
    odd = replace(one.responses[0], answers=(replace(answer, low=0.001), *one.responses[0].answers[1:]))
    [row] = view_of(build.judged(replace(one, responses=(odd,)))).rows
    assert row.shown(0.0)[2:] == ("false alarm", True)
    assert row.shown(1.0)[2:] == ("noticed", False)


def test_an_answer_that_is_missing_is_a_dash(build: ModuleType, one: AuditOutcome) -> None:
    short = replace(one.responses[0], answers=one.responses[0].answers[:1])
    [row] = view_of(build.judged(replace(one, responses=(short,)))).rows
    assert [row.shown(share).value for share in (0.01, 1.0)] == ["–", "–"]


def test_without_a_planted_leak_there_is_no_sharpness_but_a_reason(build: ModuleType) -> None:
    view = view_of(build.undecided())
    assert view.best == []
    assert "half of train has fewer than 20 rows" in view.planted
    assert all(r.sign.word == "Blind" for r in view.rows)


def test_seeing_and_blindness_differ_in_shape(build: ModuleType) -> None:
    rows = {r.sign.word: str(r.sign.icon) for r in view_of(build.failing()).rows}
    assert "<circle" in rows["Sees"]
    assert "<polygon" in rows["Blind"]


def test_an_exact_number_sees_a_single_row(build: ModuleType, one: AuditOutcome) -> None:
    exact: SensitivityCurve = replace(one.responses[0], half_width=0.0, minimum_detectable=0.0)
    gate = build.gate("g", "t", measurement="closest_record.share")
    evidence = build.judged(replace(one, responses=(exact,)), gate)
    assert "one row" in chapter(render_report(evidence), "known-answer")
    assert "even a single copied row" in line_of(evidence).text


def test_blind_measurements_stand_first_and_are_counted(build: ModuleType) -> None:
    view = view_of(build.crowded())
    assert [r.sign.word for r in view.rows] == ["Blind"] * 10 + ["Sees"] * 30
    assert all(r.response.reason for r in view.rows[:10])
    assert view.rows[-1].shows == "not computed"
    assert view.headline.endswith("30 of 40 privacy numbers noticed it.")
    assert view.alarm.startswith("10 would not notice a full copy on this table.")


def test_each_audit_is_told_by_its_sharpest_measurement(build: ModuleType) -> None:
    best = best_of_audits(found_in(build.passing()))
    assert [str(w.response.id) for w in best] == ["singling_out.risk", "closest_record.share"]
    said = text(chapter(render_report(build.passing()), "known-answer"))
    for w in best:
        assert f"{w.audit_title} {w.name} {words.detectable(w.least or 0.0)}".replace(NB, " ") in said


def test_classes_of_leak_are_told_with_their_detection_limits(build: ModuleType) -> None:
    def limit(setting: str, value: float) -> Measurement:
        return Measurement(MeasurementId("recognition", "detection_limit", setting), value, unit="share")

    def told(*limits: Measurement, failed: bool = False) -> str:
        info = build.info("membership", "Recognition", build.quantity("detection_limit", "Limit"))
        outcome = AuditOutcome("recognition", "privacy", Status.MEASURED, info=info, measurements=limits)
        gates = (
            (build.gate("g", "t", Result.FAIL, measurement="recognition.found"),) if failed else build.gates()
        )
        return text(render_report(build.evidence((outcome,), build.report_of(gates))))

    page = told(limit("", 0.05), limit("near_copies", 0.05), limit("mixtures", 1.0))
    assert "A leak of 5 % of the training people (1,955 of 39,084) would have been found with 95 %" in page
    assert "people. No detection limit is established for: mixed rows." in page
    assert "Detection limits by class of leak were not part of this run." in told()
    assert "“Recognition” found a leak in the release itself." in told(failed=True)
    assert "changed a little 5 % of the training people (1,955 of 39,084) Mixed rows: parts of" in page
    assert "two people in one row not established" in page
    assert "No detection limit is established." in told(limit("", 1.0))


def test_every_leak_stands_with_the_planted_ones_and_in_no_table_of_its_own(build: ModuleType) -> None:
    evidence = build.passing()
    page = render_report(evidence, full=True)
    assert LEAK_EQUIVALENT.title not in chapter(page, "risk-membership")
    share = evidence.measurement("closest_record.leak_equivalent[of share]")
    planted = chapter(page, "known-answer")
    (row,) = re.findall(r"<tr>\n<th[^>]*>Share of synthetic rows closer.*?</tr>", planted, re.DOTALL)
    assert f"Behaves like a release in which {words.cut_share(share)} of the rows were copied." in row
    assert WORST_SUBGROUP.title in chapter(page, "risk-singling-out")
    assert WORST_SUBGROUP.help in unescape(chapter(page, "risk-singling-out"))


def test_a_gate_on_the_restated_number_stands_beside_it_with_its_unit(
    build: ModuleType, one: AuditOutcome
) -> None:
    gate = build.gate(
        "leak", "Few copies", measurement=read("closest_record.leak_equivalent[of share]"),
        value=0.003, low=-0.003, high=0.009, maximum=0.02,
    )  # fmt: skip
    page = render_report(build.judged(one, gate))
    assert f"Limit: at most 2{NB}%" in chapter(page, "risk-membership")


def test_a_blind_number_says_so_with_its_reason(build: ModuleType) -> None:
    planted = text(chapter(render_report(build.failing(), full=True), "known-answer"))
    assert "Blind A full copy gives no clearly worse value." in planted


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
