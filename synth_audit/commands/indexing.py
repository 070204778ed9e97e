"""One page over many tables."""

from __future__ import annotations

from pathlib import Path

import click

from synth_audit import api
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say_whole


@click.command()
@click.argument("workspaces", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("index.html"), help="HTML file to write."
)
@click.option("--force", is_flag=True, help="Replace a file there that is no index.")
@guarded
def index(workspaces: tuple[Path, ...], out: Path, force: bool) -> Exit:
    """Write a page over the audits of many tables.

    Verdicts, releases and approvals of every audit that is kept in WORKSPACES, with links to certificates
    and reports, and how the numbers nearest to their limits moved. It filters without scripts and without
    network.

    \b
    Example:
      synth-audit index audits/* --out audits/index.html
    """
    say_whole(str(api.write_index(workspaces, out, force=force)))
    return Exit.PASS
