"""The words of the report: sentences, numbers, limits and dates as a reader sees them.

A translation begins here. Pages have theirs in ``reports_templates/``, gates in ``expectations/``, and
insufficient evidence in ``verdict/insufficient_evidence.py``.
"""

import math
import re
from datetime import datetime, timedelta

from synth_audit.findings.detection_power import SURELY
from synth_audit.findings.measurement import Measurement, MeasurementId, is_share
from synth_audit.findings.sensitivity import DERIVED
from synth_audit.findings.verdict import Fitness, Result
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.store.evidence import Evidence
from synth_audit.verdict import insufficient_evidence as lacking
from synth_audit.verdict.comparison import change

RESULT_WORDS = {Result.PASS: "Pass", Result.FAIL: "Fail", Result.INSUFFICIENT: "Insufficient evidence"}

_HEADLINES = {
    Result.PASS: "This synthetic table may be released.",
    Result.FAIL: "This synthetic table must not be released.",
    Result.INSUFFICIENT: lacking.HEADLINE,
}
ENDINGS = {Result.FAIL: "failed", Result.INSUFFICIENT: lacking.ENDED, Result.PASS: "passed"}
"""How gates ended, behind their number."""
_UNFIT = "This synthetic table may be released, but it is not fit for purpose."

NOT_JUDGED = "not judged, since the release is not safe"
"""Fitness of a refused table that would have been a yes."""

COPY_IS_USEFUL = "The gates on usefulness passed, but a copy of the real table passes them, too."
"""Why it is not judged."""

NOTHING_TO_SEARCH = "Nothing to search"
"""Result of the gate on identifiers where none is declared."""

NO_IDENTIFIERS = "The plan declares no identifier, so the release was not searched for any"

NO_GATE = "No gate decides about this table, and without one nothing may leave."

CHECKED = {
    "expect_table_columns_to_match_set": ("columns", "has the declared columns and no others"),
    "expect_column_values_to_be_in_type_list": ("types", "holds values of its kind"),
    "expect_column_values_to_be_between": ("bounds", "lies within its declared bounds"),
    "expect_column_values_to_be_in_set": ("categories", "holds only its declared categories"),
    "expect_column_values_to_not_be_null": ("missing values", "has no missing values"),
    "expect_cells_as_full_as_in_train": ("empty cells", "has hardly more missing cells than train"),
}
"""What an expectation on the table is about, and what it asks for."""

NO_RECORDS = (
    "No audit of this run says which training records it got right, so nothing is known of single records."
)

RECORDS_AT_RISK = "Which training records are most at risk, and is that more than chance?"

ASKED = {
    "singling out": "Can somebody use the synthetic table to describe exactly one person of the real one?",
    "linkability": "Can somebody use the synthetic table to link two records of the same person?",
    "inference": "Can somebody who knows part of a person's record learn a secret from the synthetic table?",
    "membership": "Can somebody find out that a person's record was among those the generator learnt from?",
    "fidelity": "Does the synthetic table look like the real one?",
    "utility": "Does work done with the synthetic table give the results that the real one would give?",
}
"""Questions that audits answer, by what they are about."""

AIMS = {
    "singling out": "to single out people",
    "linkability": "to join partial records",
    "inference": "to guess secret columns",
    "membership": "to find out who was in the training set",
}
"""What an adversary is after, by criterion."""

UNTRIED = "Attacks that were not tried: one of them may find more than these found."

NOT_STATED = "not stated"

SCOPE = {
    "purpose": "Purpose",
    "recipient": "Recipient",
    "environment": "Environment",
    "controller": "Controller",
    "legal_basis": "Legal basis",
    "special_categories": "Special categories of data",
    "owner": "Owner",
    "contact": "Contact",
    "reviewer": "Reviewer",
    "review_on": "Next review",
    "valid_until": "Valid until",
    "reports": "Reports of the same people, at most",
}
"""How a certificate calls the keys of the plan's review."""

DAYS = {"review_on": "the review is due", "valid_until": "expired"}
"""Keys of days, and what is said once they are over."""

