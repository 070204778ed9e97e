"""Two audits compared gate by gate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from synth_audit.findings.measurement import Direction, MeasurementId
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.comparison import Change, change_of_ends

if TYPE_CHECKING:
    import pandas as pd

_RANK = {Result.FAIL: 0, Result.INSUFFICIENT: 1, Result.PASS: 2}


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
        """Result and number of one side: ``fail 0.0213 [0.0101, 0.0342]``."""
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
        """The gates with another result, or a number that can be told from the earlier one."""
        return tuple(
            g
            for g in self.gates
            if g.change in (Change.BETTER, Change.WORSE, Change.CHANGED)
            or (g.before and g.before.result) != (g.after and g.after.result)
        )

    def _repr_html_(self) -> str:
        """The caveats, and the gates that changed."""
        from synth_audit.findings.text_frame import as_html

        rows = [
            {"gate": p.gate, "before": p.told(p.before), "after": p.told(p.after), "change": str(p.change)}
            for p in self.changed
        ]
        notes = [*self.caveats, f"{len(self.gates) - len(rows)} gates did not change"]
        told = "".join(f"<p>{escape(note)}</p>" for note in notes)
        return f"<p><b>{self.before.verdict} → {self.after.verdict}</b></p>{as_html(rows)}{told}"

    def to_frame(self) -> pd.DataFrame:
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
        return Change.BETTER if _RANK[after.result] > _RANK[before.result] else Change.WORSE
    if before.value == after.value:
        return Change.SAME
    ends = [math.nan if x is None else x for x in (after.low, after.high, before.low, before.high)]
    if any(map(math.isnan, ends)):
        return Change.UNKNOWN
    direction = directions.get(after.measurement) if after.measurement else None
    return change_of_ends((ends[0], ends[1]), (ends[2], ends[3]), direction or Direction.NEUTRAL)


def _caveats(before: Evidence, after: Evidence) -> tuple[str, ...]:
    found = []
    if before.table != after.table:
        found.append(f"these are audits of two tables, {before.table!r} and {after.table!r}")
    if before.gates.suite_sha256 != after.gates.suite_sha256:
        found.append("they were judged by two suites, whose limits may differ")
    if before.salt_commitment != after.salt_commitment:
        found.append("they have two salts: other people were in train")
    if before.level != after.level:
        found.append("their intervals have different levels")
    for which, evidence in (("first", before), ("second", after)):
        if left_out := evidence.left_out:
            found.append(f"the {which} audit was not whole: it left out {', '.join(left_out)}")
    return tuple(found)
