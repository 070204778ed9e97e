"""Copies of training rows in the release, beside the natural rate of duplicates."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Bools, Codes, Codes32, Floats
from synth_audit.audits._shared import descriptive, excess_over_control, risk_over_control
from synth_audit.audits.privacy._secrets import exposure
from synth_audit.encode.codes import split_rows
from synth_audit.encode.encoded import Encoded
from synth_audit.execution.context import RunContext
from synth_audit.findings import measurement
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.attack_success import worst_estimate
from synth_audit.stats.proportions import SOURCE, Proportion
from synth_audit.table.label_forms import column_forms
from synth_audit.table.people import NearRows, RowKeys
from synth_audit.table.schema import Column, quantitative
from synth_audit.table.table import Table

_AROUND, _STEPS = 0.25, 8
"""Share of a column's range, and steps of its grid at least, by which a number may be off by chance."""

_RARELY = 1e-3
"""So many keys or more are found by chance with a probability below this: they were copied."""

DENSE = 0.01
"""Share of control rows that equal a training row, above which it is asked how much that tells."""

_COPIED = 0.05
"""The share of copied people of whom the weights tell most."""

_MOST_CONTROL = 5_000
"""With more control rows the natural rate is known well enough without weights."""

SHARE = measurement.Quantity(
    "share",
    "Synthetic rows equal to a training row",
    proportional=False,  # natural duplicates are the more frequent the larger the table
    help="Every released column agrees.",
)

CONTROL_SHARE = descriptive(
    "control_share",
    "Control rows equal to a training row",
    help="How often two different people agree in every column by nature.",
)

EXCESS = excess_over_control(
    "excess",
    "Copies beyond the natural rate of duplicates",
    unit=measurement.ROWS,
    help="Share of synthetic rows equal to a training row, less the same share of control rows.",
)

UNIQUE_EXCESS = risk_over_control(
    "unique_excess",
    "Copies of records that occur once, beyond chance",
    help="Only real rows that no other real row equals count, so that natural duplicates hide nothing.",
)

RECORD_EXCESS = excess_over_control(
    "record_excess",
    "Training records with a copy in the release, beyond the natural rate",
    unit=measurement.PEOPLE,
    help="Counts people and not synthetic rows: a large release may hold everybody and much else.",
)

ALL_BUT_ONE_EXCESS = excess_over_control(
    "all_but_one_excess",
    "Copies with one column changed, beyond the natural rate",
    unit=measurement.ROWS,
    help="The same when one column is left out of the comparison; the worst choice of that column.",
)

IDENTIFIER_REUSE = measurement.Quantity(
    "identifier_reuse",
    "Synthetic rows that carry an identifier of a real entity",
    help="Zero when the release has no identifier column, as it should.",
)

QUANTITIES = (
    SHARE,
    CONTROL_SHARE,
    EXCESS,
    UNIQUE_EXCESS,
    RECORD_EXCESS,
    ALL_BUT_ONE_EXCESS,
    IDENTIFIER_REUSE,
)

_NATURAL = measurement.Reference(0.0, "as many as among people the generator never saw")


def reused_identifiers(subject: Subject) -> Bools:
    """Rows of the release that hold an identifier or split key of a real row, shape (n,).

    Any column may hold it. A column in which train itself has such values, a small number that happens to be
    somebody's key, says nothing and is passed over; so is one of numbers whose neighbours are keys so often
    (row numbers are) that chance explains as many.
    """
    withheld = [column.name for column in subject.schema if not column.released]
    forms = [column_forms(table.texts(name)) for name in withheld for table in subject.real]
    every = pa.chunked_array([chunk for column in forms for chunk in column.chunks], pa.large_string())
    keys = every.unique().drop_null()
    whole = keys.filter(pc.match_substring_regex(keys, r"^-?\d{1,15}$"))
    numbers = np.sort(whole.cast(pa.float64()).to_numpy())
    reused = np.zeros(subject.synthetic.n_rows, dtype=bool)
    for name in subject.synthetic.names if len(keys) else ():
        column, found = subject.schema[name], _holds(subject.synthetic, name, keys)
        if not column.released or not (
            _holds(subject.train, name, keys).any() or _by_chance(found, column, subject.train, numbers)
        ):
            reused |= found
    return reused


