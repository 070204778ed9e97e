import math
import re
from dataclasses import replace
from types import ModuleType
from xml.etree import ElementTree

import pytest

from synth_audit.findings.measurement import BOX_LINES, MeasurementId, Series
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.plugins.generator import TrainingCourse
from synth_audit.report import charts, render_report, svg
from synth_audit.report.chapters import pictures_of
from synth_audit.report.charts import CHARTS, ChartKind, line_rows
from synth_audit.report.svg import Plot
from synth_audit.store.evidence import Evidence, parse_evidence

NAN = math.nan
SPACE = "{http://www.w3.org/2000/svg}"


def series(kind: str, x: tuple[object, ...], **lines: tuple[float, ...]) -> Series:
    return Series(MeasurementId("", "odd"), "Odd & <b>bold</b>", kind, "x <label>", "y & label", x, lines)  # type: ignore[arg-type]


def boxes(*labels: str, low: float = 1.0, high: float = 5.0) -> Series:
    """The same box for each label, its marks evenly between its ends."""
    marks = (low + (high - low) * i / 4 for i in range(5))
    lines = {line: (mark,) * len(labels) for line, mark in zip(BOX_LINES, marks, strict=True)}
    return series("box", labels, **lines)


def grid(kind: str, names: tuple[object, ...], *rows: tuple[float, ...]) -> Series:
    """A row for each of the names, or for 0, 1, … where there are more."""
    labels = [str(n) for n in names] + [str(i) for i in range(len(rows) - len(names))]
    return series(kind, names, **dict(zip(labels, rows, strict=False)))


