"""The pages of a sweep and of a calibration: candidates side by side, and measurements against leaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from synth_audit.findings.measurement import Series
from synth_audit.findings.verdict import Result
from synth_audit.report import sweep_charts, words
from synth_audit.report.charts import picture_of
from synth_audit.report.gates import Sign, sign_of
from synth_audit.report.page import page
from synth_audit.report.panels import correlation_scale
from synth_audit.report.svg import Cells, Picture
from synth_audit.store.files import write_text
from synth_audit.studies.calibration import Calibration, Curve
from synth_audit.studies.frontier import ERROR, FrontierRecord
from synth_audit.table.kind import Disturbance
from synth_audit.text import clean

_OPEN_PANELS = 12
_OPEN_MATRICES = 8
_KEY = (
    (sign_of(Result.PASS), "every deciding gate passed"),
    (sign_of(Result.FAIL), "a deciding gate failed"),
    (sign_of(Result.INSUFFICIENT), "no deciding gate failed, and one had insufficient evidence"),
)


def render_frontier(record: FrontierRecord) -> str:
    """The sweep as one self-contained HTML page, without scripts and without anything fetched.

    The same record gives the same text, byte for byte.
    """
    names, varied = sweep_charts.short_names(record.candidates)
    panels, matrices = sweep_charts.box_panels(record, names, varied), sweep_charts.matrix_pictures(record)
    view = {
        "record": record,
        "sign": _sign(record),
        "headline": _headline(record),
        "todo": _todo(record),
        "command": _command(record),
        "plot": _plot(record, names),
        "undrawn": _undrawn(record),
        "axes": (sweep_charts.axis_of(record.privacy), sweep_charts.axis_of(record.utility)),
        "sign_of": sweep_charts.candidate_sign,
        "gates_told": sweep_charts.gates_told,
        "number_told": sweep_charts.number_told,
        "key": _KEY,
        "names": names,
        "gates": sweep_charts.gate_rows(record),
        "panels": panels[:_OPEN_PANELS],
        "more_panels": panels[_OPEN_PANELS:],
        "scale": Markup(correlation_scale("scale")),  # noqa: S704  (escapes its texts)
        "matrices": matrices[:_OPEN_MATRICES],
        "more_matrices": matrices[_OPEN_MATRICES:],
        "uncorrected": _uncorrected(record),
    }
    return page("frontier.html.j2", view=view)


def write_frontier(record: FrontierRecord, path: Path) -> Path:
    """Write the page of a sweep; returns where it stands."""
    return write_text(path, render_frontier(record))


def _sign(record: FrontierRecord) -> Sign:
    results = {sweep_charts.result_of(c) for c in record.candidates}
    if record.chosen is not None:
        return sign_of(Result.PASS)
    return sign_of(Result.FAIL if results <= {Result.FAIL} else Result.INSUFFICIENT)


def _headline(record: FrontierRecord) -> str:
    if record.chosen is not None:
        return f"Chosen: {clean(record.chosen)}."
    if any(c.passed for c in record.candidates):
        return "No candidate was chosen, although some may be released."
    return "No candidate may be released."


def _todo(record: FrontierRecord) -> tuple[str, ...]:
    if record.best is not None:
        folder = f"candidates/{clean(record.best.slug)}"
        read = f"Read its own report, in {folder}/review, before you decide: it shows every gate and attack."
        if not record.releasable:
            return (
                read,
                "Nothing has left yet, and the plan names no place to release to: name one under release, "
                "then sweep again.",
            )
        return (
            read,
            "Nothing has left yet. Releasing it is a step of its own, which checks its evidence once more:",
        )
    if any(c.passed for c in record.candidates):
        return ("Name measurements that they have as frontier.privacy and frontier.utility in the plan.",)
    advice = {
        Result.FAIL: "Where gates failed: try settings that keep less of the real table, or another "
        "generator. The table of gates below shows which requirement stopped which candidate.",
        Result.INSUFFICIENT: "Where evidence is insufficient: the candidate's own report says how many more "
        "attempts would decide, and fewer candidates leave shorter intervals.",
        ERROR: "Where there is no table: mend the cause named beside the candidate and sweep again.",
    }
    ends = {c.verdict for c in record.candidates}
    return tuple(text for end, text in advice.items() if end in ends)


def _command(record: FrontierRecord) -> str:
    if record.best is None or not record.releasable:
        return ""
    return f"synth-audit release PLAN --candidate {clean(record.best.slug)}"


def _plot(record: FrontierRecord, names: tuple[str, ...]) -> Picture:
    privacy, utility = sweep_charts.axis_of(record.privacy), sweep_charts.axis_of(record.utility)
    pairs = list(zip(record.candidates, names, strict=True))
    dots = [
        d for c, name in pairs if (d := sweep_charts.dot_of(c, name, chosen=c is record.best)) is not None
    ]
    title = "Privacy and utility of every candidate"
    drawing = sweep_charts.scatter_svg(dots, privacy, utility, anchor="plot", title=title)
    cells = tuple(
        (
            c.name,
            *sweep_charts.number_told(c.privacy, privacy),
            *sweep_charts.number_told(c.utility, utility),
            sweep_charts.candidate_sign(c).word,
        )
        for c in record.candidates
    )
    header = ("Candidate", privacy.title, "Interval", utility.title, "Interval", "Verdict")
    return Picture(title, Markup(drawing), Cells(title, header, cells))  # noqa: S704  (escapes its texts)


def _undrawn(record: FrontierRecord) -> str:
    missing = [clean(c.name) for c in record.candidates if c.privacy is None or c.utility is None]
    if not missing:
        return ""
    listed = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if len(missing) > 6 else "")
    return f"Not in the plot, for want of a number that can be relied on: {listed}."


def _uncorrected(record: FrontierRecord) -> float:
    """The plan's level, before it was shared among the candidates."""
    return round(1 - (1 - record.level) * max(len(record.candidates), 1), 12)


def render_calibration(calibration: Calibration) -> str:
    """The calibration as one self-contained HTML page, without scripts and without anything fetched."""
    measured = sorted({c.id for c in calibration.curves})
    p = calibration.planting
    view = {
        "title": f"Calibration on {clean(calibration.table)}",
        "planted": (
            f"Releases of {p.release_rows:,} rows were made of copies of {p.train_rows:,} training rows and "
            f"of people who are neither in those nor among the {p.control_rows:,} control rows."
        ),
        "linear": _linear([c for c in calibration.curves if c.noise.none]),
        "pictures": tuple(
            _picture([c for c in calibration.curves if c.id == measurement], f"curve-{i}")
            for i, measurement in enumerate(measured, 1)
        ),
        "silent": tuple((name, words.sentence(reason)) for name, reason in calibration.silent.items()),
    }
    return page("calibration.html.j2", view=view)


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


def _noise(noise: Disturbance) -> str:
    if noise.none:
        return "no noise"
    parts = (("σ", noise.sigma), ("λ", noise.rate), ("p", noise.flip))
    return " ".join(f"{name} {x:g}" for name, x in parts if x)
