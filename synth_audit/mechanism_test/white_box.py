"""A mechanism as a Python function, and single steps of our mechanisms seen from inside."""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Integers, Positions
from synth_audit.dp.composition import spent
from synth_audit.dp.guarantee import Mechanism, MechanismRecord, Neighbouring
from synth_audit.dp.mechanisms import Noise
from synth_audit.errors import PlanError, PluginError
from synth_audit.execution.context import RunContext
from synth_audit.generators._marginal.marginals import NoisyCounts
from synth_audit.mechanism_test.examination import Claim, Finding, Job
from synth_audit.plugins.fitting import fit, fit_context, untrusted
from synth_audit.plugins.generator import FitContext

if TYPE_CHECKING:
    import torch

    from synth_audit.mechanism_test.table_mechanisms import GeneratorMaker
    from synth_audit.table.table import Table

Draws = Callable[[Any, int], Any]
"""Takes a table and a number n of runs, and returns n results: shape (n,) or (n, k)."""

_AT_ONCE = 50_000
"""Runs of a function in one call, unless it says otherwise."""

_AGAIN = 24
"""Results that two calls must differ in, or the function draws no fresh noise."""

_MOST_RESULTS = 2**27
"""Numbers that one call may return, a GiB: a mistaken shape is refused before more is made of it."""

DIMENSIONS = 16
"""Weights of the network whose gradients are looked at."""

_FAR = 100.0
"""How much longer than the clipping norm a canary's gradient is."""

_OTHERS = 8
"""Records in one direction that the displaced canary stands against."""

_STEP_RUNS = 500
"""Steps of DP-SGD in one call: each holds the gradients of a whole batch."""

_ALPHA = 1e-4
"""Error rate of the test of batches, so that an honest sampler is hardly ever accused."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables, in whatever form the function takes."""

    name: str
    without: Any
    having: Any


@dataclass(frozen=True, eq=False)
class FunctionMechanism:
    """A function ``(table, n) → n independent results``.

    Attributes:
        draws: the function.
        pairs: neighbours it is run on.
        at_once: runs asked for in one call.
    """

    draws: Draws
    pairs: tuple[Pair, ...]
    at_once: int = _AT_ONCE

    @property
    def cases(self) -> tuple[str, ...]:
        """What sets the pairs apart."""
        return tuple(pair.name for pair in self.pairs)

    def scores(self, case: int) -> tuple[str, ...]:
        """The numbers of a result."""
        width = self._results(self.pairs[case].having, 1).shape[1]
        return ("the result",) if width == 1 else tuple(f"number {j + 1} of the result" for j in range(width))

    def run(self, job: Job) -> Floats:
        """Results, NaN as a very small number, shape (n, k)."""
        pair, having = self.pairs[job.case], job.having
        parts = {
            side: self._results(table, int((having == side).sum()))
            for side, table in ((False, pair.without), (True, pair.having))
            if (having == side).any()
        }
        widths = {part.shape[1] for part in parts.values()}
        if len(widths) > 1:
            raise _bad("results whose size tells which table they are from")
        found = np.empty((len(having), widths.pop()))
        for side, part in parts.items():
            found[having == side] = part
        return found

    def repeated(self) -> Integers | None:
        """Whether a second call returns what the first did."""
        table = self.pairs[0].having
        first, second = (self._results(table, _AGAIN) for _ in range(2))
        if first.shape != second.shape or not np.array_equal(first, second):
            return None
        return np.unique(first, axis=0, return_inverse=True)[1].ravel().astype(np.int64)

    def _results(self, table: Any, n: int) -> Floats:
        try:
            found = np.asarray(self.draws(table, n), dtype=np.float64)
        except Exception as error:  # its text may hold a cell value
            raise PluginError(
                "the mechanism failed", where=type(error).__name__, fix="call it by hand to see more"
            ) from None
        if found.ndim == 1:
            found = found[:, None]
        if found.ndim != 2 or len(found) != n or found.size > _MOST_RESULTS:
            raise _bad("something else than n results")
        return np.nan_to_num(found, nan=-1e300, posinf=1e300, neginf=-1e300)


