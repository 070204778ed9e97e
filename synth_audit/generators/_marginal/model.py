"""Models of cells: Bayesian networks from tables of counts, and particles, read back as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from synth_audit.arrays import Codes, Floats
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import BudgetSpent
from synth_audit.generators._budget import UNPAID_COUNTS, Paid
from synth_audit.generators._marginal.binning import Binning, binning_for, counted_binning
from synth_audit.generators._marginal.graphical_model import (
    Attributes,
    CellMerging,
    Conditional,
    cells_of,
    chosen,
    counted,
    drawn_rows,
    nearest_counts,
    on_simplex,
)
from synth_audit.generators._model_files import SavedWhole, read_model
from synth_audit.plugins.generator import FEWEST_PEOPLE, FitContext, check_settings
from synth_audit.table.table import Table

_ROUNDED = 1 - 1e-9
"""Of what is left of ε: sums of floats must not exceed the budget."""

_MOST_EPSILON, _LEAST_SCALE = 999.0, 1.001e-3
"""Beyond them nothing can be accounted for, and noise is nothing beside a count of 1."""

DEPENDENCE_SENSITIVITY = 2.0
"""The most that one row added or removed moves :func:`dependence`.

A row in cell (a, b) moves ``c_xy − c_x c_y / n`` by exactly n / (n + 1) · (e_a − p)_x (e_b − q)_y, where p
and q are the shares of cells before. Either factor has an L1 norm of 2 at most; half of their product is
below 2 at every n.
"""


@dataclass(frozen=True, eq=False)
class BinnedModel(SavedWhole):
    """Cells of columns, and how rows of them are drawn.

    Attributes:
        steps: every column is new in one of them.
        merging: of cells that the steps do not tell apart.
    """

    binning: Binning = field(repr=False)
    steps: Sequence[Conditional] = field(repr=False)
    merging: CellMerging | None = field(default=None, repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        codes = drawn_rows(self.steps, n, rng)
        return self.binning.table(codes if self.merging is None else self.merging.drawn(codes, rng), rng)


@dataclass(frozen=True)
class Family:
    """A column and those that it depends on, which are drawn before."""

    child: int
    parents: Attributes

    @property
    def members(self) -> Attributes:
        """Parents, then child."""
        return (*self.parents, self.child)


def dependence(joint: Floats) -> float:
    """½ Σ |c_xy − c_x c_y / n|: rows to be moved for independence of the last axis from the others; 0 to n.

    It is n times the score R of Zhang et al. (2017), which is made for labels of any number. Its sensitivity
    knows no n, where that of mutual information does.

    Args:
        joint: counts, shape (…, k).
    """
    counts = joint.reshape(-1, joint.shape[-1])
    n = counts.sum()
    if not n:
        return 0.0
    expected = counts.sum(axis=1, keepdims=True) * (counts.sum(axis=0, keepdims=True) / n)
    return float(np.abs(counts - expected).sum() / 2)


def information(joint: Floats) -> float:
    """n · MI(last axis; the others), less one for each free cell: (rows in use − 1)(columns in use − 1).

    That is Akaike's price, twice what chance adds on average. Without it, of two sets of parents the one with
    more cells wins, whatever it says.

    Args:
        joint: counts, shape (…, k).
    """
    counts = joint.reshape(-1, joint.shape[-1])
    sides = [side[side > 0] for side in (counts.sum(axis=1), counts.sum(axis=0))]
    n = float(counts.sum())
    if not n:
        return 0.0
    together = _weighted_logarithms(counts[counts > 0]) + _weighted_logarithms(np.array([n]))
    apart = sum(_weighted_logarithms(side) for side in sides)
    return together - apart - (len(sides[0]) - 1) * (len(sides[1]) - 1)


def _weighted_logarithms(counts: Floats) -> float:
    return float(counts @ np.log(counts))


def greedy_network(
    codes: Codes,
    sizes: Sequence[int],
    *,
    first: int,
    degree: int,
    most_cells: int,
    choose: Callable[[Floats], int],
    score: Callable[[Floats], float] = dependence,
    fewer: bool = False,
) -> list[Family]:
    """Families in the order in which columns can be drawn.

    Of all columns left and all sets of ``degree`` columns placed before (of as many as there are, or as fit
    ``most_cells``) one pair is chosen by its score, until none is left. No table is counted twice: of d
    columns there are d² / 2 of them for one parent, d³ / 6 for two.

    Args:
        first: the column that depends on none.
        most_cells: cells of a family's table at most; one of a single column may have more.
        choose: position of the chosen score; called once for every column but the first.
        score: of a table of counts whose last axis is the column left.
        fewer: let sets of less than ``degree`` columns compete too, and none, whose score is 0.
    """
    counting = _Counting(np.ascontiguousarray(codes.T), tuple(sizes), most_cells, score)
    families = [Family(first, ())]
    left = {column: _Candidates() for column in range(len(sizes)) if column != first}
    while left:
        newest, before = families[-1].child, sorted(family.child for family in families[:-1])
        new = {
            count: [tuple(sorted((*others, newest))) for others in combinations(before, count - 1)]
            for count in range(1, min(degree, len(families)) + 1)
        }
        for count, sets in new.items():
            for parents in sets:
                counting.add(parents, {c: found for c, found in left.items() if fewer or found.size <= count})
            if not fewer:
                left = {c: found.only(count) for c, found in left.items()}
        scores = [np.array(found.scores) for found in left.values()]
        starts = np.cumsum([0, *map(len, scores)])
        place = choose(np.concatenate(scores))
        which = int(np.searchsorted(starts, place, side="right")) - 1
        child = [*left][which]
        families.append(Family(child, left.pop(child).sets[place - starts[which]]))
    return families


@dataclass
class _Candidates:
    """Sets of parents for one column, and their scores; with ``fewer`` of any size, else of one."""

    sets: list[Attributes] = field(default_factory=lambda: [()])
    scores: list[float] = field(default_factory=lambda: [0.0])

    @property
    def size(self) -> int:
        """Of the largest set."""
        return len(self.sets[-1])

    def only(self, count: int) -> _Candidates:
        """Without smaller sets, if there is one of that size."""
        if self.size != count or len(self.sets[0]) == count:
            return self
        kept = [i for i, parents in enumerate(self.sets) if len(parents) == count]
        return _Candidates([self.sets[i] for i in kept], [self.scores[i] for i in kept])


@dataclass(frozen=True, eq=False)
class _Counting:
    """Tables of counts of a column and its parents, and their scores; ``codes`` has shape (d, n)."""

    codes: Codes
    sizes: tuple[int, ...]
    most_cells: int
    score: Callable[[Floats], float]

    def add(self, parents: Attributes, to: Mapping[int, _Candidates]) -> None:
        """One more set of parents for some columns, where the table does not get too large."""
        cells = cells_of(self.sizes, parents)
        fitting = {c: found for c, found in to.items() if cells * self.sizes[c] <= self.most_cells}
        if not fitting:
            return
        group = np.ravel_multi_index(tuple(self.codes[[*parents]]), tuple(self.sizes[a] for a in parents))
        for child, found in fitting.items():
            k = self.sizes[child]
            joint = np.bincount(group * k + self.codes[child], minlength=cells * k).reshape(cells, k)
            found.sets.append(parents)
            found.scores.append(self.score(joint.astype(np.float64)))


def tables_needed(sizes: Sequence[int], degree: int, most_cells: int) -> int:
    """How many tables at most hold all families of any network; follows from public sizes alone.

    The first ``degree`` families lie within the next one, if its table is sure to fit.
    """
    degree = min(degree, len(sizes) - 1)
    widest = sorted(sizes)[-(degree + 1) :]
    return len(sizes) - degree if cells_of(widest, tuple(range(len(widest)))) <= most_cells else len(sizes)


def outermost(families: Sequence[Family]) -> list[Family]:
    """The families that lie in no other."""
    members = [frozenset(family.members) for family in families]
    return [f for f, own in zip(families, members, strict=True) if not any(own < other for other in members)]


def conditionals(families: Sequence[Family], tables: Sequence[tuple[Family, Floats]]) -> list[Conditional]:
    """How the columns are drawn, from noisy counts.

    Args:
        tables: of :func:`outermost` families, in the order of their members; the nearest
            table of counts is taken.
    """
    return [_conditional(family, tables) for family in families]


def _conditional(family: Family, tables: Sequence[tuple[Family, Floats]]) -> Conditional:
    own = set(family.members)
    holder, counts = next((f, t) for f, t in tables if own <= set(f.members))
    others = tuple(i for i, column in enumerate(holder.members) if column not in own)
    held = [column for column in holder.members if column in own]
    weights = nearest_counts(counts).sum(axis=others)
    return Conditional(
        family.parents,
        (family.child,),
        np.ascontiguousarray(weights.transpose([held.index(c) for c in family.members])),
    )


@dataclass(frozen=True, kw_only=True)
class CountedNetwork:
    """How a network is fitted.

    Attributes:
        degree: parents of a column at most.
        bins: of a number at most.
        share: of the rest of ε for the network.
        most_cells: of one table; where a table would have more, a column gets fewer parents.
        minimum_people: who have a label that is drawn, where neither the plan declares it nor a budget asks
            for noise; another label of the column takes its place. 1 for all labels.

    Raises:
        PlanError: a number makes no sense.
    """

    degree: int
    margins: float = 0.2
    bins: int
    share: float = 0.3
    most_cells: int = 1_000_000
    minimum_people: int = FEWEST_PEOPLE

    def __post_init__(self) -> None:
        counts = ("minimum_people", "degree", "bins", "most_cells")
        check_settings(self, counts=counts, shares=("margins",), parts=("share",))

    def load(self, folder: Path) -> BinnedModel:
        """The model that was saved there."""
        return read_model(folder, BinnedModel)

    def fit_network(
        self,
        train: Table,
        context: FitContext,
        *,
        score: Callable[[Floats], float] = dependence,
        fewer: bool = False,
    ) -> BinnedModel:
        """Count values, choose the network, count; each is paid for before it looks at a row.

        Args:
            score, fewer: see :func:`greedy_network`; without a budget only. With one, nothing but
                :func:`dependence` has a sensitivity, and tables of a fixed number are bought.

        Raises:
            BudgetSpent: the budget does not bear it.
        """
        train = train.released_only()
        public = binning_for(train, context, self.bins).sizes  # those of counted cells are answers already
        binning = counted_binning(train, context, self.bins, self.margins, pure=True)
        paid = self._bought(public, context)
        codes, sizes = binning.codes(train), binning.sizes

        def choose(scores: Floats) -> int:
            context.deadline.check()
            return chosen(scores, paid.choice, DEPENDENCE_SENSITIVITY)

        families = greedy_network(
            codes,
            sizes,
            first=int(context.rng.integers(len(sizes))),
            degree=self.degree,
            most_cells=self.most_cells,
            choose=choose,
            score=score if paid.noise is None else dependence,
            fewer=fewer and paid.noise is None,
        )

        def noisy(family: Family) -> Floats:
            context.deadline.check()
            counts = counted(codes, sizes, family.members)
            return counts if paid.noise is None else counts + context.noise.laplace(paid.noise, counts.shape)

        tables = [(family, noisy(family)) for family in outermost(families)]
        return BinnedModel(binning, conditionals(families, tables))

    def _bought(self, sizes: Sequence[int], context: FitContext) -> Paid:
        """What choices and tables cost, by the most cells that columns can have: by what is public alone.

        ``share`` of what is left of ε is for all choices, the rest for all tables, by basic composition.

        Raises:
            BudgetSpent: nothing is left.
        """
        accountant = context.accountant
        if accountant.budget is None:
            accountant.void(UNPAID_COUNTS)
            return Paid()
        choices = len(sizes) - 1
        tables = tables_needed(sizes, self.degree, self.most_cells)
        # Additions and removals of a row between neighbours.
        changes = accountant.rows * (2 if accountant.neighbouring is Neighbouring.REPLACE else 1)
        left = (accountant.budget.epsilon - accountant.spent().epsilon) * _ROUNDED / changes
        if left <= 0:
            raise BudgetSpent(
                "nothing is left of the privacy budget", where="epsilon", expected="epsilon above 0"
            )
        for_choices = left * self.share if choices else 0.0
        choice = min(for_choices / max(choices, 1), _MOST_EPSILON)
        scale = max(tables / (left - for_choices), _LEAST_SCALE)
        if choices:
            accountant.exponential(choice, what="choice of the network", count=choices)
        accountant.laplace(scale, what="tables of counts of a column and its parents", count=tables)
        return Paid(scale, choice)


@dataclass(frozen=True, eq=False)
class ParticleModel(SavedWhole):
    """Particles, and what their cells mean.

    Attributes:
        particles: cells, shape (m, d).
    """

    binning: Binning = field(repr=False)
    particles: Codes = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows: particles with replacement, and values from their cells."""
        return self.binning.table(self.particles[rng.integers(len(self.particles), size=n)], rng)


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Shares of the cells of one or two columns.

    Attributes:
        shares: 0 or more, of sum 1; one axis for each column.
    """

    attributes: Attributes
    shares: Floats = field(repr=False)

    @classmethod
    def of(cls, attributes: Attributes, counts: Floats, total: float) -> TargetTable:
        """The nearest shares to noisy counts of so many rows: their Euclidean projection to the simplex."""
        return cls(attributes, on_simplex(counts.ravel() / total).reshape(counts.shape))

    def quantiles(self, direction: Floats, n: int) -> Floats:
        """Of the cells along a direction, at the levels (i + ½) / n; shape (n,), ascending."""
        inside = np.argwhere(self.shares > 0)
        places = ((inside + 0.5) / self.shares.shape) @ direction
        order = np.argsort(places)
        upto = np.cumsum(self.shares[tuple(inside.T)][order])
        levels = (np.arange(n) + 0.5) / n * upto[-1]
        found: Floats = places[order][np.minimum(np.searchsorted(upto, levels), len(order) - 1)]
        return found


def moved_particles(
    targets: Sequence[TargetTable],
    sizes: Sequence[int],
    n: int,
    sweeps: int,
    rng: np.random.Generator,
    tell: Callable[[int], object] = lambda done: None,
) -> Codes:
    """Cells of ``n`` particles, shape (n, d).

    Each sweep moves every particle by the mean over all tables of its columns, along one random direction for
    each; steps shrink from 1 to a tenth.

    Args:
        targets: every column is in one of them, or its particles stay where they began.
        tell: called with the number of sweeps done.
    """
    columns = len(sizes)
    places = rng.random((n, columns))
    taking_part = np.zeros(columns)
    for target in targets:
        taking_part[list(target.attributes)] += 1
    for sweep in range(sweeps):
        tell(sweep)
        step = 0.1 ** (sweep / max(sweeps - 1, 1))
        move = np.zeros_like(places)
        for target in targets:
            own = list(target.attributes)
            direction = _direction(len(own), rng)
            along = places[:, own] @ direction
            order = np.argsort(along)
            wanted = np.empty(n)
            wanted[order] = target.quantiles(direction, n)
            # The mean of direction ⊗ direction is the identity over the number of columns.
            move[:, own] += len(own) * np.outer(wanted - along, direction)
        places = np.clip(places + step * move / np.maximum(taking_part, 1), 0.0, 1.0)
    cells: Codes = np.minimum((places * np.array(sizes)).astype(np.int64), np.array(sizes) - 1)
    return cells


def _direction(size: int, rng: np.random.Generator) -> Floats:
    drawn: Floats = rng.normal(size=size)
    return drawn / float(np.linalg.norm(drawn))