ODD = {
    "no matrix": grid("matrix", ()),
    "one column": grid("matrix", ("a",), (1.0,)),
    "withheld matrix": grid("matrix", ("a", "b"), (1.0, NAN), (NAN, 1.0)),
    "matrix beyond its scale": grid("matrix", ("a", "b"), (1.0, -7.0), (math.inf, 1.0)),
    "matrix that lacks rows": series("matrix", ("a", "b", "c"), a=(1.0, 0.5, 0.2), z=(0.1, 0.2, 0.3)),
    "matrix with odd names": grid("matrix", ("<b>", "x" * 500), (1.0, 0.1), (0.1, 1.0)),
    "100 columns": grid("matrix", tuple(f"c{i}" for i in range(100)), *([(0.1,) * 100] * 100)),
    "no density": grid("density", ()),
    "no lines of a density": series("density", (1.0, 2.0)),
    "one cell": grid("density", (0.5,), (1.0,)),
    "withheld density": grid("density", (1.0, 2.0), (NAN, NAN), (NAN, NAN)),
    "empty density": grid("density", (1.0, 2.0), (0.0, 0.0), (0.0, 0.0)),
    "density with words": grid("density", ("low", "high"), (0.1, NAN), (0.5, math.inf)),
    "density upside down": grid("density", (2.0, 1.0), (0.1, 0.2), (0.5, 0.2)),
    "density far away": grid("density", (1e300, 1.7e308), (0.1, 0.2), (0.5, 0.2)),
    "density with missing places": grid("density", (NAN, 1.0), (0.1, 0.2), (0.5, 0.2)),
    "density of one value of x": grid("density", (2.0, 2.0), (0.1, 0.2), (0.5, 0.2)),
    "density of tiny shares": grid("density", (1e-9, 2e-9), (1e-12, 0.0), (1e-9, NAN)),
    "no boxes": boxes(),
    "one box": boxes("only"),
    "flat boxes": boxes("a", "b", low=2.0, high=2.0),
    "missing boxes": boxes("a", "b", low=NAN),
    "endless box": boxes("a", high=math.inf),
    "huge box": boxes("a", low=-9e99, high=9e99),
    "60 boxes": boxes(*(f"a long name, number {i}" for i in range(60))),
    "boxes with odd names": boxes("<b>", "x" * 500, "表" * 90, "a\x00\u202e", ""),
    "empty": series("line", ()),
    "empty line": series("line", (), a=()),
    "empty bars": series("bar", (), a=()),
    "one point": series("line", (1.0,), a=(2.0,)),
    "one step": series("step", (1.0,), a=(0.0,)),
    "one bar": series("bar", ("only",), a=(0.0,)),
    "gaps": series("line", (0.0, 1.0, 2.0, 3.0), a=(1.0, NAN, 3.0, NAN), b=(math.inf, 1.0, 2.0, -math.inf)),
    "all missing": series("step", (0.0, 1.0), a=(NAN, NAN)),
    "missing x": series("line", (0.0, NAN, 2.0), a=(1.0, 2.0, 3.0)),
    "all x missing": series("line", (NAN, NAN), a=(1.0, 2.0)),
    "constant": series("line", (1.0, 2.0, 3.0), a=(5.0, 5.0, 5.0)),
    "constant x": series("line", (2.0, 2.0), a=(1.0, 3.0)),
    "zeros": series("bar", ("a", "b"), a=(0.0, 0.0)),
    "negative": series("bar", ("a", "b", "c"), a=(-1.0, 2.0, NAN), b=(-3.0, -1.0, 0.5)),
    "60 bars": series("bar", tuple(f"a long category name, number {i}" for i in range(60)), a=(1.0,) * 60),
    "histogram": series("bar", tuple(i / 10 for i in range(50)), a=tuple(float(i) for i in range(50))),
    "tiny": series("line", (1e-12, 2e-12), a=(1e-30, 2e-30)),
    "huge": series("line", (1e300, 1.7e308), a=(1.7e308, -1.7e308), b=(1.0, 2.0)),
    "large": series("line", (0.0, 1.0), a=(-9e99, 9e99)),
    "close": series("line", (0.0, 1.0), a=(1.0, 1.0 + 1e-16)),
    "nine lines": series("line", (0.0, 1.0), **{f"line {i}": (float(i), 1.0) for i in range(9)}),
    "words on x": series("line", ("low", "middle", "high"), a=(1.0, 2.0, 3.0)),
    "long label": series("bar", ("x" * 500, "表" * 90), **{"y" * 300: (1.0, 2.0)}),
    "control characters": series("bar", ("a\x00\x0b", "b\u202e"), **{"\ud800": (1.0, 2.0)}),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_series_give_sound_pictures(name: str) -> None:
    check_picture(charts.series_svg(ODD[name], anchor="s1"))


def check_picture(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)  # noqa: S314
    assert root.get("role") == "img"
    title, description, *_ = root
    assert (title.tag, description.tag) == (f"{SPACE}title", f"{SPACE}desc")
    assert title.text
    assert description.text
    labelled = (root.get("aria-labelledby") or "").split()
    assert labelled == [title.get("id"), description.get("id")]
    assert not re.search(r"\b(nan|inf)\b", re.sub(r"<(title|desc|text)\b.*?</\1>", "", text), re.IGNORECASE)
    assert 'style="' not in text
    width = float(root.get("width") or 0)
    for node in root.iter():
        for place in ("x", "x1", "x2", "cx"):
            assert -1 <= float(node.get(place, 0)) <= width + 1
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    return root


def test_a_missing_value_leaves_a_gap() -> None:
    whole = charts.series_svg(series("line", (0.0, 1.0, 2.0, 3.0), a=(1.0, 2.0, 3.0, 4.0)))
    broken = charts.series_svg(series("line", (0.0, 1.0, 2.0, 3.0, 4.0), a=(1.0, 2.0, NAN, 4.0, 5.0)))
    joined = re.compile(r'd="(M[^"]*L[^"]*)"')
    assert joined.findall(whole)[0].count("M") == 1
    assert joined.findall(broken)[0].count("M") == 2


def test_bars_are_as_long_as_their_values() -> None:
    text = charts.series_svg(series("bar", ("a", "b"), value=(1.0, 3.0)), heading=False)
    bars = [n for n in ElementTree.fromstring(text).iter(f"{SPACE}rect") if "url" in n.get("fill", "")]  # noqa: S314
    one, three = (float(n.get("height", 0)) for n in bars[-2:])
    assert three == pytest.approx(3 * one, rel=1e-3)


def test_many_bars_say_what_is_left_out() -> None:
    assert "20 more rows in the table below the picture" in charts.series_svg(ODD["60 bars"])


def test_bars_with_like_beginnings_and_ends_stay_distinct() -> None:
    names = tuple(f"{'same ' * 9}{i}{' same' * 9}" for i in range(5))
    text = charts.series_svg(series("bar", names, a=(1.0,) * 5))
    assert all(f">{i}. same" in text for i in range(1, 6))


def test_lines_differ_without_colour() -> None:
    text = charts.series_svg(series("line", (0.0, 1.0), **{str(i): (0.0, float(i)) for i in range(5)}))
    paths = [n for n in ElementTree.fromstring(text).iter(f"{SPACE}path") if "L" in n.get("d", "")]  # noqa: S314
    assert len({n.get("stroke-dasharray") for n in paths}) == 5


def drawn(gate: GateResult, unit: str) -> str:
    return str(charts.gate_picture(gate, unit, "g"))


@pytest.mark.parametrize("result", list(Result))
@pytest.mark.parametrize("numbers", [
    {"value": 0.01, "low": 0.0, "high": 0.02, "maximum": 0.09},
    {"value": 0.9, "low": 0.8, "high": 1.0, "minimum": 0.7},
    {"value": 1.0, "minimum": 0.9, "maximum": 1.1},
    {"value": NAN, "low": NAN, "high": NAN, "maximum": 1.0},
    {"value": math.inf, "low": 0.0, "high": math.inf, "maximum": 1.0},
    {"value": 0.0, "low": 0.0, "high": 0.0, "maximum": 0.0},
    {"value": None, "maximum": 0.5},
    {"value": -1e12, "low": -1e13, "high": 1e13, "maximum": 1e-9},
    {"value": 0.5, "low": -math.inf, "high": math.inf, "maximum": 0.2},
])  # fmt: skip
def test_gates_give_sound_pictures(build: ModuleType, numbers: dict[str, float], result: Result) -> None:
    gate = build.gate("g<1>", "A <title> & more", result, measurement="a.b", **numbers)
    for unit in ("share", "distance"):
        if gate.value is not None and math.isfinite(gate.value):
            check_picture(drawn(gate, unit))
        else:
            assert charts.gate_picture(gate, unit, "g") is None
        check_picture(charts.suite_overview_svg([gate, gate], units={"a.b": unit}))


def test_the_limit_stands_between_what_passes_and_what_fails(build: ModuleType) -> None:
    gate = build.gate("g", "t", value=0.03, low=0.02, high=0.05, maximum=0.09, measurement="a.b")
    root = check_picture(drawn(gate, "share"))
    safe = next(n for n in root.iter(f"{SPACE}rect") if n.get("class") == "f-safe")
    dot = next(iter(root.iter(f"{SPACE}circle")))
    edge = float(safe.get("x", 0)) + float(safe.get("width", 0))
    assert float(safe.get("x", 0)) < float(dot.get("cx", 0)) < edge < 350
    assert any(n.text == "at most 9\u00a0%" for n in root.iter(f"{SPACE}text"))


@pytest.mark.parametrize(("low", "high"), [(0.8, 1.2), (0.999, 1.001), (-5.0, 400.0)])
def test_two_limits_share_one_text_and_the_safe_side_lies_between(
    build: ModuleType, low: float, high: float
) -> None:
    gate = build.gate("g", "t", value=1.0, low=0.5, high=1.5, minimum=low, maximum=high, measurement="a.b")
    root = check_picture(drawn(gate, "ratio"))
    asked = [n for n in root.iter(f"{SPACE}text") if n.text and n.text.startswith("between")]
    assert len(asked) == 1
    safe = next(n for n in root.iter(f"{SPACE}rect") if n.get("class") == "f-safe")
    start, wide = float(safe.get("x", 0)), float(safe.get("width", 0))
    dot = float(next(iter(root.iter(f"{SPACE}circle"))).get("cx", 0))
    assert 10 <= start < dot < start + wide <= 350


def test_a_share_of_zero_is_drawn_on_a_scale_of_shares(build: ModuleType) -> None:
    gate = build.gate("g", "t", value=0.0, maximum=0.0, measurement="a.b")
    texts = [n.text or "" for n in check_picture(drawn(gate, "share")).iter(f"{SPACE}text")]
    assert "0\u00a0%" in texts
    assert not any("−" in t for t in texts)


def test_an_empty_suite_gives_a_picture() -> None:
    assert "The suite has no gates." in charts.suite_overview_svg([])


def test_units_come_from_measurements_and_declarations(build: ModuleType) -> None:
    units = charts.units_of(build.passing())
    assert units[MeasurementId("singling_out", "risk")] == "share"
    assert units[MeasurementId("marginals", "tv")] == "distance"


def test_a_coordinate_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        svg.element("circle", cx=NAN)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0.001, 0.0012), (1e9, 3e9), (-1e-9, 1e-9)])
def test_ticks_are_few_and_within(low: float, high: float) -> None:
    marks, step = svg.ticks(low, high, 5)
    assert 2 <= len(marks) <= 5
    assert all(low - step * 1e-6 <= m <= high + step * 1e-6 for m in marks)
    outer, _ = svg.outer_ticks(low, high, 5)
    assert outer[0] <= low + step * 0.02
    assert outer[-1] >= high - step * 0.02


