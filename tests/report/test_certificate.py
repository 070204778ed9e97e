"""The certificate: what it must say from evidence alone, and what it must not."""

import math
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit.findings.measurement import Direction, Interval, Measurement, MeasurementId, Reference
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.plan.sections import ReviewSpec
from synth_audit.report.assessment import MOST_WORDS, ResidualRisk, assessment, not_measured, residual_risks
from synth_audit.report.certificate import (
    AS_OF,
    certificate_view,
    frameworks,
    guidelines,
    render_certificate,
)
from synth_audit.report.gates import gates_of
from synth_audit.report.page import render, report_view
from synth_audit.report.words import RESULT_WORDS, least_leak, people, people_interval, share_of_people
from synth_audit.store.evidence import Evidence
from synth_audit.store.reports import audit_marks, read_marks
from synth_audit.verdict.comparison import change, worse_gates
from synth_audit.verdict.criteria import CRITERIA
from synth_audit.verdict.suite import load_suite

REVIEW = {"purpose": "teaching", "recipient": "a university", "valid_until": "2027-11-30"}
WHOLE_REVIEW = {
    **REVIEW,
    "environment": "a protected server",
    "controller": "a hospital",
    "legal_basis": "GDPR article 9(2)(j)",
    "special_categories": "health",
    "owner": "clinical data",
    "contact": "data@example.org",
    "reviewer": "data protection officer",
    "review_on": "2027-06-30",
    "reports": 3,
}
KINDS = ["passing", "failing", "undecided", "hostile", "crowded"]


def reviewed(evidence: Evidence, review: dict[str, object]) -> Evidence:
    return replace(evidence, plan={**evidence.plan, "review": review}).sealed()


def both_pages(page: str) -> str:
    """What a reader sees of the certificate without its annex."""
    body = page.split("</style>")[1]
    return text(body[: body.index('<section class="annex"')])


@pytest.mark.parametrize("kind", KINDS)
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
    assert rows["singling out"].people == "242 to 719 of 39,084 people"
    assert rows["singling out"].as_if == "0.0 to 0.9\u00a0%"
    assert "as if 0.0 to 0.9\u00a0% of the rows were copies" in rows["singling out"].finding
    refused = replace(rows["singling out"], evidence=build.failing())
    assert refused.as_if == "", "a refusal counts the copies themselves"
    again = replace(rows["singling out"], copied=rows["singling out"].gate.measured)
    assert (again.as_if, "copies" in again.finding) == ("", False), "the same range is not said twice"
    assert (rows["linkability"].answer.state, rows["linkability"].people) == ("not tested", "–")


def test_a_refusal_says_why_in_plain_words_and_no_signature_releases_it(build: ModuleType) -> None:
    failed = build.failing()
    suite = {
        "name": "s",
        "expectations": [{"meta": {"id": "copies.max", "finding": "{value} of rows are copies"}}],
    }
    failed = replace(failed, gates=replace(failed.gates, suite=suite)).sealed()
    view = certificate_view(failed)
    assert view["reasons"][0] == "Fail: 2.14\u00a0% of rows are copies."
    title, body = render_certificate(failed).split("</style>")
    assert "<title>Refusal: " in title
    assert "Signing this page does not release it." in text(body)
    assert "certificate" not in text(body).lower()


def test_an_open_criterion_is_the_third_line_of_a_pass_and_is_said_of_a_refusal_too(
    build: ModuleType,
) -> None:
    passed = both_pages(render_certificate(build.passing()))
    opening = "Certificate: adult This synthetic table may be released. Linkability was not tested."
    assert passed.startswith(opening)
    assert passed.index("was not tested") < passed.index("All 4 deciding gates passed.")
    undecided = both_pages(render_certificate(build.undecided()))
    assert undecided.index("could not be decided on this table") < undecided.index("Safe to release")
    failed = both_pages(render_certificate(build.failing()))
    assert failed.index("Fail: ") < failed.index(
        "Singling out could not be decided on this table: the evidence is insufficient."
    )


