"""Columns as numeric variables of a vine, and the order in which they enter it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from synth_audit.arrays import Bools, Floats, Labels
from synth_audit.encode.scales import rank_scale
from synth_audit.errors import DataError
from synth_audit.stats.association import kendall
from synth_audit.table.schema import Column, Role
from synth_audit.table.table import Table

Root = Literal["auto", "simplified", "per_class"]

OrderRule = Literal["sensitive_first", "importance"]
"""How the order of the vine's variables is chosen, where a plan does not list it."""

MIN_CLASS_ROWS = 30
"""A class gets a vine of its own from this many rows on, and from some for each column (`ROWS_PER_COLUMN`).

Forests trained on releases of a vine per class are no worse than those of the simplified one with as few as
15 rows in the smallest class, and on four of five tables of 13 to 26 columns they are better with 30
(`benchmarks/vine_root.py --rows-per-class`). The double of 15 is asked for, as single samples differ.
"""

ROWS_PER_COLUMN = {"auto": 6, "per_class": 1}
"""So many rows of a class for each other column: one where a plan asks for a vine per class, as fewer were
not tried; six by itself, as with five such vines followed their people more closely and were of no more use.
"""

TREES = 200
"""Trees of the forest that importance is taken from."""


@dataclass(frozen=True, eq=False)
class ColumnCodec:
    """A column as numbers.

    Attributes:
        column: the column.
        values: shape (n,), NaN where missing; codes 0, 1, … for labels.
        labels: labels by code; None for a numeric column.
    """

    column: Column
    values: Floats
    labels: Labels | None

    @property
    def varies(self) -> bool:
        """True when at least two distinct values are present."""
        known = self.values[~np.isnan(self.values)]
        return len(known) > 0 and bool(known.min() < known.max())

    @property
    def signal(self) -> Floats | None:
        """What can be related to other columns: the values, or where they are missing, or nothing."""
        if self.varies:
            return self.values
        missing = np.isnan(self.values)
        return missing.astype(np.float64) if 0 < missing.sum() < len(missing) else None

    def decoder(self, variables: "Sequence[Variable]", start: int = 0) -> "Decoder":
        """The way back from the variables of these and other columns (see :func:`variables_of`).

        Args:
            start: position of the first of ``variables`` in the model.
        """
        missing = np.isnan(self.values)
        places = list(enumerate(variables, start))
        own = next((i for i, v in places if not v.gap and v.column.name == self.column.name), None)
        gap = next((i for i, v in places if v.gap and np.array_equal(v.values > 0, missing)), None)
        constant = np.nan if missing.all() else float(self.values[~missing][0])
        return Decoder(self.column.name, self.labels, constant, own, gap)


@dataclass(frozen=True, eq=False)
class Variable:
    """A numeric variable of a joint model: a column's values, or 1 where values are missing.

    Attributes:
        values: shape (n,); NaN where missing.
    """

    column: Column
    values: Floats
    gap: bool

    def part(self, rows: Bools) -> "Variable":
        """This variable in some rows; where none of them has a value, any will do: a gap hides it."""
        values = self.values[rows]
        return replace(self, values=np.nan_to_num(values) if np.isnan(values).all() else values)

    def __str__(self) -> str:
        return f"{self.column.name} is missing" if self.gap else self.column.name


@dataclass(frozen=True, eq=False)
class Decoder:
    """How values drawn for the variables become a column again.

    Attributes:
        labels: labels by code; None for a numeric column.
        constant: the only value of a column without a variable; NaN when it has none.
        variable, gap: positions of its variables; None when it has no such variable.
    """

    name: str
    labels: Labels | None
    constant: float
    variable: int | None
    gap: int | None

    def decode(self, drawn: Mapping[int, Floats], n: int) -> Floats | Labels:
        """The column's values, shape (n,), from the values drawn for each variable."""
        codes = np.full(n, self.constant) if self.variable is None else drawn[self.variable]
        if self.gap is not None:
            codes = np.where(drawn[self.gap] > 0, np.nan, codes)
        if self.labels is None:
            return codes
        values = np.full(n, None, dtype=object)
        known = ~np.isnan(codes)
        values[known] = self.labels[codes[known].astype(np.intp)]
        return values


