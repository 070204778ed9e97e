"""Adversarial random forests: a mixture over leaves in which columns are independent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.encode.univariate import Margin, column_margin
from synth_audit.generators._model_files import FitsWhole, SavedWhole
from synth_audit.generators._trees import FEW, CodedColumns, Tree, once_for_each_person
from synth_audit.plugins.fitting import may_leave
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo, SettingRange
from synth_audit.table.table import Table

_ANYWHERE = 0.5, 100.0
"""Mean and spread of a normal distribution that, cut off at 0 and 1, is as good as uniform."""

GAP = -1.0
"""What trees see where a value is missing: below all levels and codes."""

_NO_NOISE = "the leaves and what they hold are learnt from train without noise"


def adversarial_forest(
    rows: Floats,
    weights: Floats,
    settings: "Arf",
    rng: np.random.Generator,
    told: Callable[[int, float], None] = lambda done, accuracy: None,
) -> list[Tree]:
    """The forest whose leaves, each column resampled within them by itself, give rows that pass for real.

    The first forest tells real rows from rows of which every column is drawn by itself, each further one from
    rows out of the last one's leaves, until it is right (out of bag) of no more than half of them, or of no
    fewer than before: it has then learnt from rows that lack little, and its leaves keep less of what the
    others did. Leaves with too few real people are cut off before anything is drawn (:func:`merged`).

    Args:
        rows: real ones, shape (n, d), without NaN.
        weights: shape (n,); those of one person sum to 1 at most.
        told: after each forest, with its number and the share told right.
    """
    best, lowest = [Tree.leaf()], np.inf
    tried = best
    for done in range(settings.rounds + 1):
        forest, accuracy = _told_apart(rows, _resampled(tried, rows, rng), settings, rng)
        told(done, accuracy)
        if accuracy >= lowest:
            break
        best, lowest = tried, accuracy
        if accuracy <= 0.5 + settings.tolerance:
            break
        tried = [merged(tree, rows, weights, settings.minimum_leaf) for tree in forest]
    return best


def _told_apart(
    rows: Floats, made: Floats, settings: "Arf", rng: np.random.Generator
) -> tuple[list[Tree], float]:
    """A forest that tells two tables of one size apart, and the share of rows told right out of bag."""
    from sklearn.tree import DecisionTreeClassifier

    both, real = np.concatenate([rows, made]), np.repeat([1, 0], len(rows))
    least = max(1, int(min(settings.minimum_leaf, len(rows))))
    votes, forest = np.zeros(len(both)), []
    for _ in range(settings.trees):
        bag = rng.integers(len(both), size=len(both))
        out = np.ones(len(both), dtype=bool)
        out[bag] = False
        tree = DecisionTreeClassifier(
            max_features="sqrt", min_samples_leaf=least, random_state=int(rng.integers(2**31))
        ).fit(both[bag], real[bag])
        forest.append(Tree.of(tree))
        if out.any() and len(tree.classes_) == 2:
            votes[out] += tree.predict_proba(both[out])[:, 1] - 0.5
    right = np.where(votes == 0, 0.5, (votes > 0) == (real == 1))
    return forest, float(right.mean())


def merged(tree: Tree, rows: Floats, weights: Floats, least: float) -> Tree:
    """Prune a tree until every leaf holds rows whose weights sum to ``least``, or only the root is left.

    A child with fewer is cut off and its sibling, with all that is below it, takes the parent's place. Rows
    of the child then descend the sibling. Where both children have fewer, the parent becomes a leaf.
    """
    people = np.bincount(tree.leaves(rows), weights=weights, minlength=len(tree.left))
    place = np.arange(len(tree.left))  # the node that takes a node's place
    left, right = tree.left.copy(), tree.right.copy()
    for node in np.flatnonzero(tree.left >= 0)[::-1]:  # children have higher numbers than their parent
        children = tree.left[node], tree.right[node]
        people[node] = people[list(children)].sum()
        enough = [people[child] >= least - 1e-9 for child in children]
        left[node], right[node] = (place[child] for child in children)
        if not any(enough):
            left[node] = -1
        elif not all(enough):
            place[node] = place[children[enough.index(True)]]
    column, threshold = tree.column.copy(), tree.threshold.copy()
    for array in (left, right, column, threshold):
        array[0] = array[place[0]]
    return Tree(left, right, column, threshold)


def _resampled(trees: Sequence[Tree], rows: Floats, rng: np.random.Generator) -> Floats:
    """As many rows as there are, each column from any real row of a leaf, whichever; shape of ``rows``."""
    made = np.empty_like(rows)
    which = rng.integers(len(trees), size=len(rows))
    for i, tree in enumerate(trees):
        own = np.flatnonzero(which == i)
        leaf = tree.leaves(rows)
        order = np.argsort(leaf, kind="stable")
        starts = np.searchsorted(leaf[order], np.arange(len(tree.left) + 1))
        chosen = leaf[rng.integers(len(rows), size=len(own))]
        first, size = starts[chosen], starts[chosen + 1] - starts[chosen]
        for j in range(rows.shape[1]):
            made[own, j] = rows[order[first + np.floor(rng.random(len(own)) * size).astype(np.intp)], j]
    return made


@dataclass(frozen=True, eq=False)
class LeafMixture:
    """A mixture over the leaves of a forest, columns independent within each.

    Attributes:
        weights: of the leaves, summing to 1, shape (m,).
        gaps: share of missing values, shape (m, d).
        means, spreads: of levels, before they are cut off at the ends of the leaf.
        lows, highs: these ends, within 0 and 1; all of shape (m, d), without meaning for labels.
        shares: of each label of a column, shape (m, k); None for a column of numbers.
    """

    weights: Floats
    gaps: Floats
    means: Floats
    spreads: Floats
    lows: Floats
    highs: Floats
    shares: tuple[Floats | None, ...]

    def drawn(self, n: int, rng: np.random.Generator) -> Floats:
        """Levels and codes, NaN where missing, shape (n, d)."""
        leaf = np.minimum(np.searchsorted(np.cumsum(self.weights), rng.random(n)), len(self.weights) - 1)
        found = np.empty((n, len(self.shares)))
        for j, shares in enumerate(self.shares):
            uniform, gap = rng.random(n), rng.random(n) < self.gaps[leaf, j]
            drawn = self._levels(leaf, j, uniform) if shares is None else _labels(shares, leaf, uniform)
            found[:, j] = np.where(gap, np.nan, drawn)
        return found

    def _levels(self, leaf: Positions, j: int, uniform: Floats) -> Floats:
        from scipy.special import ndtr, ndtri

        mean, spread = self.means[leaf, j], np.maximum(self.spreads[leaf, j], 1e-12)
        low, high = self.lows[leaf, j], self.highs[leaf, j]
        below, upto = ndtr((low - mean) / spread), ndtr((high - mean) / spread)
        found: Floats = np.clip(mean + spread * ndtri(below + uniform * (upto - below)), low, high)
        return found


def _labels(shares: Floats, leaf: Positions, uniform: Floats) -> Floats:
    found = np.empty(len(leaf))
    for own in np.unique(leaf):
        rows = leaf == own
        upto = np.cumsum(shares[own])
        found[rows] = np.minimum(np.searchsorted(upto, uniform[rows] * upto[-1], side="right"), len(upto) - 1)
    return found


def leaf_mixture(
    trees: Sequence[Tree], rows: Floats, weights: Floats, labels: Sequence[Bools | None], least: float
) -> LeafMixture:
    """The distribution of real rows in the leaves of all trees, each with the share of people in it.

    Where few people of a leaf have a number at all, it is drawn from anywhere in the column, and no spread is
    less than that of a uniform window of ``least`` people: the only number of a leaf would else be its mean.

    Args:
        rows: levels, codes or :data:`GAP`, shape (n, d).
        weights: shape (n,); those of one person sum to 1 at most.
        labels: of each column, which may be drawn, shape (k,); None for numbers.
        least: people of a leaf.
    """
    leaves = [found for tree in trees for found in _leaves(tree, rows)]
    people = np.array([weights[own].sum() for own, _ in leaves])
    ends = np.stack([ends for _, ends in leaves])
    gaps, means, spreads = (np.zeros((len(leaves), rows.shape[1])) for _ in range(3))
    shares: list[Floats | None] = []
    for j, may in enumerate(labels):
        known = [own[rows[own, j] > GAP] for own, _ in leaves]
        having = np.array([weights[own].sum() for own in known])
        gaps[:, j] = 1 - having / people
        shares.append(None)
        if may is None:
            for i, own in enumerate(known):
                if len(own):
                    means[i, j] = np.average(rows[own, j], weights=weights[own])
                    squares = (rows[own, j] - means[i, j]) ** 2
                    spreads[i, j] = np.sqrt(np.average(squares, weights=weights[own]))
            people_known = float(weights[rows[:, j] > GAP].sum())
            window = min(least / people_known, 1.0) / 12**0.5 if people_known else 1.0
            spreads[:, j] = np.maximum(spreads[:, j], window)
            few = having < FEW
            means[few, j], spreads[few, j] = _ANYWHERE
            ends[few, j] = 0.0, 1.0
        elif may.any():
            shares[j] = _frequencies([rows[own, j] for own in known], [weights[own] for own in known], may)
        else:
            gaps[:, j], shares[j] = 1.0, np.ones((len(leaves), 1))
    lows, highs = np.clip(ends[..., 0], 0, 1), np.clip(ends[..., 1], 0, 1)
    return LeafMixture(people / people.sum(), gaps, means, spreads, lows, highs, tuple(shares))


def _frequencies(codes: Sequence[Floats], weights: Sequence[Floats], may: Bools) -> Floats:
    """Of the labels that may be drawn in each leaf; where it has none of them, those of all leaves."""
    found: Floats = np.stack(
        [
            np.bincount(own.astype(np.intp), weights=heavy, minlength=len(may)) * may.astype(np.float64)
            for own, heavy in zip(codes, weights, strict=True)
        ]
    )
    nothing = ~found.any(axis=1)
    found[nothing] = found.sum(axis=0) if found.any() else may.astype(np.float64)
    return found


def _leaves(tree: Tree, rows: Floats) -> Iterator[tuple[Positions, Floats]]:
    """The rows of each leaf that has some, and its two ends in each column, shape (d, 2)."""
    leaf = tree.leaves(rows)
    ends = {0: np.tile([-np.inf, np.inf], (rows.shape[1], 1))}
    for node in range(len(tree.left)):
        box = ends.pop(node, None)
        if box is None:  # below a leaf
            continue
        if tree.left[node] < 0:
            if len(own := np.flatnonzero(leaf == node)):
                yield own, box
            continue
        j, threshold = tree.column[node], tree.threshold[node]
        left, right = box.copy(), box.copy()
        left[j, 1], right[j, 0] = min(box[j, 1], threshold), max(box[j, 0], threshold)
        ends[int(tree.left[node])], ends[int(tree.right[node])] = left, right


@dataclass(frozen=True, eq=False)
class ArfModel(SavedWhole):
    """The leaves, and what their levels and codes stand for.

    Attributes:
        margins: of the columns of numbers that enough people have, by position.
    """

    columns: CodedColumns = field(repr=False)
    margins: Mapping[int, Margin] = field(repr=False)
    mixture: LeafMixture = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        drawn = self.mixture.drawn(n, rng)
        for j, margin in self.margins.items():
            known = ~np.isnan(drawn[:, j])
            drawn[known, j] = margin.quantile(drawn[known, j])
        return self.columns.table(drawn)


@dataclass(frozen=True, kw_only=True)
class Arf(FitsWhole):
    """A random forest tells real rows from made ones, which are drawn from its leaves, until it cannot.

    P(x) = mean over trees of Σ_leaf P(leaf) Π_j P_j(x_j | leaf): labels by their frequencies, numbers by a
    normal distribution cut off at the ends of the leaf, missing values by their share. Numbers are told by
    their level under a kernel density of the column, so that tails and peaks are the column's own and no
    value of fewer than ``minimum_leaf`` people is copied. A label of fewer is drawn only if the plan declares
    it, and a column of numbers that fewer have stays empty.

    Attributes:
        trees: of a forest.
        minimum_leaf: real people of a leaf at least; somebody with many rows counts once.
        tolerance: training ends when no more than half of the rows, and this share, are told right.
        rounds: forests at most.

    Source: Watson, Blesch, Kapar & Wright 2023.
    """

    trees: Count = 20
    minimum_leaf: Count = 20
    tolerance: Annotated[float, SettingRange(0, 0.5, "0 to 0.5")] = 0.0
    rounds: Count = 10
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Adversarial random forest",
        summary="Mixture over the leaves of a forest that cannot tell its rows apart; no privacy guarantee.",
        source="Watson et al. 2023",
        trial={"trees": 4, "rounds": 2},
    )
    minimum_people: ClassVar[int] = 1
    """Every label is seen; which are drawn, the leaves decide."""

    def fit(self, train: Table, context: FitContext) -> ArfModel:
        """Grow forests until one is fooled."""
        context.accountant.void(_NO_NOISE)
        train = train.released_only()
        columns, values = CodedColumns.of(train)
        weights = context.weights(train.n_rows)
        margins = self._margins(columns, values, weights)
        rows = _levels(values, margins, columns.sizes)

        def told(done: int, accuracy: float) -> None:
            context.deadline.check()
            context.progress(f"forests, {accuracy:.1%} told right", done, self.rounds)

        trees = adversarial_forest(rows, weights, self, context.rng, told)
        labels = [
            None if size is None else may_leave(column, values[:, j], weights, size, self.minimum_leaf)
            for j, (column, size) in enumerate(zip(columns.schema, columns.sizes, strict=True))
        ]
        return ArfModel(columns, margins, leaf_mixture(trees, rows, weights, labels, self.minimum_leaf))

    def _margins(self, columns: CodedColumns, values: Floats, weights: Floats) -> dict[int, Margin]:
        """Of each column of numbers that enough people have a value of."""
        found = {}
        for j, column in enumerate(columns.schema):
            known = ~np.isnan(values[:, j])
            if columns.labels[j] is None and weights[known].sum() >= self.minimum_leaf - 1e-9:
                numbers = once_for_each_person(values[known, j], weights[known], self.minimum_leaf)
                found[j] = column_margin(column, numbers, "kde")
        return found


def _levels(values: Floats, margins: Mapping[int, Margin], sizes: Sequence[int | None]) -> Floats:
    """Numbers as the middle of what the distribution function gives them; labels stay codes.

    :data:`GAP` where missing, and in all of a column of numbers without a distribution function.
    """
    found = values.copy()
    for j, size in enumerate(sizes):
        if size is None:
            below, at = margins[j].interval(values[:, j]) if j in margins else (np.nan, np.nan)
            found[:, j] = (below + at) / 2
    return np.where(np.isnan(found), GAP, found)
