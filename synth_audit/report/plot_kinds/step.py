"""Lines that hold each value until the next."""

from __future__ import annotations

from functools import partial

from synth_audit.findings.measurement import Series
from synth_audit.report.plot_kinds import Beside, ChartKind, describe_lines, line, line_rows


def describe(series: Series, beside: Beside) -> str:
    """The steps in words."""
    return describe_lines(series, "Step chart")


PLOT = ChartKind(partial(line.draw, step=True), describe, line_rows)
