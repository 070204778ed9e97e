"""Two audits gate by gate, a release beside an earlier one, and a suite beside the one that ships."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from synth_audit.build import resource_folder
from synth_audit.findings.measurement import Direction, Measurement, MeasurementId
from synth_audit.findings.verdict import URGENCY, GateResult
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.suite import Gate, Suite, load_suite

if TYPE_CHECKING:
    import pandas as pd

Ends = tuple[float, float]

USUAL = "release"
"""The suite that a plan gets when it names none."""


class Change(StrEnum):
    """What became of a number from one audit to the other."""

    BETTER = "better"
    WORSE = "worse"
    CHANGED = "changed"
    SAME = "unchanged"
    ALIKE = "not distinguishable"
    ALONE = "in one audit only"
    UNKNOWN = "another value, precision not known"


def change(now: Measurement, before: Measurement) -> Change:
    """How a number differs from an earlier one."""
    return change_of_ends(_ends(now), _ends(before), now.direction)


def change_of_ends(now: Ends, before: Ends, direction: Direction) -> Change:
    """How an interval differs from an earlier one; with a point in common they are not told apart."""
    if now[0] <= before[1] and before[0] <= now[1]:
        return Change.ALIKE
    if direction is Direction.NEUTRAL:
        return Change.CHANGED
    return Change.WORSE if (now[0] > before[1]) == (direction is Direction.LOWER) else Change.BETTER


def worse_gates(
    results: Sequence[GateResult], now: Sequence[Measurement], before: Sequence[Measurement]
) -> tuple[GateResult, ...]:
    """The deciding gates whose number is worse than it was; without an interval then or now it says nothing.

    Two intervals of 95 % miss each other on the harmful side by chance in about 3 of 1,000 comparisons.
    """
    known, was = ({m.id: m for m in found if m.interval and m.finite} for found in (now, before))
    return tuple(
        g
        for g in results
        if g.blocking
        and g.measurement in known
        and g.measurement in was
        and change(known[g.measurement], was[g.measurement]) is Change.WORSE
    )


def _ends(m: Measurement) -> Ends:
    ends = (m.interval.low, m.interval.high) if m.interval else (m.value, m.value)
    return ends if all(map(math.isfinite, ends)) else (-math.inf, math.inf)


def weaker_gates(suite: Suite) -> tuple[str, ...]:
    """Names of the blocking gates on measurements in the usual suite that no blocking gate here holds as
    strictly; none of a suite that ships."""
    if suite.sha256 in {shipped.sha256 for shipped in _shipped().values()}:
        return ()
    return tuple(g.id for g in usual_gates() if not any(_as_strict(own, g) for own in _blocking(suite)))


def usual_gates() -> tuple[Gate, ...]:
    """The blocking gates on measurements of the usual suite."""
    return _blocking(_shipped()[USUAL])


def _blocking(suite: Suite) -> tuple[Gate, ...]:
    return tuple(g for g in suite.measured if g.blocking)


def _as_strict(own: Gate, usual: Gate) -> bool:
    ours, theirs = own.limit, usual.limit
    assert ours is not None
    assert theirs is not None
    same = ours.applies_to(theirs.measurement) and ours.compared in (theirs.compared, "both")
    above = theirs.maximum is None or (ours.maximum is not None and ours.maximum <= theirs.maximum)
    below = theirs.minimum is None or (ours.minimum is not None and ours.minimum >= theirs.minimum)
    few = theirs.people is None or (ours.people is not None and ours.people <= theirs.people)
    return same and above and below and few and (usual.optional or not own.optional)


@cache
def _shipped() -> dict[str, Suite]:
    folder = resource_folder("expectations")
    return {path.stem: load_suite(path.name, folder) for path in sorted(folder.glob("*.json"))}


@dataclass(frozen=True)
class GatePair:
    """One gate in two audits; None where a suite has no such gate."""

    gate: str
    before: GateResult | None
    after: GateResult | None
    change: Change

    @property
    def title(self) -> str:
        """The requirement in words."""
        known = self.after or self.before
        assert known is not None
        return known.title

    @staticmethod
    def told(gate: GateResult | None) -> str:
        """Result and number of one side: ``fail 2.1 % [1 % to 3.4 %]``."""
        return "no such gate" if gate is None else f"{gate.result} {gate.measured}".rstrip()


@dataclass(frozen=True)
class EvidenceComparison:
    """Two audits gate by gate.

    Attributes:
        caveats: what keeps the numbers from being about the same.
    """

    before: Evidence
    after: Evidence
    gates: tuple[GatePair, ...]
    caveats: tuple[str, ...]

    @property
    def changed(self) -> tuple[GatePair, ...]:
        """The gates with another result, or another number beyond what the intervals explain."""
        return tuple(
            g
            for g in self.gates
            if g.change not in (Change.SAME, Change.ALIKE)
            or (g.before and g.before.result) != (g.after and g.after.result)
        )

    @property
    def rest(self) -> str:
        """How many gates changed no more than their intervals explain; empty for none."""
        alike = len(self.gates) - len(self.changed)
        return f"{alike} gate{'s' * (alike != 1)} without a change beyond their intervals" if alike else ""

    def _repr_html_(self) -> str:
        """The caveats, and the gates that changed."""
        from synth_audit.findings.text_frame import as_html

        rows = [
            {"gate": p.gate, "before": p.told(p.before), "after": p.told(p.after), "change": str(p.change)}
            for p in self.changed
        ]
        told = "".join(f"<p>{escape(note)}</p>" for note in (*self.caveats, self.rest) if note)
        return f"<p><b>{self.before.verdict} → {self.after.verdict}</b></p>{as_html(rows)}{told}"

    def to_frame(self) -> "pd.DataFrame":
        """A row for each gate: results, values and intervals of both, and what became of the number."""
        from synth_audit.findings.text_frame import TextFrame

        return TextFrame(
            {
                "gate": pair.gate,
                "change": str(pair.change),
                **{
                    f"{key}_{side}": None if gate is None else getattr(gate, key)
                    for side, gate in (("before", pair.before), ("after", pair.after))
                    for key in ("result", "value", "low", "high")
                },
            }
            for pair in self.gates
        )


def compare(before: Evidence, after: Evidence) -> EvidenceComparison:
    """Compare two audits gate by gate.

    Two numbers can be told apart where their intervals have no point in common, which is stricter than a test
    of their difference: independent 95 % intervals of one width that just touch differ with p ≈ 0.006. Audits
    of one table share its real rows, and are not independent.
    """
    directions = {m.id: m.direction for e in (before, after) for m in e.measurements}
    first, second = ({g.gate: g for g in e.gates.results} for e in (before, after))
    names = [*second, *(name for name in first if name not in second)]
    pairs = ((name, first.get(name), second.get(name)) for name in names)
    compared = tuple(GatePair(name, a, b, _change(a, b, directions)) for name, a, b in pairs)
    return EvidenceComparison(before, after, compared, _caveats(before, after))


def _change(
    before: GateResult | None, after: GateResult | None, directions: dict[MeasurementId, Direction]
) -> Change:
    if before is None or after is None:
        return Change.ALONE
    if before.value is None or after.value is None:
        if before.result is after.result:
            return Change.SAME
        return Change.BETTER if URGENCY[after.result] > URGENCY[before.result] else Change.WORSE
    if before.value == after.value or (math.isnan(before.value) and math.isnan(after.value)):
        return Change.SAME
    ends = [math.nan if x is None else x for x in (after.low, after.high, before.low, before.high)]
    if any(map(math.isnan, ends)):
        return Change.UNKNOWN
    direction = directions.get(after.measurement) if after.measurement else None
    return change_of_ends((ends[0], ends[1]), (ends[2], ends[3]), direction or Direction.NEUTRAL)


def _other_training_set(before: Evidence, after: Evidence) -> str:
    """That the training sets differ, or cannot be compared: records agree under one salt only."""
    one, other = before.tables.get("train"), after.tables.get("train")
    if one and one == other:
        return ""
    sizes = one and other and one.rows == other.rows
    if sizes and not (before.salt_commitment and before.salt_commitment == after.salt_commitment):
        return (
            "their tables were hashed under two salts, so the evidence does not tell whether the training "
            "sets are the same; random draws may differ, too"
        )
    return "they have two training sets"


def _caveats(before: Evidence, after: Evidence) -> tuple[str, ...]:
    found = []
    if before.table != after.table:
        found.append(f"these are audits of two tables, {before.table!r} and {after.table!r}")
    if before.gates.suite_sha256 != after.gates.suite_sha256:
        found.append("they were judged by two suites, whose limits may differ")
    if about_train := _other_training_set(before, after):
        found.append(about_train)
    if before.level != after.level:
        found.append("their intervals have different levels")
    for which, evidence in (("first", before), ("second", after)):
        if left_out := evidence.left_out:
            found.append(f"the {which} audit was not whole: it left out {', '.join(left_out)}")
    return tuple(found)
