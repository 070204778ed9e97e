"""Pair copulas on vines: fitted by pyvinecopulib, and the joint distribution of a vine's variables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from synth_audit.arrays import Bools, Floats
from synth_audit.encode.univariate import Margin, MarginMethod, column_margin, stepwise_margin
from synth_audit.generators.vine.columns import Variable

FamilySet = Literal["one_parameter", "parametric", "nonparametric"]
Criterion = Literal["mbicv", "bic", "aic"]

SPARSITY = 0.7
"""ψ of mBICV: a pair copula of tree t is taken to be independence with probability 1 − ψᵗ beforehand."""

Edge = Any
"""A bivariate copula of pyvinecopulib whose first argument is the leaf and whose second is the root."""

_EDGE = 1e-10  # levels stay this far from 0 and 1, as in the library

Topology = Literal["c_vine", "r_vine", "r_vine_star1"]

MIN_PAIRS = 10
"""Columns that are present together in fewer rows count as unrelated."""

FINE_STEP = 0.02
"""A variable whose values each have no more than this probability is fitted as a continuous one."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How pair copulas are chosen, tree by tree.

    Attributes:
        families: those with one parameter, fitted by inverting τ; all parametric ones, by maximum
            likelihood; or the transformation kernel.
        criterion: what a pair copula must improve to be taken instead of another, or of independence.
            mBICV (Nagler, Bumann and Czado 2019) is BIC with a penalty that grows with the tree.
        level: number of trees to fit; all if left out.
    """

    families: FamilySet = "one_parameter"
    criterion: Criterion = "mbicv"
    level: int | None = None


@dataclass(frozen=True, eq=False)
class RVine:
    """A vine copula of the library, never changed once it is made."""

    copula: Any

    def truncated(self, level: int) -> "RVine":
        """The first ``level`` trees."""
        if level >= int(self.copula.trunc_lvl):
            return self
        copula = type(self.copula).from_json(self.copula.to_json())
        copula.truncate(level)
        return RVine(copula)

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Uniform levels with this dependence, shape (n, d), by the inverse Rosenblatt transform."""
        uniforms = np.asfortranarray(rng.random((n, int(self.copula.dim))))
        # One thread: with discrete variables the last bits depend on the number of threads.
        return np.asarray(self.copula.inverse_rosenblatt(uniforms, num_threads=1), dtype=np.float64)


def fit_rvine(
    below: Floats,
    at: Floats,
    discrete: Bools,
    choice: Choice,
    *,
    star: bool,
) -> RVine:
    """Choose trees by the largest sum of |τ| (Dissmann), and pair copulas, tree by tree.

    Args:
        below, at, discrete: as for :func:`fit_library`; at least two variables.
        star: the first tree is the star around the last variable.

    Source: Dissmann et al. 2013; the star is R-vine star1 of TVineSynth.
    """
    from pyvinecopulib.core import Bicop, CVineStructure, Vinecop

    dim = at.shape[1]
    structure = CVineStructure(range(1, dim + 1), trunc_lvl=1) if star else None
    fitted = fit_library(below, at, discrete, choice, structure)
    pairs = fitted.pair_copulas
    if all(np.isfinite(pair.parameters).all() for tree in pairs for pair in tree):
        return RVine(fitted)
    # A parameter is NaN where a variable is a function of others: nothing is left to relate.
    sound = [
        [pair if np.isfinite(pair.parameters).all() else Bicop(var_types=pair.var_types) for pair in tree]
        for tree in pairs
    ]
    return RVine(Vinecop.from_structure(fitted.structure, pair_copulas=sound, var_types=fitted.var_types))


def fit_library(
    below: Floats,
    at: Floats,
    discrete: Bools,
    choice: Choice,
    structure: Any,
) -> Any:
    """The library's vine on a structure; of the trees that it lacks, or of all, Dissmann's choice.

    Args:
        below, at: F just below and at every value, shapes (n, d); columns that are not ``discrete`` hold
            one level in both.
    """
    from pyvinecopulib import families as sets
    from pyvinecopulib.core import FitControlsVinecop, Vinecop

    known = {
        "one_parameter": [sets.indep, *sets.one_par],
        "parametric": list(sets.parametric),
        "nonparametric": list(sets.nonparametric),
    }
    controls = FitControlsVinecop(
        family_set=known[choice.families],
        selection_criterion=choice.criterion,
        psi0=SPARSITY,
        parametric_method="itau" if choice.families == "one_parameter" else "mle",
        num_threads=1,
        trunc_lvl=min(choice.level or at.shape[1], at.shape[1] - 1),
    )
    return Vinecop.from_data(
        np.asfortranarray(np.hstack([at, below])),
        controls,
        structure=structure,
        var_types=["d" if d else "c" for d in discrete],
    )


