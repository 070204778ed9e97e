"""Looks into one fit of a generator: was the noise drawn that was paid for?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.core.accounting import Mechanism, MechanismRecord
from synth_audit.core.arrays import Floats
from synth_audit.core.context import RunContext
from synth_audit.core.fitting import fit, fit_context, untrusted
from synth_audit.core.generator import FitContext
from synth_audit.core.noise import Noise
from synth_audit.mechanism_test.result import Finding

if TYPE_CHECKING:
    from synth_audit.core.table import Table
    from synth_audit.mechanism_test.table_mechanisms import GeneratorMaker


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
