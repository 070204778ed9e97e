"""Columns as numbers of a linear model, and when a guess of a secret counts as right."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Floats32
from synth_audit.encode.codes import Vocabulary, codes
from synth_audit.encode.kinds import number_kind
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.neighbours.gower import NOWHERE, Mixed
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

RARE = 0.02
"""A category or a gap that a smaller share of train has gets no number of its own: a set of some hundred rows
holds too few of it to estimate anything, and each indicator adds noise to the attack."""

_CENTRES = (0.05, 0.01, 0.0)
"""Tails left out of the central range, tried in turn until a range is left."""

_BINS = 20
"""Parts of equal weight into which a model cuts a number; a value as common as a part gets its own."""

_MOST_CLASSES = 64
"""Rarer labels are not told apart by the model, so that its memory does not grow with them."""

_BEYOND = 1e6
"""Numbers further than this from train's range are alike to the model."""


@dataclass(frozen=True, eq=False)
class Coding:
    """How one column becomes the numbers of a linear model (contrast coding).

    Attributes:
        start: position of its first number in the design. width: how many numbers it becomes.
        regressors: positions that predict other columns.
        responses: position and share in train of each number that stands for this column as a secret.
        numbers: of a table, shape (n, width), NaN where a number is missing.
        present: rows of a table that hold a value which train may teach something of, shape (n,).
        rare_counts: rows of train that hold each label too rare for a number of its own, ascending.
    """

    column: Column
    start: int
    width: int
    regressors: list[int]
    responses: dict[int, float]
    numbers: Callable[[Table], Floats]
    present: Callable[[Table], Bools]
    rare_counts: Mapping[str, int] = field(default_factory=dict)


def column_coding(train: Table, column: Column, start: int) -> Coding | None:
    """How a column becomes numbers from position ``start`` on; None where train teaches nothing of it."""
    return (_number_coding if number_kind(column) else _label_coding)(train, column, start)


def _number_coding(train: Table, column: Column, start: int) -> Coding | None:
    """The number itself, read no further than train's own smallest and largest, and whether it is missing.

    None where the numbers are all the same and too few are missing.
    """
    values = train.numbers(column.name)
    missing = np.isnan(values)
    gap = RARE <= float(missing.mean()) < 1
    if not gap and len(np.unique(values[~missing])) < 2:
        return None
    low, high = float(values[~missing].min()), float(values[~missing].max())

    def numbers(table: Table) -> Floats:
        found = np.clip(table.numbers(column.name), low, high)  # a sentinel must not drown a column
        return np.column_stack([found, np.isnan(found)] if gap else [found])

    def present(table: Table) -> Bools:
        return np.asarray(~np.isnan(table.numbers(column.name)))

    return Coding(column, start, 1 + gap, [start, start + 1][: 1 + gap], {start: 1.0}, numbers, present)


def _label_coding(train: Table, column: Column, start: int) -> Coding | None:
    """Indicators, since no order of codes could carry what labels say of a secret; of two one is enough.

    Frequent labels and a frequent gap have one each, and labels that are rare share one if they are frequent
    together. None where no label is frequent, or one is all there is.
    """
    known = Vocabulary.of(column.name, train)
    rows = np.append(known.counts(train), train.n_missing(column.name))
    shares = dict(zip([*known.labels, None], (rows / train.n_rows).tolist(), strict=True))
    frequent = {label: share for label, share in shares.items() if RARE <= share < 1}
    seldom = sum(share for label, share in shares.items() if label is not None and share < RARE)
    if not frequent:
        return None
    pooled = seldom >= RARE and bool(set(frequent) - {None})
    parts = [*frequent.values(), *([seldom] if pooled else [])]
    width = len(parts)
    own = {label: j for j, label in enumerate(frequent)}
    others = width - 1 if pooled else width
    place = np.array([*(own.get(x, others) for x in known.labels), width, own.get(None, width)])
    regressors = list(range(start, start + width))
    if sum(parts) > 1 - RARE:  # where they leave little over, the commonest follows from the others
        del regressors[int(np.argmax(parts))]
    responses = {start + j: share for j, share in enumerate(parts) if j != own.get(None)}
    if len(responses) == 2 and sum(responses.values()) > 1 - RARE:
        del responses[max(responses, key=responses.__getitem__)]  # the same as the other, turned round

    def numbers(table: Table) -> Floats:
        found: Floats = np.eye(width + 1, width)[place[known.places(table)]]
        return found

    def present(table: Table) -> Bools:
        places = known.places(table)
        return np.asarray((places >= 0) & (places < len(known.labels)))

    counts = zip(known.labels, rows.tolist(), strict=False)
    rare = {label: n for label, n in counts if n < RARE * train.n_rows}
    return Coding(column, start, width, regressors, responses, numbers, present, rare)


