"""The few things every picture is made of: elements, scales, axes, line styles, marks; its numbers beside."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup

from synth_audit.findings.verdict import Result
from synth_audit.report import words
from synth_audit.text import LONGEST_WORD, clean, shortened

COLOURS = {
    **{"ink": "#1c2530", "muted": "#55606c", "rule": "#c8ced6", "paper": "#ffffff", "track": "#eef1f4"},
    **{"safe": "#d5e8dc", "unsafe": "#d9b8b0", "pass": "#1b6a44", "fail": "#a3241f", "open": "#855700"},
    **{"line-0": "#1f5a93", "line-1": "#b45309", "line-2": "#17745c", "line-3": "#8a3a7c"},
    "line-4": "#4a5560",
}
"""By the names that the style sheet has for them, by which it changes them in the dark."""
FONT = "-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif"
_DRAWABLE = 1e100
_NARROWEST = 0.56
"""Estimated width of a narrow letter in sizes of the font."""
_LONGEST_TITLE = 1000

WIDTH = 460.0
SIZE = 12.0
_PLOT = 220.0
"""Height of what lies between the axes."""

MOST_NAMES = 40
"""Names on the left of a picture; the others are only in its table."""

_NAME_WIDTH = 180.0

Labels = tuple[str, str]
"""What the names are, and what the values are."""

Span = tuple[float, float]
"""Start and length, in pixels."""

_TILE: dict[str, Any] = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
_LINES = 5
"""Colours of lines."""
_DASHES = (None, "7 4", "2 3", "9 3 2 3", "14 4")
_MARKERS = 3
"""Shapes of markers."""

RESULT_CLASSES = {Result.PASS: "pass", Result.FAIL: "fail", Result.INSUFFICIENT: "open"}


@dataclass(frozen=True)
class Cells:
    """A plain table; the first column heads its rows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Panel:
    """One of several drawings that are to be compared."""

    title: str
    drawing: Markup


