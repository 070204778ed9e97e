"""Measurements with intervals, what each is called, and the numbers of its pictures; never a verdict."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import total_ordering
from typing import Any, TypedDict

from synth_audit.arrays import Positions
from synth_audit.errors import MeasurementNameError

SCOPE_GRAMMAR = "setting, by column, setting by column, or of quantity[scope]"
GRAMMAR = f"audit.quantity or audit.quantity[scope], where scope is {SCOPE_GRAMMAR}"
"""The form of a text, for messages."""

_PLAIN_WORD = re.compile(r"\w+")
_PLAIN_NAME = re.compile(r"\w[\w.-]*")
_BY, _OF = "by", "of"

_QUOTED = r'"(?:[^"\\\x00-\x1f]|\\.)*+"'
_ANY = rf"(?:{_QUOTED}|(?!(?:{_BY}|{_OF})(?!\w))\w++)"
_SOME_WORD = rf'(?!"")(?:{_QUOTED}|(?!(?:{_BY}|{_OF})(?![\w.-]))\w[\w.-]*+)'
_FIRST_WORD = rf'(?!""){_ANY}'
_QUALIFIED = re.compile(rf"(?:(?P<audit>{_FIRST_WORD})\.)?(?P<quantity>{_ANY})")
"""``audit.quantity``, or a quantity alone."""

_SCOPE_TEXT = re.compile(
    rf"(?P<setting>{_SOME_WORD})?(?:(?(setting) |){_BY} (?P<column>{_SOME_WORD}))?"
    rf"(?:(?(setting) |(?(column) |)){_OF} (?:(?P<same>\.)|(?P<of_audit>{_FIRST_WORD})\.)?(?P<of>{_ANY})"
    rf"(?:\[(?!\])(?P<of_setting>{_SOME_WORD})?(?:(?(of_setting) |){_BY} (?P<of_column>{_SOME_WORD}))?\])?)?"
)
"""What stands inside the brackets."""

BOX_LINES = ("low", "lower quartile", "median", "upper quartile", "high")


@total_ordering
@dataclass(frozen=True)
class MeasurementId:
    """The identity of a measurement; equal identities are the same measurement.

    Attributes:
        audit: plug-in name; empty until the runner has stamped it.
        quantity: as the audit declares it.
        setting: which variant of the attack or measure; empty for the only or the usual one.
        column: the column it is about; empty when it is about all of them.
        derived_from: the measurement it was worked out from; None for one that an audit made itself.

    Raises:
        ValueError: ``derived_from`` is derived itself.
    """

    audit: str
    quantity: str
    setting: str = ""
    column: str = ""
    derived_from: "MeasurementId | None" = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.derived_from is not None and self.derived_from.derived_from is not None:
            raise ValueError("a derived measurement rests on one that an audit made")

    def __str__(self) -> str:
        return f"{self.name}[{self.scope}]" if self.scope else self.name

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, MeasurementId):
            return NotImplemented
        return self._key < other._key

    @property
    def _key(self) -> tuple[Any, ...]:
        of = self.derived_from
        return (self.audit, self.quantity, self.setting, self.column, () if of is None else of._key)

    @property
    def name(self) -> str:
        """``audit.quantity``: all numbers of one kind have it in common."""
        quantity = _written(self.quantity, _PLAIN_WORD)
        return f"{_written(self.audit, _PLAIN_WORD)}.{quantity}" if self.audit else quantity

    @property
    def scope(self) -> str:
        """The text inside the brackets; empty when the number stands for the whole table."""
        parts = [_written(self.setting, _PLAIN_NAME)] if self.setting else []
        if self.column:
            parts.append(f"{_BY} {_written(self.column, _PLAIN_NAME)}")
        if (of := self.derived_from) is not None:
            own = replace(of, audit="") if of.audit == self.audit else of
            parts.append(f"{_OF} {'' if of.audit or not self.audit else '.'}{own}")
        return " ".join(parts)

    @property
    def label(self) -> str:
        """The scope for a reader: names as they are, without quotes; several scopes may look alike."""
        own = (
            f"{self.setting} by {self.column}"
            if self.setting and self.column
            else self.setting or self.column
        )
        if self.derived_from is None:
            return own
        of = self.derived_from
        return ", ".join(x for x in (own, f"{of.quantity} ({of.label})" if of.label else of.quantity) if x)

    @property
    def whole(self) -> "MeasurementId":
        """The same quantity for the whole table, in the usual setting."""
        return MeasurementId(self.audit, self.quantity)

    def stamped(self, audit: str) -> "MeasurementId":
        """The same measurement as that of an audit."""
        return replace(self, audit=audit)


def read(text: str) -> MeasurementId:
    """The identity that a text names: ``read(str(x)) == x``.

    Raises:
        MeasurementNameError: the text does not follow the grammar.
    """
    name = _QUALIFIED.match(text)
    scope = text[name.end() :] if name else ""
    if scope and not (len(scope) > 2 and scope[0] == "[" and scope[-1] == "]"):
        raise _fault()
    return read_scoped(name[0] if name else "", scope[1:-1])


def read_scoped(name: str, scope: str = "") -> MeasurementId:
    """The identity of ``audit.quantity`` and of the text inside its brackets.

    ``read_scoped(x.name, x.scope) == x`` for every identity.

    Raises:
        MeasurementNameError: one of them does not follow the grammar.
    """
    qualified, inside = _QUALIFIED.fullmatch(name), _SCOPE_TEXT.fullmatch(scope)
    if not qualified or not inside:
        raise _fault()
    parts = {key: _spelt(text or "") for key, text in (qualified.groupdict() | inside.groupdict()).items()}
    of = None
    if inside["of"] is not None:
        own = "" if parts["same"] else parts["of_audit"] or parts["audit"]
        if parts["same"] and not parts["audit"]:
            raise _fault()
        of = MeasurementId(own, parts["of"], parts["of_setting"], parts["of_column"])
    return MeasurementId(
        parts["audit"], parts["quantity"], parts["setting"], parts["column"], derived_from=of
    )


def _spelt(text: str) -> str:
    """A name from a plain word or a JSON string."""
    if not text.startswith('"'):
        return text
    try:
        name = str(json.loads(text))
        name.encode()  # half a surrogate pair is no text
    except ValueError:
        raise _fault() from None
    return name


def _fault() -> MeasurementNameError:
    return MeasurementNameError(
        "the name of a measurement cannot be read",
        expected=GRAMMAR,
        fix="put a name that is not one plain word in double quotes, as JSON does",
    )


def _written(name: str, plain: re.Pattern[str]) -> str:
    if plain.fullmatch(name) and name not in (_BY, _OF):
        return name
    return json.dumps(name, ensure_ascii=False)


@dataclass(frozen=True)
class Series:
    """A small picture's worth of numbers: one line or bar group per label, no real rows, no small counts.

    Attributes:
        id: the measurement that it pictures, or a name of its own in the place of a quantity, with the
            setting and the column that it shows; its audit is empty until the runner has stamped it.
        kind: in ``report/charts`` and ``report/panels``. ``line`` joins the points, ``step`` holds them,
            ``bar`` stands them on categories, ``box`` draws one box for each label of ``x`` from the lines of
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

    def stamped(self, audit: str) -> "Series":
        """The same series as that of an audit."""
        return replace(self, id=self.id.stamped(audit), places=tuple(p.stamped(audit) for p in self.places))


