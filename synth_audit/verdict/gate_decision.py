"""A limit on a measurement, and what one gate decides: one pure function, and the words for its result."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from synth_audit.findings.measurement import Measurement, MeasurementId, format_number, read_scoped
from synth_audit.findings.verdict import Result
from synth_audit.verdict import insufficient_evidence as lacking

EVERY_SCOPE = "*"
"""As a gate's scope: each measurement of the quantity is judged, and the worst is the gate's result. What is
called ``*`` itself is written in quotes."""

_MOST_TIMES = 100
"""Attempts, as a multiple of those made, beyond which nobody will repeat an audit."""

_SURELY = 2
"""Half-widths of its interval by which people must lie beyond their limit: 3.9 standard errors at a level of
95 %, so that of daily honest releases chance refuses one in sixty years."""

_SEVERITY = {Result.FAIL: 2, Result.INSUFFICIENT: 1, Result.PASS: 0}


@dataclass(frozen=True)
class LimitSide:
    """One side of a limit: everything beyond ``number`` is unsafe, and with ``strict`` the number itself.

    Attributes:
        upper: the number is the most that is allowed, and not the least.
    """

    number: float
    upper: bool
    strict: bool

    @property
    def end(self) -> str:
        """The end of an interval that is nearest to harm."""
        return "upper" if self.upper else "lower"

    @property
    def words(self) -> str:
        """What it asks for, before its number."""
        if self.upper:
            return "below" if self.strict else "at most"
        return "above" if self.strict else "at least"

    def allows(self, x: float) -> bool:
        """True when ``x`` lies on the safe side."""
        return self.excess(x) < 0 or (x == self.number and not self.strict)

    def excess(self, x: float) -> float:
        """How far ``x`` lies on the unsafe side; negative on the safe one."""
        return x - self.number if self.upper else self.number - x


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit on one measurement, which has one side or two.

    Attributes:
        measurement: what is judged.
        every: judge each measurement of its quantity, whatever its setting and column.
        minimum, maximum: one of them or both, finite, in the unit of the measurement.
        bound: ``upper`` (goes with a maximum), ``lower`` (with a minimum), ``both`` (with both), ``value``
            (the number itself, for counts and descriptions without an interval), or ``pessimistic``, which
            is the one of the first three that goes with the limit.
        strict: the limit itself is already unsafe.
        people: the most people, beside the share that is the maximum. It binds where fewer than that share.
        people_quantity: what counts them: a share of people beyond control that the same audit reports.

    Raises:
        ValueError: a field is none of these. The optimistic end cannot be chosen: such a gate would
            pass whenever the evidence is too thin to fail.
    """

    measurement: MeasurementId
    every: bool = False
    bound: str = "pessimistic"
    minimum: float | None = None
    maximum: float | None = None
    strict: bool = False
    people: int | None = None
    people_quantity: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.strict, bool):
            raise ValueError("`strict` must be true or false")  # noqa: TRY004
        if self.people is not None and (
            isinstance(self.people, bool) or not 0 <= self.people < math.inf or self.people % 1
        ):
            raise ValueError("`people` must be a whole number of people")
        if (self.people is None) == bool(self.people_quantity):
            raise ValueError("`people` and `people_quantity` go together")
        if self.people is not None and (self.maximum is None or self.every):
            raise ValueError("`people` goes with a `maximum` of one measurement")
        if self.every and self.measurement != self.measurement.whole:
            raise ValueError("a limit on every measurement of a quantity names neither setting nor column")
        ends = [x for x in (self.minimum, self.maximum) if x is not None]
        if not ends or not all(map(is_finite_number, ends)):
            raise ValueError("give a finite `minimum`, a finite `maximum`, or both")
        if ends[0] > ends[-1] or (len(ends) == 2 and self.strict and ends[0] == ends[1]):
            raise ValueError("`minimum` must lie below `maximum`, or no value could pass")
        if self.bound not in ("pessimistic", "value", self.pessimistic_end):
            raise ValueError(f"`bound` must be {self.pessimistic_end}, value or pessimistic for this limit")

    @classmethod
    def read(cls, name: object, scope: object = "", **others: Any) -> Self:
        """The limit on a measurement that a suite names.

        Args:
            name: ``audit.quantity``. scope: text inside the brackets of its name, or ``"*"`` for all.

        Raises:
            ValueError: see the class. MeasurementNameError: a text does not follow the grammar.
        """
        if not isinstance(name, str) or not isinstance(scope, str):
            raise ValueError("`name` and `scope` must be text")  # noqa: TRY004
        every = scope == EVERY_SCOPE
        measurement = read_scoped(name, "" if every else scope)
        if not measurement.audit:
            raise ValueError("`name` must be <audit>.<quantity>")
        return cls(measurement=measurement, every=every, **others)

    @property
    def audit(self) -> str:
        """The audit that reports the measurement."""
        return self.measurement.audit

    @property
    def in_people(self) -> MeasurementId | None:
        """The share of people that is compared with the most people; None without such a limit."""
        return None if self.people is None else MeasurementId(self.audit, self.people_quantity)

    @property
    def sides(self) -> tuple[LimitSide, ...]:
        """What each end asks for, from below and from above; a number is safe where every side allows it."""
        ends = ((self.minimum, False), (self.maximum, True))
        return tuple(LimitSide(float(x), upper, self.strict) for x, upper in ends if x is not None)

    @property
    def pessimistic_end(self) -> str:
        """The end of the interval that is nearest to harm; ``both`` where harm lies either way."""
        return "both" if len(self.sides) == 2 else self.sides[0].end

    @property
    def compared(self) -> str:
        """What is compared with the limit: upper, lower, both or value."""
        return "value" if self.bound == "value" else self.pessimistic_end

    @property
    def title(self) -> str:
        """The requirement in short."""
        scope = " (every scope)" if self.every else in_brackets(self.measurement)
        asked = " and ".join(f"{side.words} {format_number(side.number)}" for side in self.sides)
        return f"{self.measurement.name}{scope} {asked}"

    def applies_to(self, measurement: MeasurementId) -> bool:
        """True when the measurement is judged."""
        return (measurement.whole if self.every else measurement) == self.measurement

    def allows(self, x: float) -> bool:
        """True when ``x`` lies on the safe side, or between both."""
        return all(side.allows(x) for side in self.sides)


