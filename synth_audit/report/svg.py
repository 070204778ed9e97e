"""The few things every chart is made of: elements, scales, ticks, text that fits.

A chart carries its looks in presentation attributes, so it also stands alone; the classes let a page's
style sheet recolour it, for a dark screen for example.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from html import escape

from synth_audit.core.text import LONGEST_WORD, shortened
from synth_audit.report import words

INK, MUTED, RULE, PAPER = "#1c2530", "#55606c", "#c8ced6", "#ffffff"
SAFE, SAFE_EDGE, UNSAFE = "#d5e8dc", "#7fae93", "#d9b8b0"
FONT = "-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif"
_DRAWABLE = 1e100
_NARROWEST = 0.56
"""Estimated width of a narrow letter in sizes of the font."""
_LONGEST_TITLE = 1000


@dataclass(frozen=True)
class Linear:
    """A straight map from numbers to positions; what lies outside is put on the edge."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Position of a number."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


def drawable(value: float | None) -> bool:
    """True for a number that has a place on paper."""
    return value is not None and math.isfinite(value) and abs(value) < _DRAWABLE


def element(tag: str, content: str = "", **attributes: str | float | None) -> str:
    """One element; ``class_`` and ``stroke_width`` become ``class`` and ``stroke-width``; None is left out.

    ``content`` is markup. Raises ``ValueError`` for a coordinate that is not a finite number.
    """
    parts = [
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    ]
    return f"<{tag}{''.join(parts)}>{content}</{tag}>" if content else f"<{tag}{''.join(parts)}/>"


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: float = 12,
    anchor: str = "start",
    muted: bool = False,
    weight: str | None = None,
) -> str:
    """A line of text; ``content`` is plain text."""
    return element(
        "text",
        escape(words.clean(shortened(content, LONGEST_WORD))),
        class_="f-muted" if muted else "f-ink",
        x=x,
        y=y,
        fill=MUTED if muted else INK,
        font_size=size,
        text_anchor=None if anchor == "start" else anchor,
        font_weight=weight,
    )


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    *,
    rule: bool = False,
    width: float = 1,
    dash: str | None = None,
) -> str:
    """A straight line in ink, or in the faint colour of rules."""
    return element(
        "line",
        class_="s-rule" if rule else "s-ink",
        x1=x1,
        y1=y1,
        x2=x2,
        y2=y2,
        stroke=RULE if rule else INK,
        stroke_width=width,
        stroke_dasharray=dash,
    )


def document(width: float, height: float, body: str, *, anchor: str, title: str, description: str) -> str:
    """The whole picture, with its title and description for those who do not see it."""
    name, about = f"{anchor}-title", f"{anchor}-desc"
    title, description = (words.clean(shortened(x, _LONGEST_TITLE)) for x in (title, description))
    head = element("title", escape(title) or "Chart", id=name) + element(
        "desc", escape(description) or "No description.", id=about
    )
    return element(
        "svg",
        head + body,
        xmlns="http://www.w3.org/2000/svg",
        class_="chart",
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
        aria_labelledby=f"{name} {about}",
        font_family=FONT,
    )


def text_width(content: str, size: float = 12) -> float:
    """Estimated width in pixels, on the generous side."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in content)
    capital = sum(c.isupper() or c in "mwMW%×−" for c in content)
    return size * (_NARROWEST * len(content) + 0.46 * wide + 0.2 * capital)


def fitted(content: str, width: float, size: float = 12, *, middle: bool = False) -> str:
    """The text, cut with an ellipsis to fit, at its end or in its middle."""
    # No letter is narrower than this: what cannot fit is never measured, however long it is.
    most = max(int(width / (_NARROWEST * size)), 0) + 2
    whole = len(content) <= most
    if not whole:
        tail = most // 2 if middle else 0
        content = content[: most - tail] + content[len(content) - tail :]
    content = words.clean(content).replace("\n", " ")
    if whole and text_width(content, size) <= width:
        return content
    kept = len(content)
    while kept and text_width(_cut(content, kept, middle), size) > width:
        kept -= 1
    return _cut(content, kept, middle)


def _cut(content: str, kept: int, middle: bool) -> str:
    tail = kept // 2 if middle else 0
    return content[: kept - tail].rstrip() + "…" + (content[-tail:].lstrip() if tail else "")


def ticks(low: float, high: float, most: int = 5, *, whole: bool = False) -> tuple[tuple[float, ...], float]:
    """At most ``most`` round numbers within the range, and their distance; whole numbers when asked."""
    raw = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 2.5, 5, 10, 20):
        step = factor * power
        if whole and step != round(step):
            continue
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return tuple(i * step for i in range(first, last + 1)), step
    return (low, high), high - low  # pragma: no cover


def outer_ticks(low: float, high: float, most: int = 5) -> tuple[tuple[float, ...], float]:
    """Round numbers that enclose the range, and their distance."""
    marks, step = ticks(low, high, most)
    before = (marks[0] - step,) if low < marks[0] - 0.01 * step else ()
    after = (marks[-1] + step,) if high > marks[-1] + 0.01 * step else ()
    return (*before, *marks, *after), step


def domain(values: list[float], *, zero: bool = False) -> tuple[float, float]:
    """Range that holds all values, never empty; reaches zero when asked or when zero is near."""
    low, high = min(values), max(values)
    if zero or (0 <= low < 0.45 * high):
        low = min(low, 0.0)
    if zero or (0.45 * low < high <= 0):
        high = max(high, 0.0)
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-300) or high == low:
        room = abs(high) * 0.1 or 0.5
        low, high = low - room, high + room
    return low, high


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return escape(words.clean(value), quote=True)
    if not math.isfinite(value):
        raise ValueError("a chart coordinate is not a finite number")
    rounded = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if rounded == "-0" else rounded