def test_the_scope_of_the_plan_is_shown_and_its_absence_is_said(build: ModuleType) -> None:
    evidence = build.passing()
    assert "Not stated in the plan: purpose, recipient, environment," in text(render_certificate(evidence))
    assert not certificate_view(evidence)["scope"]
    assert not certificate_view(reviewed(evidence, WHOLE_REVIEW))["unstated"]
    missing = certificate_view(reviewed(evidence, REVIEW))["unstated"]
    assert "legal basis, special categories of data" in missing
    assert "recipient" not in missing
    assert missing in both_pages(render_certificate(reviewed(evidence, REVIEW)))
    shown = {f.label: f.value for f in certificate_view(reviewed(evidence, REVIEW))["scope"]}
    assert shown == {
        "Purpose": "teaching",
        "Recipient": "a university",
        "Valid until": "30 November 2027",
    }


def test_every_key_of_the_review_is_shown(build: ModuleType) -> None:
    assert set(WHOLE_REVIEW) == set(ReviewSpec.model_fields)
    page = both_pages(render_certificate(reviewed(build.passing(), WHOLE_REVIEW)))
    for value in WHOLE_REVIEW.values():
        said = {"2027-11-30": "30 November 2027", "2027-06-30": "30 June 2027"}.get(str(value), str(value))
        assert said in page, said


def test_an_expired_one_says_so_and_is_signed_by_nobody(build: ModuleType) -> None:
    evidence = reviewed(build.passing(), WHOLE_REVIEW)
    last, after = date(2027, 11, 30), date(2027, 12, 1)
    fresh = render_certificate(evidence)
    assert render_certificate(evidence, today=date(2027, 6, 30)) == fresh
    due = render_certificate(evidence, today=last)
    assert "30 June 2027 (the review is due)" in text(due)
    assert "approve the release" in text(due)
    expired = render_certificate(evidence, today=after)
    assert both_pages(expired).startswith("Expired certificate: adult ")
    assert "Expired on 30 November 2027: nothing may be released" in both_pages(expired)
    assert "30 November 2027 (expired)" in text(expired)
    assert "Safe to release: yes" in text(due)
    assert "Safe to release" not in text(expired)
    assert "approve the release" not in text(expired)
    marks = read_marks(expired)
    assert marks is not None
    assert marks.audit[AS_OF] == "2027-12-01"
    assert AS_OF not in fresh


def test_a_refusal_is_not_called_a_certificate_when_its_validity_is_over(build: ModuleType) -> None:
    page = render_certificate(reviewed(build.failing(), REVIEW), today=date(2028, 1, 1))
    assert both_pages(page).startswith("Refusal: adult This synthetic table must not be released.")
    assert "valid until" not in both_pages(page).lower()


def test_warnings_and_what_was_not_measured_are_on_the_first_page(build: ModuleType) -> None:
    warned = replace(build.passing(), warnings=tuple(f"warning {i}" for i in range(5))).sealed()
    page = text(render_certificate(warned))
    first = page[: page.index("Scope and validity")]
    assert "Warning 2." in first
    assert "2 more warnings in the report." in first
    alone = build.evidence((build.singling_out(), build.errored()), build.report_of(build.gates()))
    listed = not_measured(alone, residual_risks(alone))
    assert listed[0] == "Linkability was not tested."
    assert text(render_certificate(alone)).count("No audit for it was part of this run.") == 2
    assert "Fidelity: no audit of it gave a number." in listed
    assert "Density ratio: LinAlgError in density_ratio.py, line 81." in listed
    assert listed[-1].startswith("Attacks that were not tried:")
    shown = text(render_certificate(alone))
    assert all(line in shown for line in listed)
    assert "including “What was not measured”" in shown


def test_no_limit_stands_on_the_two_pages_and_each_has_its_reason_in_the_annex(build: ModuleType) -> None:
    for kind in ("passing", "failing", "undecided"):
        page = render_certificate(getattr(build, kind)())
        pages = both_pages(page)
        assert "allowed" not in pages
        assert "at most" not in pages
        annex = text(page.split("</style>")[1])[len(pages) :]
        assert "at most 9 %" in annex
        [gate] = [g for g in getattr(build, kind)().gates.results if g.gate == "risk.max"]
        assert gate.reason in annex


