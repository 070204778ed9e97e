"""The page of a calibration: each privacy measurement against the share of copied rows, per noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.findings.measurement import Series
from synth_audit.report import words
from synth_audit.report.audits import picture_of
from synth_audit.report.page import page
from synth_audit.report.view import Cells, Picture
from synth_audit.studies.calibration import Calibration, Curve, LeakNoise
from synth_audit.text import clean


@dataclass(frozen=True)
class CalibrationView:
    """What the page shows.

    Attributes:
        planted: what was planted, in a sentence. linear: one line per measurement without noise.
    """

    title: str
    planted: str
    linear: Cells
    pictures: tuple[Picture, ...]
    silent: tuple[tuple[str, str], ...]


def render_calibration(calibration: Calibration) -> str:
    """The calibration as one self-contained HTML page, without scripts and without anything fetched."""
    return page("calibration.html.j2", view=_view(calibration))


def _view(calibration: Calibration) -> CalibrationView:
    plain = [c for c in calibration.curves if c.noise.none]
    measured = sorted({c.id for c in calibration.curves})
    pictures = tuple(
        _picture([c for c in calibration.curves if c.id == measurement], f"curve-{i}")
        for i, measurement in enumerate(measured, 1)
    )
    p = calibration.planting
    planted = (
        f"Releases of {p.release_rows:,} rows were made of copies of {p.train_rows:,} training rows and of "
        f"people who are neither in those nor among the {p.control_rows:,} control rows."
    )
    silent = tuple((name, words.sentence(reason)) for name, reason in calibration.silent.items())
    return CalibrationView(
        f"Calibration on {clean(calibration.table)}", planted, _linear(plain), pictures, silent
    )


def _linear(curves: Sequence[Curve]) -> Cells:
    rows = tuple(
        (
            str(c.id),
            words.number(c.points[0].value),
            words.number(c.points[-1].value),
            words.number(c.slope),
            words.number(c.r_squared, places=4) if math.isfinite(c.r_squared) else "–",
        )
        for c in curves
    )
    header = ("Measurement", "No copied row", "A full copy", "Slope", "R² of a straight line")
    return Cells("Without noise: how straight each measurement follows the leak", header, rows)


def _picture(curves: Sequence[Curve], anchor: str) -> Picture:
    """All noises of one measurement; a share at which some noise has no number is left out."""
    common = sorted(set.intersection(*({p.share for p in c.points} for c in curves)))
    lines = {_noise(c.noise): tuple(p.value for p in c.points if p.share in common) for c in curves}
    series = Series(
        id=curves[0].id,
        title=str(curves[0].id),
        kind="line",
        x_label="share of copied rows",
        y_label="value",
        x=tuple(common),
        lines=lines,
    )
    return picture_of(series, anchor)


def _noise(noise: LeakNoise) -> str:
    if noise.none:
        return "no noise"
    parts = (("σ", noise.sigma), ("λ", noise.rate), ("p", noise.flip))
    return " ".join(f"{name} {x:g}" for name, x in parts if x)