def _by_chance(found: Bools, column: Column, train: Table, keys: Floats) -> bool:
    """Whether numbers like those of train would be keys as often.

    Train's numbers, each moved to any place of the column's grid around it, are keys with a probability p; of
    n rows Poisson(n p) are.
    """
    hits = int(found.sum())
    if not hits or column.resolution is None or not quantitative([column]):
        return False
    from scipy.special import pdtrc  # here, since a code location must not load it

    step = float(column.resolution.grid.step)
    values = train.numbers(column.name)
    values = values[np.isfinite(values)]
    around = max(_STEPS * step, _AROUND * float(np.ptp(values))) if len(values) else 0.0
    within = np.searchsorted(keys, values + around, "right") - np.searchsorted(keys, values - around, "left")
    expected = len(found) * float(within.sum()) / max(1, len(values)) / (2 * around / step + 1)
    return bool(pdtrc(hits - 1, expected) >= _RARELY) if expected else False


def _holds(table: Table, name: str, keys: pa.Array) -> Bools:
    """Where a column's label has the form of one of the keys, shape (n,)."""
    found = pc.is_in(column_forms(table.texts(name)), value_set=keys)
    return np.asarray(found.to_numpy(), dtype=bool)


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Numbers that equal rows share, and by how much a match of each counts.

    Attributes:
        train, synthetic, control: of the rows of each table; those that no other row equals may be missing.
        sizes: synthetic and control rows in all.
        weights: by number. unit: their mean over train, so that a copy of all of it is an excess of 1.
    """

    train: Codes
    synthetic: Codes
    control: Codes
    sizes: tuple[int, int]
    weights: Floats
    unit: float = 1.0

    @classmethod
    def of(cls, groups: Sequence[Codes], rows: Encoded) -> Self:
        """Every match counts the same."""
        train, synthetic, control = groups
        weights = np.ones(1 + max(int(g.max(initial=-1)) for g in groups))
        return cls(train, synthetic, control, (rows.tables[1].n_rows, rows.tables[2].n_rows), weights)

    @property
    def natural(self) -> float:
        """Share of control rows that equal a training row."""
        return float(np.isin(self.control, self.train).sum() / self.sizes[1])

    @property
    def error(self) -> float:
        """The standard error of the natural rate, from real rows alone; of one more equal row at least."""
        hit = self.weights[self.control[np.isin(self.control, self.train)]]
        return float(np.sqrt(np.square(hit).sum() + 1) / (self.sizes[1] * self.unit))

    def weighted(self, rows: Encoded, columns: Sequence[Column]) -> "EqualRows":
        """Weights ``w = c / (c + λ)``, by which a match counts as it is likely to be a copy.

        λ is how many rows equal to a real one a release of strangers would hold by chance
        (:meth:`NearRows.expected` among train and control together, times the release's size over theirs),
        and c = 0.05 a copy of one person in twenty. No release and no division of the people moves λ, so that
        weights leave the difference between train and control 0 for whatever is independent of it, but less
        uncertain: rows that are equal by nature make up most of its variance. Everybody weighs 1 where a
        natural rate is under one in a hundred, control is large, or weights would not make the rate surer.

        Args:
            columns: in all of which the rows are equal.
        """
        if self.natural <= DENSE or len(self.control) > _MOST_CONTROL or len(columns) < 2:
            return self
        ends = np.cumsum([len(self.train), len(self.synthetic)])
        parts = [np.split(_codes(rows, c), ends) for c in columns]
        near = NearRows.of([np.concatenate([of_train, of_control]) for of_train, _, of_control in parts])
        real, weights = np.concatenate([self.train, self.control]), self.weights.copy()
        weights[real] = _COPIED / (_COPIED + near.expected * len(self.synthetic) / (len(real) - 1))
        found = replace(self, weights=weights, unit=float(weights[self.train].mean()))
        return min(self, found, key=lambda rows: rows.error)

    def excess(self, level: float) -> measurement.IntervalEstimate:
        """Synthetic less control rows that equal a training row; more than all of them only where a release
        repeats what tells most."""
        synthetic, control = (
            Proportion.of_weights(self.weights[rows[np.isin(rows, self.train)]], n)
            for rows, n in zip((self.synthetic, self.control), self.sizes, strict=True)
        )
        found = synthetic.less(control, level)
        ends = (found.value, found.interval.low, found.interval.high)
        value, low, high = np.clip(np.array(ends) / self.unit, -1.0, 1.0).tolist()
        return measurement.IntervalEstimate(value, replace(found.interval, low=low, high=high))

    def unique_excess(self, level: float) -> measurement.IntervalEstimate:
        """Copies of unique records; the interval joins those of both shares, that of control's stretched."""
        train, n = self.train, self.sizes[0]
        real, times = np.unique(np.concatenate([train, self.control]), return_counts=True)
        alone, stretch = real[times == 1], len(train) / len(self.control)
        once = train[np.isin(train, alone)]
        unit = float(self.weights[once].mean()) if len(once) else 1.0
        copied = self.synthetic[np.isin(self.synthetic, alone)]
        of_train = np.isin(copied, train)
        a, b = (Proportion.of_weights(self.weights[copied[of]], n) for of in (of_train, ~of_train))
        of_a, of_b = (x.interval(level) for x in (a, b))
        value = a.share - stretch * b.share
        low = value - math.hypot(a.share - of_a.low, stretch * (of_b.high - b.share))
        high = value + math.hypot(of_a.high - a.share, stretch * (b.share - of_b.low))
        value, low, high = min(value / unit, 1.0), low / unit, min(high / unit, 1.0)
        method = f"{of_a.method}, joined as newcombe's"
        return measurement.IntervalEstimate(value, measurement.Interval(low, high, level, method))

    def record_excess(self, level: float) -> measurement.IntervalEstimate:
        """The difference of the shares of train and of control rows that stand in the release."""
        a, b = (
            Proportion.of_weights(weights[np.isin(rows, self.synthetic)], float(weights.sum()))
            for rows in (self.train, self.control)
            for weights in [self.weights[rows]]
        )
        return a.less(b, level)


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
        quantities=QUANTITIES,
        risk="singling out",
        cost="instant",
        source=f"Platzer & Reutterer 2021 (base rate); {SOURCE}, Newcombe 1998 (intervals)",
    )

    def run(self, subject: Subject, context: RunContext) -> measurement.Findings:
        """Count; nothing is drawn."""
        tables = [subject.train, subject.synthetic, *subject.real[1:]]
        rows = Encoded(tables, subject.features)
        groups = rows.groups()
        exposures: tuple[measurement.Exposure, ...] = ()
        n, level = subject.synthetic.n_rows, subject.level
        reused = IDENTIFIER_REUSE.at(float(reused_identifiers(subject).mean()), n=n)  # exact: no interval
        real, *others = groups
        found = [
            quantity.at(Proportion.of(np.isin(part, real)).estimate(level), n=len(part))
            for quantity, part in zip((SHARE, CONTROL_SHARE), others, strict=False)
        ]
        found.append(reused)
        if subject.control is not None:
            equal = EqualRows.of(groups, rows).weighted(rows, subject.features)
            choices = [choice.excess for choice in _choices(rows)]
            worst = worst_estimate(choices, level, f"{len(choices)} choices")
            independent = measurement.Reference(0.0, "a release that is independent of the split")
            found += [
                EXCESS.at(equal.excess(level), n=n, reference=_NATURAL),
                UNIQUE_EXCESS.at(equal.unique_excess(level), n=n, reference=independent),
                RECORD_EXCESS.at(equal.record_excess(level), n=subject.train.n_rows, reference=_NATURAL),
                ALL_BUT_ONE_EXCESS.at(worst, n=n, reference=_NATURAL),
            ]
            names, both = [c.name for c in subject.features], (groups[0], groups[2])
            hits = [np.isin(rows, groups[1]) for rows in both]
            every = [np.arange(len(rows)) for rows in both]
            exposures = (exposure(RECORD_EXCESS.id(), names, every, hits),)
        return measurement.Findings(tuple(found), exposures=exposures)


def _codes(rows: Encoded, column: Column) -> Codes32:
    """A column of all rows, from 0 on."""
    return np.concatenate(rows.codes(column)).astype(np.int32) - MISSING


def _choices(rows: Encoded) -> Iterator[EqualRows]:
    """The matches on all columns but one, for each; by how much they tell where they are many by nature.

    A table of one column has nothing to leave out and is compared whole.
    """
    if len(rows.columns) == 1:
        yield EqualRows.of(rows.groups(), rows)
        return
    for left_out, some in rows.groups_but_one():
        equal = EqualRows.of(some, rows)
        if equal.natural > DENSE:
            others = [c for c in rows.columns if c.name != left_out.name]
            whole = RowKeys.of([_codes(rows, c) for c in others]).whole
            groups = split_rows(np.unique(whole, return_inverse=True)[1].astype(np.int64), rows.tables)
            equal = EqualRows.of(groups, rows).weighted(rows, others)
        yield equal