SHARE = "share"
"""Unit of a plain share, and the first word of the units that say of what it is a share."""

PEOPLE, ROWS, SECRETS = "share of people", "share of rows", "share of secrets"
DESCRIPTIONS, OF_SUBGROUP = "share of descriptions", "share of a subgroup"
"""Units of shares beyond chance."""


def is_share(unit: str) -> bool:
    """True for a plain share and for a share of something."""
    return unit.split(" ")[0] == SHARE


def format_number(x: float, unit: str = "") -> str:
    """A number as a reader sees it: four significant digits, shares in percent."""
    return f"{100 * x:.4g} %" if is_share(unit) else f"{x:.4g}"


class Direction(StrEnum):
    """Which way is safer (privacy) or better (fidelity, utility)."""

    LOWER = "lower is better"
    HIGHER = "higher is better"
    NEUTRAL = "descriptive"


@dataclass(frozen=True)
class Interval:
    """Confidence interval.

    Attributes:
        low, high: ends in the unit of the value, unclipped.
        level: coverage in (0, 1).
        method: how it was computed, for example ``"wilson"``.
    """

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; None where nothing is known of its precision."""

    value: float
    interval: Interval | None = None


@dataclass(frozen=True)
class IntervalEstimate:
    """A value whose precision is known."""

    value: float
    interval: Interval

    @property
    def plain(self) -> Estimate:
        """The same among estimates of which it need not be known."""
        return Estimate(self.value, self.interval)


@dataclass(frozen=True)
class Reference:
    """What the value would be for a release nobody would object to.

    Attributes:
        meaning: what it was measured on, in words.
        interval: None for a value that is known exactly.
        candidate: the candidate's own number on as many rows as the reference was measured on; None where
            the value itself is. Distances between samples grow as samples shrink, so the two may be
            compared at one size only.
    """

    value: float
    meaning: str
    interval: Interval | None = None
    candidate: Estimate | None = None


class SampleCounts(TypedDict):
    """How many were asked for, made and needed: what several measurements of one audit share."""

    n_requested: int
    n_achieved: int
    n_minimum: int


@dataclass(frozen=True)
class Measurement:
    """One number with everything needed to judge it.

    Attributes:
        id: what it is called; its audit is empty until the runner has stamped it.
        value: the number, unclipped; NaN only if it could not be computed, which no gate passes.
        n_requested, n_achieved: guesses, rows or repeats asked for and actually made.
        n_minimum: below this many achieved the number is insufficient evidence.
    """

    id: MeasurementId
    value: float
    interval: Interval | None = None
    n_requested: int | None = None
    n_achieved: int | None = None
    n_minimum: int | None = None
    unit: str = "share"
    direction: Direction = Direction.LOWER
    reference: Reference | None = None

    @property
    def short(self) -> bool:
        """True when fewer were achieved than the stated minimum."""
        return self.n_minimum is not None and (self.n_achieved or 0) < self.n_minimum

    @property
    def finite(self) -> bool:
        """True when the value and both ends of its interval are finite numbers."""
        ends = (self.interval.low, self.interval.high) if self.interval else ()
        return all(math.isfinite(x) for x in (self.value, *ends))

    def _repr_html_(self) -> str:
        from synth_audit.findings.text_frame import as_html, measurement_row

        return as_html([measurement_row(self)])


@dataclass(frozen=True)
class Quantity:
    """A number that an audit declares: its name, unit, direction, range and meaning in one place.

    Attributes:
        name: the quantity in the identity of its measurements.
        title: what a reader sees.
        unit: of a share beyond chance also of what it is one, such as :data:`PEOPLE`.
        range: closed interval outside which a value is a fault of the audit.
        help: one sentence on how to read it.
        proportional: the value moves in proportion to the share of copied rows, so that it can be turned
            into one. Not so for a median, which stands still until half of the rows are copies.
    """

    name: str
    title: str
    unit: str = "share"
    direction: Direction = Direction.LOWER
    range: tuple[float, float] = (0.0, 1.0)
    help: str = ""
    proportional: bool = True

    def id(self, setting: str = "", column: str = "") -> MeasurementId:
        """Identity of its measurement in a setting and about a column; the audit is stamped later."""
        return MeasurementId("", self.name, setting, column)

    def derived(self, of: MeasurementId, column: str = "") -> MeasurementId:
        """Identity of what is worked out from a measurement, for a column of its own where it has one."""
        return MeasurementId(of.audit, self.name, column=column, derived_from=of)

    def at(
        self,
        found: float | Estimate | IntervalEstimate,
        *,
        setting: str = "",
        column: str = "",
        interval: Interval | None = None,
        n: int | None = None,
        n_requested: int | None = None,
        n_achieved: int | None = None,
        n_minimum: int | None = None,
        reference: Reference | None = None,
    ) -> Measurement:
        """Make the measurement of this quantity.

        Args:
            found: a value, or an estimate with its interval.
            n: requested and achieved, where these are the same.
        """
        if isinstance(found, Estimate | IntervalEstimate):
            interval, found = found.interval, found.value
        return Measurement(
            id=self.id(setting, column),
            value=float(found),
            interval=interval,
            n_requested=n if n_requested is None else n_requested,
            n_achieved=n if n_achieved is None else n_achieved,
            n_minimum=n_minimum,
            unit=self.unit,
            direction=self.direction,
            reference=reference,
        )


@dataclass(frozen=True, eq=False)
class Exposure:
    """Which real records one attack was tried on and which it got right.

    Positions never leave the restricted workspace; the review sees rates of groups that are large enough.

    Attributes:
        measurement: the number that says what the attack is worth; it vouches for subgroups of the records.
        columns: names of the columns through which a hit record is exposed.
        train_tried, train_hit: positions in train, ascending, each once; hit is a part of tried.
        control_tried, control_hit: the same in control; empty where the attack has no such trial.
    """

    measurement: MeasurementId
    columns: tuple[str, ...]
    train_tried: Positions
    train_hit: Positions
    control_tried: Positions
    control_hit: Positions


@dataclass(frozen=True)
class Findings:
    """Everything an audit returns."""

    measurements: tuple[Measurement, ...]
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    exposures: tuple[Exposure, ...] = ()
