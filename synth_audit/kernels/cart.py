"""One column given others, by a tree whose leaves hold what is drawn (Reiter 2005; Nowok et al. 2016)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.core.arrays import Codes, Floats, Positions
from synth_audit.core.kind_distribution import DistributionFunction
from synth_audit.kernels.number_smoothing import bandwidths, once_for_each_person, rare_numbers, smoothed
from synth_audit.kernels.trees import Tree, grown_tree, label_order


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
    tree: Tree
    starts: Positions
    values: Floats
    levels: Floats
    widths: Floats
    margin: DistributionFunction | None = None

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
        level = smoothed(self.levels[donor], self.widths[donor], rng.random(len(rows)))
        rare = ~np.isnan(level)
        drawn = self.values[donor]
        drawn[rare] = self.margin.quantile(level[rare])
        return drawn

    def arrays(self, name: str) -> dict[str, Any]:
        """To be saved; :meth:`from_arrays` reads them."""
        found: dict[str, Any] = {
            f"{name}.given": np.array(self.given, dtype=np.int64),
            f"{name}.labels": np.array([p.labels for p in self.predictors], dtype=bool),
            f"{name}.starts": self.starts,
            f"{name}.values": self.values,
            f"{name}.levels": self.levels,
            f"{name}.widths": self.widths,
        }
        found |= {f"{name}.places{i}": p.places for i, p in enumerate(self.predictors)}
        return found | self.tree.arrays(name)

    @classmethod
    def from_arrays(
        cls, name: str, arrays: Mapping[str, Any], margin: DistributionFunction | None
    ) -> LeafDraws:
        """What :meth:`arrays` named, and the margin, which is kept apart."""
        labels = arrays[f"{name}.labels"]
        return cls(
            tuple(arrays[f"{name}.given"].tolist()),
            tuple(SplitScale(arrays[f"{name}.places{i}"], bool(own)) for i, own in enumerate(labels)),
            Tree.from_arrays(name, arrays),
            arrays[f"{name}.starts"],
            arrays[f"{name}.values"],
            arrays[f"{name}.levels"],
            arrays[f"{name}.widths"],
            margin,
        )


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
    margin: Callable[[Floats], DistributionFunction] | None = None,
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
    predictors = tuple(_predictor(rows[:, j], sizes[j], wanted, classes) for j in given)
    seen = [p.of(rows[:, j]) for p, j in zip(predictors, given, strict=True)]
    matrix = np.column_stack(seen) if seen else np.empty((len(rows), 0))
    tree = grown_tree(matrix, wanted, classes=classes, weights=weights, least=least, gain=gain, seed=seed)
    leaf = tree.leaves(matrix)
    order = np.lexsort((target, leaf))
    starts = np.searchsorted(leaf[order], np.arange(len(tree.left) + 1))
    values, levels, widths = target[order], np.full(len(target), np.nan), np.zeros(len(target))
    rare = rare_numbers(values, weights[order], least) if margin else np.zeros(len(target), dtype=bool)
    if margin is None or not rare.any():
        return LeafDraws(tuple(given), predictors, tree, starts, values, levels, widths)
    smooth = margin(once_for_each_person(values[rare], weights[order][rare], least))
    below, at = smooth.interval(values[rare])
    levels[rare] = (below + at) / 2
    window = least / weights[order][rare].sum() / 2
    widths[rare] = bandwidths(levels[rare], leaf[order][rare], min(window, 1.0))
    return LeafDraws(tuple(given), predictors, tree, starts, values, levels, widths, smooth)


def _predictor(values: Floats, size: int | None, target: Floats, classes: bool) -> SplitScale:
    if size is None:
        return SplitScale(np.unique(values[~np.isnan(values)]), labels=False)
    labels: Codes = np.where(np.isnan(values), -1, values).astype(np.int64)
    return SplitScale(label_order(labels, size, target, classes=classes), labels=True)
