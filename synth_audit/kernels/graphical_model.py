"""The distribution of highest entropy for noisy tables of counts (McKenna, Sheldon & Miklau 2019)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import ascii_letters

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.kernels.ancestral import Conditional
from synth_audit.kernels.cell_counts import Attributes
from synth_audit.kernels.junction_tree import JunctionTree

_SUFFICIENT = 0.5  # Armijo's share of what the slope promises
_GROWTH, _SHRINKING = 1.5, 0.5
_FEWEST_CELLS = 1e-300


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
    loss = _MarginalLoss.of(tree, measured)
    known = {} if start is None else start.potentials
    potentials = {r: known.get(r, np.zeros(counts.shape)) for r, counts in loss.counts.items()}
    state = loss.state(potentials, total)
    step, before = loss.first_step(total), state.value
    for done in range(1, iterations + 1):
        tell()
        step, state = _descended(loss, total, step, state)
        if done % 20 == 0:
            if before - state.value <= tolerance * max(state.value, 1.0):
                break
            before = state.value
    return GraphicalModel(tree, tuple(state.marginals), state.potentials)


def _descended(loss: _MarginalLoss, total: float, step: float, state: _State) -> tuple[float, _State]:
    """One step, as long as the loss falls by enough of what the slope promises."""
    for tried in range(30):
        further = {r: p - step * state.slopes[r] for r, p in state.potentials.items()}
        moved = loss.state(further, total)
        promised = sum(
            float(np.vdot(slope, state.measured[r] - moved.measured[r])) for r, slope in state.slopes.items()
        )
        if state.value - moved.value >= _SUFFICIENT * promised:
            return step * (1.0 if tried else _GROWTH), moved
        step *= _SHRINKING
    return step, state


@dataclass(frozen=True, eq=False)
class _State:
    """Potentials, the marginals that follow, and the loss with its slope by each measured table."""

    potentials: Mapping[Attributes, Floats]
    marginals: Sequence[Floats]
    measured: Mapping[Attributes, Floats]
    value: float
    slopes: Mapping[Attributes, Floats]


@dataclass(frozen=True, eq=False)
class _MarginalLoss:
    """Squared error of marginals; of every measured table what was counted, its weight, and its clique."""

    tree: JunctionTree
    counts: Mapping[Attributes, Floats]
    weights: Mapping[Attributes, Floats]
    holders: Mapping[Attributes, int]

    @classmethod
    def of(cls, tree: JunctionTree, measured: Sequence[Measured]) -> _MarginalLoss:
        """Tables measured several times as their mean, weighted by precision."""
        counts: dict[Attributes, Floats] = {}
        weights: dict[Attributes, Floats] = {}
        for one in measured:
            r, weight = one.attributes, one.deviation**-2
            known = weights.get(r, np.zeros(()))
            weights[r] = known + weight
            counts[r] = (counts.get(r, np.zeros(())) * known + weight * one.counts) / weights[r]
        holders = {r: holder for r in counts if (holder := tree.holder(r)) is not None}
        return cls(tree, counts, weights, holders)

    def state(self, potentials: Mapping[Attributes, Floats], total: float) -> _State:
        """What follows from potentials."""
        cliques = self.tree.cliques
        sums = [np.zeros([self.tree.sizes[a] for a in clique]) for clique in cliques]
        for r, values in potentials.items():
            sums[self.holders[r]] += _spread(values, cliques[self.holders[r]], r)
        marginals = _calibrated(self.tree, sums, total)
        measured = {r: _summed(marginals[i], cliques[i], r) for r, i in self.holders.items()}
        off = {r: found - self.counts[r] for r, found in measured.items()}
        slopes = {r: self.weights[r] * x for r, x in off.items()}
        value = sum(float(np.vdot(slopes[r], x)) / 2 for r, x in off.items())
        return _State(potentials, marginals, measured, value, slopes)

    def first_step(self, total: float) -> float:
        """Small enough for any of the tables."""
        return 1.0 / (max(float(weight.max()) for weight in self.weights.values()) * max(total, 1.0))


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
