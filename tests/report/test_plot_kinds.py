"""A kind of picture is one file: found by its name, drawn, described, tabulated and kept in evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.report import plot_kinds, render_report
from synth_audit.report.audits import pictures_of
from synth_audit.report.plot_kinds import ChartKind, PanelKind
from synth_audit.store.evidence import Evidence, parse_evidence

DOTS = """
from synth_audit.report import svg
from synth_audit.report.svg import Plot
from synth_audit.report.plot_kinds import ChartKind, line_rows

def draw(series, styles, top, beside):
    return Plot("".join(svg.element("circle", cx=9, cy=y, r=2) for y in series.lines["a"]), 40.0)

PLOT = ChartKind(draw, lambda series, beside: "Dots of a.", line_rows)
"""


def dots(kind: str = "dots") -> Series:
    return Series(MeasurementId("", "spots"), "Spots", kind, "place", "height", ("x", "y"), {"a": (3.0, 5.0)})


@pytest.fixture
def with_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "dots.py").write_text(DOTS)
    monkeypatch.setattr(plot_kinds, "__path__", [*plot_kinds.__path__, str(tmp_path)])
    caches = (plot_kinds.plot_kinds, plot_kinds.plot_kind)
    [found.cache_clear() for found in caches]
    yield
    [found.cache_clear() for found in caches]


def with_series(evidence: Evidence, series: Series) -> Evidence:
    first, *rest = evidence.outcomes
    shown = replace(first, series=(series.stamped(first.audit),))
    return replace(evidence, outcomes=(shown, *rest)).sealed()


def test_every_file_is_a_kind() -> None:
    found = {name: plot_kinds.plot_kind(name) for name in plot_kinds.plot_kinds()}
    assert set(found) >= {"line", "step", "bar", "box", "matrix", "density"}
    assert all(isinstance(kind, ChartKind | PanelKind) for kind in found.values())


@pytest.mark.usefixtures("with_dots")
def test_a_new_file_is_a_new_kind_everywhere(build: ModuleType) -> None:
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
    assert plot_kinds.plot_kind(kind) is None
    with pytest.raises(ValueError, match="kind"):
        parse_evidence(with_series(build.passing(), dots(kind)).to_json())
