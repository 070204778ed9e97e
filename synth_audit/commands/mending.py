"""The verb that looks for the smallest change with which a refused release would pass."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from synth_audit import api, console
from synth_audit.commands import options
from synth_audit.core.text import shortened
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say, say_json, say_whole

if TYPE_CHECKING:
    from synth_audit.studies.mend_record import MendRecord


@click.command()
@options.plan
@options.out
@click.option(
    "--tries",
    type=click.IntRange(min=1, max=5),
    default=5,
    show_default=True,
    help="Most candidates to judge; each that may be judged widens every interval.",
)
@click.option("--write", type=click.Path(path_type=Path), help="Plan file to write, beside PLAN, on success.")
@options.running
@options.as_json
@guarded
def mend(
    plan: Path,
    out: Path | None,
    tries: int,
    write: Path | None,
    as_json: bool,
    **running: Unpack[api.Execution],
) -> Exit:
    """Find the smallest coarsening that passes, and verify it.

    Takes the newest audit of PLAN, when it was refused for exact values of single columns or for novel
    content. Rounds, cuts off and merges values of the columns that the refusal names, from small changes to
    large, and judges each by a level corrected for their number, against somebody who knows the rule. The
    generator is not fitted again, and nothing is released: the plan that --write leaves must be run, and
    carries how many candidates were tried. Where a gate refused that tells of remembered people, nothing is
    tried: no coarsening mends that.

    \b
    Examples:
      synth-audit mend tumours.yaml
      synth-audit mend tumours.yaml --out audits/tumours --write tumours-coarser.yaml
    """
    if write is not None:
        api.refuse_mended_place(plan, write)
    workspace = api.workspace_of(plan, out)
    with console.progress_bar() as progress:
        found = api.mend(plan, workspace.root, tries=tries, progress=progress, **running)
    _show(found, [workspace.mend], as_json=as_json)
    if found.mended is None:
        return Exit.NOT_RELEASED
    if write is not None:
        api.write_mended_plan(plan, found, write)
        words = ["synth-audit", "run", str(write), "--out", str(workspace.root)]
        say_whole(f"wrote {write}; next: {shlex.join(words)}", err=as_json)
    return Exit.PASS


def _show(found: MendRecord, files: Sequence[Path], *, as_json: bool) -> None:
    """Print one line per try, and what came of them."""
    if as_json:
        say_json(found.to_json())
        return
    rows = [("try", "change", "verdict", "refused by", "total variation")]
    first = (
        "0",
        "as it was refused",
        "refused",
        ", ".join(found.refused_by),
        _variation(found.total_variation),
    )
    rows.append(first)
    for number, tried in enumerate(found.tries, 1):
        refused = ", ".join(tried.refused_by)
        told = [shortened(words, 60) for words in tried.words] or [""]
        rows.append((str(number), told[0], tried.verdict, refused, _variation(tried.total_variation)))
        rows += [("", words, "", "", "") for words in told[1:]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        say("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    say()
    say(f"{found.tries_counted} candidates are counted: each that may be judged is a chance of a wrong pass.")
    say(found.reason, fg="green" if found.mended else "yellow", bold=True)
    for path in files:
        say_whole(f"  {path}")


def _variation(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
