"""How a measurement answers planted leaks, and what a reviewer may know of groups of exposed records."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from synth_audit.findings.measurement import OF_SUBGROUP, ROWS, Direction, Interval, MeasurementId, Quantity

LEAK_EQUIVALENT = Quantity(
    "leak_equivalent",
    "Copied rows that would give this number",
    unit=ROWS,
    range=(float("-inf"), float("inf")),
    help="The share of copied training rows in a release of otherwise new people that would show the same.",
)
"""Added to every privacy audit by the known-answer check; derived from the measurement it restates."""

WORST_SUBGROUP = Quantity(
    "worst_subgroup",
    "Risk of the most exposed subgroup",
    unit=OF_SUBGROUP,
    range=(float("-inf"), 1.0),
    help="The same risk within each category of a column; the worst category, corrected for their number.",
)
"""Added to every privacy audit that says which records it exposed; derived from the number of the attack,
and about a column."""

REFERENCE_RATIO = Quantity(
    "reference_ratio",
    "Times the reference",
    unit="ratio",
    range=(float("-inf"), float("inf")),
    help="The number over its reference, both on as many rows; 1 is as good as real rows of the same people.",
)
"""Added to every measurement of fidelity or utility whose reference was measured too."""


class LeakName(NamedTuple):
    """A class of leak in plain words: its title, and what a planted row holds."""

    title: str
    meaning: str = ""


LEAK_NAMES = {
    "copies": LeakName("Copies", "the whole record of one person"),
    "near_copies": LeakName("Near copies", "a record, its values changed a little"),
    "fragments": LeakName("Parts of a record", "one person's values in a third of the columns"),
    "shifted": LeakName("Shifted copies", "a record, each number moved alike"),
    "mixtures": LeakName("Mixed rows", "parts of two people in one row"),
    "subgroup": LeakName("Rare people", "near copies of people with unusual values"),
}
"""Classes of leak, by the setting of the detection limit, as every page calls them."""

_DERIVED_BY_FAMILY = {"privacy": (LEAK_EQUIVALENT, WORST_SUBGROUP)}

DERIVED = (LEAK_EQUIVALENT, WORST_SUBGROUP, REFERENCE_RATIO)
"""Quantities that are worked out from what an audit returns, without its doing."""

CHECK_CUT_SHORT = "it ran out of time on a planted leak, or its process was lost"
"""Why a measurement is blind that might see another time: nothing says that it has nothing to tell."""


def derived_of(family: str) -> tuple[Quantity, ...]:
    """Those of :data:`DERIVED` that an audit of this family gets."""
    return _DERIVED_BY_FAMILY.get(family, (REFERENCE_RATIO,))


class Sensitivity(StrEnum):
    """Whether a measurement can tell a full copy of train from a release of new people on this table."""

    SENSITIVE = "sees"
    INSENSITIVE = "blind"


@dataclass(frozen=True)
class PlantedResult:
    """What was measured on a release of which a known share of rows are copies of training rows.

    Attributes:
        share: f, the part of its rows that are copies, in [0, 1].
        value, low, high: the measurement and its interval.
    """

    share: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SensitivityCurve:
    """Answers of one measurement to all planted leaks, and what follows from them.

    Attributes:
        id: the measurement.
        direction: which way is safer.
        reason: why it is called blind; empty when it sees.
        answers: by ascending share, the first clean and the last a full copy; empty when none could be
            planted or measured.
        null: the value of a clean release; known exactly for most, else the first answer's.
        half_width: half of the interval that a clean release of the candidate's size would come with.
        minimum_detectable: smallest share of copies that an interval of that width would tell from none, with
            probability ``POWER``; None when blind or when even a full copy would not do.
    """

    id: MeasurementId
    direction: Direction
    sensitivity: Sensitivity
    reason: str = ""
    answers: tuple[PlantedResult, ...] = ()
    null: float | None = None
    half_width: float | None = None
    minimum_detectable: float | None = None

    def flags(self, answer: PlantedResult) -> bool:
        """True when the whole interval lies beyond the value of a clean release: called a leak."""
        if self.null is None:
            return False
        return answer.low > self.null if self.direction is Direction.LOWER else answer.high < self.null

    @property
    def clean(self) -> PlantedResult | None:
        """The answer to a release without a copied row."""
        return self.answers[0] if self.answers else None

    @property
    def full(self) -> PlantedResult | None:
        """The answer to a full copy."""
        return self.answers[-1] if self.answers else None


@dataclass(frozen=True)
class PlantedLeaks:
    """How the leaks were planted: sizes of the tables and shares of copied rows.

    Attributes:
        reason: why nothing could be planted; empty when it was.
    """

    train_rows: int = 0
    control_rows: int = 0
    release_rows: int = 0
    shares: tuple[float, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class ExposedGroup:
    """How many records one attack got right, and through which columns; counts below the limit are None.

    Attributes:
        id: the measurement that says what the attack is worth.
    """

    id: MeasurementId
    columns: tuple[str, ...]
    train_tried: int
    train_hit: int | None
    control_tried: int
    control_hit: int | None


@dataclass(frozen=True)
class Subgroup:
    """The most exposed category of one column under one attack.

    Attributes:
        id: the measurement of its risk: about the column, and derived from that of the whole attack.
        train_rows: attacked training rows in it, at least the suppression limit.
        value: its risk. interval: holds for the worst of all categories.
    """

    id: MeasurementId
    category: str
    train_rows: int
    value: float
    interval: Interval


@dataclass(frozen=True)
class RecordView:
    """What a reviewer may know of the most exposed records.

    Attributes:
        train_rows, control_rows: rows in all.
        exposed, control_exposed: rows that are exposed, see
            :func:`synth_audit.examination.exposed_records.weights_of_evidence`; of control rows by
            chance alone. None when there are some but fewer than the suppression limit.
    """

    train_rows: int = 0
    exposed: int | None = 0
    control_rows: int = 0
    control_exposed: int | None = 0
    groups: tuple[ExposedGroup, ...] = ()
    subgroups: tuple[Subgroup, ...] = ()
