"""Mechanisms that make a table from a table: a generator of ours, or somebody else's program."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from synth_audit.core.accounting import Accountant, FitTerms, PrivacyGuarantee
from synth_audit.core.arrays import Floats, Integers
from synth_audit.core.context import RunContext
from synth_audit.core.errors import SynthAuditError
from synth_audit.core.fitting import draw, fit, fit_context, untrusted
from synth_audit.core.generator import Generator
from synth_audit.core.table import Table, read_table
from synth_audit.generators.external.program import Format, PrivateFolder, Program
from synth_audit.mechanism_test.claim import Claim
from synth_audit.mechanism_test.mechanism import Job
from synth_audit.mechanism_test.neighbours import Neighbours
from synth_audit.mechanism_test.releases import Watch, digests

_SEEDS = range(101, 107)  # with six pairs of distinct results, chance repeats them all once in 10,395 times


class Maker(Protocol):
    """Makes a release from a table, with what public randomness it takes from a seed."""

    def __call__(self, table: Table, seed: int) -> Table:
        """One release.

        Raises:
            SynthAuditError: the run failed.
        """
        ...


@dataclass(frozen=True, eq=False)
class TableMechanism:
    """A maker of releases, tested on pairs of tables.

    Attributes:
        maker: run once for each result.
        neighbours: the pairs.
        seeded: False where the seed is a secret of whoever runs the mechanism, so that equal releases under
            equal seeds prove nothing.
    """

    maker: Maker
    neighbours: tuple[Neighbours, ...]
    seeded: bool = True
    at_once: int = 1

    @property
    def cases(self) -> tuple[str, ...]:
        """What sets the pairs apart."""
        return tuple(pair.name for pair in self.neighbours)

    @cached_property
    def _watches(self) -> tuple[Watch, ...]:
        return tuple(Watch(pair) for pair in self.neighbours)

    def scores(self, case: int) -> tuple[str, ...]:
        """What is looked at in a release."""
        return self._watches[case].names

    def run(self, job: Job) -> Floats:
        """Scores of one release for each run; a run that fails is a result as any other."""
        pair, watch = self.neighbours[job.case], self._watches[job.case]
        rows = []
        for having, seed in zip(job.having, job.seeds, strict=True):
            rows.append(watch.of(self._made(pair.having if having else pair.without, int(seed))))
        return np.array(rows)

    def repeated(self) -> Integers | None:
        """Whether each of some seeds gives one release twice."""
        if not self.seeded:
            return None
        table = self.neighbours[0].having
        first: list[str] = []
        for seed in _SEEDS:
            made = [self._made(table, seed) for _ in range(2)]
            prints = ["" if m is None else m.fingerprint for m in made]
            if prints[0] != prints[1]:
                return None
            first.append(prints[0])
        return digests(first)

    def _made(self, table: Table, seed: int) -> Table | None:
        try:
            return self.maker(table, seed)
        except SynthAuditError:
            return None


@dataclass(frozen=True, eq=False)
class GeneratorMaker:
    """Fits a generator and draws from the model.

    Attributes:
        terms: under which each fit may spend; nothing of it is debited anywhere, since the tables are made
            up.
        rows: drawn from each fit, a public constant.
    """

    generator: Generator
    terms: FitTerms
    rows: int
    base: Path = field(default_factory=Path.cwd)

    def __call__(self, table: Table, seed: int) -> Table:
        """One fit and one draw."""
        made, _, _ = self.fitted(table, seed)
        return made

    def accountant(self) -> Accountant:
        """A fresh one for each fit, under which the number of rows drawn is public."""
        return replace(self.terms, drawn=self.rows).detached()

    def fitted(self, table: Table, seed: int) -> tuple[Table, PrivacyGuarantee | None, str]:
        """A release, what is guaranteed of it, and why nothing is.

        Raises:
            PluginError: the generator failed.
        """
        accountant = self.accountant()
        rng = np.random.default_rng(seed)
        context = fit_context(table, rng, accountant, RunContext(), self.base)
        with untrusted():
            fitted = fit(self.generator, table, context)
        release = draw(fitted.model, self.rows, table.schema, rng)
        return release, fitted.guarantee, accountant.why_none


@dataclass(frozen=True)
class ProgramMaker:
    """Runs a program that reads a table and writes a release.

    Attributes:
        command: its words; see :data:`PLACEHOLDERS`. rows: what ``{rows}`` says.
        claim: what ``{epsilon}`` and ``{delta}`` say. timeout: longest run in seconds.
    """

    command: tuple[str, ...]
    claim: Claim
    rows: int
    format: Format = "csv"
    timeout: float = 600.0
    base: Path = field(default_factory=Path.cwd)

    def __call__(self, table: Table, seed: int) -> Table:
        """One run of the program in a private folder, which is deleted.

        Raises:
            DataError: it does not start, fails, takes too long, or leaves no table of these columns.
        """
        folder = PrivateFolder()
        domain = folder.path / "domain.json"
        domain.write_text(json.dumps(domain_of(table)), encoding="utf-8")
        values = {"{domain}": domain, "{epsilon}": self.claim.epsilon, "{delta}": self.claim.delta}
        words = self.command
        for mark, value in values.items():
            words = tuple(word.replace(mark, str(value)) for word in words)
        program = Program(words, self.base, folder, self.format, self.timeout)
        program.lay_out(table)
        found = program.run(self.rows, seed)
        return read_table(found, table.schema, where="synthetic")


def domain_of(table: Table) -> dict[str, dict[str, object]]:
    """What is public of each column, as a program may read it: bounds or categories, and ``nullable``."""
    found: dict[str, dict[str, object]] = {}
    for column in table.schema.features:
        bounds, labels = column.declared_bounds, column.declared_categories
        known = {"bounds": list(bounds)} if bounds else {"categories": list(labels)} if labels else {}
        found[column.name] = {**known, "nullable": column.nullable}
    return found
