"""A kind of picture is one entry: drawn, described, tabulated and kept in evidence."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.report import render_report, svg
from synth_audit.report.chapters import pictures_of
from synth_audit.report.charts import CHARTS, ChartKind, line_rows
from synth_audit.report.svg import Plot
from synth_audit.store.evidence import Evidence, parse_evidence


def dots(kind: str = "dots") -> Series:
    return Series(MeasurementId("", "spots"), "Spots", kind, "place", "height", ("x", "y"), {"a": (3.0, 5.0)})


def with_series(evidence: Evidence, series: Series) -> Evidence:
    first, *rest = evidence.outcomes
    shown = replace(first, series=(series.stamped(first.audit),))
    return replace(evidence, outcomes=(shown, *rest)).sealed()


def test_a_new_entry_is_a_new_kind_everywhere(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(series: Series, *_: object) -> Plot:
        return Plot("".join(svg.element("circle", cx=9, cy=y, r=2) for y in series.lines["a"]), 40.0)

    monkeypatch.setitem(CHARTS, "dots", ChartKind(draw, lambda *_: "Dots of a.", line_rows))
    evidence = with_series(build.passing(), dots())
    assert parse_evidence(evidence.to_json()) == evidence
    [(picture, whole)] = pictures_of([dots()], [], "p")
    assert whole
    assert 'r="2"' in str(picture.drawing)
    assert picture.table.rows == (("x", "3"), ("y", "5"))
    assert "Dots of a." in render_report(evidence)


def test_the_numbers_of_a_kind_that_is_not_known_are_shown(build: ModuleType) -> None:
    [(picture, _)] = pictures_of([dots("swarm")], [], "p")
    assert "draws no such picture" in str(picture.drawing)
    assert picture.table.rows == (("x", "3"), ("y", "5"))
    assert "draws no such picture" in render_report(with_series(build.passing(), dots("swarm")))


@pytest.mark.parametrize("kind", ["_contract", "../line", "", "Line", "a b"])
def test_a_kind_is_named_by_a_plain_word(build: ModuleType, kind: str) -> None:
    with pytest.raises(ValueError, match="kind"):
        parse_evidence(with_series(build.passing(), dots(kind)).to_json())
