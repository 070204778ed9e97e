"""What a reviewer may know of exposed records: rates of groups that are large enough, no position."""

from __future__ import annotations

from dataclasses import dataclass

from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Interval


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
