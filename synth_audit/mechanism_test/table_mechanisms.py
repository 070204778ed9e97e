"""Mechanisms that make a table from a table, worst-case neighbours, and scores of what is released."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import numpy as np

from synth_audit.arrays import Bools, Floats, Integers, Labels
from synth_audit.dp.accountant import Accountant, FitTerms
from synth_audit.dp.guarantee import Neighbouring, PrivacyGuarantee
from synth_audit.errors import PlanError, SynthAuditError
from synth_audit.execution.context import RunContext
from synth_audit.generators.external.program import Format, PrivateFolder, Program
from synth_audit.mechanism_test.examination import FAILED, Claim, Job
from synth_audit.plugins.fitting import draw, fit, fit_context, untrusted
from synth_audit.plugins.generator import Generator
from synth_audit.table.schema import Column, Schema
from synth_audit.table.table import Table, assemble, read_table

Value: TypeAlias = "float | str | None"
Row: TypeAlias = "Mapping[str, Value]"

_FEW = 3
"""Rows of the smallest neighbouring tables, where one row weighs most."""

_UNSEEN = "unseen label"
"""The canary's, in a column whose labels no plan declares: a mechanism that reads them off rows shows it."""

NEAR = 0.02
"""A number counts as near the canary's within this share of the column's range."""

_MOST_PAIRS = 45
"""All pairs of ten columns; a wider table is scored by its first ones."""

_SEEDS = range(101, 107)  # with six pairs of distinct results, chance repeats them all once in 10,395 times


NamedScores = dict[str, float]
"""Scores of a release by what is looked at."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two tables that differ in one entity.

    Attributes:
        name: what sets them apart. canary: the row that ``having`` has and ``without`` lacks.
    """

    name: str
    without: Table
    having: Table
    canary: Row


@dataclass(frozen=True)
class ColumnRange:
    """The values of a column that tables are made of.

    Attributes:
        usual: of nearly all rows. odd: of the canary. spread: all that other rows may have.
    """

    usual: Value
    odd: Value
    spread: tuple[Value, ...]
    nullable: bool


def range_of(column: Column) -> ColumnRange:
    """From the declared domain; where only the rows tell one, the canary lies outside it.

    Raises:
        PlanError: the column has neither bounds nor categories.
    """
    labels = column.declared_categories or column.inferred_categories
    if labels:
        odd = labels[-1] if column.declared_categories else _UNSEEN
        return ColumnRange(labels[0], odd, tuple(labels[: max(1, len(labels) - 1)]), column.nullable)
    if column.bounds is None:
        raise PlanError(
            f"column {column.name!r} has neither bounds nor categories",
            where=f"columns.{column.name}",
            expected="declared bounds or categories, of which worst-case tables are made",
            fix="declare them in the plan, or leave the column out",
        )
    low, high = column.bounds
    odd_number = high if column.declared_bounds else high + max(high - low, 1.0)
    middle = low + (high - low) * np.array([0.1, 0.3, 0.5, 0.7])
    return ColumnRange(low, odd_number, tuple(float(x) for x in middle), column.nullable)


def worst_cases(schema: Schema, claim: Claim, rows: int) -> tuple[Neighbours, ...]:
    """Pairs of tables that faulty mechanisms are known to tell apart.

    * *extremes*: among equal rows, the largest numbers and labels that no other row has;
    * *few*: the same among three rows, where whatever is divided by their number moves most;
    * *spread*: the same among rows of many values;
    * *missing*: among complete rows, one of missing values alone;
    * *one more*: a row like all others, which their number alone tells of (not when one is replaced).

    Args:
        rows: of the smaller table, or of both when one is replaced.
    """
    ranges = {c.name: range_of(c) for c in schema.features}
    usual = {name: r.usual for name, r in ranges.items()}
    odd = {name: r.odd for name, r in ranges.items()}
    gap = {name: None if r.nullable else r.usual for name, r in ranges.items()}
    equal, few = [usual] * rows, [usual] * min(_FEW, rows)
    mixed = [
        {n: r.spread[(i + j) % len(r.spread)] for j, (n, r) in enumerate(ranges.items())} for i in range(rows)
    ]
    cases: list[tuple[str, Sequence[Row], Row]] = [
        ("extremes", equal, odd),
        ("few", few, odd),
        ("spread", mixed, odd),
    ]
    if any(r.nullable for r in ranges.values()):
        cases.append(("missing", equal, gap))
    if claim.neighbouring is Neighbouring.ADD_OR_REMOVE:
        cases.append(("one more", few, usual))
    replaced = [usual] * claim.rows if claim.neighbouring is Neighbouring.REPLACE else []
    return tuple(
        Neighbours(
            name,
            table_of(schema, [*base, *replaced]),
            table_of(schema, [*base, *[canary] * claim.rows]),
            canary,
        )
        for name, base, canary in cases
    )