def encode(train: Table) -> tuple[ColumnCodec, ...]:
    """Every column as numbers.

    The target's labels are sorted by frequency, the labels of the others by the mean rank of the target
    within each, or by frequency when there is no target.
    """
    target = train.schema.target

    def coded(column: Column, response: Floats | None) -> ColumnCodec:
        scale = rank_scale(train, column, response, own_order=True)
        return ColumnCodec(column, scale.of(train), scale.labels)

    response = None if target is None else coded(target, None).values
    return tuple(coded(c, None if c == target else response) for c in train.schema)


def variables_of(codings: Sequence[ColumnCodec]) -> tuple[Variable, ...]:
    """The variables of columns in this order, each pattern of missing values before its first column.

    Columns that are missing together share one variable, so that they stay missing together.
    """
    seen: set[bytes] = set()
    variables = []
    for coding in codings:
        missing = np.isnan(coding.values)
        if missing.any() and (pattern := missing.tobytes()) not in seen:
            seen.add(pattern)
            variables.append(Variable(coding.column, missing.astype(np.float64), gap=True))
        if coding.varies:
            variables.append(Variable(coding.column, coding.values, gap=False))
    return tuple(variables)


def ordered(
    codings: Sequence[ColumnCodec],
    rule: OrderRule | tuple[str, ...],
    threshold: float,
    rng: np.random.Generator,
) -> list[ColumnCodec]:
    """The columns that vary, the first for the last trees, the last for the root of tree 1.

    Raises:
        DataError: the named order does not hold every column once, or importance has no target to go by.
    """
    if isinstance(rule, tuple):
        return [c for c in _as_named(codings, rule) if c.signal is not None]
    varying = [c for c in codings if c.signal is not None]
    if not varying:
        return []
    target = next((i for i, c in enumerate(varying) if Role.TARGET in c.column.roles), None)
    signals = np.column_stack([s for c in varying if (s := c.signal) is not None])
    if rule == "importance":
        if target is None:
            raise DataError(
                "columns are to be ordered by importance, but there is no target that varies",
                where="generator `vine`: order",
                expected="a column with `role: target` that has several values",
                fix="name a target, or order `sensitive_first`",
            )
        is_class = varying[target].labels is not None
        positions = least_important_first(signals, target, is_class=is_class, rng=rng)
    else:
        sensitive = [i for i, c in enumerate(varying) if Role.SENSITIVE in c.column.roles]
        if target is None:
            target = central(signals, [i for i in range(len(varying)) if i not in sensitive] or sensitive)
        positions = sensitive_first(signals, sensitive, target, threshold)
    return [varying[i] for i in positions]


def class_codes(codings: Sequence[ColumnCodec], root: Root) -> tuple[float, ...]:
    """Codes of the target's classes if each is to have a vine of its own; none if not.

    Args:
        codings: the columns that vary, in the vine's order.

    Raises:
        DataError: a root per class is asked for, but the target is no label, is not last, or has too few
            rows in some class.
    """
    if root == "simplified":
        return ()
    last, codes, reason = codings[-1] if codings else None, np.zeros(0), ""
    if last is None or Role.TARGET not in last.column.roles or last.labels is None or not last.varies:
        reason = (
            "a root per class needs a categorical or boolean target with several classes, last in the order"
        )
    else:
        codes, counts = np.unique(last.values[~np.isnan(last.values)], return_counts=True)
        if counts.min() < (needed := fewest_class_rows(len(codings) - 1, root)):
            reason = f"a class of the target has fewer than {needed} rows"
    if reason and root != "auto":
        raise DataError(
            reason,
            where="generator `vine`: root",
            expected=f"classes of at least {MIN_CLASS_ROWS} rows, and as many as there are other columns",
            fix="set `root: simplified`, or `auto` to choose by itself; merge rare classes at the source",
        )
    return () if reason else tuple(codes.tolist())