def named(text: str, where: str) -> Any:
    """What ``module:name`` names; modules of the working folder are found too.

    Raises:
        PlanError: there is no such thing.
    """
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PlanError(
            f"{text!r} cannot be imported ({type(error).__name__})",
            where=where,
            expected="module:function, in the working folder or installed",
            fix="check both names",
        ) from None
    if not callable(found):
        raise PlanError(f"{text!r} is no function", where=where, expected="module:function")
    return found


def array_pairs(claim: Claim, rows: int) -> tuple[Pair, ...]:
    """Neighbouring arrays of numbers in [0, 1], shape (rows,): the canary is 1 among zeros, and 0 among ones.

    Under *add or remove one* there is also one more row of zeros, which the number of rows alone tells of.
    """
    zeros, ones = np.zeros(rows), np.ones(rows)
    if claim.neighbouring is Neighbouring.REPLACE:
        high, low = zeros.copy(), ones.copy()
        high[: claim.rows], low[: claim.rows] = 1.0, 0.0
        return Pair("extremes", zeros, high), Pair("lowest", ones, low)
    more = np.ones(claim.rows)
    return (
        Pair("extremes", zeros, np.append(zeros, more)),
        Pair("lowest", ones, np.append(ones, 0 * more)),
        Pair("one more", zeros, np.append(zeros, 0 * more)),
    )


def given_pairs(found: Sequence[Any]) -> tuple[Pair, ...]:
    """Pairs as a function of the user's returns them: (name, without, having), or (without, having).

    Raises:
        PluginError: they are something else.
    """
    pairs = []
    for number, item in enumerate(found, 1):
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            raise PluginError(
                "the neighbours are given badly",
                where="neighbours",
                expected="a list of (name, without, having)",
            )
        name = item[0] if len(item) == 3 else f"pair {number}"
        pairs.append(Pair(str(name), item[-2], item[-1]))
    return tuple(pairs)


def _bad(what: str) -> PluginError:
    return PluginError(
        f"the mechanism returned {what}",
        where="function",
        expected="for (table, n) an array of n numbers, or of n rows of equally many",
        fix="return one result for each run",
    )


def sizes_distance(sizes: Integers, n_rows: int, rate: float) -> float:
    """Largest distance of the sizes' distribution function from that of Bin(n_rows, rate).

    Args:
        sizes: of independent batches, shape (m,).
    """
    from scipy.special import bdtr  # lazy import: a code location must not load it

    at = np.arange(n_rows + 1)
    expected: Floats = bdtr(at, n_rows, rate)
    seen = np.searchsorted(np.sort(sizes), at, side="right") / max(1, len(sizes))
    return float(np.abs(seen - expected).max())


def recurrence_distance(drawn: Bools, rate: float) -> float:
    """Largest distance of how often a row is drawn in stretches of k = ⌈1 / rate⌉ batches from Bin(k, rate).

    Batches that divide the shuffled rows among them draw each row once in every stretch; batches of one size,
    drawn anew each time, are seen by their sizes.

    Args:
        drawn: whether the row was in each batch, in order, shape (m,).
    """
    stretch = math.ceil(1 / rate - 1e-9)
    whole = len(drawn) // stretch * stretch
    return sizes_distance(drawn[:whole].reshape(-1, stretch).sum(axis=1), stretch, rate)


def largest_by_chance(m: int, alpha: float) -> float:
    """What such a distance exceeds with probability α at most: ``√(ln(2 / α) / 2 m)`` (Massart 1990)."""
    return math.sqrt(math.log(2 / alpha) / (2 * m)) if m else math.inf


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


