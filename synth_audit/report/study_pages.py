"""The pages of a sweep and of a calibration: candidates side by side, and measurements against leaks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from synth_audit.findings.measurement import BOX_LINES, Direction, MeasurementId, Quantity, Series
from synth_audit.findings.sensitivity import DERIVED
from synth_audit.findings.verdict import Result
from synth_audit.report import svg, words
from synth_audit.report.charts import Beside, five_numbers, full_title, picture_of
from synth_audit.report.gates import Sign, sign_of
from synth_audit.report.page import page
from synth_audit.report.panels import correlation_scale, matrix_svg
from synth_audit.report.svg import WIDTH, Cells, Picture, result_mark
from synth_audit.store.files import write_text
from synth_audit.studies.calibration import Calibration, Curve
from synth_audit.studies.frontier import ERROR, CandidateResult, Correlations, FrontierRecord, Number
from synth_audit.table.kind import Disturbance
from synth_audit.text import clean
from synth_audit.verdict.criteria import declared

_PLOT = 300.0
_EACH = 24.0
"""Height of the plot at least, and what each candidate adds to it of many."""

_TOP = 30.0
_R = 7.0
_ABOVE, _APART = 9.0, 14.0
"""Pixels from the middle of a sign up to its label, clear of the whisker, and between labels."""
_ABSENT = (math.nan,) * len(BOX_LINES)
_MEDIAN = BOX_LINES.index("median")
_SAFER: dict[Direction | None, str] = {
    Direction.LOWER: "lower is safer",
    Direction.HIGHER: "higher is safer",
}

Five = tuple[float, ...]
Span = tuple[float, float]


@dataclass(frozen=True)
class Dot:
    """One candidate: value and interval (low, high) of privacy and of utility, what became of it."""

    label: str
    privacy: float
    privacy_span: Span
    utility: float
    utility_span: Span
    result: Result
    chosen: bool


@dataclass(frozen=True)
class Axis:
    """One of the two measurements.

    Attributes:
        higher_is_better: None when that is not known; the axis then runs as usual.
    """

    title: str
    unit: str
    higher_is_better: bool | None

    @property
    def turned(self) -> bool:
        """True when the axis runs against the numbers, so that better is always right or up."""
        return self.higher_is_better is False


def scatter_svg(dots: Sequence[Dot], privacy: Axis, utility: Axis, *, anchor: str, title: str) -> Markup:
    """The plot of all candidates that have both numbers."""
    if not dots:
        return svg.nothing(WIDTH, "No candidate has both numbers.", anchor=anchor, title=title)
    bottom = _TOP + max(_PLOT, _EACH * len(dots))
    y_body, y_scale, left = _y_axis(utility, _span([(d.utility, *d.utility_span) for d in dots]), bottom)
    x_body, x_scale = _x_axis(privacy, _span([(d.privacy, *d.privacy_span) for d in dots]), left, bottom)
    body = y_body + x_body
    body += "".join(_whiskers(d, x_scale, y_scale) for d in dots)
    places = [(x_scale(d.privacy), y_scale(d.utility)) for d in dots]
    for d, (x, y) in zip(dots, places, strict=True):
        if d.chosen:
            body += svg.element("circle", cx=x, cy=y, r=_R + 5, fill="none", stroke="ink", stroke_width=2.4)
        body += result_mark(d.result, x, y, _R)
    body += _names(dots, places, bottom)
    about = _describe(dots, privacy, utility)
    return svg.document(WIDTH, bottom + 58, body, anchor=anchor, title=title, description=about)


def _span(triples: Sequence[tuple[float, ...]]) -> Span:
    low, high = svg.domain([v for triple in triples for v in triple if svg.drawable(v)])
    room = (high - low) * 0.04
    return low - room, high + room


def _y_axis(axis: Axis, span: Span, bottom: float) -> tuple[str, svg.Linear, float]:
    marks, step = svg.ticks(*span, 6)
    names = [words.tick(v, step, axis.unit) for v in marks]
    left = max(svg.text_width(n, 11) for n in names) + 10
    ends = (_TOP, bottom) if axis.turned else (bottom, _TOP)
    scale = svg.Linear(*span, *ends)
    arrow = "" if axis.higher_is_better is None else "↑ more useful"
    body = _titled(axis.title, arrow, 0.0, 11.0)
    body += svg.value_rules(marks, names, scale, left, WIDTH - 2)
    return body + svg.line(left, _TOP, left, bottom), scale, left


def _x_axis(axis: Axis, span: Span, left: float, bottom: float) -> tuple[str, svg.Linear]:
    marks, step = svg.ticks(*span, 6)
    scale = svg.Linear(*span, *((WIDTH - 2, left) if axis.turned else (left, WIDTH - 2)))
    body = ""
    for value in marks:
        x = scale(value)
        body += svg.line(x, _TOP, x, bottom, rule=True)
        body += svg.centred(x, bottom + 16, words.tick(value, step, axis.unit), 11)
    arrow = "" if axis.higher_is_better is None else "safer →"
    body += _titled(axis.title, arrow, left, bottom + 38)
    if axis.turned:
        aside = "numbers fall towards the right, where it is safer"
        body += svg.text(left, bottom + 54, aside, size=11, muted=True)
    return body + svg.line(left, bottom, WIDTH - 2, bottom), scale


def _titled(title: str, arrow: str, left: float, y: float) -> str:
    room = WIDTH - left - (svg.text_width(arrow, 12) + 16 if arrow else 0)
    out = svg.text(left, y, svg.fitted(title, room, 12), muted=True)
    return out + (svg.text(WIDTH - 2, y, arrow, anchor="end", weight="600") if arrow else "")


def _whiskers(d: Dot, x_scale: svg.Linear, y_scale: svg.Linear) -> str:
    x, y, width = x_scale(d.privacy), y_scale(d.utility), 2.0 if d.chosen else 1.0
    out = ""
    if all(map(svg.drawable, d.privacy_span)):
        low, high = map(x_scale, d.privacy_span)
        out += svg.Pen(upright=False).interval(low, high, y, half=4, width=width)
    if all(map(svg.drawable, d.utility_span)):
        low, high = map(y_scale, d.utility_span)
        out += svg.Pen(upright=True).interval(low, high, x, half=4, width=width)
    return out


def _names(dots: Sequence[Dot], places: Sequence[tuple[float, float]], bottom: float) -> str:
    """Labels beside their signs, each moved up or down until it covers no other and no sign."""
    taken = [(x - _R, x + _R, y) for x, y in places]
    out = ""
    for d, (x, y) in sorted(zip(dots, places, strict=True), key=lambda pair: not pair[0].chosen):
        shown = svg.fitted(d.label, 150, 12)
        wide = svg.text_width(shown, 12) + (6 if d.chosen else 0)
        left = x + _R + 4 if x + _R + 4 + wide <= WIDTH else x - _R - 4 - wide
        covering = [at for start, end, at in taken if start < left + wide and left < end]
        heights = sorted(range(int(_TOP) + 7, int(bottom) - 7, 2), key=lambda at: abs(at - y + _ABOVE))
        at = next((h for h in heights if all(abs(h - other) >= _APART for other in covering)), y)
        taken.append((left, left + wide, at))
        edge = left - 2 if left > x else left + wide + 2
        if abs(at - y) > _R + _ABOVE:
            out += svg.line(x, y + math.copysign(_R, at - y), edge, at, width=0.8)
        look: dict[str, Any] = {
            "stroke": "paper",
            "stroke_width": 3,
            "paint_order": "stroke",
            "text_anchor": "middle",
        }
        weight = "700" if d.chosen else None
        middle = left + wide / 2
        out += svg.element(
            "text", escape(shown), x=middle, y=at + 4, font_size=12, fill="ink", font_weight=weight, **look
        )
    return out


def _describe(dots: Sequence[Dot], privacy: Axis, utility: Axis) -> str:
    parts = [f"{privacy.title} across, {utility.title} up; better is to the right and up"]
    for d in dots[:12]:
        p, u = words.number(d.privacy, privacy.unit), words.number(d.utility, utility.unit)
        word = words.RESULT_WORDS[d.result].lower()
        parts.append(f"{d.label}: privacy {p}, utility {u}, {word}{', chosen' if d.chosen else ''}")
    if len(dots) > 12:
        parts.append(f"and {len(dots) - 12} more candidates")
    return ". ".join(parts) + "."


def short_names(candidates: Sequence[CandidateResult]) -> tuple[tuple[str, ...], str]:
    """What tells the candidates apart, and what that is: the values of the one setting varied, else names."""
    names = tuple(clean(c.name) for c in candidates)
    heads = {f"{c.generator.get('name')} {' '.join(map(str, c.varied))}=" for c in candidates}
    head = heads.pop() if len(heads) == 1 else "="
    if all(len(c.varied) == 1 for c in candidates) and all(n.startswith(head) for n in names):
        return tuple(n.removeprefix(head) for n in names), head.removesuffix("=")
    varying = {c.generator.get("name") for c in candidates if c.varied}
    # Where one generator is varied, its name says little.
    only = f"{varying.pop()} " if len(varying) == 1 else ""
    return tuple(n.removeprefix(only) for n in names), "candidate"


def axis_of(measurement: MeasurementId | None) -> Axis:
    """Title, unit and direction of a measurement, as its audit declares them."""
    if measurement is None:
        return Axis("not measured", "", None)
    quantity = _quantity(measurement)
    if quantity is None:
        return Axis(str(measurement), "", None)
    better = {Direction.HIGHER: True, Direction.LOWER: False}.get(quantity.direction)
    title = f"{quantity.title} ({measurement.label})" if measurement.label else quantity.title
    return Axis(clean(title), quantity.unit, better)


def direction_of(measurement: MeasurementId) -> Direction | None:
    """Which way is safer; None for what its audit does not declare."""
    quantity = _quantity(measurement)
    return quantity.direction if quantity else None


def result_of(candidate: CandidateResult) -> Result:
    """Its verdict as a result; a candidate without a table has not been decided."""
    known = candidate.verdict in set(Result)
    return Result(candidate.verdict) if known else Result.INSUFFICIENT


def dot_of(candidate: CandidateResult, label: str, *, chosen: bool) -> Dot | None:
    """Its point; None without both numbers."""
    p, u = candidate.privacy, candidate.utility
    if p is None or u is None:
        return None
    return Dot(label, p.value, (p.low, p.high), u.value, (u.low, u.high), result_of(candidate), chosen)


def gate_rows(record: FrontierRecord) -> list[tuple[str, list[Sign | None]]]:
    """The gates that not every candidate passed, most failed first.

    Returns:
        Title, and the sign of each candidate; None where it was not judged.
    """
    titles = {g.gate: g.title for c in record.candidates for g in c.gates}
    ends = [{g.gate: g.result for g in c.gates} for c in record.candidates]
    passed = {gate: sum(e.get(gate) == Result.PASS for e in ends) for gate in titles}
    return [
        (words.sentence(title, ""), [_sign(e.get(gate)) for e in ends])
        for gate, title in sorted(titles.items(), key=lambda item: passed[item[0]])
        if passed[gate] < sum(bool(e) for e in ends)
    ]


def _sign(result: str | None) -> Sign | None:
    if result is None:
        return None
    return sign_of(Result(result) if result in set(Result) else Result.INSUFFICIENT)


def candidate_sign(c: CandidateResult) -> Sign:
    """Its verdict; a candidate that never became a table has a word of its own."""
    sign = sign_of(result_of(c))
    return Sign(sign.kind, "No table", sign.icon) if c.verdict == ERROR else sign


def gates_told(c: CandidateResult) -> str:
    """How its deciding gates ended, in words."""
    results = [g.result for g in c.gates]
    if not results:
        return "none judged"
    if all(r == Result.PASS for r in results):
        return f"all {len(results)} passed"
    counts = ((sum(r == result for r in results), word) for result, word in words.ENDINGS.items())
    return ", ".join(f"{n} {word}" for n, word in counts if n)


def number_told(number: Number | None, axis: Axis) -> tuple[str, str]:
    """One of its two numbers, and the interval."""
    if number is None:
        return "–", ""
    value, interval = words.measured(axis.unit, number.value, number.low, number.high)
    return value, "no interval" if math.isnan(number.low) else interval


def _quantity(measurement: MeasurementId) -> Quantity | None:
    """As the audit declares it; None when that audit is not installed here any more, or does not load."""
    info = declared(measurement.audit)
    known = (*info.quantities, *DERIVED) if info else ()
    return next((q for q in known if q.name == measurement.quantity), None)


class _Box(NamedTuple):
    """One box of a game, which every candidate may have; by name, medians of those to compare it with."""

    series: Series
    title: str
    five: Five
    medians: Mapping[str, float]


def box_panels(record: FrontierRecord, names: Sequence[str], varied: str) -> tuple[Picture, ...]:
    """One picture for each box of the games, with that box of every candidate in the order of the sweep.

    Args:
        varied: what tells the candidates apart.
    """
    found = [_boxes(c.boxes) for c in record.candidates]
    first: dict[tuple[MeasurementId, str], _Box] = {}
    for boxes in found:
        first = {**first, **boxes, **first}
    labels = tuple(f"{n}*" if c is record.best else n for n, c in zip(names, record.candidates, strict=True))
    strong = frozenset(label for label, n in zip(labels, names, strict=True) if label != n)
    pictures = []
    for i, (key, box) in enumerate(first.items(), 1):
        mine = [boxes.get(key) for boxes in found]
        alike = (b.five for boxes in found for (series, _), b in boxes.items() if series == key[0])
        known = [v for five in alike for v in five if math.isfinite(v)]
        safer = _SAFER.get(direction_of(key[0]))
        series = Series(
            id=key[0],
            title=box.title,
            kind="box",
            x_label=f"{varied} (* chosen)" if strong else varied,
            y_label=f"{box.series.y_label} ({safer})" if safer else box.series.y_label,
            x=labels,
            lines={
                line: tuple(math.nan if b is None else b.five[j] for b in mine)
                for j, line in enumerate(BOX_LINES)
            },
        )
        compared = {name: [None if b is None else b.medians.get(name) for b in mine] for name in box.medians}
        reach = (min(known), max(known)) if known else ()  # so that pictures of a series can be compared
        pictures.append(picture_of(series, f"panel-{i}", beside=Beside(compared, strong, reach)))
    return tuple(pictures)


def _boxes(all_series: Sequence[Series]) -> dict[tuple[MeasurementId, str], _Box]:
    """Boxes with places show one thing each; others show one thing and what to compare it with."""
    found = {}
    for series in all_series:
        if series.kind != "box" or not series.x:
            continue
        labels: Sequence[Any] = series.x
        fives = {str(x): five_numbers(series, i) or _ABSENT for i, x in enumerate(labels)}
        shown = list(fives) if series.places else [str(labels[0])]
        medians = {} if series.places else {x: five[_MEDIAN] for x, five in fives.items() if x not in shown}
        for label in shown:
            several = not medians and len(labels) > 1
            title = f"{full_title(series)}: {label}" if several else full_title(series)
            found[series.id, label] = _Box(series, title, fives[label], medians)
    return found


def matrix_pictures(record: FrontierRecord) -> tuple[Picture, ...]:
    """The correlations of the real table, then those of each candidate that has a table."""
    real = record.real_correlations
    pictures = [_matrix(real, "Real table (train)", "matrix-0")] if real.names else []
    for i, c in enumerate(record.candidates, 1):
        if c.correlations.names:
            chosen = " (chosen)" if c is record.best else ""
            note = _differs(real, c.correlations)
            pictures.append(_matrix(c.correlations, f"{c.name}{chosen}", f"matrix-{i}", note))
    return tuple(pictures)


def _matrix(correlations: Correlations, title: str, anchor: str, note: str = "") -> Picture:
    names, values = correlations.names, correlations.values
    drawing = matrix_svg(names, values, anchor=anchor, title=title)
    rows = tuple(
        (name, *(words.number(v, places=2) for v in row)) for name, row in zip(names, values, strict=True)
    )
    return Picture(title, drawing, Cells(title, ("Column", *names), rows), note)


def _differs(real: Correlations, other: Correlations) -> str:
    """How far the correlations are from the real ones, mean and most, over pairs of columns."""
    if real.names != other.names:
        return ""
    pairs = [(i, j) for i in range(len(real.names)) for j in range(i)]
    gaps = [(abs(real.values[i][j] - other.values[i][j]), i, j) for i, j in pairs]
    gaps = [g for g in gaps if math.isfinite(g[0])]
    if not gaps:
        return ""
    most, i, j = max(gaps)
    mean = math.fsum(g[0] for g in gaps) / len(gaps)
    return (
        f"Off by {words.number(mean, places=2)} on average, at most {words.number(most, places=2)} "
        f"({real.names[i]} with {real.names[j]})."
    )


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
    names, varied = short_names(record.candidates)
    panels, matrices = box_panels(record, names, varied), matrix_pictures(record)
    view = {
        "record": record,
        "sign": _record_sign(record),
        "headline": _headline(record),
        "todo": _todo(record),
        "command": _command(record),
        "plot": _plot(record, names),
        "undrawn": _undrawn(record),
        "axes": (axis_of(record.privacy), axis_of(record.utility)),
        "sign_of": candidate_sign,
        "gates_told": gates_told,
        "number_told": number_told,
        "key": _KEY,
        "names": names,
        "gates": gate_rows(record),
        "panels": panels[:_OPEN_PANELS],
        "more_panels": panels[_OPEN_PANELS:],
        "scale": correlation_scale("scale"),
        "matrices": matrices[:_OPEN_MATRICES],
        "more_matrices": matrices[_OPEN_MATRICES:],
        "uncorrected": _uncorrected(record),
    }
    return page("frontier.html.j2", view=view)


def write_frontier(record: FrontierRecord, path: Path) -> Path:
    """Write the page of a sweep; returns where it stands."""
    return write_text(path, render_frontier(record))


def _record_sign(record: FrontierRecord) -> Sign:
    results = {result_of(c) for c in record.candidates}
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
    privacy, utility = axis_of(record.privacy), axis_of(record.utility)
    pairs = list(zip(record.candidates, names, strict=True))
    dots = [d for c, name in pairs if (d := dot_of(c, name, chosen=c is record.best)) is not None]
    title = "Privacy and utility of every candidate"
    drawing = scatter_svg(dots, privacy, utility, anchor="plot", title=title)
    cells = tuple(
        (
            c.name,
            *number_told(c.privacy, privacy),
            *number_told(c.utility, utility),
            candidate_sign(c).word,
        )
        for c in record.candidates
    )
    header = ("Candidate", privacy.title, "Interval", utility.title, "Interval", "Verdict")
    return Picture(title, drawing, Cells(title, header, cells))


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
