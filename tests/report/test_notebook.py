"""Evidence in a notebook: a line, a piece of a page, frames and pictures."""

from __future__ import annotations

from types import ModuleType

import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit.report.notebook import shown
from synth_audit.report.outcomes import Outcomes
from synth_audit.store.evidence import Evidence


@pytest.fixture(autouse=True)
def unshown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evidence, "page", None)


def test_a_line_says_what_it_is(build: ModuleType) -> None:
    line = repr(build.failing())
    assert len(line) < 300
    assert line.startswith("<Evidence of ")
    assert ": fail (gates: " in line
    assert build.failing()._repr_html_() is None, "without a page notebooks show the line"


def test_a_notebook_shows_verdict_and_gates(build: ModuleType) -> None:
    page = shown(build.failing())._repr_html_()
    assert page is not None
    plain = text(page)
    assert "must not be released" in plain
    held, passed = map(text, page.split("<details>"))
    outcomes = Outcomes.of(build.failing())
    failing = [g for g in build.failing().gates.results if g.result != "pass"]
    assert failing
    assert all(text(outcomes.sentence(g)) in held for g in failing)
    assert all(
        text(outcomes.sentence(g)) in passed for g in build.failing().gates.results if g.result == "pass"
    )


def test_altered_evidence_decides_nothing_in_a_notebook(build: ModuleType) -> None:
    from dataclasses import replace

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
    assert list(gates["gate"]) == [g.gate for g in evidence.gates.results]
    assert list(gates["result"]) == [str(g.result) for g in evidence.gates.results]


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