@dataclass(frozen=True, eq=False)
class CVine:
    """Pair copulas of d variables; variable d−1 is the root of the first tree, variable 0 the last leaf.

    Attributes:
        dim: d.
        trees: ``trees[t][e]`` joins leaf e to the root d−1−t, given the roots before; None for independence.
            Trees that are not there are independence.
    """

    dim: int
    trees: tuple[tuple[Edge | None, ...], ...]

    def truncated(self, level: int) -> "CVine":
        """The first ``level`` trees."""
        return replace(self, trees=self.trees[:level])

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Uniform levels with this dependence, shape (n, d); the same for any number of threads."""
        return self.from_uniforms(rng.random((n, self.dim)))

    def from_uniforms(self, uniforms: Floats) -> Floats:
        """Turn independent levels into dependent ones (the inverse Rosenblatt transform).

        x_e = h⁻¹(… h⁻¹(w_e | w_r) … | w_{d−1}), for the roots r = d−1, d−2, … > e of the trees that are
        kept. In a C-vine the level of a root given the roots before it is what it was drawn from, so that no
        h-function is ever evaluated.

        Args:
            uniforms: w, shape (n, d), in [0, 1]; column j for variable j.
        """
        if not self.trees:  # independent: no level is moved, not even off its bounds
            return uniforms
        w = np.clip(np.asarray(uniforms, dtype=np.float64).T, _EDGE, 1 - _EDGE)
        drawn = w.copy()
        for leaf in range(self.dim):
            for t in reversed(range(min(len(self.trees), self.dim - 1 - leaf))):
                edge = self.trees[t][leaf]
                if edge is not None:
                    drawn[leaf] = inverse_h(edge, drawn[leaf], w[self.dim - 1 - t])
        return np.ascontiguousarray(drawn.T)


def inverse_h(edge: Edge, levels: Floats, root: Floats) -> Floats:
    """The level of a leaf of which a share ``levels`` lies below, given the root, shape (n,).

    Frank's is inverted in closed form, which the library does numerically, 25 times slower:
    u = −log(1 + p·(e^{−θ} − 1)/(p + (1 − p)·e^{−θw}))/θ.
    """
    if edge.family.name != "frank":
        return np.asarray(edge.hinv2(np.asfortranarray(np.stack([levels, root], axis=1))), dtype=np.float64)
    theta = float(edge.parameters[0, 0])
    if theta == 0:
        return levels
    weight = (1 - levels) * np.exp(-theta * root)
    total = levels + weight
    if abs(theta) < 1:  # a quotient near 1 would lose digits here, a sum near 0 would lose them below
        inner = np.log1p(levels * np.expm1(-theta) / total)
    else:
        inner = np.log((weight + levels * np.exp(-theta)) / total)
    inverse: Floats = np.clip(-inner / theta, _EDGE, 1 - _EDGE)
    return inverse


def fit_cvine(below: Floats, at: Floats, discrete: Bools, choice: Choice) -> CVine:
    """Choose pair copulas tree by tree on the C-vine of the variables as they stand.

    Args:
        below, at, discrete: as for :func:`fit_library`.
    """
    from pyvinecopulib.core import CVineStructure

    dim = at.shape[1]
    if dim < 2:
        return CVine(dim, ())
    fitted = fit_library(below, at, discrete, choice, CVineStructure(range(1, dim + 1)))
    pairs = [[fitted.get_pair_copula(t, e) for e in range(dim - 1 - t)] for t in range(int(fitted.trunc_lvl))]
    # The copula of the two latent levels is what is drawn from. Where a leaf is a function of the roots,
    # nothing is left to relate, and the library's parameter is NaN.
    trees = (
        tuple(
            None
            if pair.family.name == "indep" or not np.isfinite(pair.parameters).all()
            else pair.with_var_types(["c", "c"])
            for pair in tree
        )
        for tree in pairs
    )
    return CVine(dim, tuple(trees))


@dataclass(frozen=True, eq=False)
class Joint:
    """Margins and what links them.

    Attributes:
        margins: one per variable that is drawn, in the vine's order.
        linked: which of these the copula joins; the others are constant here.
        copula: of the linked variables, in their order.
        known: values of the variables that follow in the vine's order: those of the target in a class.
        share: probability of the class.
    """

    margins: tuple[Margin, ...]
    linked: tuple[int, ...]
    copula: CVine | RVine
    known: tuple[float, ...] = ()
    share: float = 1.0

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Values of all variables, shape (n, number of variables)."""
        levels = self.copula.draw(n, rng)
        values = np.empty((len(levels), len(self.margins) + len(self.known)))
        values[:, len(self.margins) :] = self.known
        place = {variable: i for i, variable in enumerate(self.linked)}
        middle = np.full(len(levels), 0.5)
        for v, margin in enumerate(self.margins):
            values[:, v] = margin.quantile(levels[:, place[v]] if v in place else middle)
        return values

    def truncated(self, level: int) -> "Joint":
        """With the first ``level`` trees of its copula."""
        return replace(self, copula=self.copula.truncated(level))


