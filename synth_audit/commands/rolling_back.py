"""The way back to the release before the last."""

from __future__ import annotations

from pathlib import Path

import click

from synth_audit import api
from synth_audit.commands import options
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say_whole


@click.command()
@options.plan
@options.out
@guarded
def rollback(plan: Path, out: Path | None) -> Exit:
    """Put the release before the last back.

    Its evidence must still hold, and its rows, which the workspace keeps, must be those that were audited.
    One step back is kept; what was rolled back takes `release` to go out again.

    \b
    Example:
      synth-audit rollback tumours.yaml --out audits/tumours
    """
    record = api.rollback(plan, out)
    say_whole(f"released {record.table.rows:,} rows to {record.where} again")
    return Exit.PASS
