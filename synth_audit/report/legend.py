"""Which line is which."""

from __future__ import annotations

from collections.abc import Mapping

from synth_audit.report import svg
from synth_audit.report.axes import SIZE, WIDTH, Plot
from synth_audit.report.line_styles import LineStyle


def legend(styles: Mapping[str, LineStyle], top: float, *, as_bars: bool = False) -> Plot:
    """The lines' styles beside their names, in as many rows as it takes."""
    x, y, out = 0.0, top + 12, ""
    for label, style in styles.items():
        shown = svg.fitted(label or "value", WIDTH - 44, SIZE)
        wide = 38 + svg.text_width(shown, SIZE) + 16
        if x and x + wide - 16 > WIDTH:
            x, y = 0.0, y + 19
        if as_bars:
            out += style.bar(x + 1, y - 10, 28, 12)
        else:
            out += style.path(f"M{x:.1f} {y - 4:.1f}h32") + style.marker(x + 16, y - 4)
        out += svg.text(x + 38, y, shown, size=SIZE)
        x += wide
    return Plot(out, y - top + 12)
