"""Evidence in a notebook: a line, a piece of a page, frames and pictures."""

import re
from dataclasses import replace
from types import ModuleType

import pandas as pd
import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit.findings.verdict import GateResults
from synth_audit.plugins.audit import Status
from synth_audit.report.gates import GateView, by_role, gates_of
from synth_audit.report.page import shown
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.comparison import compare


@pytest.fixture(autouse=True)
def unshown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evidence, "page", None)


def test_a_line_says_what_it_is(build: ModuleType) -> None:
    line = repr(build.failing())
    assert len(line) < 300
    assert line.startswith("<Evidence of ")
    assert ": fail (gates: " in line
    assert build.failing()._repr_html_() is None, "without a page notebooks show the line"


def test_gates_print_as_a_line_each_time(build: ModuleType) -> None:
    evidence = build.failing()
    assert repr(evidence.failures).startswith("<gates: ")
    assert " fail" in repr(evidence.failures)
    assert len(repr(evidence.gates)) < 500
    assert "fail" in repr(evidence.gates)
    assert repr(build.passing().failures) == "<gates: none>"


def test_a_notebook_shows_verdict_and_gates(build: ModuleType) -> None:
    page = shown(build.failing())._repr_html_()
    assert page is not None
    plain = text(page)
    assert "must not be released" in plain
    held, passed = map(text, page.split("<details>"))
    gates = gates_of(build.failing())
    failing = [g for g in gates if g.result.result != "pass"]
    assert failing
    assert all(text(g.sentence) in held for g in failing)
    assert all(text(g.sentence) in passed for g in gates if g.result.result == "pass")
    assert f"{len(gates)} gates: {by_role(gates)}" in held


def test_a_notebook_shows_notices_and_the_columns_at_fault(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GateView, "columns", "Columns: wage.")
    page = shown(replace(build.failing(), warnings=("control is small",)).sealed())._repr_html_()
    assert page is not None
    assert "Control is small." in text(page)
    assert "Columns: wage." in text(page)


def test_pictures_of_two_audits_share_no_pattern(build: ModuleType) -> None:
    anchors = [
        set(re.findall(r'id="([^"]+)"', shown(evidence)._repr_html_() or ""))
        for evidence in (build.failing(), build.passing())
    ]
    assert all(anchors)
    assert not set.intersection(*anchors)


def test_altered_evidence_decides_nothing_in_a_notebook(build: ModuleType) -> None:
    page = shown(replace(build.passing(), table="another"))._repr_html_()
    assert page is not None
    assert "may be released" not in page


def test_names_are_no_markup(build: ModuleType) -> None:
    page = shown(build.hostile())._repr_html_()
    assert page is not None
    assert "<script" not in page
    assert "&lt;script" in page


def test_frames_have_every_number(build: ModuleType) -> None:
    evidence = build.passing()
    frame = evidence.to_frame()
    assert list(frame["measurement"]) == [str(m.id) for m in evidence.measurements]
    assert list(frame["value"]) == [m.value for m in evidence.measurements]
    gates = evidence.gates.to_frame()
    shares = frame["unit"].str.startswith("share")
    assert (frame["unit"].str.endswith(" (1 = 100 %)") == shares).all()
    assert shares.any()
    assert list(gates["gate"]) == [g.gate for g in GateResults(evidence.gates.results).urgent_first]


def test_passed_and_failures_say_what_holds_the_release(build: ModuleType) -> None:
    assert build.passing().passed
    assert not build.passing().failures
    evidence = build.failing()
    assert not evidence.passed
    held = [g for g in evidence.gates.results if g.blocking and g.result != "pass"]
    assert held
    assert list(evidence.failures) == held
    page = text(evidence.failures._repr_html_())
    assert all(g.gate in page and g.measured in page and g.allowed in page for g in held)


def test_gates_show_no_share_below_none(build: ModuleType) -> None:
    gate = build.gate("g", "t", unit="share", value=0.01, low=-0.02, high=0.03, maximum=0.1)
    assert gate.measured == "1 % [0 % to 3 %]"
    assert replace(gate, minimum=-1.0).measured == "1 % [-2 % to 3 %]"
    assert replace(gate, unit="score").measured == "0.01 [-0.02 to 0.03]"


def test_parts_of_evidence_are_small_tables(build: ModuleType) -> None:
    evidence = build.failing()
    gates = evidence.gates._repr_html_()
    assert gates.count("<tr") == len(evidence.gates.results) + 1
    results = re.findall("<td>(fail|insufficient evidence|pass)</td>", gates)
    assert results == sorted(results, key=["fail", "insufficient evidence", "pass"].index)
    assert len(evidence.measurements._repr_html_()) > 100
    first = evidence.measurements[0]
    assert str(first.id) in first._repr_html_()
    assert "<script" not in build.hostile().measurements._repr_html_()
    assert "<script" not in build.hostile().gates._repr_html_()


def test_a_comparison_shows_what_changed(build: ModuleType) -> None:
    found = compare(build.passing(), build.failing())
    page = text(found._repr_html_())
    assert "pass → fail" in page
    assert all(pair.gate in page for pair in found.changed)
    assert found.rest in page


def test_pictures_are_svg(build: ModuleType) -> None:
    evidence = shown(build.passing())
    drawn = next(o for o in evidence.outcomes if o.series)
    pictures = evidence.plot(drawn.audit)
    assert len(pictures) == len(drawn.series)
    for picture in pictures:
        assert picture.startswith("<svg")
    assert picture in pictures._repr_html_()
    with pytest.raises(KeyError, match="expected one of"):
        evidence.plot("nothing")


def test_an_audit_without_pictures_says_why(build: ModuleType) -> None:
    evidence = shown(build.undecided())
    [known] = [o for o in evidence.outcomes if o.status is Status.NOT_APPLICABLE]
    assert known.reason
    found = evidence.plot(known.audit)
    assert not found
    assert f"{known.audit} has no picture; not applicable: {known.reason}" in repr(found)
    assert text(found._repr_html_()) in repr(found)
    evidence = shown(build.passing())
    drawn = [o.audit for o in evidence.outcomes if o.series]
    [bare, *_] = [o.audit for o in evidence.outcomes if not o.series and o.status is Status.MEASURED]
    assert f"{bare} has no picture; these audits of the run have some: {', '.join(drawn)}" in repr(
        evidence.plot(bare)
    )


def test_evidence_that_draws_nothing_says_what_does(build: ModuleType) -> None:
    evidence = build.passing()
    assert "load_evidence" in evidence.plot(evidence.outcomes[0].audit)._repr_html_()


def test_text_columns_of_frames_are_aligned_left(build: ModuleType) -> None:
    for frame in (build.passing().to_frame(), build.passing().gates.to_frame()):
        page = frame._repr_html_()
        rule = page[: page.index("{ text-align: left; }")]
        left = {int(i) for i in re.findall(r"nth-child\((\d+)\)", rule)}
        names = [name for i, name in enumerate(frame, 2) if i in left]
        assert {"measurement"} <= set(names)
        assert not {"value", "low", "high"} & set(names)
        assert type(frame[["value"]]) is pd.DataFrame
