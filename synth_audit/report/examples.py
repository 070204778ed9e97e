"""Three invented gates that show how a picture is read."""

from __future__ import annotations

from markupsafe import Markup

from synth_audit.core.verdict import GateResult, Result
from synth_audit.report import words
from synth_audit.report.interval_and_limit import gate_interval_svg
from synth_audit.report.view import Cells, Picture

_CASES = (
    (Result.PASS, "Pass: the whole interval is on the safe side", 0.03, 0.02, 0.05),
    (Result.FAIL, "Fail: the whole interval is beyond the limit", 0.15, 0.12, 0.18),
    (Result.INSUFFICIENT, "Not enough evidence: the limit lies inside the interval", 0.08, 0.04, 0.13),
)
_LIMIT = 0.09


def examples() -> tuple[Picture, ...]:
    """One example of each result, with invented numbers."""
    return tuple(_example(i, *case) for i, case in enumerate(_CASES, 1))


def _example(place: int, result: Result, title: str, value: float, low: float, high: float) -> Picture:
    gate = GateResult(
        gate="example",
        title=f"Example. {title}",
        result=result,
        blocking=False,
        reason="",
        explanation="",
        value=value,
        low=low,
        high=high,
        maximum=_LIMIT,
    )
    drawing = gate_interval_svg(gate, unit="share", anchor=f"example-{place}")
    numbers = (
        words.number(value, "share"),
        words.interval(low, high, "share"),
        words.limits(None, _LIMIT, "share"),
    )
    table = Cells("Invented numbers", ("Value", "Interval", "Allowed"), (numbers,))
    return Picture(title, Markup(drawing), table)  # noqa: S704
