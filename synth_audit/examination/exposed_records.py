"""Which training records attacks got right: positions for the restricted workspace, rates for the review."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from synth_audit.arrays import Floats, Positions
from synth_audit.encode.codes import Vocabulary
from synth_audit.findings.measurement import Exposure, Interval, Measurement
from synth_audit.findings.sensitivity import WORST_SUBGROUP, ExposedGroup, RecordView, Subgroup
from synth_audit.neighbours.coordinates import smallest_type
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import corrected_level, risk
from synth_audit.stats.proportions import Proportion
from synth_audit.table.schema import Column, nominal

Exposures = Sequence[Exposure]
"""What the audits said of exposed records, stamped with their names."""

FEWEST_TRIED = 30
"""A category with fewer attacked rows on either side says nothing about its people."""

LIKELY = 20.0
"""A record is called exposed when the attacks' hits and misses are this many times likelier for a training
record than for a stranger's."""

SHOWN = 20
"""At most this many subgroups stand in the evidence, the worst first."""


def record_view(exposures: Exposures, subgroups: Sequence[Subgroup], subject: Subject) -> RecordView:
    """Summarise exposures, and the subgroups found in them, without naming a record."""
    limit = subject.suppression
    n_control = subject.control.n_rows if subject.control else 0
    in_train, in_control = weights_of_evidence(exposures, subject.train.n_rows, n_control)
    least = math.log(LIKELY)
    groups = tuple(
        ExposedGroup(
            e.measurement,
            e.columns,
            len(e.train_tried),
            _at_least(len(e.train_hit), limit),
            len(e.control_tried),
            _at_least(len(e.control_hit), limit),
        )
        for e in exposures
    )
    worst = sorted(subgroups, key=lambda s: -s.value)
    return RecordView(
        subject.train.n_rows,
        _at_least(int((in_train >= least).sum()), limit),
        n_control,
        _at_least(int((in_control >= least).sum()), limit),
        groups,
        tuple(worst[:SHOWN]),
    )


def weights_of_evidence(exposures: Exposures, n_train: int, n_control: int) -> tuple[Floats, Floats]:
    """How much likelier the attacks' hits and misses are for a training record than for a stranger's.

    ``Σ over attacks on the record: ln(r_t / r_c) for a hit, ln((1 − r_t) / (1 − r_c)) for a miss``, with
    r_t and r_c the success rates on train and control (half a success added to one trial more, so that
    neither is 0 or 1). An attack that is right as often about strangers adds nothing. Attacks are taken to
    be independent, so that the order of records means more than the number. An attack without trials on
    control is left out.

    Returns:
        One number for each training and each control row.
    """
    in_train, in_control = np.zeros(n_train), np.zeros(n_control)
    for e in (e for e in exposures if len(e.control_tried)):
        train, control = (
            (len(hit) + 0.5) / (len(tried) + 1)
            for tried, hit in ((e.train_tried, e.train_hit), (e.control_tried, e.control_hit))
        )
        hit, miss = math.log(train / control), math.log((1 - train) / (1 - control))
        for weights, tried, found_right in (
            (in_train, e.train_tried, e.train_hit),
            (in_control, e.control_tried, e.control_hit),
        ):
            weights[tried] += miss
            weights[found_right] += hit - miss
    return in_train, in_control


def exposed_records(exposures: Exposures, n_train: int, n_control: int) -> pa.Table:
    """The training rows that some attack got right, the most exposed first, with the attacks.

    ``log_odds`` is the row's weight of evidence, see :func:`weights_of_evidence`.
    """
    weights, _ = weights_of_evidence(exposures, n_train, n_control)
    attacks: dict[int, list[str]] = {}
    for e in exposures:
        for row in e.train_hit.tolist():
            attacks.setdefault(row, []).append(str(e.measurement))
    rows = sorted(attacks, key=lambda i: (-weights[i], -len(attacks[i]), i))
    return pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "log_odds": pa.array(weights[rows], pa.float64()),
            "hits": pa.array([len(attacks[i]) for i in rows], pa.int64()),
            "attacks": pa.array([attacks[i] for i in rows], pa.list_(pa.string())),
        }
    )


