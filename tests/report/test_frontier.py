import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_reading import text  # made importable by conftest.py
from report_sweeps import box_series, candidate, sweep

from synth_audit.findings.measurement import Direction, MeasurementId, read
from synth_audit.findings.verdict import Result
from synth_audit.report import study_pages
from synth_audit.report.panels import matrix_svg
from synth_audit.report.study_pages import (
    Axis,
    Dot,
    axis_of,
    box_panels,
    direction_of,
    gate_rows,
    matrix_pictures,
    render_frontier,
    short_names,
    write_frontier,
)
from synth_audit.studies.frontier import Correlations, FrontierRecord, GateOutcome

SPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('x')</script>\"&amp;\u202egnp.exe"
NAN = math.nan


def panels(record: FrontierRecord) -> dict[str, str]:
    """Description of each panel of boxes by its title."""
    found = box_panels(record, *short_names(record.candidates))
    return {p.title: ElementTree.fromstring(p.drawing)[1].text or "" for p in found}  # noqa: S314


def test_the_page_loads_and_runs_nothing_and_is_the_same_each_time(tmp_path: Path) -> None:
    page = render_frontier(sweep())
    assert page == render_frontier(sweep())
    assert "default-src 'none'" in unescape(page)
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    path = write_frontier(sweep(), tmp_path / "frontier.html")
    assert path.read_text(encoding="utf-8") == page


def test_it_says_what_was_chosen_and_why() -> None:
    record = sweep()
    page = text(render_frontier(record))
    assert "Chosen: vine truncation=5." in page
    assert record.reason in page
    assert "candidates/vine-truncation-5/review" in page
    assert "Nothing has left yet." in page


def test_the_command_is_shown_only_where_there_is_a_target() -> None:
    command = "synth-audit release PLAN --candidate vine-truncation-5"
    assert command in text(render_frontier(sweep()))
    page = text(render_frontier(sweep(releasable=False)))
    assert "synth-audit release" not in page
    assert "names no place to release to" in page


def test_it_says_where_privacy_is_gated_by_nothing_and_where_a_split_was_kept() -> None:
    page = text(render_frontier(sweep()))
    odd = text(render_frontier(sweep(privacy_gated=False, split_kept="2026-11-02T10:00:00+00:00")))
    for said in ("No deciding gate of the suite judges this measurement", "--fresh pulls the source again"):
        assert said in odd
        assert said not in page
    assert "2 November 2026" in odd.replace("\u00a0", " ")


@pytest.mark.parametrize(("verdicts", "said"), [
    (("fail", "fail"), ("Where gates failed",)),
    (("fail", "insufficient evidence"), ("Where gates failed", "Where evidence is insufficient")),
    (("error",), ("Where there is no table",)),
])  # fmt: skip
def test_it_says_what_to_do_when_none_passed(verdicts: tuple[str, ...], said: tuple[str, ...]) -> None:
    page = text(render_frontier(sweep(*(candidate(i, v, 0.5, 0.6) for i, v in enumerate(verdicts)))))
    assert "No candidate may be released." in page
    every = ("Where gates failed", "Where evidence is insufficient", "Where there is no table")
    assert [s for s in every if s in page] == list(said)
    assert "Chosen" not in page


def test_a_pass_without_numbers_is_not_called_a_refusal() -> None:
    tried = (replace(candidate(i, "pass", 0.1, 0.6), privacy=None) for i in (1, 2))
    page = text(render_frontier(sweep(*tried)))
    assert "No candidate was chosen, although some may be released." in page
    assert "frontier.privacy" in page


def test_a_sweep_of_nothing_makes_a_page() -> None:
    record = replace(
        sweep(candidate(1, "pass", 0.1, 0.6)), candidates=(), chosen=None, privacy=None, utility=None
    )
    page = text(render_frontier(replace(record, real_correlations=Correlations())))
    assert "No candidate has both numbers." in page


def test_the_table_holds_every_candidate_with_what_went_wrong() -> None:
    page = text(render_frontier(sweep()))
    for words in (
        "vine truncation=1",
        "vine truncation=26",
        "No table",
        "DataError in the fit.",
        "all 2 passed",
    ):
        assert words in page
    assert "1 failed, 1 passed" in page
    assert "Not in the plot, for want of a number that can be relied on: vine truncation=26." in page


def test_the_correction_of_the_level_is_told_in_numbers() -> None:
    page = text(render_frontier(sweep()))
    assert "Intervals are wider here: 98.75 %" in page.replace("\u00a0", " ")
    assert "hold together in 95 %" in page.replace("\u00a0", " ")