@dataclass(frozen=True)
class Picture:
    """A picture with its caption, the numbers behind it and perhaps a remark under the caption.

    Attributes:
        drawing: the picture, or the scale that its panels share.
        panels: drawings side by side, of which three fit into a line where they are narrow, else two.
    """

    title: str
    drawing: Markup
    table: Cells
    note: str = ""
    panels: tuple[Panel, ...] = ()
    narrow: bool = False


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

    A ``fill`` or ``stroke`` by one of the names in :data:`COLOURS` is one that the style sheet may change.
    ``content`` is markup. Raises ``ValueError`` for a coordinate that is not a finite number.
    """
    named = {paint: name for paint in ("fill", "stroke") if (name := attributes.get(paint)) in COLOURS}
    if named:
        attributes |= {paint: COLOURS[str(name)] for paint, name in named.items()}
        attributes["class_"] = " ".join(f"{paint[0]}-{name}" for paint, name in named.items())
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
        escape(clean(shortened(content, LONGEST_WORD))),
        x=x,
        y=y,
        fill="muted" if muted else "ink",
        font_size=size,
        text_anchor=None if anchor == "start" else anchor,
        font_weight=weight,
    )


def line(x1: float, y1: float, x2: float, y2: float, *, rule: bool = False, **more: Any) -> str:
    """A straight line in ink, or in the faint colour of rules; its ``width`` is 1 and it has no ``dash``."""
    look = {"stroke_width": more.get("width", 1), "stroke_dasharray": more.get("dash")}
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke="rule" if rule else "ink", **look)


def document(width: float, height: float, body: str, *, anchor: str, title: str, description: str) -> Markup:
    """The whole picture, with its title and description for those who do not see it.

    It is markup from here on: whatever it holds was escaped by :func:`element` and :func:`text`.
    """
    name, about = f"{anchor}-title", f"{anchor}-desc"
    title, description = (clean(shortened(x, _LONGEST_TITLE)) for x in (title, description))
    head = element("title", escape(title) or "Chart", id=name) + element(
        "desc", escape(description) or "No description.", id=about
    )
    drawing = element(
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
    return Markup(drawing)  # noqa: S704  (all texts are escaped)


def nothing(
    width: float, told: str, *, anchor: str, title: str, description: str = "Nothing to draw."
) -> Markup:
    """A picture that only says why there is none."""
    body = text(0, 16, told, muted=True)
    return document(width, 26, body, anchor=anchor, title=title, description=description)


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
    content = clean(content).replace("\n", " ")
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
        return escape(clean(value), quote=True)
    if not math.isfinite(value):
        raise ValueError("a chart coordinate is not a finite number")
    rounded = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if rounded == "-0" else rounded


@dataclass(frozen=True)
class Plot:
    """A drawing and the height it takes."""

    body: str
    height: float


def value_axis(low: float, high: float, top: float, label: str) -> tuple[Plot, Linear, float]:
    """Horizontal rules with numbers, its label above; returns the scale and where the plot starts."""
    marks, step = outer_ticks(low, high, 5)
    low, high = min(low, *marks), max(high, *marks)
    names = [words.tick(v, step) for v in marks]
    left = max(text_width(n, 11) for n in names) + 10
    start = top + 22
    scale = Linear(low, high, start + _PLOT, start)
    out = text(0, top + 10, fitted(label, WIDTH, SIZE), muted=True, size=SIZE)
    out += value_rules(marks, names, scale, left, WIDTH - 4)
    return Plot(out, start - top + _PLOT), scale, left


def value_rules(
    marks: Sequence[float], names: Sequence[str], scale: Linear, left: float, right: float
) -> str:
    """Horizontal rules, each with its number on the left."""
    out = ""
    for value, name in zip(marks, names, strict=True):
        y = scale(value)
        out += line(left, y, right, y, rule=True)
        out += text(left - 6, y + 4, name, size=11, anchor="end", muted=True)
    return out


def centred(
    x: float, y: float, content: str, size: float, right: float = WIDTH, *, muted: bool = True, **more: Any
) -> str:
    """A text at its place, moved inwards where the edges of the picture would cut it."""
    half = text_width(content, size) / 2
    place = min(max(x, half), right - half)
    return text(place, y, content, size=size, anchor="middle", muted=muted, **more)


def position_labels(names: Sequence[str], places: Sequence[float], y: float, room: float) -> str:
    """Names under their places, as many as fit without touching."""
    widest = max(text_width(n, 11) for n in names) + 8
    every = 1
    while every < len(names) and every * room < min(widest, 110):
        every += 1
    return "".join(
        centred(x, y, fitted(name, max(every * room - 4, 24), 11, middle=True), 11)
        for name, x in list(zip(names, places, strict=True))[::every]
    )


@dataclass(frozen=True)
class Axes:
    """The frame of bars or boxes, one for each name.

    Attributes:
        plot: what it draws and how high it is. scale: of the values. centres: of the names' places, which
            are ``room`` apart. upright: values go up, and not to the right.
    """

    plot: Plot
    scale: Linear
    centres: tuple[float, ...]
    room: float
    upright: bool

    @property
    def pen(self) -> "Pen":
        """The pen that draws along the values."""
        return Pen(self.upright)

    def across(self, value: float, **more: Any) -> str:
        """A line at a value, through all places."""
        at, (first, last) = self.scale(value), (self.centres[0], self.centres[-1])
        return self.pen.line((at, first - self.room / 2), (at, last + self.room / 2), **more)

    def missing(self, centre: float, at: float) -> str:
        """What stands in a place without a number, from a position on the scale on."""
        if self.upright:
            return text(centre, at - 4, "?", size=11, anchor="middle", muted=True)
        return text(at + 5, centre + 4, words.NOT_COMPUTED, size=10, muted=True)


def short(names: Sequence[str]) -> bool:
    """True where names fit below standing bars."""
    room = (WIDTH - 50) / max(len(names), 1)
    return all(text_width(name, 11) <= room - 6 for name in names)


def standing_axes(names: Sequence[str], span: tuple[float, float], top: float, labels: Labels) -> Axes:
    """Values go up, names stand below."""
    axis, scale, left = value_axis(*span, top, labels[1])
    room, bottom = (WIDTH - 4 - left) / len(names), top + axis.height
    centres = tuple(left + (i + 0.5) * room for i in range(len(names)))
    body = axis.body + position_labels(names, centres, bottom + 17, room)
    body += axis_title(labels[0], left, bottom + 36)
    return Axes(Plot(body, axis.height + 44), scale, centres, room, True)


def lying_axes(
    names: Sequence[str], span: tuple[float, float], top: float, labels: Labels, room: float
) -> Axes:
    """Values go to the right, names stand on the left, the first :data:`MOST_NAMES` of them."""
    shown = names[:MOST_NAMES]
    left = min(max(text_width(name, 12) for name in shown) + 10, _NAME_WIDTH)
    marks, step = outer_ticks(*span, 4)
    scale = Linear(min(span[0], *marks), max(span[1], *marks), left, WIDTH - 14)
    start = top + 22
    bottom = start + len(shown) * room + 2
    body = text(0, top + 10, fitted(labels[0], WIDTH, 12), muted=True)
    for value in marks:
        body += line(scale(value), start, scale(value), bottom, rule=True)
        body += text(scale(value), bottom + 15, words.tick(value, step), size=11, anchor="middle", muted=True)
    centres = tuple(start + (i + 0.5) * room for i in range(len(shown)))
    for name, y in zip(_told_apart(shown, left - 10), centres, strict=True):
        body += text(left - 8, y + 4, name, anchor="end")
    body += axis_title(labels[1], left, bottom + 34)
    if more := len(names) - len(shown):
        body += text(
            0, bottom + 54, f"{words.counted(more, 'more row')} in the table below the picture", muted=True
        )
    return Axes(Plot(body, bottom - top + (62 if more else 42)), scale, centres, room, False)


def _told_apart(names: Sequence[str], room: float) -> list[str]:
    """Names cut in their middle, numbered when that makes two of them alike."""
    cut = [fitted(name, room, middle=True) for name in names]
    if len(set(cut)) < len(cut):
        cut = [fitted(f"{i}. {name}", room) for i, name in enumerate(names, 1)]
    return cut


def axis_title(label: str, left: float, y: float) -> str:
    """The label under the horizontal axis, centred on the plot."""
    shown = fitted(label, WIDTH - left, SIZE)
    return text((left + WIDTH) / 2, y, shown, size=SIZE, anchor="middle", muted=True)


@dataclass(frozen=True)
class Pen:
    """Draws strokes in (along, across) coordinates: along the values, across from one to the next."""

    upright: bool

    def line(self, a: tuple[float, float], b: tuple[float, float], **more: Any) -> str:
        """A straight line."""
        (x1, y1), (x2, y2) = (reversed(a), reversed(b)) if self.upright else (a, b)
        return line(x1, y1, x2, y2, **more)

    def box(self, along: Span, across: Span) -> tuple[float, float, float, float]:
        """Left, top, width and height of a box with these spans along and across."""
        (x, wide), (y, high) = (across, along) if self.upright else (along, across)
        return x, y, wide, high

    def ends(self, low: float, high: float, across: float, half: float, *, width: float) -> str:
        """A stroke across each end of an interval."""
        return "".join(
            self.line((end, across - half), (end, across + half), width=width) for end in (low, high)
        )

    def interval(
        self, low: float, high: float, across: float, *, half: float = 5.0, width: float = 2.0
    ) -> str:
        """An interval with a stroke across each end."""
        stroke = self.line((low, across), (high, across), width=width)
        return stroke + self.ends(low, high, across, half, width=width)


def hatch(name: str, colour: str, width: float) -> str:
    """The definition of a hatched ground, to be filled with as ``url(#name)``."""
    stroke = element("path", d="M0 6 L6 0", stroke=colour, stroke_width=width)
    return element("defs", element("pattern", stroke, id=name, **_TILE))


def frame(x: float, y: float, width: float, height: float) -> str:
    """An empty rectangle in the faint colour of rules."""
    return element("rect", x=x, y=y, width=width, height=height, fill="none", stroke="rule")


def track(x: float, y: float, width: float, height: float) -> str:
    """The ground that an interval lies on."""
    return element("rect", x=x, y=y, width=width, height=height, fill="track")


def filled(x: float, y: float, wide: float, high: float, *, fill: str, stroke: str, width: float) -> str:
    """A rectangle that is large enough to be seen."""
    wide, high = max(wide, 0.6), max(high, 0.6)
    return element("rect", x=x, y=y, width=wide, height=high, fill=fill, stroke=stroke, stroke_width=width)


def square(x: float, y: float, side: float) -> str:
    """A piece of a path: many squares as elements of their own would make the page heavy."""
    return f"M{x:.1f} {y:.1f}h{side:.1f}v{side:.1f}h{-side:.1f}z"


@dataclass(frozen=True)
class LineStyle:
    """How one line is told from the others: colour, dash, marker, and pattern for bars."""

    index: int
    anchor: str

    @property
    def colour(self) -> str:
        """Name of its colour."""
        return f"line-{self.index % _LINES}"

    @property
    def dash(self) -> str | None:
        """Dash pattern; differs from the colour's cycle after five lines."""
        return _DASHES[(self.index + self.index // _LINES) % len(_DASHES)]

    def marker(self, x: float, y: float, r: float = 3.6) -> str:
        """The marker of this line at a place."""
        match (self.index + 2 * (self.index // _LINES)) % _MARKERS:
            case 0:
                return element("circle", cx=x, cy=y, r=r, fill=self.colour)
            case 1:
                shape = square(x - r, y - r, 2 * r)
            case _:
                shape = f"M{x:.1f} {y - r * 1.2:.1f}l{r * 1.2:g} {r * 2.1:g}h{-r * 2.4:g}z"
        return element("path", d=shape, fill=self.colour)

    def path(self, d: str) -> str:
        """A line along a path, in this line's colour and dashes."""
        return element(
            "path",
            d=d,
            fill="none",
            stroke=self.colour,
            stroke_width=2,
            stroke_dasharray=self.dash,
            stroke_linejoin="round",
        )

    def bar(self, x: float, y: float, width: float, height: float) -> str:
        """A bar in this line's pattern."""
        fill = f"url(#{self.anchor}-p{self.index})"
        return filled(x, y, width, height, fill=fill, stroke=self.colour, width=1)

    def pattern(self) -> str:
        """The pattern behind :meth:`bar`: solid, hatched, hollow, dotted, ruled."""
        ground = element("rect", width=6, height=6, fill="paper")
        stroke: dict[str, Any] = {"stroke": self.colour, "fill": "none"}
        match self.index % 5:
            case 0:
                ground = element("rect", width=6, height=6, fill=self.colour)
            case 1:
                ground += element("path", d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5", stroke_width=1.6, **stroke)
            case 3:
                ground += element("circle", cx=3, cy=3, r=1.5, fill=self.colour)
            case 4:
                ground += element("path", d="M0 3H6", stroke_width=1.6, **stroke)
        return element("pattern", ground, id=f"{self.anchor}-p{self.index}", **_TILE)


def legend(styles: Mapping[str, LineStyle], top: float, *, as_bars: bool = False) -> Plot:
    """The lines' styles beside their names, in as many rows as it takes."""
    x, y, out = 0.0, top + 12, ""
    for label, style in styles.items():
        shown = fitted(label or "value", WIDTH - 44, SIZE)
        wide = 38 + text_width(shown, SIZE) + 16
        if x and x + wide - 16 > WIDTH:
            x, y = 0.0, y + 19
        if as_bars:
            out += style.bar(x + 1, y - 10, 28, 12)
        else:
            out += style.path(f"M{x:.1f} {y - 4:.1f}h32") + style.marker(x + 16, y - 4)
        out += text(x + 38, y, shown, size=SIZE)
        x += wide
    return Plot(out, y - top + 12)


def dot(x: float, y: float) -> str:
    """The value within its interval."""
    return element("circle", cx=x, cy=y, r=5, fill="ink", stroke="paper", stroke_width=1.2)


def result_mark(result: Result, x: float, y: float, r: float) -> str:
    """The sign of a result: a disc with a tick, a square with a cross, a diamond with a question mark."""
    colour = RESULT_CLASSES[result]
    if result is Result.INSUFFICIENT:
        tip = r * 1.2
        points = f"{x:g},{y - tip:g} {x + tip:g},{y:g} {x:g},{y + tip:g} {x - tip:g},{y:g}"
        font: dict[str, Any] = {"font_size": r * 1.35, "font_weight": "700", "text_anchor": "middle"}
        question = element("text", "?", x=x, y=y + r * 0.48, fill="paper", **font)
        return element("polygon", points=points, fill=colour) + question
    if result is Result.PASS:
        shape = element("circle", cx=x, cy=y, r=r, fill=colour)
        path = f"M{x - r * 0.45:g} {y + r * 0.02:g} l{r * 0.32:g} {r * 0.36:g} l{r * 0.56:g} {-r * 0.72:g}"
    else:
        side, arm = r * 0.92, r * 0.42
        place: dict[str, Any] = {"x": x - side, "y": y - side, "width": 2 * side, "height": 2 * side}
        shape = element("rect", rx=1.5, fill=colour, **place)
        path = f"M{x - arm:g} {y - arm:g} l{2 * arm:g} {2 * arm:g} m0 {-2 * arm:g} l{-2 * arm:g} {2 * arm:g}"
    ends = {"stroke_linecap": "round", "stroke_linejoin": "round"}
    return shape + element(
        "path", d=path, fill="none", stroke="paper", stroke_width=max(r * 0.24, 1.2), **ends
    )