@pytest.mark.parametrize("kind", KINDS)
def test_two_pages_have_at_most_900_words(build: ModuleType, kind: str) -> None:
    page = render_certificate(reviewed(getattr(build, kind)(), WHOLE_REVIEW), previous=build.passing())
    assert len(both_pages(page).split()) <= 900


@pytest.mark.parametrize("kind", KINDS)
def test_the_assessment_has_four_short_paragraphs_from_evidence(build: ModuleType, kind: str) -> None:
    endless = dict.fromkeys(("recipient", "environment", "owner", "reviewer"), "one two " * 60)
    for review in ({}, WHOLE_REVIEW, endless):
        evidence = reviewed(getattr(build, kind)(), review)
        found = assessment(evidence, residual_risks(evidence))
        assert [title for title, _ in found] == [
            "Attack assumed",
            "What was tried",
            "Result in people",
            "Residual risk, measure, owner",
        ]
        assert all(0 < len(paragraph.split()) <= MOST_WORDS for _, paragraph in found)


def test_the_assessment_says_who_what_and_how_many(build: ModuleType) -> None:
    evidence = reviewed(build.passing(), WHOLE_REVIEW)
    assumed, tried, result, residual = (text for _, text in assessment(evidence, residual_risks(evidence)))
    assert (
        "tries to single out people, to guess secret columns and to find out who was in the training set."
        in assumed
    )
    assert "Recipient: a university. Environment: a protected server." in assumed
    assert "Singling out: “Singling out by predicates”." in tried
    assert "9,758 control people" in tried
    assert "Singling out, 242 to 719 of 39,084 people; linkability, not tested;" in result
    assert residual.startswith("Insufficient evidence: inference. Not tested: linkability. Within limit: ")
    assert "Measures in the plan: at most 3 reports. No mathematical guarantee limits" in residual
    assert "Owner: clinical data. Reviewer: data protection officer. Next review: 30 June 2027." in residual


def test_measures_are_those_of_plan_and_generator(build: ModuleType) -> None:
    evidence = build.passing()
    generator = replace(evidence.generator, privacy=build.promised("noise"))
    plan = {**evidence.plan, "coarsen": {"columns": {"age": {"step": 5}}}, "release": {"approvals": 2}}
    guarded = replace(evidence, generator=generator, plan=plan).sealed()
    residual = assessment(guarded, residual_risks(guarded))[-1][1]
    known = "differential privacy (privacy budget ε = 1, δ = 1.0 × 10⁻⁵), 1 column coarsened and 2 approvals."
    assert f"Measures in the plan: {known}" in residual


def refused(build: ModuleType, *gates: GateResult) -> tuple[str, ...]:
    known = build.failing()
    return certificate_view(replace(known, gates=build.report_of(gates), verdict=Result.FAIL).sealed())[
        "reasons"
    ]


def failed(build: ModuleType, name: str, measurement: str, **more: object) -> GateResult:
    return build.gate(name, name, Result.FAIL, measurement=measurement, value=0.5, maximum=0.1, **more)


def test_the_most_direct_harm_is_told_first_and_what_restates_it_last(build: ModuleType) -> None:
    again = failed(build, "again", "closest_record.exact_copies")
    assert again.measurement is not None
    restated = replace(again, measurement=LEAK_EQUIVALENT.derived(again.measurement))
    copies = failed(build, "copies", "singling_out.risk")
    wide = replace(copies, gate="wide", result=Result.INSUFFICIENT)
    form = build.gate("form", "form", Result.FAIL, explanation="A column more.")
    told = refused(build, restated, wide, form, copies)
    assert [reason.partition(":")[0] for reason in told] == [
        "Fail",
        "Fail",
        "Fail",
        RESULT_WORDS[Result.INSUFFICIENT],
    ]
    assert told[0].startswith("Fail: Risk of being singled out")
    assert told[1] == "Fail: A column more."
    assert told[2].startswith("Fail: Copied rows that would give this number")


@pytest.mark.parametrize("name", ["release", "sensitive", "health"])
def test_suites_list_copies_and_identifiers_first_as_reasons_do(name: str) -> None:
    listed = [gate["kwargs"]["name"] for gate in load_suite(name, Path()).plain["expectations"]]
    assert listed[:2] == ["exact_match.excess", "exact_match.identifier_reuse"]