@dataclass(frozen=True)
class GuessTolerance:
    """When a guess at a number is right: ``|guess − s| ≤ tolerance · max(C, min(|s|, |s − M|))``.

    s is the secret, M the median of train and C the range of train's central 90 % (of 98 % or all of it where
    the narrower has no length). So a guess is right within the tolerance of the usual range or, far from
    it, relative to the secret. C is not the whole range, or one outlier would make every guess right; |s|
    counts no more than |s − M|, or every guess at a year would be. No sign enters: −100 is no guess at 900.

    Attributes:
        tolerance: relative, in [0, 1).
        centre, median: C and M, in the secret's unit.
    """

    tolerance: float
    centre: float
    median: float

    @classmethod
    def from_train(cls, values: Floats, tolerance: float) -> GuessTolerance:
        """Measure the present values of train, shape (n,), at least one of them."""
        known = values[~np.isnan(values)]
        ends = (np.quantile(known, [tail, 1 - tail], method="nearest") for tail in _CENTRES)
        most = (
            np.finfo(np.float64).max / 2
        )  # lengths are finite also where numbers are as far apart as can be
        ranges = (2 * float(min(high / 2 - low / 2, most)) for low, high in ends)
        return cls(tolerance, next((x for x in ranges if x > 0), 0.0), _median(known))

    def right(self, guesses: Floats, secrets: Floats) -> Bools:
        """Which guesses are right, shape (n,); a missing guess is wrong."""
        with np.errstate(over="ignore"):  # infinitely far is far
            outlying = np.minimum(np.abs(secrets), np.abs(secrets - self.median))
            allowed = self.tolerance * np.maximum(self.centre, outlying)
            # A hair more, since 1.15 − 1.1 is a little above 0.05.
            close: Bools = np.abs(guesses - secrets) <= allowed * (1 + 1e-9)
        return close

    def typical(self, values: Floats) -> float:
        """The guess of one who knows the population only: the median of the present values."""
        return _median(values[~np.isnan(values)])

    def classes(self, values: Floats) -> tuple[Codes, Floats]:
        """Part of each present value among up to 20 of equal weight, shape (n,), and each part's median."""
        edges = np.unique(np.quantile(values, np.arange(1, _BINS) / _BINS, method="lower"))
        # The sum of both places is one of its own for values equal to an edge.
        places = np.searchsorted(edges, values, "left") + np.searchsorted(edges, values, "right")
        used, part = np.unique(places, return_inverse=True)
        medians = [_median(values[part == i]) for i in range(len(used))]
        return part.astype(np.int64), np.array(medians)


@dataclass(frozen=True)
class Equality:
    """When a guess at a label, given by its code, is right: it is the same; a missing one (NaN) never is."""

    def right(self, guesses: Floats, secrets: Floats) -> Bools:
        """Which guesses are right, shape (n,)."""
        same: Bools = guesses == secrets
        return same

    def typical(self, values: Floats) -> float:
        """The guess of one who knows the population only: the commonest label."""
        return float(self.classes(values[~np.isnan(values)])[1][0])

    def classes(self, values: Floats) -> tuple[Codes, Floats]:
        """Rank of each present label by how common it is, shape (n,), and the label of each rank.

        The rarest share the last rank.
        """
        used, position, counts = np.unique(values, return_inverse=True, return_counts=True)
        by_count = np.argsort(-counts, kind="stable")
        rank = np.empty(len(used), dtype=np.int64)
        rank[by_count] = np.arange(len(used))
        return np.minimum(rank[position], _MOST_CLASSES - 1), used[by_count[:_MOST_CLASSES]]


GuessRule: TypeAlias = GuessTolerance | Equality
"""When a guess at a secret is right, and what can be guessed without a release."""


def column_secret(
    tables: Sequence[Table], column: Column, tolerance: float
) -> tuple[list[Floats], GuessRule]:
    """A secret in each table, train first, as numbers, NaN where missing, and when a guess is right.

    Labels are given by codes that the tables share.

    Args:
        tolerance: relative error at which a guessed number is right, in [0, 1).
    """
    if not number_kind(column):
        return [np.where(x == MISSING, np.nan, x) for x in codes(tables, column)], Equality()
    numbers = [table.numbers(column.name) for table in tables]
    return numbers, GuessTolerance.from_train(numbers[0], tolerance)


def predicted(
    judge: GuessRule,
    known: Mixed,
    secrets: Floats,
    unknown: Mixed,
    n_trees: int,
    seed: int,
    *,
    randomised: bool = False,
) -> Floats:
    """Guesses of a forest that learnt the secret from people whom the generator never saw.

    A number is predicted as the median of the most probable of its parts, so that a value which many
    share can be hit exactly. One thread, so that votes add up in one order.

    Args:
        known: n rows without the secret; secrets: theirs, none missing, shape (n,).
        unknown: m rows of the same preparation.
        randomised: whether trees try one random split of each column that they look at (Geurts et al. 2006)
            instead of all, which takes a third of the time.

    Returns:
        shape (m,).
    """
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    classes, guess = judge.classes(secrets)
    if len(guess) == 1:
        return np.repeat(guess, len(unknown))
    forest_of = ExtraTreesClassifier if randomised else RandomForestClassifier
    forest = forest_of(n_trees, min_samples_leaf=5, max_depth=12, random_state=seed, n_jobs=1)
    with warnings.catch_warnings():
        # A secret of many labels in few rows is what it is: no mistaken regression.
        warnings.filterwarnings("ignore", message="The number of unique classes", category=UserWarning)
        forest.fit(forest_features(known), classes)
    guesses: Floats = guess[forest.predict(forest_features(unknown))]
    return guesses


def forest_features(rows: Mixed) -> Floats32:
    """One column per column, for trees; they ask for order only, so missing numbers stand at one end."""
    numbers = np.where(rows.numbers == NOWHERE, -2 * _BEYOND, np.clip(rows.numbers, -_BEYOND, _BEYOND))
    return np.hstack([numbers, rows.labels]).astype(np.float32)


def _median(values: Floats) -> float:
    """A middle value that occurs, so that a number which many share can be hit exactly."""
    return float(np.quantile(values, 0.5, method="nearest"))
