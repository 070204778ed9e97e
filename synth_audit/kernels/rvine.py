"""Pair copulas on any regular vine, fitted and drawn from by pyvinecopulib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from synth_audit.core.arrays import Bools, Floats

FamilySet = Literal["one_parameter", "parametric", "nonparametric"]
Criterion = Literal["mbicv", "bic", "aic"]

SPARSITY = 0.7
"""ψ of mBICV: a pair copula of tree t is taken to be independence with probability 1 − ψᵗ beforehand."""


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

    @property
    def dim(self) -> int:
        """Number of variables."""
        return int(self.copula.dim)

    def truncated(self, level: int) -> RVine:
        """The first ``level`` trees."""
        if level >= int(self.copula.trunc_lvl):
            return self
        copula = type(self.copula).from_json(self.copula.to_json())
        copula.truncate(level)
        return RVine(copula)

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Uniform levels with this dependence, shape (n, d), by the inverse Rosenblatt transform."""
        uniforms = np.asfortranarray(rng.random((n, self.dim)))
        # One thread: with discrete variables the last bits depend on the number of threads.
        return np.asarray(self.copula.inverse_rosenblatt(uniforms, num_threads=1), dtype=np.float64)

    def to_json(self) -> str:
        """Everything there is to know of it, as text."""
        return str(self.copula.to_json())

    @classmethod
    def from_json(cls, text: str) -> RVine:
        """The vine that :meth:`to_json` wrote; draws are equal to the last bit."""
        from pyvinecopulib.core import Vinecop

        return cls(Vinecop.from_json(text))


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
    from pyvinecopulib.core import CVineStructure

    dim = at.shape[1]
    structure = CVineStructure(range(1, dim + 1), trunc_lvl=1) if star else None
    return RVine(_mended(fit_library(below, at, discrete, choice, structure)))


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


def _mended(fitted: Any) -> Any:
    """The vine with independence where the library's parameter is NaN.

    That happens where a variable is a function of others, so that nothing is left to relate.
    """
    from pyvinecopulib.core import Bicop, Vinecop

    pairs = fitted.pair_copulas
    if all(np.isfinite(pair.parameters).all() for tree in pairs for pair in tree):
        return fitted
    sound = [
        [pair if np.isfinite(pair.parameters).all() else Bicop(var_types=pair.var_types) for pair in tree]
        for tree in pairs
    ]
    return Vinecop.from_structure(fitted.structure, pair_copulas=sound, var_types=fitted.var_types)
