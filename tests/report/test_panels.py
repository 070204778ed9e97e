"""Matrices and densities: panels of one figure, on one scale, with the numbers behind them."""

import math
import re
from types import ModuleType
from xml.etree import ElementTree

import pytest

from synth_audit.findings.measurement import Measurement, MeasurementId, Series
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report.chapters import AuditView, pictures_of
from synth_audit.report.charts import series_svg
from synth_audit.report.page import render
from synth_audit.report.panels import PANELS, density_scale, density_svg, matrix_svg, panels_picture
from synth_audit.report.svg import Picture

NAN = math.nan
SPACE = "{http://www.w3.org/2000/svg}"


def matrix(setting: str, *rows: tuple[float, ...]) -> Series:
    names = tuple("abcdefgh"[: len(rows)])
    lines = dict(zip(names, rows, strict=True))
    return Series(
        MeasurementId("", "ties", setting), "Ties of columns", "matrix", "column", "column", names, lines
    )


def cells(setting: str, *rows: tuple[float, ...]) -> Series:
    """Rows from low to high."""
    x = tuple(float(i) for i in range(len(rows[0])))
    lines = {f"{i - 1}": row for i, row in enumerate(rows)}
    return Series(
        MeasurementId("", "places", setting), "Where rows lie", "density", "first", "second", x, lines
    )


TRAIN = cells("train", (0.4, 0.1), (NAN, 0.2))
OTHER = cells("synthetic", (0.1, 0.025), (0.3, NAN))


def figure(series: list[Series], anchor: str) -> Picture:
    return panels_picture(series, PANELS[series[0].kind], anchor)