def test_gates_of_one_cause_are_one_reason(build: ModuleType) -> None:
    first, second = (failed(build, name, "singling_out.risk") for name in ("first", "second"))
    [told] = refused(build, first, second)
    assert told.startswith("Fail: Risk of being singled out: 50\u00a0%")
    finding = "Risk of being singled out: 50\u00a0% (242 to 719 of 39,084 people)."
    assert told.endswith(f"{finding} Also: {finding}")
    others = (failed(build, name, "singling_out.risk") for name in ("third", "fourth", "fifth"))
    [told] = refused(build, first, second, *others)
    assert told.endswith(f"Also: {finding} {finding} {finding} 1 more gate did not pass.")


def test_a_finding_names_the_columns_or_secrets_that_evidence_knows(build: ModuleType) -> None:
    risks = [
        build.measurement(f"inference.{name}", value, 0.01, column=column, unit=unit)
        for name, column, value, unit in (
            ("overall", "", 0.5, "share of secrets"),
            ("excess_people", "", 0.9, "share of people"),
            ("risk", "sex", 0.3, "share of people"),
            ("risk", "age", 0.6, "share of people"),
        )
    ]
    secrets = replace(build.singling_out(), audit="inference", measurements=tuple(risks), responses=())
    gates = (failed(build, "a", "inference.overall"), failed(build, "b", "singling_out.risk"))
    for result, columns in ((Result.FAIL, "Columns: age, workclass."), (Result.PASS, "")):
        report = build.report_of(tuple(replace(g, result=result) for g in gates))
        known = build.evidence((secrets, build.singling_out()), report, records=build.RECORDS)
        assert [g.columns for g in gates_of(known)] == ["Secrets: age, sex.", columns]


def test_copies_are_counted_in_people_and_not_in_rows(build: ModuleType) -> None:
    chance = Reference(0.0, "chance")
    excess, people = (
        build.measurement(f"exact_match.{name}", value, 0.05, unit=unit, reference=chance)
        for name, unit, value in (("excess", "share of rows", 0.9), ("record_excess", "share of people", 0.6))
    )
    gate = failed(build, "copies", "exact_match.excess", low=0.85, high=0.95)
    known = replace(build.singling_out(), audit="exact_match", responses=())

    def row(*measurements: Measurement) -> ResidualRisk:
        outcome = replace(known, measurements=measurements)
        return residual_risks(build.evidence((outcome,), build.report_of((gate,))))[0]

    assert row(excess, people).people == "21,496 to 25,405 of 39,084 people"
    assert row(excess, people).gate.found_in_people.endswith(
        ". These rows are the records of 21,496 to 25,405 of the 39,084 training people"
    )
    assert row(excess).gate.found_in_people == row(excess).gate.found, "rows are no people"
    assert row(excess).people == "85 to 95\u00a0% of the rows"


def test_a_refusal_says_what_to_do_next_and_asks_for_no_signature(build: ModuleType) -> None:
    gates = tuple(
        failed(build, name, measurement, advice=f"Mend {name}.")
        for name, measurement in (
            ("first", "singling_out.risk"),
            ("second", "singling_out.risk"),
            ("third", "closest_record.share"),
        )
    )
    known = build.failing()
    evidence = replace(known, gates=build.report_of(gates), verdict=Result.FAIL).sealed()
    assert certificate_view(evidence)["steps"] == ("Mend first.", "Mend third.")
    page = both_pages(render_certificate(evidence))
    assert page.index("What to do next Mend first.") < page.index("What was tested")
    assert "Name and function" not in page
    assert "Would a leak have been seen?" not in page
    passed = both_pages(render_certificate(build.passing()))
    assert "Name and function" in passed
    assert "Would a leak have been seen?" in passed
    assert "What to do next" not in passed


