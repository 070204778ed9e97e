"""What several releases of the same people give away together."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from synth_audit import api, console
from synth_audit.commands import options
from synth_audit.exits import Exit, exit_code, guarded


@click.command()
@options.plan
@options.out
@options.running
@options.as_json
@guarded
def exposure(plan: Path, out: Path | None, as_json: bool, **running: Unpack[api.Execution]) -> Exit:
    """Attack the releases of a table together.

    Each may pass and all of them give somebody away. Taken are the release that is out there, the one before
    and the newest candidate that passed, where they were made from the present training rows; their rows are
    audited as one table, by the plan's audits and gates. Evidence and report lie in together/ in the
    workspace. Nothing is released, held or taken back by it.

    \b
    Example:
      synth-audit exposure tumours.yaml
    """
    with console.progress_bar() as progress:
        evidence = api.exposure(plan, out, progress=progress, **running)
    console.show_evidence(evidence, [api.workspace_of(plan, out).root / "together"], as_json=as_json)
    return exit_code(evidence)
