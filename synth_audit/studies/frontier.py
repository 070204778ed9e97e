"""The record of a sweep: what each candidate gave away, what it is good for, and which one was chosen."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from pydantic import ConfigDict, with_config

from synth_audit.arrays import Floats
from synth_audit.encode.scales import RankScale, rank_scale
from synth_audit.errors import DataError
from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.findings.verdict import Result
from synth_audit.stats.association import kendall
from synth_audit.store.evidence import sha256_of
from synth_audit.store.records import parse_strict, to_json
from synth_audit.table.schema import Column
from synth_audit.table.table import Table
from synth_audit.verdict import insufficient_evidence as lacking

MOST_COLUMNS = 40
"""More than these make no picture: the target, the sensitive columns and the first of the others stay."""

DIGITS = 2
"""Decimals that are kept: enough for a picture."""

SCHEMA_VERSION = "1.1"

ERROR = "error"
"""Verdict of a candidate that never became a table."""


@dataclass(frozen=True)
class Correlations:
    """A symmetric matrix.

    Attributes:
        names: columns in the table's order.
        values: Kendall's τ-b in [−1, 1], one row per column, 1 on the diagonal; NaN where it would rest on
            fewer rows than may be told of.
    """

    names: tuple[str, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()


NO_CORRELATIONS = Correlations()
"""Where there is no table."""


@dataclass(frozen=True, eq=False)
class Scales:
    """How columns become numbers, fixed by the training rows, so that tables can be compared.

    Attributes:
        scales: one for each column.
        fewest: rows that a number must rest on.
    """

    columns: tuple[Column, ...]
    scales: tuple[RankScale, ...]
    fewest: int

    @classmethod
    def of(cls, train: Table, fewest: int) -> Self:
        """Labels sorted by the mean rank of the target in each; without a target, and for the target's own,
        by falling frequency. Nominal labels have no order of their own: on this one τ shows most of what
        they say about the target.
        """
        columns = train.schema.leading_features(MOST_COLUMNS)
        target = train.schema.target
        response = None
        if target is not None:
            response = rank_scale(train, target, None, own_order=False).of(train)
        scales = (rank_scale(train, c, None if c == target else response, own_order=False) for c in columns)
        return cls(columns, tuple(scales), fewest)

    def correlations(self, table: Table) -> Correlations:
        """τ of every pair of columns over the rows where both are present.

        It is withheld where a column differs from its most frequent value in fewer than ``fewest`` of them,
        or its ranks could be worked out: where one person stands apart, τ is that person's rank.
        """
        values = [scale.of(table) for scale in self.scales]
        found = np.eye(len(values))
        for i, a in enumerate(values):
            for j, b in enumerate(values[:i]):
                both = ~(np.isnan(a) | np.isnan(b))
                told = min(_apart(a[both]), _apart(b[both])) >= self.fewest
                found[i, j] = found[j, i] = round(kendall(a, b), DIGITS) if told else np.nan
        return Correlations(tuple(c.name for c in self.columns), tuple(map(tuple, found.tolist())))


def _apart(values: Floats) -> int:
    """Rows that do not hold the most frequent value."""
    _, counts = np.unique(values, return_counts=True)
    return len(values) - int(counts.max(initial=0))


class GateOutcome(NamedTuple):
    """How one blocking gate ended; the others stand in the candidate's own report."""

    gate: str
    title: str
    result: str


