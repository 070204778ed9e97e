"""Copies of training rows in the release, beside the natural rate of duplicates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from synth_audit.audits.privacy._reused_identifiers import reused_identifiers
from synth_audit.audits.privacy._telling_rows import DENSE, CodedOnce, Telling, telling
from synth_audit.core.arrays import Codes
from synth_audit.core.audit import AuditInfo
from synth_audit.core.context import RunContext
from synth_audit.core.measurement import (
    Direction,
    Exposure,
    Findings,
    Interval,
    Measurement,
    Quantity,
    Reference,
)
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.encoding.row_groups import row_groups, row_groups_but_one
from synth_audit.kernels.attack_success import corrected_level, worst_interval
from synth_audit.kernels.proportion_interval import SOURCE, proportion_difference, proportion_interval
from synth_audit.kernels.weighted_counts import WeightedCount

SHARE = Quantity(
    "share",
    "Synthetic rows equal to a training row",
    proportional=False,  # natural duplicates are the more frequent the larger the table
    help="Every released column agrees.",
)
CONTROL_SHARE = Quantity(
    "control_share",
    "Control rows equal to a training row",
    direction=Direction.NEUTRAL,
    help="How often two different people agree in every column by nature.",
)
EXCESS = Quantity(
    "excess",
    "Copies beyond the natural rate of duplicates",
    range=(-1.0, 1.0),
    help="Share of synthetic rows equal to a training row, less the same share of control rows.",
)
UNIQUE_EXCESS = Quantity(
    "unique_excess",
    "Copies of records that occur once, beyond chance",
    range=(float("-inf"), 1.0),
    help="Only real rows that no other real row equals count, so that natural duplicates hide nothing.",
)
RECORD_EXCESS = Quantity(
    "record_excess",
    "Training records with a copy in the release, beyond the natural rate",
    range=(-1.0, 1.0),
    help="Counts people and not synthetic rows: a large release may hold everybody and much else.",
)
ALL_BUT_ONE_EXCESS = Quantity(
    "all_but_one_excess",
    "Copies with one column changed, beyond the natural rate",
    range=(-1.0, 1.0),
    help="The same when one column is left out of the comparison; the worst choice of that column.",
)
IDENTIFIER_REUSE = Quantity(
    "identifier_reuse",
    "Synthetic rows that carry an identifier of a real entity",
    help="Zero when the release has no identifier column, as it should.",
)

_NATURAL = Reference(0.0, "as many as among people the generator never saw")


@dataclass(frozen=True, kw_only=True)
class ExactMatch:
    """Counts synthetic rows that equal a training row in every released column, in any row order.

    ``share = #{s : s ∈ train} / n_synthetic`` with its interval, ``control_share`` the same for
    control rows, ``excess = share − control_share`` with Newcombe's interval. ``all_but_one_excess`` is the
    largest excess when any one of the d columns is left out, with an interval at ``1 − (1 − level)/d``, so
    that it holds for the worst of d choices: a copy cannot hide behind one spoilt column. Missing agrees
    with missing.

    A release that avoids natural duplicates could spend their rate on copies of unique people. So
    ``unique_excess = (a − b · n_train / n_control) / n_synthetic`` counts synthetic rows that equal a real
    row which no other real row equals, a of them in train and b in control: 0 in expectation for any release
    that is independent of the split. ``record_excess`` is the share of train rows that the release holds,
    less the same share of control rows.
    """

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Exact copies",
        question="Does the release contain rows copied from the people it was learnt from?",
        threat_model=(
            "Anyone who reads the release and knows a person's record recognises that very record in it."
        ),
        not_covered=(
            "Copies that were changed in several columns; the closest-record audit looks for those. A row "
            "that equals a training row may be a coincidence, which is why the natural rate is subtracted."
        ),
        quantities=(
            SHARE,
            CONTROL_SHARE,
            EXCESS,
            UNIQUE_EXCESS,
            RECORD_EXCESS,
            ALL_BUT_ONE_EXCESS,
            IDENTIFIER_REUSE,
        ),
        risk="singling out",
        cost="instant",
        source=f"Platzer & Reutterer 2021 (base rate); {SOURCE}, Newcombe 1998 (intervals)",
    )

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Count; nothing is drawn."""
        tables = [subject.train, subject.synthetic, *([subject.control] if subject.control else [])]
        groups = row_groups(tables, subject.features)
        exposures: tuple[Exposure, ...] = ()
        found = [*_shares(groups, subject.level), _identifier_reuse(subject)]
        if subject.control is not None:
            rows = CodedOnce(tables)
            told = telling(rows, subject.features, groups)
            found.append(_Matches.of(groups, told).measured(EXCESS, subject.level))
            found.append(_unique_excess(groups, told, subject.level))
            found.append(_record_excess(groups, told, subject.level))
            found.append(_worst_but_one(rows, subject))
            exposures = (_exposure(groups, subject),)
        return Findings(tuple(found), exposures=exposures)


def _shares(groups: list[Codes], level: float) -> list[Measurement]:
    """How many rows of the release, and how many control rows, equal a training row."""
    train, *others = groups
    counted = [(int(np.isin(rows, train).sum()), len(rows)) for rows in others]
    return [
        quantity.at(count / n, interval=proportion_interval(count, n, level), n_requested=n, n_achieved=n)
        for quantity, (count, n) in zip((SHARE, CONTROL_SHARE), counted, strict=False)
    ]


