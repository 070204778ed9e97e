"""C-vine copula with the response at its root and sensitive columns in the last trees (TVineSynth)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from synth_audit.core.errors import DataError
from synth_audit.core.plugin import GeneratorInfo, PrivacyCertificate
from synth_audit.core.schema import Role, Schema
from synth_audit.core.table import Floats, Table, assemble
from synth_audit.generators._coding import Coding, Decoder, Variable, encode, variables_of
from synth_audit.generators._numeric import MarginMethod, numeric_margin
from synth_audit.kernels.imputation import fill_scores
from synth_audit.kernels.margins import Margin, stepwise_margin
from synth_audit.kernels.ordering import central, sensitive_first

MIN_ROWS = 10
"""Fewer training rows than this are refused: their margins would be the rows themselves."""

FINE_STEP = 0.02
"""A variable whose values each have no more than this probability is fitted as a continuous one."""

FamilySet = Literal["one_parameter", "parametric"]

_CERTIFICATE = PrivacyCertificate(
    "none", "margins and pair copulas are fitted to train without noise; truncation limits, it does not bound"
)


@dataclass(frozen=True, eq=False)
class VineModel:
    """A fitted vine; nothing in it changes when it is sampled or truncated.

    Attributes:
        schema: the columns of the synthetic table.
        decoders: how each column is made from the vine's variables, in schema order.
        order: names of the vine's variables, the first in the last trees, the last the root of tree 1;
            ``<column> is missing`` stands for a missingness variable.
        margins: one per variable.
        copula: the pair copulas; None with fewer than two variables.
        level: number of trees that are kept; None for all.
    """

    schema: Schema = field(repr=False)
    decoders: tuple[Decoder, ...] = field(repr=False)
    order: tuple[str, ...]
    margins: tuple[Margin, ...] = field(repr=False)
    copula: Any = field(repr=False)
    level: int | None

    @property
    def certificate(self) -> PrivacyCertificate:
        """No formal claim."""
        return _CERTIFICATE

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows; the same generator state gives the same rows."""
        seeds = rng.integers(0, 2**31, size=4).tolist()
        levels = rng.random((n, len(self.order))) if self.copula is None else self._levels(n, seeds)
        drawn = {i: margin.quantile(levels[:, i]) for i, margin in enumerate(self.margins)}
        return assemble(self.schema, {d.name: d.decode(drawn, n) for d in self.decoders})

    def truncated(self, level: int) -> VineModel:
        """This model with only the first ``level`` trees; pair copulas above become independence.

        Raises:
            ValueError: the level is below 1, or above that of this model.
        """
        if level < 1:
            raise ValueError("a vine keeps at least one tree")
        if self.level is not None and level > self.level:
            raise ValueError(f"this vine was fitted with {self.level} trees, so it cannot keep {level}")
        if self.copula is None:
            return replace(self, level=level)
        copula = type(self.copula).from_json(self.copula.to_json())
        copula.truncate(level)
        return replace(self, copula=copula, level=level)

    def _levels(self, n: int, seeds: list[int]) -> Floats:
        # One thread: with discrete variables the last bits depend on the number of threads.
        return np.asarray(self.copula.sample(n, seeds=seeds, num_threads=1), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Vine:
    """Fit a C-vine whose later trees hold what links the sensitive columns to the rest, and cut them off.

    f(x) = Π_j f_j(x_j) · Π_{trees e ≤ truncation} c_e(·, · | conditioning set), in the order of Algorithm 1:
    sensitive columns, those close to them, the rest, the target last as root of tree 1. Without a target
    the root is the column with the largest sum of |τ| to the others, a sensitive one only if all are. A
    sensitive target stays the root.

    Labels become codes: sorted by the mean rank of the target within each, so that the pair copula with
    the root can carry their whole effect; the target's own labels, and all labels without a target,
    in order of frequency. Each pattern of missing values becomes a 0/1 variable just before its first
    column, so that its rate and its relations are kept. For the fit alone, the gaps are filled with draws
    from a Gaussian copula given what is present in the row.

    Attributes:
        truncation: number of trees to keep, of one less than the vine's variables; all if left out.
        families: pair copulas with one parameter, fitted by inverting τ (fast), or all parametric ones,
            by maximum likelihood (the paper's choice, some hundred times slower).
        margins: ``kde`` for a smooth density that does not reproduce extremes; ``empirical`` for the
            sample's own, interpolated (the paper's choice).
        threshold: a column follows the sensitive ones when its |τ| with one of them exceeds this, in [0, 1].

    Raises:
        ValueError: the truncation is below 1, or the threshold outside [0, 1].

    Source: TVineSynth, Algorithm 1 and section 2.2; Nagler and Vatter, pyvinecopulib.
    """

    truncation: int | None = None
    families: FamilySet = "one_parameter"
    margins: MarginMethod = "kde"
    threshold: float = 0.6
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Truncated C-vine",
        summary="Vine copula rooted at the target; truncation cuts what ties sensitive columns to the rest.",
        cost="seconds",
        source="TVineSynth, Algorithm 1",
    )

    def __post_init__(self) -> None:
        if self.truncation is not None and self.truncation < 1:
            raise ValueError("truncation must be at least 1 tree")
        if not 0 <= self.threshold <= 1:
            raise ValueError("threshold must lie between 0 and 1")

    def fit(self, train: Table, rng: np.random.Generator) -> VineModel:
        """Fit order, margins and pair copulas to ``train`` without identifiers; only gaps need randomness.

        Raises:
            DataError: train has fewer than ``MIN_ROWS`` rows.
        """
        train = train.released_only()
        if train.n_rows < MIN_ROWS:
            raise DataError(
                f"train has {train.n_rows} rows, too few for a vine",
                where="train",
                expected=f"at least {MIN_ROWS} rows",
                fix="use more rows, or the generator `independent`",
            )
        codings = encode(train)
        variables = variables_of(_order(codings, self.threshold))
        margins = tuple(self._margin(v) for v in variables)
        values = _filled(margins, variables, rng)
        copula = _fit_copula(margins, values, self.families, self.truncation)
        positions = {(v.column.name, v.gap): i for i, v in enumerate(variables)}
        decoders = tuple(c.decoder(positions, variables) for c in codings)
        return VineModel(train.schema, decoders, tuple(map(str, variables)), margins, copula, self.truncation)

    def _margin(self, variable: Variable) -> Margin:
        if variable.gap or not variable.column.kind.numeric:
            return stepwise_margin(variable.values)
        return numeric_margin(variable.column, variable.values, self.margins)