def test_without_a_declared_identifier_the_report_says_so(build: ModuleType) -> None:
    evidence = build.passing()
    ids = build.gate("ids", "No identifier", measurement="exact_match.identifier_reuse", value=0, maximum=0)
    plain = tuple(replace(c, roles=("feature",)) for c in evidence.columns)
    for columns in (plain, (replace(plain[0], roles=("identifier",)), *plain[1:])):
        gates = build.report_of((*build.gates(), ids))
        known = replace(evidence, columns=columns, gates=gates).sealed()
        for page in (render(known), render_certificate(known)):
            assert ("plan declares no identifier" in page) == (columns is plain)
        assert (
            "Of 5 deciding gates, 4 passed, 1 had no declared identifier to search for" in render(known)
        ) == (columns is plain)
        assert gates_of(known)[-1].sign.kind == ("advice" if columns is plain else "pass")


def test_all_deciding_gates_that_are_counted_are_in_the_annex(build: ModuleType) -> None:
    for kind in KINDS:
        evidence = getattr(build, kind)()
        listed = [gate.result.gate for _, gate in certificate_view(evidence)["limits"]]
        assert {g.gate for g in evidence.gates.results if g.blocking} <= set(listed)
        assert len(listed) == len(set(listed))


def test_a_forgotten_rounding_is_one_reason_without_a_suspicion(build: ModuleType) -> None:
    flag = build.measurement("novel_content.novel", 1.0, 0.0, unit="flag")
    outcome = replace(build.singling_out(), audit="novel_content", measurements=(flag,), responses=())
    novel = failed(build, "novel_content", "novel_content.novel")
    explained = "Column age holds finer values than declared."
    noted = "column 'age' holds finer digits than train has: round it as train is rounded"
    alone = build.evidence((replace(outcome, notes=(noted,)),), build.report_of((novel,)))
    assert certificate_view(alone)["reasons"] == (f"Fail: C{noted[1:]}.",)
    contract = build.gate("schema_contract", "The table is as declared", Result.FAIL, explanation=explained)
    evidence = build.evidence((outcome,), build.report_of((novel, contract)))
    [reason] = certificate_view(evidence)["reasons"]
    assert "finer values than declared" in reason


def test_altered_evidence_is_not_certified(build: ModuleType) -> None:
    forged = replace(build.failing(), verdict=Result.PASS)
    page = text(render_certificate(forged))
    assert "Do not rely on this page" in page
    assert "approve the release" not in page
    assert "passed" not in page[: page.index("What was tested")]


def test_a_detection_limit_promises_no_more_people_than_holds(build: ModuleType) -> None:
    evidence = build.passing()
    train = replace(evidence.tables["train"], rows=1500)
    small = replace(evidence, tables={**evidence.tables, "train": train})
    assert least_leak(0.0116, small) == (18, 0.012), "17.4 people"
    assert least_leak(100 / 1500, small)[0] == 100
    assert least_leak(0.002, small)[0] == small.suppression
    assert share_of_people(0.0328, small) == "3.33\u00a0% of the training people (50 of 1,500)"


def test_columns_of_the_release_are_named_up_to_thirty(build: ModuleType) -> None:
    evidence = build.passing()
    [known, *_] = evidence.columns
    hidden = replace(known, name="patient", roles=("identifier",))
    many = (hidden, *(replace(known, name=f"c{i}", roles=("feature",)) for i in range(32)))
    page = both_pages(render_certificate(replace(evidence, columns=many).sealed()))
    assert "and 32 columns, made" in page
    assert "Columns of the release: c0, c1, " in page
    assert "c28, c29 and 2 more." in page


def test_no_small_number_of_people_is_told() -> None:
    assert people(0.0001, 39_084, 10) == "fewer than 10"
    assert people(-0.1, 39_084, 10) == "none"
    assert people(1.2, 500, 10) == "500"
    assert people(math.inf, 500, 10) == "500"
    assert people(math.nan, 500, 10) == "not computed"
    assert people_interval(-0.1, -0.1, 39_084, 10) == "none"
    assert people_interval(-0.1, 0.0002, 39_084, 10) == "fewer than 10"
    assert people_interval(-0.1, 0.1, 700, 10) == people_interval(0.01, 0.1, 700, 10) == "up to 70"
    assert people_interval(0.05, 0.1, 700, 10) == "35 to 70"