def gradient_pairs() -> tuple[Pair, ...]:
    """Neighbouring tables of gradients clipped to norm 1, shape (rows, 16); the canary's is the last row.

    * *canary*: far longer than the clipping norm, in one direction (Nasr et al. 2021's crafted gradients);
    * *displaced*: against all others, so that a batch which holds it instead of another moves twice as far;
    * *one more*: a row whose gradient is zero, which only a normaliser that counts rows tells of.
    """
    along = np.zeros((1, DIMENSIONS))
    along[0, 0] = 1.0
    still = np.zeros((1, DIMENSIONS))
    others = np.repeat(along, _OTHERS, axis=0)
    return (
        Pair("canary", still, np.vstack([still, _FAR * along])),
        Pair("displaced", others, np.vstack([others, -_FAR * along])),
        Pair("one more", still, np.vstack([still, still])),
    )


def gradient_step(step: Callable[[Floats, int], Floats]) -> FunctionMechanism:
    """A DP-SGD step as a mechanism: ours, or any function of gradients."""
    return FunctionMechanism(step, gradient_pairs(), at_once=_STEP_RUNS)


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


def marginal_measurement(
    measure: Callable[[Codes, int], Floats], claim: Claim, cells: int
) -> FunctionMechanism:
    """A measurement of marginals as a mechanism: :class:`MarginalMeasurement`, or any function of codes.

    Its neighbours are columns of codes: one more row in a cell that nobody else is in, or moved there.
    """
    base = np.zeros(20, dtype=np.int64)
    last = np.full(claim.rows, cells - 1)
    stay = base[claim.rows :] if claim.neighbouring is Neighbouring.REPLACE else base
    return FunctionMechanism(measure, (Pair("empty cell", base, np.append(stay, last)),))


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

        def counted(what: str) -> Any:
            def draw(scale: float, size: Any) -> Floats:
                found: Floats = getattr(Noise, what)(scale, size)
                self.drawn[what] += found.size
                return found

            return staticmethod(draw)

        def poisson_sample(n: int, rate: float) -> Positions:
            self.batches[rate] += 1
            return Noise.poisson_sample(n, rate)

        def bits(count: int) -> int:
            self.drawn["bits"] += count
            return Noise.bits(count)

        drawn = {what: counted(what) for what in ("gaussian", "laplace", "gumbel")}
        others = {"poisson_sample": staticmethod(poisson_sample), "bits": staticmethod(bits)}
        return type("Counted", (Noise,), {**drawn, **others})

    def findings(self, records: tuple[MechanismRecord, ...]) -> tuple[Finding, ...]:
        """What was paid for and never drawn. Less than was paid for is no fault: a fit may stop early."""
        kinds = {record.mechanism for record in records}
        rates = {r.sampling_rate for r in records if r.sampling_rate not in (None, 1.0)}
        gaussian = {Mechanism.GAUSSIAN, Mechanism.POISSON_SUBSAMPLED_GAUSSIAN} & kinds
        seeded = self.drawn["bits"]  # a library that was handed a seed draws its own noise
        lacking = {
            "Gaussian noise and drew none of the context's": gaussian and not self.drawn["gaussian"] + seeded,
            "Laplace noise and drew none of the context's": Mechanism.LAPLACE in kinds
            and not self.drawn["laplace"] + seeded,
            "privacy and drew no noise of the context's at all": kinds and not self.drawn.total(),
            "Poisson samples and drew no batch so at the stated rate": not seeded
            and any(not self.batches[rate] for rate in rates if rate is not None),
        }
        return tuple(Finding(f"the fit paid for {what}") for what, lacks in lacking.items() if lacks)


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
    """A function of gradients, shape (rows, weights): Poisson sample, sum clipped to norm 1, noise.

    Attributes:
        multiplier: of the noise. rate: of Poisson sampling; 1 for all rows.
    """

    multiplier: float = 1.0
    rate: float = 1.0

    def __call__(self, table: Floats, n: int) -> Floats:
        """``n`` noised sums of one batch each, in units of the clipping norm, shape (n, weights)."""
        import torch

        from synth_audit.execution.context import one_thread
        from synth_audit.generators._deep.private_gradient import NORMALISER, GradientNoise, private_gradient

        noise = GradientNoise(1.0, self.multiplier, Noise.gaussian)
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
                found[i] = layer.weight.grad[0].numpy() * NORMALISER
        return found