def _order(codings: Sequence[Coding], threshold: float) -> list[Coding]:
    """The columns that vary, in the order of Algorithm 1."""
    varying = [c for c in codings if c.signal is not None]
    if not varying:
        return []
    signals = np.column_stack([s for c in varying if (s := c.signal) is not None])
    roles = [c.column.roles for c in varying]
    sensitive = [i for i, r in enumerate(roles) if Role.SENSITIVE in r]
    root = next((i for i, r in enumerate(roles) if Role.TARGET in r), None)
    if root is None:
        root = central(signals, [i for i in range(len(varying)) if i not in sensitive] or sensitive)
    return [varying[i] for i in sensitive_first(signals, sensitive, root, threshold)]


def _filled(
    margins: Sequence[Margin], variables: Sequence[Variable], rng: np.random.Generator
) -> list[Floats]:
    """The variables' values with stand-ins for missing ones, one array of shape (n,) each.

    Left to itself the library drops a missing value in continuous pairs, but reads it as an extreme one
    once it has conditioned on a discrete variable.
    """
    values = [v.values for v in variables]
    if not any(np.isnan(v).any() for v in values):
        return values
    from scipy.special import ndtr, ndtri

    levels = np.column_stack([sum(m.interval(v)) / 2 for m, v in zip(margins, values, strict=True)])
    floor = 0.25 / len(levels)
    scores = fill_scores(ndtri(np.clip(levels, floor, 1 - floor)), rng)
    drawn = [m.quantile(ndtr(column)) for m, column in zip(margins, scores.T, strict=True)]
    return [np.where(np.isnan(v), stand_in, v) for v, stand_in in zip(values, drawn, strict=True)]


def _fit_copula(
    margins: Sequence[Margin], values: Sequence[Floats], families: FamilySet, truncation: int | None
) -> Any:
    """Pair copulas on the C-vine of the variables as they stand; None with fewer than two."""
    if len(values) < 2:
        return None
    from pyvinecopulib import families as sets
    from pyvinecopulib.core import CVineStructure, FitControlsVinecop, Vinecop

    below, at, discrete = _levels_of(margins, values)
    fast = families == "one_parameter"
    controls = FitControlsVinecop(
        family_set=[sets.indep, *sets.one_par] if fast else list(sets.parametric),
        parametric_method="itau" if fast else "mle",
        num_threads=1,
        trunc_lvl=len(values) - 1 if truncation is None else truncation,
    )
    return Vinecop.from_data(
        np.asfortranarray(np.hstack([at, below])),
        controls,
        structure=CVineStructure(range(1, len(values) + 1)),
        var_types=["d" if d else "c" for d in discrete],
    )


def _levels_of(
    margins: Sequence[Margin], values: Sequence[Floats]
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """F just below and at every value, shapes (n, d), and which variables count as discrete.

    A variable of which no value has more than ``FINE_STEP`` of the mass is as good as continuous: it takes
    the middle of its steps, which spares the slow fit of discrete pairs.
    """
    intervals = [m.interval(v) for m, v in zip(margins, values, strict=True)]
    below, at = (np.column_stack(side) for side in zip(*intervals, strict=True))
    floor = 1 / len(at)
    discrete = np.max(at - below, axis=0) > FINE_STEP
    middle = np.clip((below + at) / 2, floor / 4, 1 - floor / 4)
    point = ~discrete | (at - below < floor / 100)
    return np.where(point, middle, below), np.where(point, middle, at), discrete