@pytest.mark.parametrize("middle", [False, True])
def test_a_label_without_end_is_cut_before_it_is_measured(monkeypatch, middle):
    measured = []
    real = svg.text_width
    monkeypatch.setattr(
        svg, "text_width", lambda content, size=12: measured.append(content) or real(content, size)
    )
    for label in ("x" * 20_000, "表" * 20_000, "a b " * 25_000, "a" + " " * 100_000):
        cut = svg.fitted(label, 100, middle=middle)
        assert real(cut) <= 100
        assert cut.count("…") == 1
        assert cut[0] == label[0]
    assert sum(map(len, measured)) < 5000


def test_a_drawing_holds_no_text_without_end():
    text = svg.text(0, 0, "x" * 20_000)
    drawn = svg.document(10, 10, text, anchor="a", title="t" * 100_000, description="d " * 50_000)
    assert len(drawn) < 3000


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


def test_a_curve_is_drawn_with_its_numbers(build: ModuleType) -> None:
    course, found = TrainingCourse(), build.passing()
    for step, loss in ((1, 0.75), (2, 0.5)):
        course.step("train", step, 2, loss)
    trained = replace(found.generator, training=course.of_losses())
    assert "Loss in training" not in render_report(found)
    chapter = render_report(replace(found, generator=trained).sealed()).split('id="guarantee"')[1]
    figure = chapter[chapter.index("<figure>") : chapter.index("</figure>")]
    assert "Loss in training" in figure
    assert "<svg" in figure
    assert "0.75" in figure
