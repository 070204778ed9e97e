"""The table that a paper prints, about releases of ours.

NAME is that of a file in benchmarks/published_tables. Each PLACE is a row: an evidence file, the folder of an
audit or a workspace; or a plan, which is run with the table's audits in a workspace of its own. Nothing is
released, and no verdict depends on it.

    .venv/bin/python benchmarks/published_tables.py disjoint_generative_models hepatitis.yaml
    .venv/bin/python benchmarks/published_tables.py disjoint_generative_models audits/cart audits/dpgan
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from synth_audit import api
from synth_audit.files import load_yaml
from synth_audit.findings.measurement import Estimate, Interval, read
from synth_audit.inputs import as_plan
from synth_audit.plan.plan import Plan
from synth_audit.plugins.plugin_config import PluginConfig
from synth_audit.store.evidence import Evidence

TABLES = {path.stem: path for path in sorted((Path(__file__).parent / "published_tables").glob("*.yaml"))}


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
        if found is None:
            return None
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


def published_table(name: str) -> PublishedTable:
    """The table of that name."""
    return PublishedTable.model_validate(load_yaml(TABLES[name].read_text(encoding="utf-8")))


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

    def to_json(self) -> str:
        """The table as JSON."""
        rows = [
            {
                "release": name,
                **{c.heading: _plain(e) for c, e in zip(self.table.columns, values, strict=True)},
            }
            for name, values in self.rows
        ]
        return json.dumps({"table": self.table.title, "rows": rows}, indent=2, ensure_ascii=False)

    def lines(self) -> list[str]:
        """The table turned round: a line for each of its many columns."""
        cells = [("", *(name for name, _ in self.rows))]
        for i, column in enumerate(self.table.columns):
            cells.append((column.heading, *(_written(values[i]) for _, values in self.rows)))
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        padded = [
            "  ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)).rstrip() for line in cells
        ]
        notes = [f"{column.heading}: {column.note}" for column in self.table.columns if column.note]
        told = [f"not measured: {', '.join(self.missing)}; give the plan instead, and it is run with all"]
        return [self.table.title, *padded, *notes, *(told if self.missing else [])]


def filled(table: PublishedTable, releases: Sequence[tuple[str, Evidence]]) -> FilledTable:
    """The table with a row for each release."""
    rows = ((name, tuple(c.of(evidence) for c in table.columns)) for name, evidence in releases)
    return FilledTable(table, tuple(rows))


def releases_at(
    table: PublishedTable, places: Sequence[Path], out: Path | None = None, workers: int | None = None
) -> list[tuple[str, Evidence]]:
    """The evidence at each place, or of each plan's run.

    Args:
        out: folder of the workspaces of plans; ``<plan's name>-table`` beside the plan if left out.

    Raises:
        PlanError, DataError: see their messages for what to do.
    """

    def made(plan: Plan) -> Evidence:
        own = out / plan.name if out is not None else plan.base / f"{plan.name}-table"
        return api.run(plan, own, release=False, workers=workers)

    # All are read before any is run, which may take hours.
    found = [
        table.asked_of(as_plan(place))
        if place.suffix.lower() in (".yaml", ".yml")
        else api.load_evidence(place)
        for place in places
    ]
    releases = [one if isinstance(one, Evidence) else made(one) for one in found]
    return list(zip(map(str, places), releases, strict=True))


def _written(found: Estimate | None) -> str:
    if found is None:
        return "-"
    i = found.interval
    return f"{found.value:.4f}" + (f" ({i.low:.4f} to {i.high:.4f})" if i is not None else "")


def _plain(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    i = found.interval
    numbers = {"value": found.value} | ({} if i is None else {"low": i.low, "high": i.high})
    return {name: x if math.isfinite(x) else None for name, x in numbers.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=list(TABLES))
    parser.add_argument("places", nargs="+", type=Path, metavar="PLACE")
    parser.add_argument("--out", type=Path, help="folder for the workspaces of plans")
    parser.add_argument("--workers", type=int, help="processes to spread audits over")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    table = published_table(chosen.name)
    found = filled(table, releases_at(table, chosen.places, chosen.out, chosen.workers))
    print(found.to_json() if chosen.json else "\n".join(found.lines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