def test_only_gates_that_somebody_did_not_pass_are_compared() -> None:
    rows = gate_rows(sweep())
    assert [title for title, _ in rows] == ["The secret is not handed on"]
    assert [s and s.word for s in rows[0][1]] == ["Pass", "Pass", None, "Fail"]


def test_names_are_short_where_one_setting_tells_candidates_apart() -> None:
    record = sweep()
    assert short_names(record.candidates) == (("1", "5", "26", "all"), "vine truncation")
    other = replace(
        candidate(1, "pass", 0.1, 0.6), name="independent", varied={}, generator={"name": "independent"}
    )
    assert short_names((*record.candidates[:1], other)) == (("truncation=1", "independent"), "candidate")


def test_measurements_are_named_as_their_audit_names_them() -> None:
    axis = axis_of(MeasurementId("exact_match", "share", "age, sex"))
    assert axis == Axis("Synthetic rows equal to a training row (age, sex)", "share", False)
    assert axis_of(read("prediction.auroc_tstr")).higher_is_better is True
    assert axis_of(read("no_such_audit.number")) == Axis("no_such_audit.number", "", None)
    assert axis_of(None) == Axis("not measured", "", None)
    assert direction_of(read("membership_game.no_such_series")) is None
    assert direction_of(read("membership_game.privacy_gain[outlying]")) is Direction.HIGHER


def test_there_is_a_panel_for_each_secret_and_each_kind_of_target() -> None:
    found = panels(sweep())
    assert list(found) == ["Games: income", "Games: outlying", "Games: random"]
    assert "1: median 0.1" in found["Games: income"]
    assert "real rows 0.2" in found["Games: income"]
    assert "5*: median 0.2" in found["Games: income"]
    assert "26: not computed" in found["Games: income"]
    assert "all: median 0.5" in found["Games: random"]


def test_panels_of_one_series_share_their_axis() -> None:
    record = sweep()
    found = box_panels(record, *short_names(record.candidates))
    ticks = [re.findall(r'text-anchor="end">([^<]+)<', p.drawing) for p in found[1:]]
    assert ticks[0] == ticks[1]


def test_other_series_make_no_panel() -> None:
    line = replace(box_series("mab", ("a",), 1.0), kind="line")
    empty = box_series("mab", (), 1.0, "income")
    record = sweep(replace(candidate(1, "pass", 0.1, 0.6), boxes=(line, empty)))
    assert box_panels(record, *short_names(record.candidates)) == ()


def test_matrices_stand_beside_the_real_one_with_their_distance() -> None:
    real, first, *_ = found = matrix_pictures(sweep())
    assert [p.title for p in found] == [
        "Real table (train)", "vine truncation=1", "vine truncation=5 (chosen)", "vine truncation=all"
    ]  # fmt: skip
    assert first.note == "Off by 0.80 on average, at most 0.80 (sex with age)."
    assert real.table.rows == (("age", "1.00", "−0.50"), ("sex", "−0.50", "1.00"))


def squares(value: float) -> tuple[list[float], list[float]]:
    """Sides of the full and of the hollow squares of a matrix of two columns."""
    drawing = matrix_svg(("a", "b"), ((1.0, value), (value, 1.0)), anchor="m", title="M")
    root = ElementTree.fromstring(drawing)  # noqa: S314
    sides = []
    for name in ("f-line-0", "s-line-1"):
        paths = [n.get("d", "") for n in root.iter(f"{SPACE}path") if n.get("class") == name]
        sides.append([float(h) for d in paths for h in re.findall(r"h([\d.]+)", d)])
    return sides[0], sides[1]


def test_the_area_of_a_square_is_the_strength_and_its_filling_the_sign() -> None:
    (full, none), (no, hollow) = squares(1.0), squares(-1.0)
    assert (len(full), none, no, len(hollow)) == (2, [], [], 2)
    assert squares(0.25)[0][0] == pytest.approx(full[0] / 2, abs=0.06)
    assert squares(0.0) == ([], [])
    assert squares(NAN) == ([], [])


def test_names_that_have_room_are_not_cut() -> None:
    drawing = matrix_svg(("totmcst", "surv2m", "meanbp"), ((0.0,) * 3,) * 3, anchor="m", title="M")
    assert "3  meanbp" in drawing
    assert "…" not in drawing


