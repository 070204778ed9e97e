"""Tables as papers print them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from synth_audit import api, console
from synth_audit.commands import options
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say, say_json

if TYPE_CHECKING:
    from synth_audit.core.measurement import Estimate
    from synth_audit.studies.published_table import FilledTable


@click.command()
@click.argument("name")
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PLACE...")
@options.out
@options.running
@options.as_json
@guarded
def table(
    name: str, places: tuple[Path, ...], out: Path | None, as_json: bool, **running: Unpack[api.Execution]
) -> Exit:
    """Print a paper's table about releases of yours.

    NAME is the table's; a wrong one is answered with those that there are. Each PLACE is a row: an evidence
    file, the folder of an audit or a workspace; or a plan, which is run with the table's audits, in a
    workspace of its own. Nothing is released, and no verdict hangs on it.

    \b
    Examples:
      synth-audit table disjoint_generative_models hepatitis.yaml
      synth-audit table disjoint_generative_models audits/cart audits/dpgan
    """
    with console.progress_bar() as progress:
        found = api.fill_table(name, places, out, progress=progress, **running)
    show_table(found, as_json=as_json)
    return Exit.PASS


def show_table(found: FilledTable, *, as_json: bool) -> None:
    """Print the table turned round, a line for each of its many columns, or as JSON."""
    table = found.table
    if as_json:
        rows = [
            {
                "release": name,
                **{c.heading: _plain_estimate(e) for c, e in zip(table.columns, values, strict=True)},
            }
            for name, values in found.rows
        ]
        say_json(json.dumps({"table": table.title, "rows": rows}, indent=2, ensure_ascii=False))
        return
    say(table.title, bold=True)
    lines = [("", *(name for name, _ in found.rows))]
    for i, column in enumerate(table.columns):
        lines.append((column.heading, *(_estimate(values[i]) for _, values in found.rows)))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        say("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    for column in table.columns:
        if column.note:
            say(f"{column.heading}: {column.note}")
    if found.missing:
        say(
            f"not measured: {', '.join(found.missing)}; give the plan instead, and it is run with all",
            fg="yellow",
        )


def _estimate(found: Estimate | None) -> str:
    if found is None:
        return "-"
    i = found.interval
    return f"{found.value:.4f}" + (f" ({i.low:.4f} to {i.high:.4f})" if i is not None else "")


def _plain_estimate(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    ends = (
        {}
        if found.interval is None
        else {"low": _json_number(found.interval.low), "high": _json_number(found.interval.high)}
    )
    return {"value": _json_number(found.value), **ends}


def _json_number(x: float) -> float | None:
    return x if math.isfinite(x) else None
