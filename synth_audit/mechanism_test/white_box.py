"""Single steps of our mechanisms, seen from inside: canary gradients, measured margins, batches, noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Integers, Positions
from synth_audit.dp.composition import spent
from synth_audit.dp.guarantee import Mechanism, MechanismRecord, Neighbouring
from synth_audit.dp.mechanisms import Noise
from synth_audit.generators._marginal.graphical_model import NoisyCounts
from synth_audit.mechanism_test.claim import Claim
from synth_audit.mechanism_test.distinguishing import Finding
from synth_audit.mechanism_test.function_mechanism import FunctionMechanism, Pair
from synth_audit.plugins.fitting import fit, fit_context, untrusted
from synth_audit.plugins.generator import FitContext
from synth_audit.run.context import RunContext

if TYPE_CHECKING:
    import torch

    from synth_audit.mechanism_test.table_mechanisms import GeneratorMaker
    from synth_audit.table.table import Table


def sizes_distance(sizes: Integers, n_rows: int, rate: float) -> float:
    """Largest distance of the sizes' distribution function from that of Bin(n_rows, rate).

    Args:
        sizes: of independent batches, shape (m,).
    """
    return _distance(sizes, n_rows, rate)


def recurrence_distance(drawn: Bools, rate: float) -> float:
    """Largest distance of how often a row is drawn in stretches of k = ⌈1 / rate⌉ batches from Bin(k, rate).

    Batches that divide the shuffled rows among them draw each row once in every stretch; batches of one size,
    drawn anew each time, are seen by their sizes.

    Args:
        drawn: whether the row was in each batch, in order, shape (m,).
    """
    stretch = math.ceil(1 / rate - 1e-9)
    whole = len(drawn) // stretch * stretch
    return _distance(drawn[:whole].reshape(-1, stretch).sum(axis=1), stretch, rate)


def largest_by_chance(m: int, alpha: float) -> float:
    """What such a distance exceeds with probability α at most: ``√(ln(2 / α) / 2 m)`` (Massart 1990)."""
    return math.sqrt(math.log(2 / alpha) / (2 * m)) if m else math.inf


def _distance(counts: Integers, trials: int, rate: float) -> float:
    from scipy.special import bdtr  # here, since a code location must not load it

    at = np.arange(trials + 1)
    expected: Floats = bdtr(at, trials, rate)
    seen = np.searchsorted(np.sort(counts), at, side="right") / max(1, len(counts))
    return float(np.abs(seen - expected).max())


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


@dataclass
class NoiseLog:
    """Numbers drawn of each noise, and batches of each rate."""

    drawn: Counter[str] = field(default_factory=Counter)
    batches: Counter[float] = field(default_factory=Counter)

    def noise(self) -> type[Noise]:
        """The house's noise, which is counted here."""
        log = self

        class Counted(Noise):
            @staticmethod
            def gaussian(scale, size):  # type: ignore[no-untyped-def]
                return log._counted("gaussian", Noise.gaussian(scale, size))

            @staticmethod
            def laplace(scale, size):  # type: ignore[no-untyped-def]
                return log._counted("laplace", Noise.laplace(scale, size))

            @staticmethod
            def gumbel(scale, size):  # type: ignore[no-untyped-def]
                return log._counted("gumbel", Noise.gumbel(scale, size))

            @staticmethod
            def poisson_sample(n, rate):  # type: ignore[no-untyped-def]
                log.batches[rate] += 1
                return Noise.poisson_sample(n, rate)

            @staticmethod
            def bits(count):  # type: ignore[no-untyped-def]
                log.drawn["bits"] += count
                return Noise.bits(count)

        return Counted

    def _counted(self, what: str, found: Floats) -> Floats:
        self.drawn[what] += found.size
        return found

    def findings(self, records: tuple[MechanismRecord, ...]) -> tuple[Finding, ...]:
        """What was paid for and never drawn. Less than was paid for is no fault: a fit may stop early."""
        found = []
        kinds = {record.mechanism for record in records}
        gaussian = {Mechanism.GAUSSIAN, Mechanism.POISSON_SUBSAMPLED_GAUSSIAN} & kinds
        if gaussian and not self.drawn["gaussian"] and not self.drawn["bits"]:
            found.append(Finding("the fit paid for Gaussian noise and drew none of the context's"))
        if Mechanism.LAPLACE in kinds and not self.drawn["laplace"] and not self.drawn["bits"]:
            found.append(Finding("the fit paid for Laplace noise and drew none of the context's"))
        if kinds and not self.drawn.total():
            found.append(Finding("the fit paid for privacy and drew no noise of the context's at all"))
        rates = {r.sampling_rate for r in records if r.sampling_rate not in (None, 1.0)}
        if any(not self.batches[rate] for rate in rates if rate is not None) and not self.drawn["bits"]:
            found.append(Finding("the fit paid for Poisson samples and drew no batch so at the stated rate"))
        return tuple(found)


@dataclass(frozen=True, eq=False, kw_only=True)
class WatchedContext(FitContext):
    """A fit's context whose noise is counted."""

    log: NoiseLog

    @property
    def noise(self) -> type[Noise]:
        """The same noise, counted."""
        return self.log.noise()


def look_inside(maker: GeneratorMaker, table: Table) -> tuple[Finding, ...]:
    """What one fit paid for and never drew.

    Raises:
        PluginError: the generator failed.
    """
    accountant = maker.accountant()
    plain = fit_context(table, np.random.default_rng(0), accountant, RunContext(), maker.base)
    log = NoiseLog()
    watched = WatchedContext(**{f.name: getattr(plain, f.name) for f in fields(plain)}, log=log)
    with untrusted():
        fit(maker.generator, table, watched)
    return log.findings(accountant.mechanisms)


@dataclass(frozen=True)
class GradientStep:
    """A function of gradients, shape (rows, weights): Poisson sample, clipped sum, noise.

    Attributes:
        clip: the clipping norm. multiplier: of the noise. rate: of Poisson sampling; 1 for all rows.
    """

    clip: float = 1.0
    multiplier: float = 1.0
    rate: float = 1.0

    def __call__(self, table: Floats, n: int) -> Floats:
        """``n`` noised sums of one batch each, in units of the clipping norm, shape (n, weights)."""
        import torch

        from synth_audit.generators._deep.private_gradients import NORMALISER, GradientNoise, private_gradient
        from synth_audit.generators._deep.training import one_thread

        noise = GradientNoise(self.clip, self.multiplier, Noise.gaussian)
        layer = torch.nn.Linear(table.shape[1], 1)

        def losses(rows: torch.Tensor) -> torch.Tensor:
            """Losses whose gradients are the rows; a second place, 0, takes back what the bias gains."""
            places = torch.stack([rows, torch.zeros_like(rows)], dim=1)
            at_row, at_zero = layer(places.flatten(0, 1)).reshape(-1, 2).T
            return at_row - at_zero

        rows = torch.as_tensor(table, dtype=torch.float32)
        everyone = np.arange(len(table))
        found = np.empty((n, table.shape[1]))
        with one_thread():
            for i in range(n):
                batch = Noise.poisson_sample(len(table), self.rate) if self.rate < 1 else everyone
                private_gradient(layer, losses, noise, rows[torch.as_tensor(batch)])
                found[i] = layer.weight.grad[0].numpy() * (NORMALISER / self.clip)
        return found