@pytest.mark.parametrize("size", [1, 3, 27, 40])
def test_a_matrix_of_any_size_stays_in_its_frame(size: int) -> None:
    names = [f"a long column name, number {i}" for i in range(size)]
    drawing = matrix_svg(names, [[0.5] * size] * size, anchor="m", title="M")
    root = ElementTree.fromstring(drawing)  # noqa: S314
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    frame = next(root.iter(f"{SPACE}rect"))
    assert float(frame.get("x", 0)) + float(frame.get("width", 0)) <= width
    assert float(frame.get("y", 0)) + float(frame.get("height", 0)) <= height


def dots(*pairs: tuple[float, float], chosen: int = -1) -> list[Dot]:
    return [
        Dot(str(i), p, (p - 0.01, p + 0.01), u, (u - 0.01, u + 0.01), Result.PASS, i == chosen)
        for i, (p, u) in enumerate(pairs)
    ]


def centres(drawing: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(drawing)  # noqa: S314
    return [
        (float(n.get("cx", 0)), float(n.get("cy", 0)))
        for n in root.iter(f"{SPACE}circle")
        if n.get("class") == "f-pass"
    ]


@pytest.mark.parametrize("privacy_up", [True, False])
@pytest.mark.parametrize("utility_up", [True, False])
def test_better_is_always_right_and_up(privacy_up: bool, utility_up: bool) -> None:
    low, high = (0.1, 0.9)
    pairs = [
        (low if privacy_up else high, low if utility_up else high),
        (high if privacy_up else low, high if utility_up else low),
    ]
    drawing = study_pages.scatter_svg(
        dots(*pairs), Axis("P", "", privacy_up), Axis("U", "", utility_up), anchor="p", title="T"
    )
    (x0, y0), (x1, y1) = centres(drawing)
    assert x1 > x0
    assert y1 < y0
    assert ("numbers fall towards the right" in drawing) is not privacy_up


def test_the_chosen_point_has_a_ring_and_unknown_directions_no_arrow() -> None:
    axis = Axis("P", "", None)
    drawing = study_pages.scatter_svg(
        dots((0.1, 0.2), (0.3, 0.4), chosen=1), axis, axis, anchor="p", title="T"
    )
    assert len(re.findall(r'r="12"', drawing)) == 1
    assert "safer" not in drawing
    assert "1: privacy 0.3, utility 0.4, pass, chosen" in drawing


@pytest.mark.parametrize("n", [4, 20])
def test_points_upon_each_other_keep_their_labels_apart(n: int) -> None:
    axis = Axis("P", "", True)
    drawing = study_pages.scatter_svg(dots(*[(0.5, 0.5)] * n), axis, axis, anchor="p", title="T")
    labels = [n for n in ElementTree.fromstring(drawing).iter(f"{SPACE}text") if n.get("paint-order")]  # noqa: S314
    places = [(float(n.get("x", 0)), float(n.get("y", 0))) for n in labels]
    assert len(places) == n
    apart = [abs(a[0] - b[0]) > 6 or abs(a[1] - b[1]) > 11 for i, a in enumerate(places) for b in places[:i]]
    assert all(apart)


@pytest.mark.parametrize("low", [NAN, -math.inf])
def test_a_number_without_an_interval_has_no_whisker(low: float) -> None:
    number = replace(candidate(1, "pass", 0.5, 0.6).privacy, low=low, high=-low)
    record = sweep(replace(candidate(1, "pass", 0.5, 0.6), privacy=number))
    page = render_frontier(record)
    assert not re.search(r'="(nan|inf|-inf)"', page)


def test_hostile_names_stay_text() -> None:
    odd = replace(
        candidate(1, "pass", 0.1, 0.6),
        name=HOSTILE,
        slug=HOSTILE,
        problem=HOSTILE,
        varied={HOSTILE: HOSTILE},
        generator={"name": HOSTILE},
        gates=(GateOutcome("g", HOSTILE, HOSTILE),),
        boxes=(box_series(HOSTILE, (HOSTILE, "x"), 1.0, HOSTILE), box_series(HOSTILE, (HOSTILE, "y"), 1.0)),
        correlations=Correlations((HOSTILE, "b"), ((1.0, 0.5), (0.5, 1.0))),
    )
    whose = MeasurementId(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    record = sweep(odd, candidate(5, HOSTILE, 0.2, 0.7), table=HOSTILE, privacy=whose, utility=whose)
    page = render_frontier(record)
    assert "<script" not in page
    assert "\u202e" not in page
    assert "alert('x')" in unescape(page)
