import math
from dataclasses import replace
from types import ModuleType
from xml.etree import ElementTree

import pytest
from report_reading import text  # made importable by conftest.py
from report_sweeps import box_series

from synth_audit.findings.measurement import BOX_LINES, Measurement, MeasurementId, Reference, Series
from synth_audit.report import charts, render_report
from synth_audit.report.chapters import references
from synth_audit.report.charts import Beside, picture_of

SPACE = "{http://www.w3.org/2000/svg}"
NAN = math.nan


def drawn(series: Series, beside: Beside | None = None) -> ElementTree.Element:
    text = charts.series_svg(series, heading=False, beside=beside)
    return ElementTree.fromstring(text)  # noqa: S314


def number(node: ElementTree.Element, name: str) -> float:
    return float(node.get(name, "nan"))


def lines(root: ElementTree.Element, **wanted: str) -> list[ElementTree.Element]:
    names = {k.rstrip("_").replace("_", "-"): v for k, v in wanted.items()}
    return [n for n in root.iter(f"{SPACE}line") if all(n.get(k) == v for k, v in names.items())]


def words_in(root: ElementTree.Element) -> list[str]:
    return [n.text or "" for n in root.iter(f"{SPACE}text")]


@pytest.mark.parametrize("wrong", [{}, {"median": (1.0,)}, dict.fromkeys((*BOX_LINES, "mean"), (1.0,))])
def test_a_box_has_its_five_lines_and_no_others(wrong: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="boxes need the lines"):
        Series(MeasurementId("", "s"), "S", "box", "x", "y", ("a",), wrong)


@pytest.mark.parametrize(("x", "place", "size"), [
    (("a", "b"), "y", "height"),
    (("a very long label that does not fit below a box", "another one as long as that"), "x", "width"),
])  # fmt: skip
def test_boxes_stand_on_one_scale(x: tuple[str, str], place: str, size: str) -> None:
    """Medians are 0.1 apart, boxes 0.2 long, whiskers 0.4: the ratios must show, standing and lying."""
    root = drawn(box_series("s", x, 1.0))
    first, second = (n for n in root.iter(f"{SPACE}rect") if n.get("class") == "f-track s-ink")
    medians = [number(n, f"{place}1") for n in lines(root, stroke_width="3")]
    length = number(first, size)
    assert length == pytest.approx(number(second, size), abs=0.02)
    assert abs(medians[1] - medians[0]) == pytest.approx(length / 2, abs=0.02)
    assert number(first, place) + length / 2 == pytest.approx(medians[0], abs=0.02)
    ends = [number(n, f"{place}{i}") for n in lines(root, class_="s-ink", stroke_width="1") for i in (1, 2)]
    assert any(abs(e - medians[0]) == pytest.approx(length, abs=0.02) for e in ends)


def test_a_box_without_a_number_is_marked_and_leaves_the_others() -> None:
    whole = box_series("s", ("a", "b", "c"), 1.0)
    holed = replace(whole, lines={k: (v[0], NAN, v[2]) for k, v in whole.lines.items()})
    root = drawn(holed)
    assert len(lines(root, stroke_width="3")) == 2
    assert "?" in words_in(root)
    assert any("?: no number" in t for t in words_in(root))
    assert "b: not computed" in (root[1].text or "")


def test_equal_comparisons_are_one_line_and_others_one_each() -> None:
    series = box_series("s", ("a", "b", "c"), 1.0)
    root = drawn(series, Beside({"reference": (1.0, 1.0, 1.0), "shuffled": (0.8, None, 1.2)}))
    assert len(lines(root, stroke_dasharray="5 3")) == 1
    assert len(lines(root, stroke_dasharray="1.5 2.5")) == 2
    assert any("dashed: reference · dotted: shuffled" in t for t in words_in(root))


def test_a_comparison_without_a_value_is_not_mentioned() -> None:
    root = drawn(box_series("s", ("a",), 1.0), Beside({"reference": (None,)}))
    assert not any("reference" in t for t in words_in(root))


def test_the_table_holds_the_numbers_in_their_order() -> None:
    series = box_series("s", ("a", "b"), 1.0)
    shuffled = replace(series, lines=dict(reversed(series.lines.items())))
    picture = picture_of(shuffled, "p", beside=Beside({"reference": (0.9, None)}))
    assert picture.table.header == ("box", *BOX_LINES, "reference")
    assert picture.table.rows[0] == ("a", "0.8", "0.9", "1", "1.1", "1.2", "0.9")
    assert picture.table.rows[1][-1] == "–"


def test_references_are_those_of_the_places_else_of_the_series() -> None:
    def at(value: float, setting: str = "", column: str = "") -> Measurement:
        whose = MeasurementId("game", "gain", setting, column)
        return Measurement(whose, 0.5, reference=Reference(value, "none"))

    known = [
        at(1.0),
        at(0.9, "outlying"),
        at(0.3, column="income"),
        Measurement(MeasurementId("a", "b"), 0.1),
    ]
    labelled, scoped = (
        box_series("gain", ("seldom", "x"), 1.0, settings=("outlying", "x")),
        box_series("gain", ("x",), 1.0, "income"),
    )
    assert references(labelled, known).comparisons["reference"] == [0.9, None]
    assert references(scoped, known).comparisons["reference"] == [0.3]
    assert references(box_series("gain", ("x", "y"), 1.0), known).comparisons["reference"] == [1.0, 1.0]
    assert not references(box_series("auc", ("x",), 1.0), known).told


def test_an_audit_shows_its_boxes_beside_the_reference(build: ModuleType) -> None:
    audit = build.singling_out()
    whole = replace(
        audit.measurements[0],
        reference=Reference(0.02, "an honest release"),
    )
    boxes = replace(box_series("risk", ("one", "two"), 1.0), id=whole.id)
    audit = replace(audit, measurements=(whole,), series=(boxes,))
    page = render_report(build.judged(audit))
    assert "Box plot of size, 2 boxes. one: median 1, middle half 0.9 to 1.1, from 0.8 to 1.2" in page
    assert "dashed: reference" in text(page)
