"""Tables of counts, and the distribution of highest entropy for noisy ones, on a junction tree of cliques."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from string import ascii_letters

import numpy as np

from synth_audit.arrays import Codes, Floats
from synth_audit.dp.mechanisms import exponential_choice
from synth_audit.plugins.generator import FitContext

Attributes = tuple[int, ...]
"""Positions of columns."""

UNPAID_COUNTS = "the plan declares no privacy budget, so rows were counted without noise"

_VISIBLE = 3.0
"""Standard deviations of the noise above which a cell stays on its own (McKenna, Miklau & Sheldon 2021)."""

_SUFFICIENT = 0.5  # Armijo's share of what the slope promises

_GROWTH, _SHRINKING = 1.5, 0.5
"""What the step of the descent is multiplied by after a success at once, and after a failure."""

_MOST_TRIED = 30
"""Lengths of a step: by then it is a billionth, and rounding alone moves the loss."""

_FEWEST_CELLS = 1e-300
"""Keeps a division by a cell without rows finite."""


def cells_of(sizes: Sequence[int], attributes: Attributes) -> int:
    """How many cells the table of these columns has."""
    return math.prod(sizes[a] for a in attributes)


def counted(codes: Codes, sizes: Sequence[int], attributes: Attributes) -> Floats:
    """Rows in each cell.

    Args:
        codes: the cell of every row and column, shape (n, d).
        sizes: cells of every column.

    Returns:
        Shape ``[sizes[a] for a in attributes]``.
    """
    shape = tuple(sizes[a] for a in attributes)
    if not attributes:
        return np.array(float(len(codes)))
    flat = np.ravel_multi_index(tuple(codes[:, a] for a in attributes), shape)
    return np.bincount(flat, minlength=math.prod(shape)).astype(np.float64).reshape(shape)


def no_less_than_nothing(counts: Floats) -> Floats:
    """Counts below 0 as 0; where none is above, all the same."""
    kept = np.maximum(counts, 0.0)
    return kept if kept.any() else np.ones_like(counts)


def on_simplex(values: Floats) -> Floats:
    """The nearest point with entries of 0 or more and sum 1 (Duchi et al. 2008), shape (k,)."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    threshold = over[np.flatnonzero(falling > over)[-1]]
    found: Floats = np.maximum(values - threshold, 0.0)
    return found


def nearest_counts(counts: Floats) -> Floats:
    """The nearest table without counts below 0 and of the same sum; where that is not above 0, as above.

    Cutting off what is below 0 alone would leave the noise of empty cells that is above it: rows that nobody
    has, the more of them the more cells.
    """
    total = counts.sum()
    if total <= 0:
        return no_less_than_nothing(counts)
    found: Floats = on_simplex(counts.ravel() / total).reshape(counts.shape) * total
    return found


