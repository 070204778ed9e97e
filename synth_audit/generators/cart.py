"""Column after column, each drawn from the leaf of a tree on those before it (synthpop's idea)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.encode.univariate import Margin, column_margin
from synth_audit.errors import DataError, PlanError
from synth_audit.generators import _trees as trees
from synth_audit.generators._model_files import FitsWhole, SavedWhole
from synth_audit.plugins.fitting import may_leave
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

Margining: TypeAlias = Callable[[Floats], Margin]

_NO_NOISE = "values are drawn from leaves of trees that are grown on train without noise"


@dataclass(frozen=True, eq=False)
class SplitScale:
    """A column that others are drawn given, on the scale that a tree splits.

    Attributes:
        places: the distinct numbers of train, ascending; the place of each label, as the tree orders them.
        labels: whether it holds labels.
    """

    places: Floats
    labels: bool

    def of(self, values: Floats) -> Floats:
        """Ranks among the numbers of train, or places of labels, shape (n,); −1 where missing."""
        missing = np.isnan(values)
        if self.labels:
            found = np.append(self.places, -1.0)[np.where(missing, -1, values).astype(np.intp)]
        elif len(self.places):
            found = np.interp(values, self.places, np.arange(len(self.places)))
        else:
            found = values
        return np.where(missing, -1.0, found)


@dataclass(frozen=True, eq=False)
class LeafDraws:
    """The distribution of one column given others.

    Attributes:
        given: positions of the others.
        predictors: their scales. tree: on these.
        starts: where each node's rows begin among ``values``, then their number; shape (nodes + 1,).
        values: of the training rows, leaf by leaf, shape (m,).
        levels: of those that few people have, under ``margin``; NaN of those drawn as they are, shape (m,).
        widths: see :func:`bandwidths`, shape (m,).
        margin: of the numbers that few people have; None to draw all as they are.
    """

    given: tuple[int, ...]
    predictors: tuple[SplitScale, ...]
    tree: trees.Tree
    starts: Positions
    values: Floats
    levels: Floats
    widths: Floats
    margin: Margin | None = None

    def drawn(self, rows: Floats, rng: np.random.Generator) -> Floats:
        """A value for each row, shape (n,), of the column's own scale.

        Args:
            rows: shape (n, d), of which the columns ``given`` are there.
        """
        seen = [p.of(rows[:, j]) for p, j in zip(self.predictors, self.given, strict=True)]
        leaf = self.tree.leaves(np.column_stack([*seen, np.zeros(len(rows))]))
        first, last = self.starts[leaf], self.starts[leaf + 1]
        donor = first + np.floor(rng.random(len(rows)) * (last - first)).astype(np.intp)
        if self.margin is None:
            return self.values[donor]
        level = trees.smoothed(self.levels[donor], self.widths[donor], rng.random(len(rows)))
        rare = ~np.isnan(level)
        drawn = self.values[donor]
        drawn[rare] = self.margin.quantile(level[rare])
        return drawn


def fitted_draws(
    rows: Floats,
    target: Floats,
    *,
    given: Sequence[int],
    sizes: Sequence[int | None],
    classes: bool,
    weights: Floats,
    least: float,
    seed: int,
    gain: float = 0.0,
    margin: Callable[[Floats], Margin] | None = None,
) -> LeafDraws:
    """Grow a tree for one column and keep in each leaf the values of its rows.

    Numbers are predicted by their rank, so that a few extreme ones do not choose the splits.

    Args:
        rows: all columns, shape (n, d), NaN where missing. target: shape (n,), without NaN.
        given: positions of the columns that it is drawn by.
        sizes: labels of each column of ``rows``; None for numbers. classes: whether the target is labels.
        weights: of the rows, shape (n,), those of a person summing to 1 at most. least: people of a leaf.
        gain: see :func:`grown_tree`.
        margin: the distribution of numbers that fewer people than ``least`` have, which are drawn smoothed
            within their leaf; None to draw all numbers as they are.
    """
    wanted = target if classes else np.unique(target, return_inverse=True)[1].astype(np.float64)

    def scale(values: Floats, size: int | None) -> SplitScale:
        if size is None:
            return SplitScale(np.unique(values[~np.isnan(values)]), labels=False)
        labels: Codes = np.where(np.isnan(values), -1, values).astype(np.int64)
        return SplitScale(trees.label_order(labels, size, wanted, classes=classes), labels=True)

    predictors = tuple(scale(rows[:, j], sizes[j]) for j in given)
    seen = [p.of(rows[:, j]) for p, j in zip(predictors, given, strict=True)]
    matrix = np.column_stack(seen) if seen else np.empty((len(rows), 0))
    tree = trees.grown_tree(
        matrix, wanted, classes=classes, weights=weights, least=least, gain=gain, seed=seed
    )
    leaf = tree.leaves(matrix)
    order = np.lexsort((target, leaf))
    starts = np.searchsorted(leaf[order], np.arange(len(tree.left) + 1))
    values, levels, widths = target[order], np.full(len(target), np.nan), np.zeros(len(target))
    rare = trees.rare_numbers(values, weights[order], least) if margin else np.zeros(len(target), dtype=bool)
    if margin is None or not rare.any():
        return LeafDraws(tuple(given), predictors, tree, starts, values, levels, widths)
    smooth = margin(trees.once_for_each_person(values[rare], weights[order][rare], least))
    below, at = smooth.interval(values[rare])
    levels[rare] = (below + at) / 2
    window = least / weights[order][rare].sum() / 2
    widths[rare] = trees.bandwidths(levels[rare], leaf[order][rare], min(window, 1.0))
    return LeafDraws(tuple(given), predictors, tree, starts, values, levels, widths, smooth)


@dataclass(frozen=True, eq=False)
class CartModel(SavedWhole):
    """The trees, and what their numbers stand for.

    Attributes:
        gaps: by column, whether a value is missing. values: by column, which it is, in the order of the
            visit; a column without values has none.
    """

    columns: trees.CodedColumns = field(repr=False)
    gaps: dict[int, LeafDraws] = field(repr=False)
    values: dict[int, LeafDraws] = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        rows = np.full((n, len(self.columns.labels)), np.nan)
        for column, draws in self.values.items():
            there = np.ones(n, dtype=bool)
            if column in self.gaps:
                there = self.gaps[column].drawn(rows, rng) == 0
            rows[there, column] = draws.drawn(rows[there], rng)
        return self.columns.table(rows)


@dataclass(frozen=True, kw_only=True)
class Cart(FitsWhole):
    """Draw each column by a tree on those before it: P(x) = Π_j P(x_j | leaf of x_1 … x_{j−1}).

    The value of a random training row of the leaf is taken. Whether a value is missing is drawn first, by a
    tree of its own. Labels of a predictor are put in order by the column that is drawn.

    Smoothed, a value that fewer than ``minimum_leaf`` people have does not leave as it is: a number is
    drawn from a kernel density of those in its leaf, and a label not at all, unless the plan declares it.
    A column in which nothing is left to draw stays empty. Nor is a leaf split for less than 2 ln(n) / n
    of the impurity of all, twice the price of a parameter by the BIC since the best of many splits is
    taken: what chance explains is true of the training rows alone, and shows who they are.

    Attributes:
        order: columns that are drawn first, in this order; the others follow as in the table.
        minimum_leaf: people of a leaf at least; somebody with many rows counts once.
        smooth: draw nothing exactly that fewer people have, and fit no noise; off, as published.

    Source: Reiter 2005; Nowok, Raab & Dibben 2016 (synthpop, with leaves of 5 rows).
    """

    order: tuple[str, ...] = ()
    minimum_leaf: Count = 20
    smooth: bool = True
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="CART",
        summary="Each column from the leaves of a tree on those before it; no privacy guarantee.",
        source="Reiter 2005; Nowok et al. 2016",
    )
    minimum_people: ClassVar[int] = 1
    """Every label is seen; which are drawn, the leaves decide."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.order)) < len(self.order):
            raise PlanError(
                "a column is drawn twice", where="generator.order", expected="each column once at most"
            )

    def fit(self, train: Table, context: FitContext) -> CartModel:
        """Grow one or two trees for each column.

        Raises:
            DataError: the order names a column that is not there.
        """
        context.accountant.void(_NO_NOISE)
        train = train.released_only()
        names = train.schema.names
        if unknown := [name for name in self.order if name not in names]:
            raise DataError(
                f"the order names {', '.join(map(repr, unknown))}, which train has not",
                where="generator.order",
                expected="columns that may be released",
                fix="name some of them in the order wanted; the others follow",
            )
        first = [names.index(name) for name in self.order]
        visit = first + [j for j in range(len(names)) if j not in first]
        columns, rows = trees.CodedColumns.of(train)
        weights = context.weights(train.n_rows)
        n = float(weights.sum())
        gain = 2 * np.log(n) / n if self.smooth and n > 1 else 0.0
        gaps: dict[int, LeafDraws] = {}
        values: dict[int, LeafDraws] = {}
        for done, j in enumerate(visit):
            context.deadline.check()
            context.progress("trees", done, len(visit))
            column, numbers = train.schema.columns[j], columns.labels[j] is None

            def grown(target: Floats, on: Bools, classes: bool, margin: Margining | None = None) -> LeafDraws:
                return fitted_draws(
                    rows[on],
                    target[on],
                    given=[*values],
                    sizes=columns.sizes,
                    classes=classes,
                    weights=weights[on],
                    least=self.minimum_leaf,
                    gain=gain,
                    margin=margin,
                    seed=int(context.rng.integers(2**31)),
                )

            missing = np.isnan(rows[:, j])
            there = ~missing
            if self.smooth:
                there = self._may_leave(column, rows[:, j], weights, columns.sizes[j])
            if not there.any():
                continue
            if missing.any():
                gaps[j] = grown(missing.astype(np.float64), np.ones(len(rows), dtype=bool), classes=True)
            margin = partial(column_margin, column, method="kde") if self.smooth and numbers else None
            values[j] = grown(rows[:, j], there, classes=not numbers, margin=margin)
        return CartModel(columns, gaps, values)

    def _may_leave(self, column: Column, values: Floats, weights: Floats, size: int | None) -> Bools:
        """Rows whose value may be drawn, or smoothed: not those of labels that too few people have, nor of
        numbers where too few have any but the common ones."""
        there = ~np.isnan(values)
        if size is not None:
            stays = may_leave(column, values, weights, size, self.minimum_leaf)
            there[there] = stays[values[there].astype(np.intp)]
            return there
        rare = trees.rare_numbers(values[there], weights[there], self.minimum_leaf)
        if weights[there][rare].sum() < self.minimum_leaf:
            there[there] = ~rare
        return there