@dataclass(frozen=True)
class Number:
    """A measurement; NaN at both ends where it came without an interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CandidateResult:
    """One generator that was tried.

    Attributes:
        name: what it differs by, for example ``vine truncation=5``.
        slug: its folder under ``candidates/``.
        generator: ``name`` and ``config``, as in a plan.
        varied: the settings that the sweep changed; empty for a generator listed by itself.
        verdict: pass, fail, insufficient evidence, or error when there is no table.
        privacy, utility: the two measurements; None where they are missing or cannot be relied on.
        privacy_score, utility_score: the same on [0, 1] over the candidates, higher is better.
        score: PU = α · privacy_score + (1 − α) · utility_score.
        boxes: box plots of the games against this generator.
        correlations: of its table; without names when there is no table.
        seconds: taken by making and auditing it, without what all candidates share.
        problem: kind and place of what went wrong; empty when nothing did.
        kept: it was taken over from an earlier sweep.
    """

    name: str
    slug: str
    generator: Mapping[str, Any]
    varied: Mapping[str, Any]
    verdict: str
    gates: tuple[GateOutcome, ...] = ()
    privacy: Number | None = None
    utility: Number | None = None
    privacy_score: float | None = None
    utility_score: float | None = None
    score: float | None = None
    boxes: tuple[Series, ...] = ()
    correlations: Correlations = NO_CORRELATIONS
    seconds: float = 0.0
    problem: str = ""
    kept: bool = False

    @property
    def passed(self) -> bool:
        """True when every blocking gate lets its table leave."""
        return self.verdict == Result.PASS


@with_config(ConfigDict(ser_json_inf_nan="strings", extra="forbid"))  # holds for what is within it too
@dataclass(frozen=True)
class FrontierRecord:
    """A sweep over candidates and what came of it.

    Attributes:
        plan_sha256: of the plan whose generator was varied.
        level: of every interval: ``1 − (1 − plan's level) / candidates``, since each candidate is a chance
            of a wrong pass.
        alpha: weight of privacy in the choice, in [0, 1].
        privacy, utility: the measurements; None when none was there.
        candidates: in the order of the sweep.
        chosen: name of the best candidate that passed; None when none did.
        reason: the choice in one sentence.
        real_correlations: of the training rows.
        split_kept: when the split was made, if an earlier run made it; else empty.
        releasable: the plan names a place that a candidate could be released to.
        privacy_gated: a deciding gate judges the measurement of privacy.
    """

    table: str
    plan_sha256: str
    seed: int
    level: float
    alpha: float
    utility: MeasurementId | None
    privacy: MeasurementId | None
    candidates: tuple[CandidateResult, ...]
    chosen: str | None
    reason: str
    real_correlations: Correlations
    created: str = ""
    split_kept: str = ""
    releasable: bool = False
    privacy_gated: bool = True
    schema_version: str = SCHEMA_VERSION

    @property
    def best(self) -> CandidateResult | None:
        """The chosen candidate."""
        return next((c for c in self.candidates if c.name == self.chosen), None)

    @property
    def digest(self) -> str:
        """SHA-256 of what was found, the same for the same plan and data: without times and what was kept."""
        plain = json.loads(self.to_json())
        candidates = [
            {k: v for k, v in c.items() if k not in ("seconds", "kept")} for c in plain["candidates"]
        ]
        return sha256_of({**plain, "candidates": candidates, "created": "", "split_kept": ""})

    def to_json(self) -> str:
        """The record as JSON text; non-finite numbers as the strings NaN, Infinity, -Infinity."""
        return to_json(self)


def read_frontier(path: Path | str) -> FrontierRecord:
    """Read a record.

    Raises:
        DataError: it is missing, damaged or of another schema version.
    """
    try:
        return parse_strict(FrontierRecord, Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(
            f"the record of the sweep cannot be read ({type(error).__name__})",
            where=str(path),
            expected=f"frontier.json, schema version {SCHEMA_VERSION}",
            fix="run `synth-audit frontier PLAN`; candidates that are whole are kept",
        ) from None


def scored(
    candidates: tuple[CandidateResult, ...], alpha: float, *, higher_privacy: bool, higher_utility: bool
) -> tuple[CandidateResult, ...]:
    """The candidates with their scores: ``PU = α P + (1 − α) U``.

    P and U are the measurements on [0, 1], smallest to largest over all candidates that have them, turned
    so that 1 is the best; all are 1 when they do not differ. Where lower is better nothing is gained below 0:
    what a release without any leak or loss has, give or take its noise.

    Args:
        alpha: weight of privacy, in [0, 1].
        higher_privacy, higher_utility: whether a higher number is the better one.

    Source: TVineSynth, appendix D.
    """
    privacy = _normalised([c.privacy for c in candidates], higher_privacy)
    utility = _normalised([c.utility for c in candidates], higher_utility)
    return tuple(
        replace(
            c,
            privacy_score=p,
            utility_score=u,
            score=None if p is None or u is None else alpha * p + (1 - alpha) * u,
        )
        for c, p, u in zip(candidates, privacy, utility, strict=True)
    )


def choose(candidates: tuple[CandidateResult, ...]) -> tuple[CandidateResult | None, str]:
    """The candidate with the best score among those that pass, the first of several; and why, in words."""
    passed = [c for c in candidates if c.passed]
    of_all = f"of {len(candidates)} candidate{'s' * (len(candidates) != 1)}"
    if not passed:
        failed = sum(c.verdict == Result.FAIL for c in candidates)
        broken = sum(c.verdict == ERROR for c in candidates)
        parts = [f"{failed} failed a gate"] * bool(failed) + [f"{broken} gave no table"] * bool(broken)
        if undecided := len(candidates) - failed - broken:
            parts.append(f"{undecided} {lacking.ENDED}")
        return None, f"None {of_all} may leave: {', '.join(parts)}."
    if len(passed) == 1:
        return passed[0], f"{passed[0].name} is the only one {of_all} that may leave."
    known = [c for c in passed if c.score is not None]
    if not known:
        return None, (
            f"{len(passed)} {of_all} passed, but privacy and utility were not both measured for any of them, "
            "so none was chosen."
        )
    best = max(known, key=lambda c: c.score or 0.0)  # the first of several equals
    score = f"the best score, {best.score:.3f},"
    told = f"{best.name} has {score} among the {len(passed)} {of_all} that may leave."
    if alike := [c.name for c in known if c is not best and _overlap(c, best)]:
        told += (
            f" Not distinguishable from it, since intervals of both numbers overlap: {', '.join(alike)}. "
            "Choose among these by what else matters."
        )
    return best, told


def _overlap(a: CandidateResult, b: CandidateResult) -> bool:
    pairs = ((a.privacy, b.privacy), (a.utility, b.utility))
    return all(x and y and x.low <= y.high and y.low <= x.high for x, y in pairs)


def _normalised(numbers: list[Number | None], higher: bool) -> list[float | None]:
    credited = [None if n is None else n.value if higher else max(n.value, 0.0) for n in numbers]
    values = [value for value in credited if value is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    worst = low if higher else high
    return [None if v is None else abs(v - worst) / (high - low) if high > low else 1.0 for v in credited]
