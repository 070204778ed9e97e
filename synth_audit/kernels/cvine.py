"""Pair copulas on a C-vine: fitted by pyvinecopulib, drawn from without its h-functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.kernels.rvine import Choice, fit_library

Edge = Any
"""A bivariate copula of pyvinecopulib whose first argument is the leaf and whose second is the root."""

_EDGE = 1e-10  # levels stay this far from 0 and 1, as in the library


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

    def truncated(self, level: int) -> CVine:
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

    def given_roots(self, leaf: int, level: float, roots: Sequence[float]) -> float:
        """F(x_leaf | roots) of one level of a leaf: what :meth:`from_uniforms` would draw it from.

        Args:
            level: F(x_leaf), in [0, 1].
            roots: w of the variables d−1, d−2, …, leaf+1, in this order.
        """
        value = float(np.clip(level, _EDGE, 1 - _EDGE))
        for t, root in enumerate(roots[: len(self.trees)]):
            edge = self.trees[t][leaf]
            if edge is not None:
                value = float(edge.hfunc2(np.array([[value, root]]))[0])
        return value

    def to_json(self) -> str:
        """Everything there is to know of it, as text."""
        trees = [[None if e is None else json.loads(e.to_json()) for e in tree] for tree in self.trees]
        return json.dumps({"dim": self.dim, "trees": trees}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> CVine:
        """The vine that :meth:`to_json` wrote; draws are equal to the last bit."""
        from pyvinecopulib.core import Bicop

        read = json.loads(text)
        trees = (
            tuple(None if e is None else Bicop.from_json(json.dumps(e)) for e in tree)
            for tree in read["trees"]
        )
        return cls(read["dim"], tuple(trees))


def inverse_h(edge: Edge, levels: Floats, root: Floats) -> Floats:
    """The level of a leaf of which a share ``levels`` lies below, given the root, shape (n,).

    Frank's is inverted in closed form, which the library does numerically, 25 times slower:
    u = −log(1 + p·(e^{−θ} − 1)/(p + (1 − p)·e^{−θw}))/θ.
    """
    if edge.family.name == "frank":
        return _inverse_frank(float(edge.parameters[0, 0]), levels, root)
    return np.asarray(edge.hinv2(np.asfortranarray(np.stack([levels, root], axis=1))), dtype=np.float64)


def _inverse_frank(theta: float, levels: Floats, root: Floats) -> Floats:
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
    trees = (
        tuple(_edge(fitted.get_pair_copula(t, e)) for e in range(dim - 1 - t))
        for t in range(int(fitted.trunc_lvl))
    )
    return CVine(dim, tuple(trees))


def _edge(copula: Any) -> Edge | None:
    """The copula of the two latent levels, which is what is drawn from; None for independence.

    Where a leaf is a function of the roots, nothing is left to relate, and the library's parameter is NaN.
    """
    if copula.family.name == "indep" or not np.isfinite(copula.parameters).all():
        return None
    return copula.with_var_types(["c", "c"])