def test_a_share_of_one_subgroup_is_not_counted_over_all_of_train(build: ModuleType) -> None:
    [risk] = [r for r in residual_risks(build.passing()) if r.answer.criterion == "singling out"]
    assert risk.share is not None
    of_one = replace(risk.share, unit="share of a subgroup")
    row = replace(risk, share=of_one)
    assert row.people == "of the people in one category"
    of_sex = replace(of_one, id=replace(of_one.id, column="sex"), n_achieved=232)
    least = replace(of_one, interval=None)
    audit = replace(build.singling_out(), measurements=(of_sex,))
    row = replace(row, share=least, evidence=build.judged(audit))
    assert row.people == "at least 1.23\u00a0% of 232 people in one category of column sex"


def test_what_failed_is_shown_and_not_a_number_that_passed(build: ModuleType) -> None:
    counted = build.gate(
        "risk.max", "Risk", measurement="singling_out.risk", value=0.0123, low=0.006, high=0.018, maximum=0.09
    )
    bare = failed(build, "control", "singling_out.control_rate")
    evidence = build.evidence((build.singling_out(),), build.report_of((counted, bare)))
    [row] = [r for r in residual_risks(evidence) if r.answer.criterion == "singling out"]
    assert (row.answer.state, row.people) == ("beyond limit", "–")
    assert row.finding.startswith("Success on people never seen")


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
    assert "not distinguishable: was 242 to 719" in text(page)


def test_demands_are_said_to_be_measured_only_where_they_were(build: ModuleType) -> None:
    rows = [row for guideline in guidelines(build.passing(), {}) for row in guideline.demands]
    assert len(rows) == sum(len(f["demands"]) for f in frameworks())
    told = {row.demand: row for row in rows}
    assert told["Was singling out tested by attack?"].measured
    assert list(told["Was singling out tested by attack?"].outcomes) == [("pass", "Within limit")]
    assert not told["Was linkability tested by attack?"].measured
    assert list(told["Was linkability tested by attack?"].outcomes) == [("open", "Not tested")]
    several = told["Are the risks of re-identification and of inference assessed?"].outcomes
    known = [("open", "Insufficient evidence: inference"), ("pass", "Within limit: singling out")]
    assert list(several) == known
    assert not list(told["Was the privacy loss tested by attack?"].outcomes)
    assert told["Was singling out tested by attack?"].done == "yes"
    assert told["Was inference tested by attack?"].done == "no"
    open_ = [row for g in guidelines(build.undecided(), {}) for row in g.demands]
    [tried] = [row for row in open_ if row.demand == "Was singling out tested by attack?"]
    assert (tried.done, *tried.outcomes) == ("tried", ("open", "Insufficient evidence"))
    assert all(row.demand.endswith("?") for row in rows), "a yes says what was done, not that all is well"
    assert not any(row.measured for row in rows if row.where.startswith("no "))


def test_what_the_plan_must_state_is_said_only_where_all_of_it_is(build: ModuleType) -> None:
    asked = "Are owner, contact and validity named for what remains?"

    def said(review: dict[str, object]) -> bool:
        found = guidelines(reviewed(build.passing(), review), {})
        [row] = [row for guideline in found for row in guideline.demands if row.demand == asked]
        return row.measured

    [row] = [
        r
        for g in guidelines(reviewed(build.passing(), {"owner": "a"}), {})
        for r in g.demands
        if r.demand == asked
    ]
    assert row.where == "Not stated in the plan: contact, valid until."
    assert said(WHOLE_REVIEW)
    assert not said({key: value for key, value in WHOLE_REVIEW.items() if key != "contact"})