def fewest_class_rows(n_columns: int, root: Root) -> int:
    """Fewest rows of a class for a vine of its own, with this many columns besides the target."""
    return max(MIN_CLASS_ROWS, ROWS_PER_COLUMN[root] * n_columns)


def _as_named(codings: Sequence[ColumnCodec], names: tuple[str, ...]) -> list[ColumnCodec]:
    by_name = {c.column.name: c for c in codings}
    target = next((c.column.name for c in codings if Role.TARGET in c.column.roles), None)
    if target is not None and target not in names:
        names = (*names, target)
    twice = sorted({n for n in names if names.count(n) > 1})
    lacking = [n for n in by_name if n not in names]
    unknown = [n for n in names if n not in by_name]
    problems = [
        f"{what} {', '.join(map(repr, found))}"
        for what, found in (("repeats", twice), ("lacks", lacking), ("has the unknown", unknown))
        if found
    ]
    if problems:
        raise DataError(
            f"the order named for the vine {' and '.join(problems)}",
            where="generator `vine`: order",
            expected="every column that may be released once; the target may be left out and is the root",
            fix="name the columns in the order wanted, those for the last trees first",
        )
    return [by_name[n] for n in names]


def sensitive_first(values: Floats, sensitive: Sequence[int], root: int, threshold: float) -> tuple[int, ...]:
    """Order of the columns for a C-vine, first column in the last trees, last column the first root.

    S (sensitive, as given) · K = {k ∉ S : max_{j ∈ S} |τ_kj| > threshold} by that maximum, falling ·
    the rest as they stand · root. Source: TVineSynth, Algorithm 1.

    Args:
        values: shape (n, d), NaN where missing.
        sensitive: columns whose dependence truncation shall cut first; the root is left out of them.
        root: the response.
        threshold: ρ*, in [0, 1].
    """
    first = [j for j in sensitive if j != root]
    others = [k for k in range(values.shape[1]) if k != root and k not in first]
    closeness = {
        k: max((abs(kendall(values[:, k], values[:, j])) for j in first), default=0.0) for k in others
    }
    near = sorted((k for k in others if closeness[k] > threshold), key=lambda k: -closeness[k])
    return (*first, *near, *(k for k in others if k not in near), root)


def least_important_first(
    values: Floats, root: int, *, is_class: bool, rng: np.random.Generator
) -> tuple[int, ...]:
    """Order of the columns for a C-vine by rising importance for the root, which is last.

    Importance is the mean decrease of impurity in a random forest of ``TREES`` trees that predicts the root
    from the others; missing values count as the column's median, and rows without a root are left out. Equal
    columns keep their order. Source: TVineSynth, appendix.

    Args:
        values: shape (n, d), NaN where missing.
        root: the response, with at least two values. is_class: whether it holds codes of classes.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    others = [k for k in range(values.shape[1]) if k != root]
    if not others:
        return (root,)
    there = ~np.isnan(values[:, root])
    filled = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)[there]
    forest = (RandomForestClassifier if is_class else RandomForestRegressor)(
        TREES, random_state=int(rng.integers(2**31)), n_jobs=1
    )
    importance = forest.fit(filled[:, others], filled[:, root]).feature_importances_
    # Rounded, so that the order of summation decides nothing.
    return (*(others[i] for i in np.argsort(np.round(importance, 9), kind="stable")), root)


def central(values: Floats, candidates: Sequence[int]) -> int:
    """The candidate with the largest sum of |τ| to the other candidates; the first of several equals.

    Args:
        values: shape (n, d), NaN where missing.
    """
    totals = dict.fromkeys(candidates, 0.0)
    for i, a in enumerate(candidates):
        for b in candidates[i + 1 :]:
            tau = abs(kendall(values[:, a], values[:, b]))
            totals[a] += tau
            totals[b] += tau
    return max(candidates, key=lambda k: totals[k])