def table_of(schema: Schema, rows: Sequence[Row]) -> Table:
    """Rows as a table whose schema knows of the rows what a fit on them would.

    What is inferred of a column is inferred anew, since a generator that goes by it must be caught.
    """
    features = schema.released_only()
    loose = Schema(tuple(replace(c, inferred_resolution=None) for c in features))
    columns = {c.name: _values(c, [row[c.name] for row in rows]) for c in loose}
    table = assemble(loose, columns)
    seen = []
    for c in loose:
        domain = c.kind.domain(table.column(c.name))
        seen.append(replace(c, inferred_bounds=domain.bounds, inferred_categories=domain.categories or None))
    return table.declared_as(Schema(tuple(seen)))


def _values(column: Column, values: Sequence[Value]) -> Floats | Labels:
    if column.declared_categories or column.inferred_categories:
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
        return labels
    return np.array([np.nan if v is None else float(v) for v in values])


def number_scores(
    column: str, values: Floats, canary: float, low: float, high: float
) -> tuple[NamedScores, Bools]:
    """Range, moments and what is near the canary, of one column of numbers.

    Args:
        values: shape (n,), NaN where missing. canary: NaN for a missing value.
        low, high: of the column, public; what an empty column is told as.

    Returns:
        Scores; and which rows agree with the canary, shape (n,).
    """
    missing = np.isnan(values)
    there = values[~missing]
    width = max(high - low, np.finfo(float).tiny)
    near = missing if np.isnan(canary) else np.abs(values - canary) <= NEAR * width
    equal = missing if np.isnan(canary) else values == canary
    below = low - width
    least, largest, mean, spread, distinct = (
        (there.min(), there.max(), there.mean(), there.std(), len(np.unique(there)))
        if len(there)
        else (below, below, below, 0, 0)
    )
    found = {
        f"least of {column}": least,
        f"largest of {column}": largest,
        f"mean of {column}": mean,
        f"standard deviation of {column}": spread,
        f"distinct values of {column}": distinct,
        f"missing values of {column}": missing.sum(),
        f"{column} equal": equal.sum(),
        f"{column} near": near.sum(),
    }
    return {name: float(score) for name, score in found.items()}, near


def label_scores(column: str, values: Labels, canary: str | None) -> tuple[NamedScores, Bools]:
    """Labels and missing values, and which rows agree with the canary, of one column of labels."""
    missing = np.array([v is None for v in values], dtype=bool)
    agreeing = missing if canary is None else np.array([v == canary for v in values], dtype=bool)
    found = {
        f"distinct labels of {column}": len({v for v in values if v is not None}),
        f"missing values of {column}": missing.sum(),
        f"{column} equal": agreeing.sum(),
    }
    return {name: float(score) for name, score in found.items()}, agreeing


def row_scores(agreeing: Mapping[str, Bools], n_rows: int) -> NamedScores:
    """Rows in all; how the nearest one agrees; how many agree in all columns, and in each pair of them.

    Args:
        agreeing: for each column the rows that agree with the canary, shapes (n,).
    """
    agreed = np.sum([*agreeing.values()], axis=0) if agreeing and n_rows else np.zeros(1)
    found = {
        "rows": n_rows,
        "most columns in which a row is like the canary": agreed.max(),
        "rows like the canary": (agreed == len(agreeing)).sum() if agreeing and n_rows else 0,
    }
    for a, b in list(combinations(agreeing, 2))[:_MOST_PAIRS]:
        found[f"rows like the canary in {a} and {b}"] = (agreeing[a] & agreeing[b]).sum()
    return {name: float(score) for name, score in found.items()}


@dataclass(frozen=True, eq=False)
class Watch:
    """Looks at releases that one of two neighbours is behind."""

    neighbours: Neighbours

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What is looked at; the last tells of runs without a release."""
        return (*self._scores(self.neighbours.having), FAILED)

    def of(self, release: Table | None) -> Floats:
        """Scores of one release, finite, shape (len(names),); of None, those of a failure."""
        if release is None:
            return np.append(np.zeros(len(self.names) - 1), 1.0)
        found = np.array([*self._scores(release).values(), 0.0])
        finite: Floats = np.nan_to_num(found, posinf=1e300, neginf=-1e300)
        return finite

    def _scores(self, release: Table) -> NamedScores:
        found: NamedScores = {}
        agreeing: dict[str, Bools] = {}
        for column in self.neighbours.without.schema.features:
            name, canary = column.name, self.neighbours.canary[column.name]
            if isinstance(range_of(column).usual, str):
                told = label_scores(name, release.labels(name), None if canary is None else str(canary))
            else:
                number = np.nan if canary is None else float(canary)
                told = number_scores(name, release.numbers(name), number, *self._ends(column))
            found |= told[0]
            agreeing[name] = told[1]
        return found | row_scores(agreeing, release.n_rows)

    def _ends(self, column: Column) -> tuple[float, float]:
        if column.declared_bounds is not None:
            return column.declared_bounds
        ends = [self.neighbours.having.schema[column.name].bounds, column.bounds]
        known = [end for end in ends if end is not None]
        return min(e[0] for e in known), max(e[1] for e in known)


Maker: TypeAlias = Callable[[Table, int], Table]
"""Makes a release from a table, with what public randomness it takes from a seed; `SynthAuditError` where the
run failed."""


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
        return np.unique(first, return_inverse=True)[1].astype(np.int64)

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
