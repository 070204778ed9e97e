"""The certificate: what it must say from evidence alone, and what it must not."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import ModuleType

import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit.findings.measurement import Direction, Interval, Measurement, MeasurementId
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.report.certificate import certificate_view, frameworks, render_certificate, residual_risks
from synth_audit.report.gates import gates_of
from synth_audit.report.page import report_view
from synth_audit.report.words import people, people_interval
from synth_audit.store.evidence import Evidence
from synth_audit.store.reports import audit_marks, read_marks
from synth_audit.verdict.comparison import change, worse_gates
from synth_audit.verdict.criteria import CRITERIA

REVIEW = {"purpose": "teaching", "recipient": "a university", "valid_until": "2027-11-30"}


@pytest.mark.parametrize("kind", ["passing", "failing", "undecided", "hostile", "crowded"])
def test_it_is_made_of_any_evidence_and_names_it_to_machines(build: ModuleType, kind: str) -> None:
    evidence = getattr(build, kind)()
    page = render_certificate(evidence)
    assert page == render_certificate(evidence)
    marks = read_marks(page)
    assert marks is not None
    assert marks.audit == audit_marks(evidence)
    assert "<script" not in page
    assert len(page) < 100_000


def test_every_criterion_has_a_row_whatever_became_of_it(build: ModuleType) -> None:
    rows = {row.answer.criterion: row for row in certificate_view(build.passing())["criteria"]}
    assert tuple(rows) == CRITERIA
    assert rows["singling out"].answer.state == "within limit"
    assert rows["singling out"].percent == "1.2\u00a0% (0.6 to 1.8\u00a0%)"
    assert rows["singling out"].people == "242 to 719"  # of 39,084
    assert rows["singling out"].allowed_people == "3,518"
    assert (rows["linkability"].answer.state, rows["linkability"].people) == ("not tested", "–")


def test_a_refusal_says_why_in_plain_words_and_no_signature_releases_it(build: ModuleType) -> None:
    failed = build.failing()
    suite = {
        "name": "s",
        "expectations": [{"meta": {"id": "copies.max", "finding": "{value} of rows are copies"}}],
    }
    failed = replace(failed, gates=replace(failed.gates, suite=suite)).sealed()
    view = certificate_view(failed)
    assert view["reasons"][0] == "Fail: 2.14\u00a0% of rows are copies; 0.1\u00a0% allowed."
    title, body = render_certificate(failed).split("</style>")
    assert "<title>Refusal: " in title
    assert "stays in" in text(body)
    assert "certificate" not in text(body).lower()


def test_an_open_question_stands_in_the_box_of_the_verdict(build: ModuleType) -> None:
    """Not below a green box, and once."""
    passed = text(render_certificate(build.passing()))
    box = passed[passed.index("may be released") : passed.index("Scope")]
    assert box.index("Linkability: not tested.") < box.index("All 4 deciding gates passed.")
    assert "Singling out" not in box
    view = certificate_view(build.failing())
    assert [r.split(":")[0] for r in view["reasons"][:2]] == ["Fail", "Insufficient evidence"]
    assert not any(r.startswith("Singling out: ") for r in view["reasons"]), "its gate is named already"


def test_the_scope_of_the_plan_is_shown_and_its_absence_is_said(build: ModuleType) -> None:
    evidence = build.passing()
    assert "states no purpose" in text(render_certificate(evidence))
    scoped = replace(evidence, plan={**evidence.plan, "review": REVIEW}).sealed()
    shown = {f.label: f.value for f in certificate_view(scoped)["scope"]}
    assert shown == {"Purpose": "teaching", "Recipient": "a university", "Valid until": "30 November 2027"}


def test_warnings_and_what_was_not_measured_are_on_the_first_page(build: ModuleType) -> None:
    warned = replace(build.passing(), warnings=tuple(f"warning {i}" for i in range(5))).sealed()
    page = text(render_certificate(warned))
    first = page[: page.index("Scope")]
    assert "Warning 2." in first
    assert "2 more warnings in the annex." in first
    alone = build.evidence((build.singling_out(),), build.report_of(build.gates()))
    assert "Not measured: fidelity and utility." in text(render_certificate(alone))


def test_altered_evidence_is_not_certified(build: ModuleType) -> None:
    forged = replace(build.failing(), verdict=Result.PASS)
    page = text(render_certificate(forged))
    assert "Do not rely on this page" in page
    assert "approve the release" not in page
    assert "passed" not in page[: page.index("Scope")]


def test_no_small_number_of_people_is_told() -> None:
    assert people(0.0001, 39_084, 10) == "fewer than 10"
    assert people(-0.1, 39_084, 10) == "none"
    assert people(1.2, 500, 10) == "500"
    assert people(math.inf, 500, 10) == "500"
    assert people(math.nan, 500, 10) == "not computed"
    assert people_interval(-0.1, 0.0002, 39_084, 10) == "none to fewer than 10"


def test_a_share_of_one_subgroup_is_not_counted_over_all_of_train(build: ModuleType) -> None:
    [risk] = [r for r in residual_risks(build.passing()) if r.answer.criterion == "singling out"]
    assert risk.share is not None
    of_one = replace(risk.share, id=replace(risk.share.id, quantity="worst_subgroup_near_copies"))
    row = replace(risk, share=of_one)
    assert row.percent == "1.2\u00a0% (0.6 to 1.8\u00a0%)"
    assert row.people == "of those in one subgroup"
    assert row.allowed_people == ""


def test_overlapping_intervals_are_no_change(build: ModuleType) -> None:
    [m] = [x for x in build.passing().measurements if str(x.id) == "singling_out.risk"]

    def at(low: float, high: float, direction: Direction = Direction.LOWER) -> object:
        return replace(
            m, value=(low + high) / 2, interval=Interval(low, high, 0.95, "w"), direction=direction
        )

    assert change(at(0.1, 0.2), at(0.2, 0.3)) == "not distinguishable"
    assert change(at(0.3, 0.4), at(0.1, 0.2)) == "worse"
    assert change(at(0.3, 0.4, Direction.HIGHER), at(0.1, 0.2)) == "better"


def test_only_a_deciding_number_beyond_both_intervals_is_worse(build: ModuleType) -> None:
    evidence = build.passing()
    [m] = [x for x in evidence.measurements if str(x.id) == "singling_out.risk"]

    def moved(by: float) -> list[object]:
        assert m.interval is not None
        span = replace(m.interval, low=m.interval.low + by, high=m.interval.high + by)
        return [replace(m, value=m.value + by, interval=span)]

    worse = [worse_gates(evidence.gates.results, moved(by), [m]) for by in (-0.1, 0.0, 0.005, 0.1)]
    assert [[g.gate for g in found] for found in worse] == [[], [], [], ["risk.max"]]
    advice = [replace(g, blocking=False) for g in evidence.gates.results]
    assert not worse_gates(advice, moved(0.1), [m])
    assert not worse_gates(evidence.gates.results, [replace(moved(0.1)[0], interval=None)], [m])


def test_it_compares_with_the_last_release(build: ModuleType) -> None:
    now, before = build.passing(), replace(build.passing(), created="2026-10-01T00:00:00+00:00")
    page = render_certificate(now, previous=before)
    assert f'data-compared-with="{before.digest}"' in page
    assert "not distinguishable: was 1.2" in text(page)


def test_demands_are_said_to_be_measured_only_where_they_were(build: ModuleType) -> None:
    rows = certificate_view(build.passing())["demands"]
    assert len(rows) == sum(len(f["demands"]) for f in frameworks())
    told = {row.demand: row for row in rows}
    assert told["Was singling out tested by attack?"].measured
    assert told["Was singling out tested by attack?"].answer.state == "within limit"
    assert not told["Was linkability tested by attack?"].measured
    assert told["Was linkability tested by attack?"].answer.state == "not tested"
    assert all(row.demand.endswith("?") for row in rows), "a yes says what was done, not that all is well"
    assert not any(row.measured for row in rows if row.where.startswith("no "))


def told(evidence: Evidence, gate: GateResult) -> str:
    [judged] = gates_of(replace(evidence, gates=replace(evidence.gates, results=(gate,))))
    return judged.sentence


def test_a_finding_of_nothing_beyond_chance_is_no_negative_share(build: ModuleType) -> None:
    evidence = build.passing()
    [gate] = [g for g in evidence.gates.results if g.gate == "risk.max"]
    below = replace(gate, value=-0.02, low=-0.04, high=0.001)
    assert told(evidence, below).endswith(": 0\u00a0%; 9\u00a0% allowed")


def test_an_undecided_finding_says_that_its_interval_reaches_beyond(build: ModuleType) -> None:
    evidence = build.passing()
    [gate] = [g for g in evidence.gates.results if g.gate == "risk.max"]
    assert gate.measurement is not None
    wide = replace(gate, value=-0.02, low=-0.3, high=0.32, result=Result.INSUFFICIENT)
    said = ": 0\u00a0% (0 to 32\u00a0%); 9\u00a0% allowed, and the interval reaches beyond it"
    assert told(evidence, wide).endswith(said)
    blind = replace(wide, explanation=f"{gate.measurement.name} is blind here and decides nothing: so it is.")
    assert re.fullmatch(
        "“[^“.]+” of “[^“.]+” is blind here and decides nothing: so it is", told(evidence, blind)
    )


def test_a_blind_number_is_no_residual_risk(build: ModuleType) -> None:
    evidence = build.passing()
    [gate] = [g for g in evidence.gates.results if g.gate == "risk.max"]
    assert gate.measurement is not None
    why = f"{gate.measurement.name} is blind here and decides nothing: so it is."
    blind = replace(gate, result=Result.INSUFFICIENT, explanation=why)
    judged = replace(evidence, gates=replace(evidence.gates, results=(blind,)))
    [risk] = [r for r in residual_risks(judged) if r.answer.criterion == "singling out"]
    assert risk.answer.state == "insufficient evidence"
    assert (risk.percent, risk.people, risk.allowed_people) == ("–", "–", "")


def test_detection_limits_say_what_would_have_been_found(build: ModuleType) -> None:
    shares = {"": 0.08, "copies": 0.023, "near_copies": 0.08, "mixtures": 1.0}
    limits = [measured_limit(name, share) for name, share in shares.items()]
    outcome = replace(build.singling_out(), audit="recognition", measurements=tuple(limits), responses=())
    found = replace(build.passing(), outcomes=(outcome,)).sealed()
    told, left = certificate_view(found)["sharpness"]
    assert "the training people on: copies 2.3\u00a0%, near copies 8\u00a0%." in told
    assert left == "No such share is established for: mixtures."
    assert report_view(found)["sensitivity"].text.startswith("A leak of 8.0\u00a0% of the training people")
    unknown = replace(outcome, measurements=tuple(measured_limit(name, 1.0) for name in ("", "copies")))
    line = report_view(replace(found, outcomes=(unknown,)).sealed())["sensitivity"]
    assert (line.kind, line.text) == ("open", "No such share is established for: copies.")
    lost = replace(outcome, measurements=(measured_limit("", math.nan),))
    assert report_view(replace(found, outcomes=(lost,)).sealed())["sensitivity"].kind == "open"


def test_it_says_how_the_control_set_came_about(build: ModuleType) -> None:
    evidence = build.passing()

    def said(**plan: object) -> str:
        return certificate_view(replace(evidence, plan=plan).sealed())["subject"]

    assert said(name="t").endswith("Assumed: the control set is a random sample of the same population.")
    by_chance = said(name="t", split={"made_elsewhere": "random"}, review={"owner": "registry"})
    assert by_chance.endswith("The registry states that chance alone chose the control set.")
    assert "control set" not in said(name="t", source={"path": "t.csv"})


def measured_limit(name: str, share: float) -> Measurement:
    return Measurement(MeasurementId("recognition", "detection_limit", name), share)