def fit_joint(
    variables: Sequence[Variable],
    margins: MarginMethod,
    topology: Topology,
    choice: Choice,
    rng: np.random.Generator,
) -> Joint:
    """Fit margins and copula to variables that have a value each in some row.

    For the copula alone missing values have stand-ins, drawn from a Gaussian copula given what is present in
    the row. Left to itself the library drops a missing value in continuous pairs, but reads it as an extreme
    one once it has conditioned on a discrete variable.

    A variable of which no value has more than ``FINE_STEP`` of the mass is as good as continuous: it takes
    the middle of its steps, which spares the slow fit of discrete pairs.
    """
    fitted = tuple(
        stepwise_margin(v.values) if v.gap else column_margin(v.column, v.values, margins) for v in variables
    )
    linked = tuple(i for i, v in enumerate(variables) if np.nanmax(v.values) > np.nanmin(v.values))
    joined, values = [fitted[i] for i in linked], [variables[i].values for i in linked]
    if any(np.isnan(v).any() for v in values):
        values = _filled(joined, values, rng)
    if len(joined) < 2 or choice.level == 0:
        return Joint(fitted, linked, CVine(len(joined), ()))
    intervals = [m.interval(v) for m, v in zip(joined, values, strict=True)]
    below, at = (np.column_stack(side) for side in zip(*intervals, strict=True))
    floor = 1 / len(at)
    discrete = np.max(at - below, axis=0) > FINE_STEP
    middle = np.clip((below + at) / 2, floor / 4, 1 - floor / 4)
    point = ~discrete | (at - below < floor / 100)
    below, at = np.where(point, middle, below), np.where(point, middle, at)
    if topology == "c_vine":
        return Joint(fitted, linked, fit_cvine(below, at, discrete, choice))
    # The library lays out a truncated fit differently, so that the same noise would give other rows.
    vine = fit_rvine(below, at, discrete, replace(choice, level=None), star=topology == "r_vine_star1")
    return Joint(fitted, linked, vine if choice.level is None else vine.truncated(choice.level))


def _filled(margins: Sequence[Margin], values: Sequence[Floats], rng: np.random.Generator) -> list[Floats]:
    """Values with stand-ins for missing ones, one array of shape (n,) each."""
    from scipy.special import ndtr, ndtri

    levels = np.column_stack([sum(m.interval(v)) / 2 for m, v in zip(margins, values, strict=True)])
    floor = 0.25 / len(levels)
    scores = fill_scores(ndtri(np.clip(levels, floor, 1 - floor)), rng)
    drawn = [m.quantile(ndtr(column)) for m, column in zip(margins, scores.T, strict=True)]
    return [np.where(np.isnan(v), stand_in, v) for v, stand_in in zip(values, drawn, strict=True)]


def fill_scores(scores: Floats, rng: np.random.Generator) -> Floats:
    """Draw missing entries from a Gaussian given the entries that are present in the row.

    z_m | z_o ~ N(R_mo R_oo⁻¹ z_o, R_mm − R_mo R_oo⁻¹ R_om), with R from :func:`pairwise_correlation`.

    Args:
        scores: normal scores, shape (n, d), NaN where missing; not changed.
    """
    known = ~np.isnan(scores)
    if known.all():
        return scores
    correlation = pairwise_correlation(scores)
    noise = rng.normal(size=scores.shape)
    filled = scores.copy()
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for i, present in enumerate(patterns):
        if present.all():
            continue
        rows, there, gone = np.flatnonzero(which == i), np.flatnonzero(present), np.flatnonzero(~present)
        weights = np.linalg.solve(correlation[np.ix_(there, there)], correlation[np.ix_(there, gone)])
        spread = correlation[np.ix_(gone, gone)] - correlation[np.ix_(gone, there)] @ weights
        root = np.linalg.cholesky(spread + 1e-9 * np.eye(len(gone)))
        filled[np.ix_(rows, gone)] = (
            scores[np.ix_(rows, there)] @ weights + noise[np.ix_(rows, gone)] @ root.T
        )
    return filled


def pairwise_correlation(scores: Floats) -> Floats:
    """Pearson correlations over the rows with both values, made positive definite, shape (d, d).

    Args:
        scores: shape (n, d), NaN where missing.
    """
    known = (~np.isnan(scores)).astype(np.float64)
    values = np.nan_to_num(scores)
    pairs = known.T @ known
    counts = np.maximum(pairs, 1.0)
    means = values.T @ known / counts  # of column i over the rows where j is present too
    variances = (values**2).T @ known / counts - means**2
    covariance = values.T @ values / counts - means * means.T
    scale = np.sqrt(np.maximum(variances, 0) * np.maximum(variances.T, 0))
    usable = (scale > 1e-6) & (pairs >= MIN_PAIRS)
    correlation = np.where(usable, covariance / np.where(usable, scale, 1.0), 0.0)
    np.fill_diagonal(correlation, 1.0)
    sizes, axes = np.linalg.eigh(correlation)
    correlation = (axes * np.maximum(sizes, 1e-3)) @ axes.T
    length = np.sqrt(np.diag(correlation))
    return np.asarray(correlation / np.outer(length, length))
