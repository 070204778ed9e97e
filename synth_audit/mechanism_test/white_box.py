"""Single steps of our mechanisms, seen from inside: canary gradients, measured marginals, and batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synth_audit.core.accounting import Mechanism, MechanismRecord, Neighbouring
from synth_audit.core.accounting.composition import spent
from synth_audit.core.arrays import Codes, Floats, Positions
from synth_audit.core.generator import FitContext
from synth_audit.encoding.noisy_counts import NoisyCounts
from synth_audit.kernels.sampling_checks import largest_by_chance, recurrence_distance, sizes_distance
from synth_audit.mechanism_test.claim import Claim
from synth_audit.mechanism_test.function_mechanism import FunctionMechanism, Pair
from synth_audit.mechanism_test.result import Finding

DIMENSIONS = 16
"""Weights of the network whose gradients are looked at."""

_FAR = 100.0
"""How much longer than the clipping norm a canary's gradient is."""

_OTHERS = 8
_STEP_RUNS = 500
_ALPHA = 1e-4


def step_claim(
    multiplier: float,
    *,
    rate: float = 1.0,
    delta: float = 1e-5,
    neighbouring: Neighbouring = Neighbouring.ADD_OR_REMOVE,
) -> Claim:
    """What the accountant claims of one Gaussian step.

    Args:
        multiplier: standard deviation over the clipping norm. rate: of Poisson sampling; 1 for all rows.
    """
    kind = Mechanism.GAUSSIAN if rate == 1 else Mechanism.POISSON_SUBSAMPLED_GAUSSIAN
    record = MechanismRecord(
        what="one step",
        mechanism=kind,
        noise_multiplier=multiplier,
        sampling_rate=None if rate == 1 else rate,
    )
    return Claim(spent((record,), delta, neighbouring).epsilon, delta, neighbouring)


def gradient_pairs(clip: float) -> tuple[Pair, ...]:
    """Neighbouring tables of gradients, shape (rows, 16); the canary's is the last row.

    * *canary*: far longer than the clipping norm, in one direction (Nasr et al. 2021's crafted gradients);
    * *displaced*: against all others, so that a batch which holds it instead of another moves twice as far;
    * *one more*: a row whose gradient is zero, which only a normaliser that counts rows tells of.
    """
    along = np.zeros((1, DIMENSIONS))
    along[0, 0] = clip
    still = np.zeros((1, DIMENSIONS))
    others = np.repeat(along, _OTHERS, axis=0)
    return (
        Pair("canary", still, np.vstack([still, _FAR * along])),
        Pair("displaced", others, np.vstack([others, -_FAR * along])),
        Pair("one more", still, np.vstack([still, still])),
    )


def gradient_step(step: Callable[[Floats, int], Floats], clip: float = 1.0) -> FunctionMechanism:
    """A DP-SGD step as a mechanism: ours, or any function of gradients."""
    return FunctionMechanism(step, gradient_pairs(clip), at_once=_STEP_RUNS)


@dataclass(frozen=True)
class MarginalMeasurement:
    """The measurement that MST and AIM make of the counts of a column's labels, with Gaussian noise.

    Attributes:
        cells: labels that may occur. multiplier: standard deviation of the noise over the L2 sensitivity, 1.
    """

    cells: int
    multiplier: float

    def __call__(self, table: Codes, n: int) -> Floats:
        """``n`` measurements, shape (n, cells)."""
        rows = NoisyCounts(table[:, None], (self.cells,), FitContext(rng=np.random.default_rng(0)))
        return np.array([rows.measured((0,), self.multiplier).counts for _ in range(n)])


def marginal_pairs(claim: Claim, cells: int) -> tuple[Pair, ...]:
    """Neighbouring columns of codes: one more row in a cell that nobody else is in, or moved there."""
    base = np.zeros(20, dtype=np.int64)
    last = np.full(claim.rows, cells - 1)
    if claim.neighbouring is Neighbouring.REPLACE:
        moved = base.copy()
        moved[: claim.rows] = last
        return (Pair("empty cell", base, moved),)
    return (Pair("empty cell", base, np.append(base, last)),)


def marginal_measurement(
    measure: Callable[[Codes, int], Floats], claim: Claim, cells: int
) -> FunctionMechanism:
    """A measurement of marginals as a mechanism: :class:`MarginalMeasurement`, or any function of codes."""
    return FunctionMechanism(measure, marginal_pairs(claim, cells))


def batch_findings(
    batch: Callable[[], Positions], n_rows: int, rate: float, batches: int = 4000
) -> tuple[Finding, ...]:
    """Whether batches are Poisson samples at the rate that was paid for.

    Sizes must be binomial, and the first row must come back as an independent coin has it. Each test errs
    with probability 1e-4 at most.

    Args:
        batch: positions of the rows of the next batch, below ``n_rows``.
    """
    sizes = np.empty(batches, dtype=np.int64)
    drawn = np.empty(batches, dtype=bool)
    for i in range(batches):
        rows = batch()
        sizes[i], drawn[i] = len(rows), bool((rows == 0).any())
    found = []
    if sizes_distance(sizes, n_rows, rate) > largest_by_chance(batches, _ALPHA):
        found.append(Finding("batches are no Poisson samples: their sizes are not binomial"))
    stretches = batches // math.ceil(1 / rate - 1e-9)
    if recurrence_distance(drawn, rate) > largest_by_chance(stretches, _ALPHA):
        found.append(
            Finding("batches are no Poisson samples: a row comes back more regularly than by chance")
        )
    return tuple(found)