def test_every_guideline_says_whether_it_was_compared_with_its_source(build: ModuleType) -> None:
    keys = {"demand", "criterion", "audits", "section", "review", "open"}
    for framework in frameworks():
        assert framework.keys() <= {"name", "source", "checked", "demands"}
        assert all(demand.keys() <= keys for demand in framework["demands"])
        assert all(isinstance(demand.get("open", ""), str) for demand in framework["demands"])
    page = text(render_certificate(build.passing()))
    unchecked = sum("checked" not in framework for framework in frameworks())
    assert 0 < unchecked < len(frameworks())
    assert page.count("Our paraphrase, not compared with the source.") == unchecked
    assert page.count("Compared with ") >= len(frameworks()) - unchecked
    named = {framework["name"] for framework in frameworks()}
    assert named >= {"EDPB opinion 28/2024", "ICO anonymisation guidance", "NIST SP 800-226", "AI Act"}
    assert named >= {"ISO/IEC 27559", "SATRE"}


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
    why = f"{gate.measurement.name} decides nothing: so it is."
    blind = replace(wide, explanation=why, unusable="so it is")
    assert re.fullmatch("“[^“.]+” of “[^“.]+” decides nothing: so it is", told(evidence, blind))


def test_a_blind_number_is_no_residual_risk(build: ModuleType) -> None:
    evidence = build.passing()
    [gate] = [g for g in evidence.gates.results if g.gate == "risk.max"]
    blind = replace(gate, result=Result.INSUFFICIENT, unusable="so it is")
    judged = replace(evidence, gates=replace(evidence.gates, results=(blind,)))
    [risk] = [r for r in residual_risks(judged) if r.answer.criterion == "singling out"]
    assert risk.answer.state == "insufficient evidence"
    assert (risk.people, risk.as_if, risk.finding, risk.why) == ("–", "", "", "So it is.")


def test_detection_limits_say_what_would_have_been_found(build: ModuleType) -> None:
    shares = {"": 0.08, "copies": 0.023, "near_copies": 0.08, "mixtures": 1.0}
    limits = [measured_limit(name, share) for name, share in shares.items()]
    outcome = replace(build.singling_out(), audit="recognition", measurements=tuple(limits), responses=())
    found = replace(build.passing(), outcomes=(outcome,)).sealed()
    listed = [(f.name, f.people) for f in certificate_view(found)["found_from"]]
    assert listed == [("Copies", 899), ("Near copies", 3127)]
    hidden = (
        "Mixed rows (parts of two people in one row): no detection limit, so a leak of any size may have "
        "been missed."
    )
    assert hidden in certificate_view(found)["not_measured"]
    assert "899 people 2.3 %" in both_pages(render_certificate(found))
    assert report_view(found)["sensitivity"].text.startswith("A leak of 8\u00a0% of the training people")
    unknown = replace(outcome, measurements=tuple(measured_limit(name, 1.0) for name in ("", "copies")))
    line = report_view(replace(found, outcomes=(unknown,)).sealed())["sensitivity"]
    assert (line.kind, line.text) == ("open", "No detection limit is established for: copies.")
    alone = replace(outcome, measurements=(measured_limit("", 1.0),))
    line = report_view(replace(found, outcomes=(alone,)).sealed())["sensitivity"]
    assert (line.kind, "No detection limit" in line.text) == ("open", True)
    gate = build.gate("limit", "Limit", measurement="recognition.detection_limit", value=0.08, maximum=0.15)
    for share, told in ((0.08, "Only a leak of 3,127 people or more"), (1.0, "No size of a leak is establ")):
        gated = build.report_of((replace(gate, value=share),))
        row = residual_risks(replace(found, outcomes=(outcome,), gates=gated).sealed())[0]
        assert row.finding.startswith(told)
    lost = replace(outcome, measurements=(measured_limit("", math.nan),))
    assert report_view(replace(found, outcomes=(lost,)).sealed())["sensitivity"].kind == "open"


def test_it_says_how_the_control_set_came_about(build: ModuleType) -> None:
    evidence = build.passing()

    def said(**plan: object) -> str:
        return certificate_view(replace(evidence, plan=plan).sealed())["subject"]

    assert "Every comparison with control assumes that chance alone chose the control set" in said(name="t")
    by_chance = said(name="t", split={"made_elsewhere": "random"}, review={"owner": "registry"})
    assert by_chance.endswith("Chance alone chose the control set, as stated by: registry.")
    assert "control set" not in said(name="t", source={"path": "t.csv"})


def measured_limit(name: str, share: float) -> Measurement:
    return Measurement(MeasurementId("recognition", "detection_limit", name), share)
