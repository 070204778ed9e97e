"""Tables as papers print them: which of our measurements stands under which of their headings.

A file in ``reports_templates/published_tables`` is a table: its audits, with what they need to be told, and
its columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from synth_audit.build import resource_folder
from synth_audit.errors import PlanError
from synth_audit.files import load_yaml
from synth_audit.findings import measurement as identity
from synth_audit.findings.measurement import Estimate, Interval, Measurement
from synth_audit.plan.plan import Plan
from synth_audit.plugins.plugin_config import PluginConfig
from synth_audit.store.evidence import Evidence


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
        wanted = identity.read(self.measurement)
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
