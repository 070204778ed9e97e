import re
from dataclasses import replace
from html import unescape
from types import ModuleType, SimpleNamespace

import pytest

from synth_audit.findings.measurement import MeasurementId
from synth_audit.findings.sensitivity import ExposedGroup, RecordView
from synth_audit.report import render_report
from synth_audit.report.chapters import exposed_records
from synth_audit.store.evidence import Evidence


def view_of(evidence: Evidence) -> SimpleNamespace:
    found = exposed_records(evidence)
    assert found is not None
    return SimpleNamespace(**found)


def section(page: str) -> str:
    found = re.search(r'<section class="chapter" id="exposed-records".*?</section>', page, re.DOTALL)
    assert found is not None
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", found[0])).split())


def test_its_numbers_are_those_of_the_evidence(build: ModuleType) -> None:
    view = view_of(build.passing())
    assert [f.value for f in view.facts] == ["812 (2.08\u00a0%)", "fewer than 10"]
    assert [r[3:] for r in view.groups.rows] == [
        ("7.7\u00a0% (154 of 2,000)", "6.0\u00a0% (121 of 2,000)", "+1.7\u00a0points"),
        ("fewer than 10 of 2,000", "0.0\u00a0% (0 of 2,000)", "–"),
        ("2.1\u00a0% (812 of 39,084)", "not tried", "–"),
    ]
    assert view.groups.rows[0][:3] == ("Singling out by predicates", "3 columns", "age, workclass")
    assert view.subgroups.rows[0] == (
        "sex", "Female", "Singling out by predicates (3 columns)", "410", "11\u00a0%", "6 to 16\u00a0%",
    )  # fmt: skip


def test_it_says_where_positions_are_and_holds_none(build: ModuleType) -> None:
    said = section(render_report(build.passing()))
    assert "Only restricted/exposed_records.parquet does" in said
    assert "hits on control records, which the generator never saw, are subtracted" in said


@pytest.mark.parametrize("limit", [10, 25])
def test_the_limit_that_is_named_is_the_evidences(build: ModuleType, limit: int) -> None:
    view = view_of(replace(build.passing(), suppression=limit))
    assert view.facts[1].value == f"fewer than {limit}"
    assert view.groups.rows[1][3] == f"fewer than {limit} of 2,000"


def test_silence_of_the_audits_is_said(build: ModuleType) -> None:
    assert "nothing is known of single records" in section(render_report(build.undecided()))
    assert view_of(build.undecided()).facts == ()


def test_without_an_audit_of_privacy_there_is_no_chapter(build: ModuleType) -> None:
    evidence = build.evidence((build.marginals(),), build.report_of(()))
    assert exposed_records(evidence) is None
    assert "exposed-records" not in render_report(evidence)


def test_nobody_hit_nobody_tried_and_unknown_audits(build: ModuleType) -> None:
    groups = (
        ExposedGroup(MeasurementId("gone", "risk"), (), 0, 0, 0, 0),
        ExposedGroup(MeasurementId("gone", "risk", "s"), ("a",), 50, 0, 50, 0),
    )
    view = view_of(replace(build.passing(), records=RecordView(0, 0, 0, 0, groups)))
    assert [f.value for f in view.facts] == ["0", "0"]
    assert view.groups.rows[0] == ("gone", "–", "–", "not tried", "not tried", "–")
    assert view.groups.rows[1][3:] == ("0.0\u00a0% (0 of 50)", "0.0\u00a0% (0 of 50)", "0.0\u00a0points")


def test_many_columns_are_counted(build: ModuleType) -> None:
    groups = (ExposedGroup(MeasurementId("linkability", "risk"), tuple("abcdefgh"), 50, 0, 50, 0),)
    view = view_of(replace(build.passing(), records=RecordView(50, 0, 0, 0, groups)))
    assert view.groups.rows[0][2] == "a, b, c, d, e, f and 2 more"


def test_long_tables_are_cut_and_hostile_categories_stay_text(build: ModuleType) -> None:
    page, full = (render_report(build.crowded(), full=full) for full in (False, True))
    assert "How often each attack was right: 5 of 40 rows, the others in evidence.json" in page
    assert full.count('data-label="Setting"') == 40
    assert page.count('data-label="Setting"') == 5
    assert build.HOSTILE.replace("\u202e", "\ufffd") in section(page)
    assert "<script" not in page.lower()
    assert "not computed" in section(page)
