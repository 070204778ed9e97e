"""How a result looks: its word, colour, class and sign, the same on every page."""

from __future__ import annotations

from synth_audit.core.verdict import Result
from synth_audit.report import svg

RESULT_WORDS = {Result.PASS: "Pass", Result.FAIL: "Fail", Result.INSUFFICIENT: "Not enough evidence"}
RESULT_COLOURS = {Result.PASS: "#1b6a44", Result.FAIL: "#a3241f", Result.INSUFFICIENT: "#855700"}
RESULT_CLASSES = {Result.PASS: "pass", Result.FAIL: "fail", Result.INSUFFICIENT: "open"}


def result_mark(result: Result, x: float, y: float, r: float) -> str:
    """The sign of a result: a disc with a tick, a square with a cross, a diamond with a question mark."""
    colour, name = RESULT_COLOURS[result], f"f-{RESULT_CLASSES[result]}"
    if result is Result.PASS:
        shape = svg.element("circle", class_=name, cx=x, cy=y, r=r, fill=colour)
        path = f"M{x - r * 0.45:g} {y + r * 0.02:g} l{r * 0.32:g} {r * 0.36:g} l{r * 0.56:g} {-r * 0.72:g}"
    elif result is Result.FAIL:
        side = r * 0.92
        shape = svg.element(
            "rect", class_=name, x=x - side, y=y - side, width=2 * side, height=2 * side, rx=1.5, fill=colour
        )
        arm = r * 0.42
        path = f"M{x - arm:g} {y - arm:g} l{2 * arm:g} {2 * arm:g} m0 {-2 * arm:g} l{-2 * arm:g} {2 * arm:g}"
    else:
        tip = r * 1.2
        points = f"{x:g},{y - tip:g} {x + tip:g},{y:g} {x:g},{y + tip:g} {x - tip:g},{y:g}"
        shape = svg.element("polygon", class_=name, points=points, fill=colour)
        question = svg.element(
            "text",
            "?",
            class_="f-paper",
            x=x,
            y=y + r * 0.48,
            fill=svg.PAPER,
            font_size=r * 1.35,
            font_weight="700",
            text_anchor="middle",
        )
        return shape + question
    stroke = svg.element(
        "path",
        d=path,
        class_="s-paper",
        fill="none",
        stroke=svg.PAPER,
        stroke_width=max(r * 0.24, 1.2),
        stroke_linecap="round",
        stroke_linejoin="round",
    )
    return shape + stroke
