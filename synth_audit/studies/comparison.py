"""Two audits beside one another, and our measurements in the tables that papers print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from synth_audit.build import resource_folder
from synth_audit.errors import PlanError
from synth_audit.files import load_yaml
from synth_audit.findings.measurement import Direction, Estimate, Interval, Measurement, MeasurementId, read
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.plan.plan import Plan
from synth_audit.plugins.plugin_config import PluginConfig
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.comparison import Change, Ends, change_of_ends

if TYPE_CHECKING:
    import pandas as pd


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
    pairs = tuple(
        GatePair(
            name, first.get(name), second.get(name), _change(first.get(name), second.get(name), directions)
        )
        for name in names
    )
    return EvidenceComparison(before, after, pairs, _caveats(before, after))


def _change(
    before: GateResult | None, after: GateResult | None, directions: dict[MeasurementId, Direction]
) -> Change:
    if before is None or after is None:
        return Change.ALONE
    if before.value is None or after.value is None:
        return Change.SAME if before.result is after.result else _by_result(before.result, after.result)
    if before.value == after.value:
        return Change.SAME
    first, second = _span(before), _span(after)
    if first is None or second is None:
        return Change.UNKNOWN
    direction = directions.get(after.measurement) if after.measurement else None
    return change_of_ends(second, first, direction or Direction.NEUTRAL)


_RANK = {Result.FAIL: 0, Result.INSUFFICIENT: 1, Result.PASS: 2}


def _by_result(before: Result, after: Result) -> Change:
    return Change.BETTER if _RANK[after] > _RANK[before] else Change.WORSE


def _span(gate: GateResult) -> Ends | None:
    """The interval of a gate; None where nothing is known of its precision."""
    ends = (gate.low, gate.high)
    return None if any(end is None or end != end for end in ends) else ends  # type: ignore[return-value]


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
    return tuple(found)


class PublishedColumn(BaseModel):
    """A column: its heading as printed, and the measurement that stands under it.

    Attributes:
        negated: the paper counts the other way round, such as a gain where we measure a loss.
        note: how our number is another one than the paper's; empty where it is the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    heading: str
    measurement: str
    negated: bool = False
    note: str = ""

    def of(self, evidence: Evidence) -> Estimate | None:
        """The number that evidence has for this column; None where it was not measured."""
        wanted = read(self.measurement)
        found = next((m for m in evidence.measurements if m.id == wanted), None)
        return None if found is None else self._estimate(found)

    def _estimate(self, found: Measurement) -> Estimate:
        i = found.interval
        if not self.negated:
            return Estimate(found.value, i)
        turned = None if i is None else Interval(-i.high, -i.low, i.level, i.method)
        return Estimate(0.0 - found.value, turned)


class PublishedTable(BaseModel):
    """A table of a paper.

    Attributes:
        title: the paper and the number of the table in it.
        audits: what measures it, with the settings it takes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    title: str
    audits: tuple[PluginConfig, ...]
    columns: tuple[PublishedColumn, ...] = Field(min_length=1)

    def asked_of(self, plan: Plan) -> Plan:
        """The plan with this table's audits beside those of its gates, and with no release."""
        changes: dict[str, Any] = {"audits": self.audits, "release": None}
        return plan.model_copy(update=changes).located(plan.base).check()


@dataclass(frozen=True)
class FilledTable:
    """A published table about releases of ours.

    Attributes:
        rows: what each release is called, and its number in every column.
    """

    table: PublishedTable
    rows: tuple[tuple[str, tuple[Estimate | None, ...]], ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Headings of the columns that some release has no number for."""
        held = zip(self.table.columns, zip(*(values for _, values in self.rows), strict=True), strict=True)
        return tuple(column.heading for column, values in held if None in values)


def published_tables() -> tuple[str, ...]:
    """The names of all tables."""
    return tuple(
        sorted(path.stem for path in resource_folder("reports_templates").glob("published_tables/*.yaml"))
    )


def published_table(name: str) -> PublishedTable:
    """The table of that name.

    Raises:
        PlanError: there is none.
    """
    if name not in published_tables():
        raise PlanError(
            f"there is no table {name!r}",
            where="table",
            expected=f"one of {', '.join(published_tables())}",
            fix="each is a file in reports_templates/published_tables",
        )
    path = resource_folder("reports_templates") / "published_tables" / f"{name}.yaml"
    return PublishedTable.model_validate(load_yaml(path.read_text(encoding="utf-8")))


def filled(table: PublishedTable, releases: tuple[tuple[str, Evidence], ...]) -> FilledTable:
    """The table with a row for each release."""
    rows = ((name, tuple(c.of(evidence) for c in table.columns)) for name, evidence in releases)
    return FilledTable(table, tuple(rows))