STATES = {
    "released": "Released",
    "pass": "Passed, not released",
    "fail": "Failed",
    "open": RESULT_WORDS[Result.INSUFFICIENT],
}
"""States of audits in the index."""

_KEPT_BACK = frozenset({"identifier", "split_key"})
"""Roles of columns that are not released."""

NOT_COMPUTED = "not computed"
_BARE_UNITS = frozenset(
    {"", "score", "ratio", "p-value", "distance", "index", "number", "correlation", "probability", "epsilon"}
)
_COUNT_UNITS = frozenset({"count", "rows", "records", "columns"})
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MAX_DECIMALS = 6
_NBSP = "\u00a0"
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def headline(verdict: Result, fitness: Fitness) -> str:
    """The verdict as a sentence, the same in report, certificate, notebook and terminal."""
    return _UNFIT if verdict is Result.PASS and fitness is Fitness.NO else _HEADLINES[verdict]


def sentence(text: str, end: str = ".") -> str:
    """Text with a capital first letter and a full stop, or another end; a name such as `a.b` stays."""
    text = text.strip()
    if not text:
        return ""
    named = re.match(r"\w+[._]\w", text)
    start = text[0] if named else text[0].upper()
    return start + text[1:] + ("" if text[-1] in ".!?…" else end)


def counted(n: int, noun: str, plural: str = "") -> str:
    """``1 gate``, ``2 gates``, ``1,000 gates``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def decimals(unit: str, *values: float | None, low: float | None = None, high: float | None = None) -> int:
    """How many decimals say enough: one or two digits of the interval's width, else three of the number."""
    if unit in _COUNT_UNITS and all(v is None or not math.isfinite(v) or v == round(v) for v in values):
        return 0
    factor = 10.0 ** _shift(unit)
    if low is not None and high is not None and math.isfinite(high - low) and high > low:
        return _clamp(math.floor(-math.log10(_sayable(high - low) * factor / 5)) + 1)
    sizes = [_sayable(abs(v)) * factor for v in values if v is not None and math.isfinite(v) and v != 0]
    if not sizes:
        return 0
    return _clamp(2 - math.floor(math.log10(max(sizes))))


def telling_apart(start: int, unit: str, value: float | None, limit: float | None) -> int:
    """More decimals, if that is what it takes to see that a value is not its limit."""
    if value is None or limit is None or value == limit or not math.isfinite(value - limit):
        return start
    for places in range(start, _MAX_DECIMALS + 1):
        if number(value, unit, places) != number(limit, unit, places):
            return places
    return start


def number(value: float | None, unit: str = "", places: int | None = None) -> str:
    """One number with its unit; shares in percent."""
    bare = bare_number(value, unit, places)
    if bare == NOT_COMPUTED:
        return bare
    if unit == "flag":
        return "some" if value else "none"
    if is_share(unit):
        return f"{bare}{_NBSP}%"
    if unit in _BARE_UNITS or unit == "count":
        return bare
    return f"{bare}{_NBSP}{unit}"


def bare_number(value: float | None, unit: str = "", places: int | None = None) -> str:
    """One number without its unit, scaled as its unit wants."""
    if value is None or math.isnan(value):
        return NOT_COMPUTED
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    scaled = value * 10.0 ** _shift(unit)
    if abs(scaled) >= 1e7 or (0 < abs(scaled) < 1e-4):
        return _scientific(value, _shift(unit))
    if places is None:
        places = decimals(unit, value)
        text = f"{scaled:,.{places}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{scaled:,.{places}f}"
    return _signed(text)


def privacy_loss(epsilon: float, delta: float) -> str:
    """``ε = 1, δ = 0.00001``."""
    return f"ε = {bare_number(epsilon)}, δ = {bare_number(delta)}"


def position(x: float | str) -> str:
    """A place on an axis: a name as it is, or a number."""
    return x if isinstance(x, str) else number(float(x))


def interval(low: float, high: float, unit: str = "", places: int | None = None) -> str:
    """``0.2 to 1.9 %``."""
    if math.isnan(low) or math.isnan(high):
        return NOT_COMPUTED
    places = decimals(unit, low=low, high=high) if places is None else places
    return f"{bare_number(low, unit, places)} to {number(high, unit, places)}"