@dataclass(frozen=True)
class Row:
    """One measurement as the frame holds it; ``low`` and ``high`` are None without an interval.

    Attributes:
        blind: why the known-answer check does not vouch for it; empty when it does, or when it need not.
        unit: of the number and its limit.
        copy_low, copy_high: its interval on a full copy of the training rows, where one was planted.
        worse: ``"up"`` or ``"down"``, the way it moves on a leak; None without a planted copy.
    """

    id: MeasurementId
    value: float
    low: float | None
    high: float | None
    level: float | None
    n: int | None
    n_minimum: int | None
    blind: str = ""
    unit: str = ""
    copy_low: float | None = None
    copy_high: float | None = None
    worse: str | None = None

    @classmethod
    def of(cls, m: Measurement) -> Self:
        """The row of a measurement, about which nothing is known but itself."""
        i = m.interval
        low, high, level = (float(i.low), float(i.high), float(i.level)) if i else (None, None, None)
        return cls(m.id, float(m.value), low, high, level, m.n_achieved, m.n_minimum, unit=m.unit)


@dataclass(frozen=True)
class Decision:
    """What a gate found: the result, why, and the numbers it rests on.

    Attributes:
        measurement: what was judged; of several the worst.
        outlook: what more evidence would do; empty where it would not help or need not.
        unusable: why its number decides nothing; empty where it can be used.
        maximum: the limit in people as a share, where that is what failed.
    """

    result: Result
    explanation: str
    measurement: MeasurementId
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    n_needed: int | None = None
    outlook: str = ""
    unusable: str = ""
    maximum: float | None = None

    @classmethod
    def of_nothing(cls, measurement: MeasurementId, why: str, row: Row | None = None) -> Self:
        """Insufficient evidence, since the number cannot be used or there is none."""
        where = f"{measurement.name}{in_brackets(measurement)}"
        words = lacking.DECIDES_NOTHING.format(where=where, why=why)
        found = cls(Result.INSUFFICIENT, words, measurement, unusable=why)
        if row is None:
            return found
        needed = row.n_minimum if _short(row) else None
        return replace(found, value=row.value, low=row.low, high=row.high, level=row.level, n_needed=needed)


def decide(limit: Limit, rows: Iterable[Row]) -> Decision:
    """Judge one limit against all rows of its measurement.

    pass: the whole interval, value included, is on the safe side; fail: all of it on the unsafe
    side; insufficient evidence: it straddles the limit, or there is no single finite row with an
    interval and enough attempts. With ``bound="value"`` the value alone is compared. Of a limit with two
    sides both must be kept: it passes if each does, fails if one does, and an interval that reaches beyond
    both at once decides nothing.

    Where people are limited too, it fails if more people than that are surely affected beyond control: with n
    people, a share v and the lower end l of its interval, if ``n (v − 2 (v − l))`` is more. It looks only
    where the maximum would allow more people.

    A limit on every measurement of a quantity needs each to pass. No correction for their number is needed
    for that: a release passes only if each single comparison does (an intersection–union test).

    Args:
        rows: any rows; those of other measurements are ignored.
    """
    rows = list(rows)
    covered = [r for r in rows if limit.applies_to(r.id)]
    ids = sorted({r.id for r in covered}) if limit.every else [limit.measurement]
    if not ids:
        return Decision.of_nothing(limit.measurement, lacking.NOT_REPORTED)
    found = [_decide_one(limit, [r for r in covered if r.id == x], x) for x in ids]
    worst = max(found, key=lambda d: (_SEVERITY[d.result], _closeness(limit, d)))
    if len(found) == 1:
        return _in_people(limit, rows, worst)
    passed = sum(d.result is Result.PASS for d in found)
    summary = (
        f"{passed} of {len(found)} scopes pass; the worst is {worst.measurement.scope or 'the whole table'}. "
    )
    return Decision(**{**vars(worst), "explanation": summary + worst.explanation})