@dataclass(frozen=True, eq=False)
class CellMerging:
    """For each column, the merged cell of every cell, and how likely each is within its merged one.

    Attributes:
        merged: positions 0 … k − 1, shape (cells of the column,); what is rare has the last.
        weights: above 0 or 0, shape (cells of the column,).
    """

    merged: tuple[Codes, ...] = field(repr=False)
    weights: tuple[Floats, ...] = field(repr=False)

    @classmethod
    def of(cls, counts: Sequence[Floats], deviation: float) -> "CellMerging":
        """From noisy counts of each column alone; nothing else of the rows is looked at.

        Args:
            deviation: of the noise; 0 for none.
        """
        merged, weights = [], []
        for noisy in counts:
            rare = noisy <= _VISIBLE * deviation
            if rare.sum() < 2:
                rare = np.zeros(len(noisy), dtype=bool)
            merged.append(np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1).astype(np.int64))
            known = np.maximum(noisy, 0.0)
            weights.append(np.where(rare & (known[rare].sum() == 0), 1.0, known))
        return cls(tuple(merged), tuple(weights))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Merged cells of each column."""
        return tuple(int(column.max()) + 1 for column in self.merged)

    def codes(self, codes: Codes) -> Codes:
        """Cells merged, shape (n, d)."""
        return np.stack([column[codes[:, j]] for j, column in enumerate(self.merged)], axis=1)

    def counts(self, counts: Floats, column: int) -> Floats:
        """Counts of a column's cells as counts of its merged ones."""
        return np.bincount(self.merged[column], counts, self.sizes[column]).astype(np.float64)

    def drawn(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """A cell for each merged one, shape (n, d)."""
        found = np.empty_like(codes)
        for j, (merged, weights) in enumerate(zip(self.merged, self.weights, strict=True)):
            order = np.argsort(merged, kind="stable")
            first = np.searchsorted(merged[order], np.arange(merged.max() + 1))
            found[:, j] = order[first[codes[:, j]]]
            rare = np.flatnonzero(merged == merged.max())
            if len(rare) > 1:
                here = np.flatnonzero(codes[:, j] == merged.max())
                shares = weights[rare] / weights[rare].sum()
                found[here, j] = rng.choice(rare, len(here), p=shares)
        return found


@dataclass(frozen=True, eq=False)
class Conditional:
    """The joint distribution of some columns given others.

    Attributes:
        given: columns that are drawn before.
        new: columns that are drawn here, one or more.
        weights: of the cells, 0 or more, of any sum; shape ``(*sizes of given, *sizes of new)``. Where all
            weights of one choice of ``given`` are 0, those of all choices together hold.
    """

    given: Attributes
    new: Attributes
    weights: Floats


def drawn_rows(steps: Sequence[Conditional], n: int, rng: np.random.Generator) -> Codes:
    """Rows as cells, shape (n, d); every column is new in one step."""
    codes = np.zeros((n, sum(len(step.new) for step in steps)), dtype=np.int64)
    for step in steps:
        shape = step.weights.shape
        before, after = shape[: len(step.given)], shape[len(step.given) :]
        group = np.zeros(n, dtype=np.int64)
        if step.given:
            group = np.ravel_multi_index(tuple(codes[:, a] for a in step.given), before)
        weights = step.weights.reshape(-1, int(np.prod(after)))
        cell = _drawn_cells(weights, group, rng.random(n))
        for column, found in zip(step.new, np.unravel_index(cell, after), strict=True):
            codes[:, column] = found
    return codes


def _drawn_cells(weights: Floats, group: Codes, uniform: Floats) -> Codes:
    """The cell of each row by inversion, from the weights of its group, shape (groups, cells)."""
    mass = weights.sum(axis=1, keepdims=True)
    overall = weights.sum(axis=0)
    overall = overall / overall.sum() if overall.any() else np.full(weights.shape[1], 1 / weights.shape[1])
    shares = np.where(mass > 0, weights / np.where(mass > 0, mass, 1.0), overall)
    upto = np.cumsum(shares, axis=1)
    upto /= upto[:, -1:]
    # Group g owns the interval [g, g + 1): one search for all rows.
    ladder = (upto + np.arange(len(upto))[:, None]).ravel()
    found = np.searchsorted(ladder, group + uniform, side="right") - group * weights.shape[1]
    last = weights.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    cells: Codes = np.minimum(found, last[group]).astype(np.int64)
    return cells


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of columns, so that those which share a column hang together.

    Attributes:
        sizes: cells of every column.
        cliques: each in ascending order; a parent stands before its children, the root first.
        parents: the position of each clique's parent; −1 for the root.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], together: Iterable[Attributes]) -> "JunctionTree":
        """The tree in which each of these sets of columns lies in some clique, and every column in one."""
        cliques = _cliques(sizes, together)
        order, parents = [0], [-1]
        best = {i: (len(set(cliques[0]) & set(cliques[i])), 0) for i in range(1, len(cliques))}
        while best:  # Prim's tree of the largest overlaps has the running intersection property
            chosen = max(best, key=lambda i: (best[i][0], -i))
            parents.append(best.pop(chosen)[1])
            order.append(chosen)
            for i, (overlap, _) in best.items():
                shared = len(set(cliques[chosen]) & set(cliques[i]))
                if shared > overlap:
                    best[i] = (shared, len(order) - 1)
        return cls(tuple(sizes), tuple(cliques[i] for i in order), tuple(parents))

    @cached_property
    def separators(self) -> tuple[Attributes, ...]:
        """What each clique shares with its parent; nothing for the root."""
        return tuple(
            () if parent < 0 else tuple(a for a in clique if a in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @property
    def cells(self) -> int:
        """Cells of all cliques."""
        return sum(cells_of(self.sizes, clique) for clique in self.cliques)

    def holder(self, attributes: Attributes) -> int | None:
        """The smallest clique that has all these columns; None if there is none."""
        wanted = set(attributes)
        found = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(found, key=lambda i: cells_of(self.sizes, self.cliques[i])) if found else None

    def connecting(self, attributes: Attributes) -> list[int]:
        """The cliques of the smallest subtree that holds all these columns, ascending."""
        wanted = set(attributes)
        kept = set(range(len(self.cliques)))
        while True:
            spare = next((i for i in sorted(kept) if len(kept) > 1 and self._idle(i, kept, wanted)), None)
            if spare is None:
                return sorted(kept)
            kept.remove(spare)

    def _idle(self, clique: int, kept: set[int], wanted: set[int]) -> bool:
        """True for a leaf of what is kept that adds none of the columns to its neighbour."""
        beside = [i for i in kept if self.parents[i] == clique]
        beside += [self.parents[clique]] * (self.parents[clique] in kept)
        return len(beside) == 1 and wanted & set(self.cliques[clique]) <= set(self.cliques[beside[0]])


def _cliques(sizes: Sequence[int], together: Iterable[Attributes]) -> list[Attributes]:
    """Maximal cliques of the graph, made chordal by taking out the column of the smallest table first."""
    beside: list[set[int]] = [set() for _ in sizes]
    for members in together:
        for a, b in combinations(members, 2):
            beside[a].add(b)
            beside[b].add(a)
    left = set(range(len(sizes)))
    found: list[set[int]] = []
    while left:
        column = min(left, key=lambda a: (cells_of(sizes, (a, *beside[a])), a))
        clique = {column} | beside[column]
        if not any(clique <= other for other in found):
            found.append(clique)
        for a in beside[column]:
            beside[a] |= beside[column] - {a}
            beside[a].discard(column)
        left.remove(column)
    return [tuple(sorted(clique)) for clique in found]


@dataclass(frozen=True, eq=False)
class Measured:
    """A table of counts as it was measured.

    Attributes:
        attributes: of its axes, ascending.
        counts: noisy, possibly below 0.
        deviation: of the noise in each cell, of any shape that broadcasts; 1 where there was none.
    """

    attributes: Attributes
    counts: Floats = field(repr=False)
    deviation: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """Counts that agree with one another, on the cliques of a tree.

    Attributes:
        marginals: counts of each clique, above 0 or 0.
        potentials: logarithms by measured columns that the marginals follow from, to go on from.
    """

    tree: JunctionTree
    marginals: tuple[Floats, ...] = field(repr=False)
    potentials: Mapping[Attributes, Floats] = field(repr=False)

    def marginal(self, attributes: Attributes) -> Floats:
        """Counts of columns in ascending order, which need not lie in one clique."""
        holder = self.tree.holder(attributes)
        if holder is not None:
            return _summed(self.marginals[holder], self.tree.cliques[holder], attributes)
        return self._across(attributes)

    def conditionals(self) -> tuple[Conditional, ...]:
        """How rows are drawn from it, clique after clique."""
        steps = []
        for clique, shared, counts in zip(
            self.tree.cliques, self.tree.separators, self.marginals, strict=True
        ):
            new = tuple(a for a in clique if a not in shared)
            order = [clique.index(a) for a in (*shared, *new)]
            steps.append(Conditional(shared, new, np.ascontiguousarray(counts.transpose(order))))
        return tuple(steps)

    @cached_property
    def _shares(self) -> tuple[Floats, ...]:
        """Each clique given what it shares with its parent; counts for the root."""
        found = [self.marginals[0]]
        for i in range(1, len(self.marginals)):
            clique, shared = self.tree.cliques[i], self.tree.separators[i]
            total = _summed(self.marginals[i], clique, shared)
            found.append(self.marginals[i] / _spread(np.maximum(total, _FEWEST_CELLS), clique, shared))
        return tuple(found)

    def _across(self, attributes: Attributes) -> Floats:
        kept = self.tree.connecting(attributes)
        messages: dict[int, list[tuple[Floats, Attributes]]] = {i: [] for i in kept}
        for i in reversed(kept):
            top = i == kept[0]
            values, axes = (self.marginals if top else self._shares)[i], self.tree.cliques[i]
            for other, theirs in messages[i]:
                inside = {a for rest in messages[i] for a in rest[1]} | set(axes)
                wanted = inside & (set(attributes) | set(self.tree.cliques[i]))
                values, axes = _product(values, axes, other, theirs, wanted)
            shared = () if top else self.tree.separators[i]
            values, axes = _product(values, axes, np.ones(()), (), set(attributes) & set(axes) | set(shared))
            if not top:
                messages[self.tree.parents[i]].append((values, axes))
        return values


def estimated_total(measured: Sequence[Measured]) -> float:
    """Rows in all, 1 or more: sums of the tables, weighted by the precision that noise leaves them."""
    sums = np.array([one.counts.sum() for one in measured])
    variances = [np.broadcast_to(one.deviation**2, one.counts.shape).sum() for one in measured]
    return max(1.0, float(np.average(sums, weights=1 / np.array(variances))))


@dataclass(frozen=True, eq=False)
class _State:
    """Potentials, the marginals that follow, and the loss with its slope by each measured table."""

    potentials: Mapping[Attributes, Floats]
    marginals: Sequence[Floats]
    measured: Mapping[Attributes, Floats]
    value: float
    slopes: Mapping[Attributes, Floats]


def fitted(
    tree: JunctionTree,
    measured: Sequence[Measured],
    total: float,
    *,
    iterations: int,
    start: GraphicalModel | None = None,
    tolerance: float = 1e-5,
    tell: Callable[[], object] = lambda: None,
) -> GraphicalModel:
    """Mirror descent on ½ Σ ‖μ_r − y_r‖² / σ_r² over marginals μ that belong to one distribution.

    Args:
        tree: every measured table lies in one of its cliques.
        total: rows that the marginals sum to.
        start: a model to go on from, on any tree; uniform if left out.
        tolerance: ends when 20 steps improve the loss by a smaller share.
        tell: called before each step, to end what takes too long.
    """
    cliques = tree.cliques
    counts: dict[Attributes, Floats] = {}
    weights: dict[Attributes, Floats] = {}
    for one in measured:  # tables measured several times as their mean, weighted by precision
        r, weight = one.attributes, one.deviation**-2
        known = weights.get(r, np.zeros(()))
        weights[r] = known + weight
        counts[r] = (counts.get(r, np.zeros(())) * known + weight * one.counts) / weights[r]
    holders = {r: holder for r in counts if (holder := tree.holder(r)) is not None}

    def followed(potentials: Mapping[Attributes, Floats]) -> _State:
        sums = [np.zeros([tree.sizes[a] for a in clique]) for clique in cliques]
        for r, values in potentials.items():
            sums[holders[r]] += _spread(values, cliques[holders[r]], r)
        marginals = _calibrated(tree, sums, total)
        measured = {r: _summed(marginals[i], cliques[i], r) for r, i in holders.items()}
        off = {r: found - counts[r] for r, found in measured.items()}
        slopes = {r: weights[r] * x for r, x in off.items()}
        value = sum(float(np.vdot(slopes[r], x)) / 2 for r, x in off.items())
        return _State(potentials, marginals, measured, value, slopes)

    begun = {} if start is None else start.potentials
    state = followed({r: begun.get(r, np.zeros(values.shape)) for r, values in counts.items()})
    largest = max(float(weight.max()) for weight in weights.values())
    step, before = 1.0 / (largest * max(total, 1.0)), state.value  # small enough for any of the tables
    for done in range(1, iterations + 1):
        tell()
        for tried in range(_MOST_TRIED):  # until the loss falls by enough of what the slope promises
            further = {r: p - step * state.slopes[r] for r, p in state.potentials.items()}
            moved = followed(further)
            promised = sum(
                float(np.vdot(slope, state.measured[r] - moved.measured[r]))
                for r, slope in state.slopes.items()
            )
            if state.value - moved.value >= _SUFFICIENT * promised:
                step, state = step * (1.0 if tried else _GROWTH), moved
                break
            step *= _SHRINKING
        if done % 20 == 0:
            if before - state.value <= tolerance * max(state.value, 1.0):
                break
            before = state.value
    return GraphicalModel(tree, tuple(state.marginals), state.potentials)


def _calibrated(tree: JunctionTree, beliefs: list[Floats], total: float) -> list[Floats]:
    """Marginals of exp(Σ potentials), by belief propagation up and down the tree, in place."""
    sent: list[Floats] = [np.zeros(())] * len(beliefs)
    for i in range(len(beliefs) - 1, 0, -1):
        parent, shared = tree.parents[i], tree.separators[i]
        sent[i] = _log_summed(beliefs[i], tree.cliques[i], shared)
        beliefs[parent] += _spread(sent[i], tree.cliques[parent], shared)
    for i in range(1, len(beliefs)):
        parent, shared = tree.parents[i], tree.separators[i]
        news = _log_summed(beliefs[parent], tree.cliques[parent], shared) - sent[i]
        beliefs[i] += _spread(news, tree.cliques[i], shared)
    for belief in beliefs:
        belief -= belief.max()
        np.exp(belief, out=belief)
        belief *= total / belief.sum()
    return beliefs


def _summed(values: Floats, axes: Attributes, kept: Attributes) -> Floats:
    """Sums over all axes but those kept; both ascending."""
    found: Floats = values.sum(axis=tuple(i for i, a in enumerate(axes) if a not in kept))
    return found


def _log_summed(values: Floats, axes: Attributes, kept: Attributes) -> Floats:
    """The same of exponentials, as a logarithm."""
    over = tuple(i for i, a in enumerate(axes) if a not in kept)
    top = values.max(axis=over, keepdims=True)
    found: Floats = np.log(np.exp(values - top).sum(axis=over)) + top.squeeze(axis=over)
    return found


def _spread(values: Floats, axes: Attributes, held: Attributes) -> Floats:
    """Values on some axes in a form that broadcasts over all; both ascending."""
    return values.reshape([values.shape[held.index(a)] if a in held else 1 for a in axes])


def _product(
    one: Floats, axes: Attributes, other: Floats, theirs: Attributes, kept: set[int]
) -> tuple[Floats, Attributes]:
    """The product of two tables, summed over what is not kept; axes ascend."""
    letter = dict(zip(sorted({*axes, *theirs}), ascii_letters, strict=False))
    out = tuple(a for a in letter if a in kept)
    first, second, third = ("".join(letter[a] for a in some) for some in (axes, theirs, out))
    found: Floats = np.einsum(f"{first},{second}->{third}", one, other)
    return found, out


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """The cells of train's rows, told of with noise only.

    Attributes:
        codes: shape (n, d). sizes: cells of each column.
    """

    codes: Codes = field(repr=False)
    sizes: tuple[int, ...]
    context: FitContext = field(repr=False)

    def measured(self, attributes: Attributes, noise: float | None) -> Measured:
        """A table of counts with Gaussian noise of this deviation, which was paid for; None for none."""
        self.context.deadline.check()
        counts = self.exact(attributes)
        if noise is None:
            return Measured(attributes, counts, np.ones(()))
        return Measured(
            attributes, counts + self.context.noise.gaussian(noise, counts.shape), np.array(noise)
        )

    def exact(self, attributes: Attributes) -> Floats:
        """Without noise: to score candidates for a private choice, and for nothing else."""
        return counted(self.codes, self.sizes, attributes)

    def off(self, attributes: Attributes, expected: Floats) -> float:
        """Σ |counts − expected|, without noise; one row added or removed moves it by 1 at most."""
        return float(np.abs(self.exact(attributes) - expected).sum())


@dataclass(frozen=True, eq=False)
class SingleColumns:
    """Train with the cells merged that noise hides, and its noisy counts by column.

    Attributes:
        total: estimated number of rows.
    """

    rows: NoisyCounts
    merging: CellMerging
    measured: tuple[Measured, ...] = field(repr=False)
    total: float

    @classmethod
    def of(cls, rows: NoisyCounts, noise: float | None) -> "SingleColumns":
        """Measure every column alone, with noise that was paid for."""
        alone = [rows.measured((j,), noise) for j in range(len(rows.sizes))]
        merging = CellMerging.of([one.counts for one in alone], noise or 0.0)
        measured = []
        for j, one in enumerate(alone):
            together = np.bincount(merging.merged[j], minlength=merging.sizes[j])
            measured.append(Measured((j,), merging.counts(one.counts, j), one.deviation * np.sqrt(together)))
        merged = NoisyCounts(merging.codes(rows.codes), merging.sizes, rows.context)
        return cls(merged, merging, tuple(measured), estimated_total(alone))

    def independent(self, one: int, other: int) -> Floats:
        """Counts of two columns if they were independent."""
        a, b = (no_less_than_nothing(self.measured[j].counts) for j in (one, other))
        return np.outer(a / a.sum(), b / b.sum()) * self.total

    def mixed(self, column: int) -> float:
        """``1 − Σ p²``: the chance that two rows differ in a column, in [0, 1)."""
        counts = no_less_than_nothing(self.measured[column].counts)
        return float(1 - np.square(counts / counts.sum()).sum())

    def fitted(
        self,
        more: list[Measured],
        iterations: int,
        start: GraphicalModel | None = None,
    ) -> GraphicalModel:
        """The model of these and more tables."""
        measured = [*self.measured, *more]
        tree = JunctionTree.of(self.rows.sizes, [one.attributes for one in measured])
        check = self.rows.context.deadline.check
        return fitted(tree, measured, self.total, iterations=iterations, start=start, tell=check)


def chosen(scores: Floats, epsilon: float | None, sensitivity: float) -> int:
    """The position of a good score, by an exponential mechanism that was paid for; of the best for None."""
    if epsilon is None:
        return int(np.argmax(scores))
    return exponential_choice(scores, epsilon, sensitivity)