def measured(unit: str, value: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """A number and its interval, as exact as the interval is wide; a missing interval is no text."""
    if low is None or high is None:
        return number(value, unit), ""
    places = decimals(unit, value, low=low, high=high)
    return number(value, unit, places), interval(low, high, unit, places)


def of_measurement(m: Measurement) -> tuple[str, str]:
    """A measurement and its interval, see :func:`measured`."""
    return measured(m.unit, m.value, *((m.interval.low, m.interval.high) if m.interval else (None, None)))


def copied(share: float, places: int | None = None) -> str:
    """A share of copied rows, which can be no less than none and no more than all."""
    if share < 0:
        return "none"
    return "all" if share > 1 else number(share, "share", places)


def cut_share(m: Measurement) -> str:
    """A share or its interval, cut at none and all for reading: ``0 to 3 %``; empty for no number."""
    if not math.isfinite(m.value):
        return ""
    if m.interval is None or not math.isfinite(m.interval.low + m.interval.high):
        return copied(m.value)
    low, high = (min(max(end, 0.0), 1.0) for end in (m.interval.low, m.interval.high))
    return interval(low, high, m.unit) if high > low else copied(high)


def detectable(share: float) -> str:
    """A smallest share that shows, rounded up to two digits so that no more is promised than holds."""
    if not math.isfinite(share):
        return NOT_COMPUTED
    if share <= 0:
        return "one row"
    power = 10.0 ** (1 - math.floor(math.log10(_sayable(share))))
    return number(min(math.ceil(round(share * power, 9)) / power, max(share, 1.0)), "share")


def percent_level(level: float) -> str:
    """``95 %`` for 0.95, ``99.17 %`` for 0.9916…; never 100 for what falls short of it."""
    doubt = 100 * (1 - level)
    places = max(2, 1 - math.floor(math.log10(doubt))) if doubt > 0 else 2
    return f"{100 * level:.{places}f}".rstrip("0").rstrip(".") + f"{_NBSP}%"


def limits(minimum: float | None, maximum: float | None, unit: str = "") -> str:
    """``at most 9 %``, ``at least 80 %``, ``between 0.8 and 1.2``; of a flag ``none`` or ``some``."""
    if unit == "flag" and (minimum is None) != (maximum is None):
        return number(maximum if minimum is None else minimum, unit)
    if minimum is not None and maximum is not None:
        return f"between {bare_number(minimum, unit)} and {number(maximum, unit)}"
    if maximum is not None:
        return f"at most {number(maximum, unit)}"
    if minimum is not None:
        return f"at least {number(minimum, unit)}"
    return ""


def tick(value: float, step: float, unit: str = "") -> str:
    """A number on an axis whose ticks are ``step`` apart."""
    scaled, step = (x * 10.0 ** _shift(unit) for x in (value, step))
    suffix = f"{_NBSP}%" if is_share(unit) else ""
    if abs(scaled) >= 1e6 or step < 1e-5:
        return (_scientific(value, _shift(unit)) if scaled else "0") + suffix
    if abs(scaled) < 1e-9 * abs(step):
        return f"0{suffix}"
    places = next((p for p in range(6) if abs(round(step, p) - step) < 1e-9 * step), 6)
    return _signed(f"{scaled:,.{places}f}") + suffix


def moment(iso: str, *, day_only: bool = False) -> str:
    """``14 November 2026, 10:32 UTC`` for an ISO 8601 time; the text itself when it is none."""
    if not iso:
        return "not recorded"
    try:
        when = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    day = f"{when.day} {_MONTHS[when.month - 1]} {when.year}"
    if day_only or len(iso) <= len("2026-11-14"):
        return day
    offset = when.utcoffset()
    zone = "" if offset is None else " UTC" if offset == timedelta(0) else f" {when:%z}"
    return f"{day}, {when:%H:%M}{zone}"


def released_columns(evidence: Evidence) -> list[str]:
    """Names of the columns that are released."""
    return [column.name for column in evidence.columns if _KEPT_BACK.isdisjoint(column.roles)]


def identifiers(evidence: Evidence) -> str:
    """That none was looked for, where the plan declares none."""
    if len(released_columns(evidence)) < len(evidence.columns):
        return ""
    return f"Identifiers: {NO_IDENTIFIERS[0].lower()}{NO_IDENTIFIERS[1:]}."


def quantity_texts(outcome: AuditOutcome, measurement: MeasurementId) -> tuple[str, str]:
    """Title of a measurement's quantity and how to read it."""
    quantity = measurement.quantity
    for q in (*(outcome.info.quantities if outcome.info else ()), *DERIVED):
        if q.name == quantity:
            return q.title, sentence(q.help)
    return quantity.replace("_", " ").capitalize(), ""


def name_of(measurement: MeasurementId, evidence: Evidence) -> str:
    """``Risk of being singled out (3 columns)``, as its audit declares it."""
    outcome = next((o for o in evidence.outcomes if o.audit == measurement.audit), None)
    plain = measurement.quantity.replace("_", " ")
    title = quantity_texts(outcome, measurement)[0] if outcome else plain
    return f"{title} ({measurement.label})" if measurement.label else title


def people(share: float, rows: int, suppression: int) -> str:
    """A share of people as their number: none below nothing, and none that is small is told apart."""
    count = min(share * rows, rows)  # an interval may be open upwards
    if math.isnan(count):
        return NOT_COMPUTED
    if count <= 0:
        return "none"
    if count < suppression:
        return f"fewer than {suppression}"
    return f"{round(count):,}"


def least_leak(limit: float, evidence: Evidence) -> tuple[int, float]:
    """A detection limit as training people, rounded up so that no more is promised than holds; their share.

    A count too small to show is the smallest that may be shown.
    """
    rows = evidence.tables["train"].rows if "train" in evidence.tables else 0
    count = min(max(math.ceil(round(limit * rows, 6)), evidence.suppression), rows)  # 100.0000001 is 100
    return count, count / rows if rows else limit


def share_of_people(limit: float, evidence: Evidence) -> str:
    """A detection limit: ``6.33 % of the training people (25 of 395)``."""
    count, share = least_leak(limit, evidence)
    known = f" ({count:,} of {evidence.tables['train'].rows:,})" if count else ""
    return f"{number(share, 'share')} of the training people{known}"


def found(least: str) -> str:
    """What a detection limit says, given the leak in people."""
    return f"A leak of {least} would have been found {SURELY}, except where rows mix two people."


def people_interval(low: float, high: float, rows: int, suppression: int) -> str:
    """``163 to 1,285``; only its upper end where the lower one is none, or too few to show."""
    few, most = people(low, rows, suppression), people(high, rows, suppression)
    if few == most or high * rows < suppression:
        return most
    return f"up to {most}" if low * rows < suppression else f"{few} to {most}"


def day(iso: str) -> str:
    """The same without the hour."""
    return moment(iso, day_only=True)


def compared(now: Measurement, previous: Evidence | None) -> str:
    """``not distinguishable: was 1.2 % (0.4 to 2.0 %)``; empty without an earlier release."""
    if previous is None:
        return ""
    before = next((m for m in previous.measurements if m.id == now.id and math.isfinite(m.value)), None)
    if before is None:
        return "not measured then"
    value, span = of_measurement(before)
    return f"{change(now, before)}: was {value}" + (f" ({span})" if span else "")


def _shift(unit: str) -> int:
    """Power of ten by which a number is scaled for reading: shares become percent."""
    return 2 if is_share(unit) else 0


def _sayable(size: float) -> float:
    """A size whose percent is still a number, and whose inverse is: decimals do not depend on what is cut."""
    return min(max(size, 1e-300), 1e300)


def _clamp(places: int) -> int:
    return min(max(places, 0), _MAX_DECIMALS)


def _signed(text: str) -> str:
    if text.startswith("-") and not text.strip("-0.,"):
        return text[1:]
    return text.replace("-", "−")


def _scientific(value: float, shift: int) -> str:
    """A finite number times ten to ``shift``, which itself may be too large for a number."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{_signed(mantissa)} × 10{str(int(exponent) + shift).translate(_SUPERSCRIPT)}"