def _in_people(limit: Limit, rows: Sequence[Row], decision: Decision) -> Decision:
    """The decision, or a failure where surely more people are affected than the limit allows."""
    if limit.people is None or limit.maximum is None or decision.result is Result.FAIL:
        return decision
    known = [r for r in rows if r.id == limit.in_people]
    if len(known) != 1 or known[0].low is None or not known[0].n:
        return Decision.of_nothing(limit.in_people or limit.measurement, lacking.NOT_REPORTED)
    if not (is_finite_number(known[0].value) and is_finite_number(known[0].low) and known[0].n > 0):
        return Decision.of_nothing(known[0].id, lacking.NOT_FINITE, known[0])
    n, surely = known[0].n, known[0].value - _SURELY * (known[0].value - known[0].low)
    if limit.maximum * n <= limit.people or not surely * n > limit.people:
        return decision
    words = (
        f"At least {surely * n:,.0f} of {n:,} training people are affected beyond control, by an interval of "
        f"twice the width. The limit is {limit.people:,} people."
    )
    failed = replace(decision, result=Result.FAIL, explanation=words, outlook="", n_needed=None)
    return replace(failed, maximum=limit.people / n)


def undecided(limit: Limit, decision: Decision, rows: Iterable[Row]) -> Decision:
    """Turn a detection limit that is too large into insufficient evidence.

    Its number says which leaks could be found, and not that any was. It falls about as one over the square
    root of the number of people. So a value v from n people reaches the limit L with ``n (v / L)^2`` people.

    Args:
        decision: of the limit, which is an upper one. rows: those it was made from.
    """
    n, unit = next(((row.n, row.unit) for row in rows if row.id == decision.measurement), (None, ""))
    value, most = decision.value, limit.maximum
    if not n or value is None or not most or value >= 1:
        return replace(decision, result=Result.INSUFFICIENT)
    needed = math.ceil(n * (value / most) ** 2)
    told = partial(format_number, unit=unit)
    words = lacking.COARSE.format(value=told(value), most=told(most))
    outlook = lacking.ENOUGH_PEOPLE.format(needed=needed, n=n)
    open_ = replace(decision, result=Result.INSUFFICIENT, explanation=words)
    return replace(open_, n_needed=needed, outlook=outlook)


def _decide_one(limit: Limit, rows: list[Row], judged: MeasurementId) -> Decision:
    if len(rows) != 1:
        why = lacking.REPORTED_TWICE.format(count=len(rows)) if rows else lacking.NOT_REPORTED
        return Decision.of_nothing(judged, why)
    row = rows[0]
    if fault := _fault(limit, row):
        return Decision.of_nothing(judged, fault, row)
    safe = {side: [side.allows(x) for x in _span(limit, row)] for side in limit.sides}
    results = {
        side: Result.PASS if all(ends) else Result.INSUFFICIENT if any(ends) else Result.FAIL
        for side, ends in safe.items()
    }
    result = max(results.values(), key=_SEVERITY.__getitem__)
    open_sides = [side for side, found in results.items() if found is Result.INSUFFICIENT]
    needed, outlook = None, ""
    if result is Result.INSUFFICIENT:
        each = [_needed(side, row) for side in open_sides]
        known = [n for n in each if n is not None]
        needed = max(known) if len(known) == len(each) else None
        outlook = _outlook(limit, row, needed)
    words = _words(limit, row, result, [side for side, found in results.items() if found is result])
    return Decision(result, words, judged, row.value, row.low, row.high, row.level, needed, outlook)


def _span(limit: Limit, row: Row) -> tuple[float, float]:
    """The ends that must be safe: the interval, widened to hold the value, or the value alone."""
    if limit.compared == "value" or row.low is None or row.high is None:
        return row.value, row.value
    return min(row.low, row.value), max(row.high, row.value)


