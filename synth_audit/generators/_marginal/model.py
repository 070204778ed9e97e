"""Bayesian networks of cells, from tables of counts, and how rows are drawn from a model of cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from synth_audit.arrays import Codes, Floats
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import BudgetSpent
from synth_audit.generators._marginal import marginals
from synth_audit.generators._marginal.binning import Binning, binning_for, counted_binning
from synth_audit.generators._model_files import FitsWhole, SavedWhole
from synth_audit.plugins.generator import FEWEST_PEOPLE, Count, FitContext, Part, Share
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
    steps: Sequence[marginals.Conditional] = field(repr=False)
    merging: marginals.CellMerging | None = field(default=None, repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        codes = marginals.drawn_rows(self.steps, n, rng)
        return self.binning.table(codes if self.merging is None else self.merging.drawn(codes, rng), rng)


@dataclass(frozen=True)
class Family:
    """A column and those that it depends on, which are drawn before."""

    child: int
    parents: marginals.Attributes

    @property
    def members(self) -> marginals.Attributes:
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
    together, all_rows, *apart = (float(c @ np.log(c)) for c in (counts[counts > 0], np.array([n]), *sides))
    return together + all_rows - sum(apart) - (len(sides[0]) - 1) * (len(sides[1]) - 1)


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
    columns = np.ascontiguousarray(codes.T)
    families = [Family(first, ())]
    left: dict[int, dict[marginals.Attributes, float]] = {
        c: {(): 0.0} for c in range(len(sizes)) if c != first
    }
    while left:
        newest, before = families[-1].child, sorted(family.child for family in families[:-1])
        for count in range(1, min(degree, len(families)) + 1):
            for others in combinations(before, count - 1):
                parents = tuple(sorted((*others, newest)))
                cells = marginals.cells_of(sizes, parents)
                open_to = [c for c, scores in left.items() if fewer or len(next(reversed(scores))) <= count]
                if not (fitting := [c for c in open_to if cells * sizes[c] <= most_cells]):
                    continue
                group = np.ravel_multi_index(tuple(columns[[*parents]]), [sizes[a] for a in parents])
                for child in fitting:
                    k = sizes[child]
                    joint = np.bincount(group * k + columns[child], minlength=cells * k).reshape(cells, k)
                    left[child][parents] = score(joint.astype(np.float64))
            if not fewer:  # of smaller sets none competes with one of this size
                for child, scores in left.items():
                    largest = {parents: s for parents, s in scores.items() if len(parents) == count}
                    left[child] = largest or scores
        found = {(child, parents): s for child, scores in left.items() for parents, s in scores.items()}
        child, parents = [*found][choose(np.array([*found.values()]))]
        families.append(Family(child, parents))
        del left[child]
    return families


def tables_needed(sizes: Sequence[int], degree: int, most_cells: int) -> int:
    """How many tables at most hold all families of any network; follows from public sizes alone.

    The first ``degree`` families lie within the next one, if its table is sure to fit.
    """
    degree = min(degree, len(sizes) - 1)
    widest = sorted(sizes)[-(degree + 1) :]
    return (
        len(sizes) - degree
        if marginals.cells_of(widest, tuple(range(len(widest)))) <= most_cells
        else len(sizes)
    )


def outermost(families: Sequence[Family]) -> list[Family]:
    """The families that lie in no other."""
    members = [frozenset(family.members) for family in families]
    return [f for f, own in zip(families, members, strict=True) if not any(own < other for other in members)]


def conditionals(
    families: Sequence[Family], tables: Sequence[tuple[Family, Floats]]
) -> list[marginals.Conditional]:
    """How the columns are drawn, from noisy counts.

    Args:
        tables: of :func:`outermost` families, in the order of their members; the nearest
            table of counts is taken.
    """
    found = []
    for family in families:
        own = set(family.members)
        holder, counts = next((f, t) for f, t in tables if own <= set(f.members))
        others = tuple(i for i, column in enumerate(holder.members) if column not in own)
        held = [column for column in holder.members if column in own]
        weights = (
            marginals.nearest_counts(counts)
            .sum(axis=others)
            .transpose([held.index(c) for c in family.members])
        )
        found.append(marginals.Conditional(family.parents, (family.child,), np.ascontiguousarray(weights)))
    return found


@dataclass(frozen=True, kw_only=True)
class CountedNetwork(FitsWhole):
    """How a network is fitted.

    Attributes:
        degree: parents of a column at most.
        bins: of a number at most.
        share: of the rest of ε for the network.
        most_cells: of one table; where a table would have more, a column gets fewer parents.
        minimum_people: who have a label that is drawn, where neither the plan declares it nor a budget asks
            for noise; another label of the column takes its place. 1 for all labels.
    """

    degree: Count
    margins: Share = 0.2
    bins: Count
    share: Part = 0.3
    most_cells: Count = 1_000_000
    minimum_people: Count = FEWEST_PEOPLE

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
        noise, choice = self._bought(public, context)
        codes, sizes = binning.codes(train), binning.sizes

        def choose(scores: Floats) -> int:
            context.deadline.check()
            return marginals.chosen(scores, choice, DEPENDENCE_SENSITIVITY)

        families = greedy_network(
            codes,
            sizes,
            first=int(context.rng.integers(len(sizes))),
            degree=self.degree,
            most_cells=self.most_cells,
            choose=choose,
            score=score if noise is None else dependence,
            fewer=fewer and noise is None,
        )

        def noisy(family: Family) -> Floats:
            context.deadline.check()
            counts = marginals.counted(codes, sizes, family.members)
            return counts if noise is None else counts + context.noise.laplace(noise, counts.shape)

        tables = [(family, noisy(family)) for family in outermost(families)]
        return BinnedModel(binning, conditionals(families, tables))

    def _bought(self, sizes: Sequence[int], context: FitContext) -> tuple[float | None, float | None]:
        """The noise of a table, and ε of one choice; None for neither, where nothing is bought.

        They follow from the most cells that columns can have, which is public.

        ``share`` of what is left of ε is for all choices, the rest for all tables, by basic composition.

        Raises:
            BudgetSpent: nothing is left.
        """
        accountant = context.accountant
        if accountant.unpaid(marginals.UNPAID_COUNTS) or accountant.budget is None:
            return None, None
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
        return scale, choice