def worst_subgroups(exposures: Exposures, subject: Subject) -> list[Subgroup]:
    """For each attack and each discrete column, its most exposed category above the suppression limit."""
    every = {c.name: _Categories.of(c, subject) for c in nominal(subject.features)}
    found = (
        _worst(e, column, categories, subject)
        for e in exposures
        for column, categories in every.items()
        if len(e.control_tried) and e.columns != (column,)
    )
    return [s for s in found if s is not None]


def as_measurements(subgroups: Sequence[Subgroup]) -> dict[str, tuple[Measurement, ...]]:
    """Subgroups as measurements of their audits, for gates."""
    made: dict[str, tuple[Measurement, ...]] = {}
    for s in subgroups:
        m = WORST_SUBGROUP.at(s.value, interval=s.interval, n_requested=s.train_rows, n_achieved=s.train_rows)
        made[s.id.audit] = (*made.get(s.id.audit, ()), replace(m, id=s.id))
    return made


@dataclass(frozen=True, eq=False)
class _Categories:
    """The categories of a column.

    Attributes:
        train, control: place of each row's category, as :meth:`.Vocabulary.places` gives it, in the smallest
            type: there may be millions of rows.
    """

    labels: tuple[str, ...]
    train: npt.NDArray[Any] = field(repr=False)
    control: npt.NDArray[Any] = field(repr=False)

    @classmethod
    def of(cls, column: Column, subject: Subject) -> Self:
        known, none = Vocabulary.of(column.name, subject.train, exact=True), np.empty(0, dtype=np.int64)
        places = known.places(subject.train), known.places(subject.control) if subject.control else none
        return cls(known.labels, *(each.astype(smallest_type(each)) for each in places))

    def tallies(self, places: npt.NDArray[Any], tried: Positions, hit: Positions) -> list[Proportion]:
        """Hits among those tried of each category, given the places of all rows of a table."""
        hits, tries = (
            np.bincount(places[rows].astype(np.intp) + 1, minlength=len(self.labels) + 2)[1:-1].tolist()
            for rows in (hit, tried)
        )
        return [Proportion(float(h), t) for h, t in zip(hits, tries, strict=True)]


def _worst(exposure: Exposure, column: str, among: _Categories, subject: Subject) -> Subgroup | None:
    tried = list(_tried(exposure, among, subject.suppression))
    if len(tried) < 2:
        return None
    corrected = corrected_level(subject.level, len(tried))
    risks = [(name, int(train.trials), risk(train, control, corrected)) for name, train, control in tried]
    category, n, worst = max(risks, key=lambda r: r[2].value)
    method = f"{worst.interval.method}, corrected for {len(tried)} categories"
    low, high = (max(getattr(r.interval, end) for _, _, r in risks) for end in ("low", "high"))
    interval = Interval(low, high, subject.level, method)
    found = WORST_SUBGROUP.derived(exposure.measurement, column)
    return Subgroup(found, category, n, worst.value, interval)


def _tried(e: Exposure, among: _Categories, suppression: int) -> Iterator[tuple[str, Proportion, Proportion]]:
    """Categories attacked often enough, with their tallies of train and control.

    A risk times its number of rows is a count: hits and misses are held to the suppression limit too.
    """
    fewest = max(FEWEST_TRIED, suppression)
    every_train = among.tallies(among.train, e.train_tried, e.train_hit)
    every_control = among.tallies(among.control, e.control_tried, e.control_hit)
    for category, train, control in zip(among.labels, every_train, every_control, strict=True):
        shown = min(train.successes, train.trials - train.successes) >= suppression
        if shown and min(train.trials, control.trials) >= fewest:
            yield category, train, control


def _at_least(count: int, limit: int) -> int | None:
    """A count that may be shown: 0, or at least the limit."""
    return count if count == 0 or count >= limit else None
