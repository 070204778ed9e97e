"""What judging may say: the result of each gate and of each check of the table, and the two answers.

*Safe to release* follows from the blocking gates, *fit for purpose* from the gates on usefulness that the
suite names for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from synth_audit.findings.measurement import MeasurementId, format_number

if TYPE_CHECKING:
    import pandas as pd


FITNESS = "fitness"
"""Identifier of the gate of suites whose fitness blocks, and the key of a gate that decides fitness."""


GATE_ROLES = ("deciding", "fit for purpose", "advisory")
"""What a gate may be there for: to stop a release, to say whether it is useful, to warn."""


class Result(StrEnum):
    """The three ends of a gate, and of the whole verdict."""

    PASS = "pass"
    FAIL = "fail"
    INSUFFICIENT = "insufficient evidence"

    @property
    def answer(self) -> str:
        """The same as the answer to a question."""
        return {Result.PASS: "yes", Result.FAIL: "no"}.get(self, str(self))


class Fitness(StrEnum):
    """Whether a release serves its purpose."""

    YES = "yes"
    NO = "no"
    INSUFFICIENT = "insufficient evidence"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class TableCheck:
    """One expectation on the synthetic table, evaluated while the table was at hand.

    Attributes:
        key: identifies the expectation (type and arguments) across suites and runs.
        met: None when it could not be evaluated, which no gate passes.
    """

    key: str
    met: bool | None
    explanation: str


@dataclass(frozen=True)
class GateResult:
    """One gate's decision.

    Attributes:
        gate: identifier, unique in the suite.
        title: the requirement in words.
        reason: why the limit is what it is, from the suite.
        blocking: a gate that does not pass keeps the release in.
        measurement: what was judged, of several the worst; None for a check of the table itself.
        every: all measurements of that quantity were judged.
        bound: what was compared: ``upper`` or ``lower`` end of the interval, ``both``, or the ``value``.
        explanation: why the result is what it is; advice: what to do about it.
        unusable: why the number decides nothing; empty where it can be used.
        n_needed: attacks or rows that would probably decide an undecided gate.
        fitness: the gate decides whether the release is fit for purpose; it blocks only as :data:`FITNESS`.
        unit: of the number that was judged.
    """

    gate: str
    title: str
    result: Result
    blocking: bool
    reason: str
    explanation: str
    advice: str = ""
    measurement: MeasurementId | None = None
    every: bool = False
    bound: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    n_needed: int | None = None
    fitness: bool = False
    unusable: str = ""
    unit: str = ""

    @property
    def role(self) -> str:
        """What it is there for."""
        return GATE_ROLES[0 if self.blocking else 1 if self.fitness else 2]

    @property
    def measured(self) -> str:
        """The number that was judged and its interval: ``2.1 % [1 % to 3.4 %]``; empty without one."""
        value, low, high = (
            "" if x is None else format_number(x, self.unit) for x in (self.value, self.low, self.high)
        )
        return f"{value} [{low} to {high}]" if low and high else value

    @property
    def allowed(self) -> str:
        """The limits: ``≥ 0.7`` or ``≤ 2 %``; empty without one."""
        ends = {"≥": self.minimum, "≤": self.maximum}
        return " and ".join(
            f"{sign} {format_number(end, self.unit)}" for sign, end in ends.items() if end is not None
        )


URGENCY = {Result.FAIL: 0, Result.INSUFFICIENT: 1, Result.PASS: 2}
"""Place of a result where the most urgent comes first."""


class GateResults(tuple[GateResult, ...]):
    """Results of gates, which a notebook shows as a table: those that did not pass first."""

    @property
    def urgent_first(self) -> list[GateResult]:
        """Failed gates, then those with insufficient evidence, then those that passed."""
        return sorted(self, key=lambda g: URGENCY[g.result])

    def __repr__(self) -> str:
        return f"<gates: {', '.join(f'{g.gate} {g.result}' for g in self) or 'none'}>"

    def _repr_html_(self) -> str:
        from synth_audit.findings.text_frame import as_html

        return as_html(
            {
                "gate": g.gate,
                "result": str(g.result),
                "measured": g.measured,
                "allowed": g.allowed,
                "role": g.role,
            }
            for g in self.urgent_first
        )


@dataclass(frozen=True, repr=False)
class GateReport:
    """All gates of a suite applied to one piece of evidence.

    Attributes:
        suite: the suite as it was applied, in Great Expectations' own form.
        blockers: reasons beside the gates that keep the release in, such as an audit that errored.
    """

    suite_name: str
    suite: Mapping[str, Any]
    suite_sha256: str
    results: tuple[GateResult, ...]
    blockers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.suite_name!r}: {self.verdict}, {GateResults(self.results)!r}>"

    @property
    def verdict(self) -> Result:
        """Pass only if there is a blocking gate, every blocking gate passes and nothing else blocks."""
        return self._ended(self.results)

    @property
    def safe(self) -> Result:
        """Whether the release is safe: the verdict without what the suite asks of fitness."""
        return self._ended([g for g in self.results if not g.fitness])

    @property
    def fitness(self) -> Fitness:
        """Whether the release is fit for purpose: yes only if every gate that decides it passes."""
        found = {g.result for g in self.results if g.fitness}
        if not found:
            return Fitness.NOT_TESTED
        if Result.FAIL in found:
            return Fitness.NO
        return Fitness.INSUFFICIENT if Result.INSUFFICIENT in found else Fitness.YES

    @property
    def held(self) -> GateResults:
        """The blocking gates that did not pass."""
        return GateResults(g for g in self.results if g.blocking and g.result is not Result.PASS)

    def _ended(self, results: Sequence[GateResult]) -> Result:
        blocking = [g.result for g in results if g.blocking]
        if Result.FAIL in blocking:
            return Result.FAIL
        if not blocking or self.blockers or Result.INSUFFICIENT in blocking:
            return Result.INSUFFICIENT
        return Result.PASS

    def _repr_html_(self) -> str:
        return GateResults(self.results)._repr_html_()

    def to_frame(self) -> pd.DataFrame:
        """A row for each gate: its result, what was judged, and the limits; shares are fractions."""
        from synth_audit.findings.text_frame import TextFrame

        limits = ("value", "low", "high", "minimum", "maximum")
        return TextFrame(
            {
                "gate": g.gate,
                "result": str(g.result),
                "blocking": g.blocking,
                "measurement": str(g.measurement or ""),
                **{name: getattr(g, name) for name in limits},
                "explanation": g.explanation,
            }
            for g in GateResults(self.results).urgent_first
        )
