from __future__ import annotations

import math
import re
from dataclasses import replace
from types import ModuleType
from xml.etree import ElementTree

import pytest
from report_reading import chapter, found_in, line_of, text, view_of  # made importable by conftest.py

from synth_audit.examination.known_answer import DETECTED, detection_probability
from synth_audit.findings.sensitivity import SensitivityCurve
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import render_report, words
from synth_audit.report.known_answer import MOST_ROWS, best_of_audits, chance, detection_picture

NB = "\u00a0"


def test_it_stands_before_the_threats_in_every_report(build: ModuleType) -> None:
    for evidence in (build.passing(), build.undecided(), build.evidence((), build.report_of(()))):
        anchors = re.findall(r'<section class="chapter [^"]*" id="([^"]+)"', render_report(evidence))
        assert anchors.index("known-answer") == anchors.index("how-to-read") + 1
        assert anchors.index("known-answer") < anchors.index("risk-singling-out")


def test_its_numbers_are_those_of_the_evidence(build: ModuleType) -> None:
    evidence = build.passing()
    said = chapter(render_report(evidence), "known-answer")
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


def test_many_measurements_are_folded_away_blind_ones_first(build: ModuleType) -> None:
    view = view_of(build.crowded())
    assert (len(view.rows), len(view.more_rows)) == (MOST_ROWS, 40 - MOST_ROWS)
    words_in_order = [r.sign.word for r in (*view.rows, *view.more_rows)]
    assert words_in_order == ["Blind"] * 10 + ["Sees"] * 30
    assert all(r.response.reason for r in view.rows[:10])
    assert view.more_rows[-1].shows == "not computed"
    assert (len(view.leaks), len(view.more_leaks)) == (MOST_ROWS, 30 - MOST_ROWS)
    assert "could not be computed" in view.leaks[0][0].leak
    assert "10 of 40 measurements cannot see even a full copy" in view.alarm
    said = chapter(render_report(build.crowded()), "known-answer")
    assert said.count("<summary>28 more measurements</summary>") == 1
    assert said.count("<summary>18 more measurements</summary>") == 1


def test_without_a_planted_leak_there_is_no_picture_but_a_reason(build: ModuleType) -> None:
    view = view_of(build.undecided())
    assert view.picture is None
    assert view.leaks == []
    assert "half of train has fewer than 20 rows" in view.planted
    assert all(r.sign.word == "Blind" for r in view.rows)


def test_seeing_and_blindness_differ_in_shape(build: ModuleType) -> None:
    rows = {r.sign.word: str(r.sign.icon) for r in view_of(build.failing()).rows}
    assert "<circle" in rows["Sees"]
    assert "<polygon" in rows["Blind"]


def test_the_curve_is_the_kernels_and_crosses_at_the_smallest_leak(build: ModuleType) -> None:
    for w in found_in(build.passing()):
        r = w.response
        assert r.full is not None
        assert r.half_width is not None
        expected = detection_probability(0.013, r.full.value, r.half_width, 0.95)
        assert chance(w, 0.013) == pytest.approx(expected)
        assert w.least is not None
        assert chance(w, w.least) == pytest.approx(DETECTED)


def test_each_audit_has_one_line_its_sharpest(build: ModuleType) -> None:
    found = found_in(build.passing())
    best = best_of_audits(found)
    assert [str(w.response.id) for w in best] == ["singling_out.risk", "closest_record.share"]
    picture = detection_picture(found, "x")
    assert picture is not None
    assert len(picture.table.header) == 3
    first = next(r for r in picture.table.rows if r[0] == f"1{NB}%")
    assert first[1] == words.number(chance(best[0], 0.01), "share", 1)
    root = ElementTree.fromstring(str(picture.drawing))  # noqa: S314
    curves = [n for n in root.iter("{http://www.w3.org/2000/svg}path") if "L" in (n.get("d") or "")]
    assert {n.get("stroke-dasharray") for n in curves if n.get("fill") == "none"} >= {None, "7 4"}


@pytest.mark.parametrize(
    "change",
    [{"half_width": math.nan}, {"half_width": None}, {"null": None}, {"null": math.inf}, {"null": 2.0}],
)
def test_what_cannot_be_drawn_is_left_out(
    build: ModuleType, one: AuditOutcome, change: dict[str, float | None]
) -> None:
    odd = tuple(replace(r, **change) for r in one.responses)  # type: ignore[arg-type]
    evidence = build.judged(replace(one, responses=odd))
    assert detection_picture(found_in(evidence), "x") is None
    render_report(evidence)


def test_an_exact_number_sees_a_single_row(build: ModuleType, one: AuditOutcome) -> None:
    exact: SensitivityCurve = replace(one.responses[0], half_width=0.0, minimum_detectable=0.0)
    gate = build.gate("g", "t", measurement="closest_record.share")
    evidence = build.judged(replace(one, responses=(exact,)), gate)
    assert "would show a single copied row" in render_report(evidence)
    assert "even a single copied row" in line_of(evidence).text