def squares(svg: str) -> list[tuple[float, float, float]]:
    """Left, top and side of every filled square."""
    paths = [n for n in ElementTree.fromstring(svg).iter(f"{SPACE}path") if n.get("class") == "f-line-0"]  # noqa: S314
    found = [re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", p.get("d", "")) for p in paths]
    return [(float(x), float(y), float(side)) for path in found for x, y, side in path]


def test_the_area_of_a_square_is_its_share_on_one_scale() -> None:
    train, other = figure([TRAIN, OTHER], "p").panels
    sides = [side for _, _, side in squares(str(train.drawing)) + squares(str(other.drawing))]
    areas = [side**2 / sides[0] ** 2 for side in sides]
    assert areas == pytest.approx([1, 0.25, 0.5, 0.25, 0.0625, 0.75], abs=0.02)


def test_squares_lie_where_the_rows_do() -> None:
    (x0, y0, s0), (x1, y1, s1), (x2, y2, s2) = squares(density_svg(TRAIN, most=0.4, anchor="a", title="t"))
    assert x0 + s0 / 2 < x1 + s1 / 2
    assert y0 + s0 / 2 == pytest.approx(y1 + s1 / 2, abs=0.2)
    assert y2 + s2 / 2 < y1 + s1 / 2  # up is high
    assert x2 + s2 / 2 == pytest.approx(x1 + s1 / 2, abs=0.2)


def test_a_small_share_is_still_to_be_seen() -> None:
    drawn = density_svg(cells("t", (1.0, 1e-7), (0.0, NAN)), most=1.0, anchor="a", title="t")
    assert len(squares(drawn)) == 2
    assert min(side for _, _, side in squares(drawn)) >= 0.7


@pytest.mark.parametrize(
    ("most", "shares"), [(0.28, ["20", "5", "1"]), (0.011, ["1", "0.2", "0.02"]), (1.0, ["100", "20", "2"])]
)
def test_the_scale_has_round_shares(most: float, shares: list[str]) -> None:
    drawn = density_scale(most, "a")
    found = [n.text for n in ElementTree.fromstring(drawn).iter(f"{SPACE}text")]  # noqa: S314
    assert found == [f"{s}\u00a0%" for s in shares]
    sides = [side for _, _, side in squares(drawn)]
    assert sides == sorted(sides, reverse=True)
    assert sides[0] <= 24


def test_a_picture_says_in_words_where_most_rows_lie() -> None:
    said = series_svg(TRAIN)
    assert "Shares of rows by first and second, 4 cells, 1 with no rows or too few to show" in said
    assert "Most rows in one cell: 40\u00a0%, at 0 across, −1 up." in said
    assert "No cell has enough rows to show" in series_svg(cells("t", (NAN,)))
    assert "strongest: b with a 0.50" in series_svg(matrix("t", (1.0, 0.5), (0.5, 1.0)))


def test_the_table_of_a_density_lists_cells_that_are_told() -> None:
    table = figure([TRAIN, OTHER], "p").table
    assert table.header == ("Cell", "train", "synthetic")
    assert table.rows[0] == ("0 across, −1 up", "40\u00a0%", "10\u00a0%")
    assert table.rows[2] == ("0 across, 0 up", "–", "30\u00a0%")
    assert len(table.rows) == 4
    assert len(figure([cells("t", (NAN, 0.2))], "p").table.rows) == 1


def test_the_table_of_matrices_has_the_largest_difference_first() -> None:
    real = matrix("train", (1.0, 0.1, 0.9), (0.1, 1.0, NAN), (0.9, NAN, 1.0))
    made = matrix("synthetic", (1.0, 0.7, 0.8), (0.7, 1.0, 0.2), (0.8, 0.2, 1.0))
    table = figure([real, made], "p").table
    assert table.header == ("Columns", "train", "synthetic")
    assert table.rows[0] == ("b with a", "0.10", "0.70")
    assert table.rows[1] == ("c with a", "0.90", "0.80")
    assert table.rows[2] == ("c with b", "withheld", "0.20")


def test_a_matrix_that_is_not_symmetric_has_both_orders_in_its_table() -> None:
    rows = figure([matrix("train", (1.0, 0.1), (0.4, 1.0))], "p").table.rows
    assert rows == (("b with a", "0.40"), ("a with b", "0.10"))


def test_a_table_of_many_pairs_says_how_many_it_leaves_out() -> None:
    names = tuple(f"c{i}" for i in range(40))
    lines = {n: tuple(0.001 * (i * j) for j in range(40)) for i, n in enumerate(names)}
    table = figure([Series(MeasurementId("", "m", "train"), "M", "matrix", "", "", names, lines)], "p").table
    assert len(table.rows) == 300
    assert table.caption == "M: the 300 of 780 pairs of columns that stand out most"
    assert table.rows[0][0] == "c39 with c38"


def test_what_is_withheld_is_crossed_out_and_explained() -> None:
    whole = figure([matrix("train", (1.0, 0.1), (0.1, 1.0))], "p")
    gaps = figure([matrix("train", (1.0, NAN), (NAN, 1.0))], "p")
    assert "withheld" in str(gaps.drawing)
    assert "withheld" not in str(whole.drawing)
    stroke = re.compile(r'<path d="M[^"]*l[^"]*"[^>]* class="s-rule"')
    assert stroke.search(str(gaps.panels[0].drawing))
    assert not stroke.search(str(whole.panels[0].drawing))
    unmarked = matrix_svg(["a", "b"], [(1, NAN), (NAN, 1)], anchor="a", title="t")
    assert not stroke.search(unmarked)


def test_those_of_one_name_are_one_figure_at_the_place_of_the_first() -> None:
    bar = Series(MeasurementId("", "other"), "Other", "bar", "x", "y", ("a",), {"": (1.0,)})
    column = Series(
        MeasurementId("", "column", column="age"), "Column", "bar", "x", "y", ("a",), {"": (1.0,)}
    )
    found = pictures_of([TRAIN, bar, OTHER, column, matrix("train", (1.0,))], [], "a")
    assert [p.title for p, _ in found] == ["Where rows lie", "Other", "Column: age", "Ties of columns"]
    assert [whole for _, whole in found] == [True, True, False, True]
    assert [p.title for p in found[0][0].panels] == ["Train", "Synthetic"]
    assert "Ties of columns: train" in str(found[3][0].panels[0].drawing)


def outcome(build: ModuleType, *series: Series) -> AuditOutcome:
    return AuditOutcome(
        audit="places",
        family="fidelity",
        status=Status.MEASURED,
        info=build.info("fidelity", "Places", build.quantity("gap", "Gap")),
        measurements=(Measurement(MeasurementId("places", "gap"), 0.1),),
        series=series,
    )


def of_columns(n: int) -> list[Series]:
    return [
        Series(
            MeasurementId("", "column", column=f"c{i}"),
            f"Distribution of c{i}",
            "bar",
            "x",
            "y",
            ("a",),
            {"": (1.0,)},
        )
        for i in range(n)
    ]


def test_one_picture_is_on_the_short_page_and_not_too_many_on_the_full_one(build: ModuleType) -> None:
    view = AuditView(outcome(build, *of_columns(200)), "a")
    brief, full = view.pictures(full=False), view.pictures(full=True)
    assert ([p.title for p in brief[0]], brief[1]) == (["Distribution of c0"], 199)
    assert (len(full[0]), full[1]) == (40, 160)
    beside, left = AuditView(outcome(build, *of_columns(3), TRAIN, OTHER), "a").pictures(full=True)
    assert [p.title for p in beside][:2] == ["Where rows lie", "Distribution of c0"]
    assert (len(beside), left) == (4, 0)


def test_the_page_shows_panels_with_their_scale_and_numbers(build: ModuleType) -> None:
    ties = matrix("train", (1.0, NAN), (NAN, 1.0)), matrix("synthetic", (1.0, -0.4), (-0.4, 1.0))
    third = cells("control", (0.3, 0.1), (0.2, 0.2))
    page = render(
        build.evidence((outcome(build, TRAIN, third, OTHER, *ties, *of_columns(50)),), build.report_of(())),
        full=True,
    )
    figures = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    of_places = next(f for f in figures if "Where rows lie" in f)
    assert of_places.count('role="img"') == 4
    assert "panels three" in of_places
    assert "all panels alike" in of_places
    of_ties = next(f for f in figures if "Ties of columns" in f)
    assert of_ties.count('role="img"') == 3
    assert "panels three" not in of_ties
    assert "Another 12 pictures would make this page too long" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