@dataclass(frozen=True)
class _Matches:
    """Synthetic and control rows that equal a training row, by how much that tells.

    Attributes:
        unit: the mean weight of training rows, so that a copy of all of them is an excess of 1.
    """

    synthetic: WeightedCount
    control: WeightedCount
    n_synthetic: int
    unit: float

    @classmethod
    def of(cls, groups: list[Codes], told: Telling, sizes: Sequence[int] | None = None) -> _Matches:
        """By groups of rows, among which those that no other row equals may be missing, of so many in all."""
        train, *others = groups
        n_synthetic, n_control = sizes or map(len, others)
        equal = [told.weights[rows[np.isin(rows, train)]] for rows in others]
        synthetic, control = map(WeightedCount.of, equal, (n_synthetic, n_control))
        return cls(synthetic, control, n_synthetic, told.mean)

    @property
    def excess(self) -> float:
        return _within((self.synthetic.share - self.control.share) / self.unit)

    def interval(self, level: float) -> Interval:
        found = proportion_difference(*self.synthetic, *self.control, level)
        return replace(found, low=_within(found.low / self.unit), high=_within(found.high / self.unit))

    def measured(self, quantity: Quantity, level: float) -> Measurement:
        return self.excess_as(quantity, self.interval(level))

    def excess_as(self, quantity: Quantity, interval: Interval) -> Measurement:
        n = self.n_synthetic
        return quantity.at(self.excess, interval=interval, n_requested=n, n_achieved=n, reference=_NATURAL)


def _within(share: float) -> float:
    """A difference of shares; more than all of them only where a release repeats what tells most."""
    return float(np.clip(share, -1.0, 1.0))


def _unique_excess(groups: list[Codes], told: Telling, level: float) -> Measurement:
    """Copies of unique records; the interval joins those of both shares, that of control's stretched."""
    train, synthetic, control = groups
    real, times = np.unique(np.concatenate([train, control]), return_counts=True)
    alone = real[times == 1]
    n, stretch = len(synthetic), len(train) / len(control)
    once = train[np.isin(train, alone)]
    unit = float(told.weights[once].mean()) if len(once) else 1.0
    copied = synthetic[np.isin(synthetic, alone)]
    of_train = np.isin(copied, train)
    a, b = (WeightedCount.of(told.weights[copied[of]], n) for of in (of_train, ~of_train))
    of_a, of_b = (proportion_interval(*x, level) for x in (a, b))
    value = a.share - stretch * b.share
    low = value - math.hypot(a.share - of_a.low, stretch * (of_b.high - b.share))
    high = value + math.hypot(of_a.high - a.share, stretch * (b.share - of_b.low))
    return UNIQUE_EXCESS.at(
        min(value / unit, 1.0),
        interval=Interval(low / unit, min(high / unit, 1.0), level, f"{of_a.method}, joined as newcombe's"),
        n_requested=n,
        n_achieved=n,
        reference=Reference(0.0, "a release that is independent of the split"),
    )


def _exposure(groups: list[Codes], subject: Subject) -> Exposure:
    """The real rows that stand in the release."""
    train, synthetic, control = groups
    return Exposure(
        measurement=RECORD_EXCESS.id(),
        columns=tuple(c.name for c in subject.features),
        train_tried=np.arange(len(train)),
        train_hit=np.flatnonzero(np.isin(train, synthetic)),
        control_tried=np.arange(len(control)),
        control_hit=np.flatnonzero(np.isin(control, synthetic)),
    )


def _record_excess(groups: list[Codes], told: Telling, level: float) -> Measurement:
    """The difference of the shares of train and of control rows that stand in the release."""
    train, synthetic, control = groups
    a, b = (
        WeightedCount.of(weights[np.isin(rows, synthetic)], float(weights.sum()))
        for rows in (train, control)
        for weights in [told.weights[rows]]
    )
    return RECORD_EXCESS.at(
        a.share - b.share,
        interval=proportion_difference(*a, *b, level),
        n_requested=len(train),
        n_achieved=len(train),
        reference=_NATURAL,
    )


def _worst_but_one(rows: CodedOnce, subject: Subject) -> Measurement:
    """The largest excess over the choices of a column to leave out; a table of one column has nothing to
    leave out and is compared whole."""
    choices = list(_choices(rows, subject.features))
    each = corrected_level(subject.level, len(choices))
    intervals = [choice.interval(each) for choice in choices]
    worst = max(choices, key=lambda choice: choice.excess)
    interval = worst_interval(intervals, subject.level, f"{len(choices)} choices")
    return worst.excess_as(ALL_BUT_ONE_EXCESS, interval)


def _choices(rows: CodedOnce, columns: Sequence[Column]) -> Iterator[_Matches]:
    """The matches on all columns but one, for each; by how much they tell where they are many by nature."""
    sizes = [t.n_rows for t in rows.tables[1:]]
    if len(columns) == 1:
        groups = row_groups(rows.tables, columns)
        yield _Matches.of(groups, Telling.alike(groups))
        return
    for left_out, some in row_groups_but_one(rows.tables, columns):
        plain = _Matches.of(some, Telling.alike(some), sizes)
        if plain.control.share > DENSE:
            others = [c for c in columns if c.name != left_out.name]
            groups = rows.groups(others)
            yield _Matches.of(groups, telling(rows, others, groups))
        else:
            yield plain


def _identifier_reuse(subject: Subject) -> Measurement:
    """Share of synthetic rows that hold an identifier or split key of a real row; exact, so no interval."""
    n = subject.synthetic.n_rows
    share = float(reused_identifiers(subject).mean())
    return IDENTIFIER_REUSE.at(share, n_requested=n, n_achieved=n)
