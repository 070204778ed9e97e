"""How the lines of one picture are told apart: colour, dash, marker and pattern together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from synth_audit.report import svg

_COLOURS = ("#1f5a93", "#b45309", "#17745c", "#8a3a7c", "#4a5560")
_DASHES = (None, "7 4", "2 3", "9 3 2 3", "14 4")
_MARKERS = ("circle", "square", "triangle", "diamond", "cross")


@dataclass(frozen=True)
class LineStyle:
    """How one line is told from the others: colour, dash, marker, and pattern for bars."""

    index: int
    anchor: str

    @property
    def colour(self) -> str:
        """Colour of the line."""
        return _COLOURS[self.index % len(_COLOURS)]

    @property
    def name(self) -> str:
        """Class suffix, for recolouring."""
        return f"line-{self.index % len(_COLOURS)}"

    @property
    def dash(self) -> str | None:
        """Dash pattern; differs from the colour's cycle after five lines."""
        return _DASHES[(self.index + self.index // len(_COLOURS)) % len(_DASHES)]

    def marker(self, x: float, y: float, r: float = 3.6) -> str:
        """The marker of this line at a place."""
        fill: dict[str, Any] = {"class_": f"f-{self.name}", "fill": self.colour}
        match _MARKERS[(self.index + 2 * (self.index // len(_COLOURS))) % len(_MARKERS)]:
            case "circle":
                return svg.element("circle", cx=x, cy=y, r=r, **fill)
            case "square":
                return svg.element(
                    "path", d=f"M{x - r:.1f} {y - r:.1f}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z", **fill
                )
            case "triangle":
                return svg.element(
                    "path", d=f"M{x:.1f} {y - r * 1.2:.1f}l{r * 1.2:g} {r * 2.1:g}h{-r * 2.4:g}z", **fill
                )
            case "diamond":
                d = r * 1.35
                return svg.element(
                    "path", d=f"M{x:.1f} {y - d:.1f}l{d:g} {d:g}l{-d:g} {d:g}l{-d:g} {-d:g}z", **fill
                )
        arms = f"M{x - r:.1f} {y - r:.1f}l{2 * r:g} {2 * r:g}m0 {-2 * r:g}l{-2 * r:g} {2 * r:g}"
        return svg.element("path", d=arms, class_=f"s-{self.name}", stroke=self.colour, stroke_width=1.8)

    def path(self, d: str) -> str:
        """A line along a path, in this line's colour and dashes."""
        return svg.element(
            "path",
            d=d,
            class_=f"s-{self.name}",
            fill="none",
            stroke=self.colour,
            stroke_width=2,
            stroke_dasharray=self.dash,
            stroke_linejoin="round",
        )

    def bar(self, x: float, y: float, width: float, height: float) -> str:
        """A bar in this line's pattern."""
        return svg.element(
            "rect",
            class_=f"s-{self.name}",
            x=x,
            y=y,
            width=max(width, 0.6),
            height=max(height, 0.6),
            fill=f"url(#{self.anchor}-p{self.index})",
            stroke=self.colour,
            stroke_width=1,
        )

    def pattern(self) -> str:
        """The pattern behind :meth:`bar`: solid, hatched, hollow, dotted, ruled."""
        ground = svg.element("rect", class_="f-paper", width=6, height=6, fill=svg.PAPER)
        stroke: dict[str, Any] = {"class_": f"s-{self.name}", "stroke": self.colour, "fill": "none"}
        match self.index % 5:
            case 0:
                ground = svg.element("rect", class_=f"f-{self.name}", width=6, height=6, fill=self.colour)
            case 1:
                ground += svg.element("path", d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5", stroke_width=1.6, **stroke)
            case 3:
                ground += svg.element("circle", class_=f"f-{self.name}", cx=3, cy=3, r=1.5, fill=self.colour)
            case 4:
                ground += svg.element("path", d="M0 3H6", stroke_width=1.6, **stroke)
        return svg.element(
            "pattern",
            ground,
            id=f"{self.anchor}-p{self.index}",
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