def _fault(limit: Limit, row: Row) -> str:
    """Why the row cannot be judged at all; empty when it can."""
    numbers = [row.value, *(x for x in (row.low, row.high) if x not in (None, math.inf))]
    if not all(is_finite_number(x) for x in numbers):  # an interval may be open upwards, as a ratio's is
        return lacking.NOT_FINITE
    if _short(row):
        return lacking.TOO_FEW.format(n=row.n or 0, needed=row.n_minimum)
    if limit.compared != "value" and (row.low is None or row.high is None):
        return lacking.NO_INTERVAL
    if row.low is not None and row.high is not None and row.low > row.high:
        return lacking.UPSIDE_DOWN
    if row.blind and row.low is not None:  # an exact count, which has no interval, needs no instrument
        return row.blind
    return lacking.PASSES_A_COPY if _passes_a_copy(limit, row) else ""


def _passes_a_copy(limit: Limit, row: Row) -> bool:
    """True when a side of the limit lies where leaks move the number, yet no leak would reach it."""
    if row.copy_low is None or row.copy_high is None:
        return False
    harmful = [side for side in limit.sides if row.worse == ("up" if side.upper else "down")]
    return any(side.allows(row.copy_low) and side.allows(row.copy_high) for side in harmful)


def _short(row: Row) -> bool:
    return row.n_minimum is not None and not (row.n or 0) >= row.n_minimum  # NaN is not enough


def _needed(side: LimitSide, row: Row) -> int | None:
    """n · (half-width / distance of the value to the limit)², rounded up.

    An interval shrinks with the square root of the attempts. The half-width is the one towards the
    limit, so that the number always exceeds the attempts already made.
    """
    distance = abs(row.value - side.number)
    if not row.n or not distance or row.low is None or row.high is None:
        return None
    half = row.high - row.value if row.value < side.number else row.value - row.low
    ratio = half / distance
    needed = row.n * ratio * ratio
    if not math.isfinite(needed) or needed > _MOST_TIMES * row.n:
        return None
    return max(math.ceil(needed), row.n + 1)


def _words(limit: Limit, row: Row, result: Result, sides: list[LimitSide]) -> str:
    """Why; ``sides`` are those that ended like the whole."""
    told = partial(format_number, unit=row.unit)
    numbers = " to ".join(told(side.number) for side in limit.sides)
    if limit.compared == "value":
        where = "within" if result is Result.PASS else "outside"
        return f"The value, {told(row.value)}, is {where} the limit {numbers}. No interval is compared."
    low, high = _span(limit, row)
    level = f"{100 * row.level:.4g} % " if row.level is not None else ""
    aside = ""
    if row.low is not None and row.high is not None and not row.low <= row.value <= row.high:
        end = told(row.high if row.value > row.high else row.low)
        aside = (
            f" Since the value, {told(row.value)}, lies beyond the computed end, {end}, it is the end here."
        )
    number = numbers if len(sides) == 2 else told(sides[0].number)
    if result is Result.INSUFFICIENT:
        beyond = f"both limits, {number}" if len(sides) == 2 else f"the limit {number}"
        ends = f"from {told(low)} to {told(high)}"
        return lacking.STRADDLES.format(level=level, ends=ends, limits=beyond) + aside
    if len(sides) == 2:
        span = f"its ends are {told(low)} and {told(high)}"
        return f"The whole {level}interval is within the limits {number}: {span}.{aside}"
    step = 1 if sides[0].upper else -1
    near, far = (f"upper end is {told(high)}", f"lower end is {told(low)}")[::step]
    safe, unsafe = ("below", "above")[::step]
    if result is Result.PASS:
        return f"The whole {level}interval is at or {safe} the limit {number}: its {near}.{aside}"
    return f"The whole {level}interval is {unsafe} the limit {number}: even its {far}.{aside}"


def _outlook(limit: Limit, row: Row, needed: int | None) -> str:
    if any(row.value == side.number for side in limit.sides):
        return lacking.AT_THE_LIMIT
    if needed is None:
        return lacking.TOO_MANY.format(times=_MOST_TIMES) if row.n else ""
    way, value = "pass" if limit.allows(row.value) else "fail", format_number(row.value, row.unit)
    return lacking.OUTLOOK.format(needed=needed, n=row.n, value=value, way=way)


def _closeness(limit: Limit, decision: Decision) -> float:
    """How near to harm, for picking the worst of equals; a number that is not there is the worst."""
    found = []
    for side in limit.sides:
        known = decision.high if side.upper else decision.low
        end = decision.value if limit.compared == "value" or known is None else known
        found.append(math.inf if end is None or math.isnan(end) else side.excess(end))
    return max(found)


def first_few(names: Sequence[str], most: int) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def in_brackets(measurement: MeasurementId) -> str:
    """The scope as it stands behind a name in a sentence."""
    return f" ({measurement.scope})" if measurement.scope else ""


def is_finite_number(x: object) -> bool:
    """True for numbers that can be compared; truth values are none."""
    if not isinstance(x, (int, float)) or isinstance(x, bool):
        return False
    try:
        return math.isfinite(x)
    except OverflowError:  # a whole number of more digits than a float has
        return False
