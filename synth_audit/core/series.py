"""The numbers of one small picture, of which an audit returns some: its kind, axes and lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from synth_audit.core.identity import MeasurementId

BOX_LINES = ("low", "lower quartile", "median", "upper quartile", "high")


@dataclass(frozen=True)
class Series:
    """A small picture's worth of numbers: one line or bar group per label, no real rows, no small counts.

    Attributes:
        id: the measurement that it pictures, or a name of its own in the place of a quantity, with the
            setting and the column that it shows; its audit is empty until the runner has stamped it.
        kind: a file of ``report/plot_kinds``. ``line`` joins the points, ``step`` holds them, ``bar`` stands
            them on categories, ``box`` draws one box for each label of ``x`` from the lines of
            :data:`BOX_LINES`; without ``places`` the first is what was measured and the others are what to
            compare it with. ``matrix`` shows values in [−1, 1] of pairs of columns, a line for each row;
            ``density`` shares of rows in the cells of a plane, a line for each y cell from low to high, named
            by its centre. Matrices or densities of one quantity belong side by side, on one scale; NaN is a
            cell that is withheld.
        x: positions, or category names for bars and boxes; shared by all lines.
        lines: label to values, each as long as ``x``.
        places: for boxes that stand for one measurement each, which; as long as ``x``, or empty.

    Raises:
        ValueError: lines or places of unequal length, or boxes without their five lines.
    """

    id: MeasurementId
    title: str
    kind: str
    x_label: str
    y_label: str
    x: tuple[float, ...] | tuple[str, ...]
    lines: Mapping[str, tuple[float, ...]]
    places: tuple[MeasurementId, ...] = ()

    def __post_init__(self) -> None:
        uneven = [label for label, ys in self.lines.items() if len(ys) != len(self.x)]
        if uneven:
            raise ValueError(f"series {str(self.id)!r}: lines {uneven} differ in length from x")
        if self.places and len(self.places) != len(self.x):
            raise ValueError(f"series {str(self.id)!r}: places differ in length from x")
        # One NaN for all, since two of them are equal only if they are the same object.
        lines = {k: tuple(math.nan if y != y else y for y in ys) for k, ys in self.lines.items()}
        object.__setattr__(self, "lines", lines)
        if self.kind == "box" and set(self.lines) != set(BOX_LINES):
            raise ValueError(f"series {str(self.id)!r}: boxes need the lines {list(BOX_LINES)} and no others")

    def stamped(self, audit: str) -> Series:
        """The same series as that of an audit."""
        return replace(self, id=self.id.stamped(audit), places=tuple(p.stamped(audit) for p in self.places))
