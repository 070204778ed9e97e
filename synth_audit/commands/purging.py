"""What a table leaves behind, and for how long."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from synth_audit import api, console
from synth_audit.commands import options
from synth_audit.core.errors import PlanError
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say


@click.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="N",
    help="So many of the newest audits, and the candidates of the newest sweep, are not old.",
)
@click.option("--older-than", metavar="AGE", help="Nothing younger is old: 90d, 12w, 36h.")
@click.option("--dry-run", is_flag=True, help="Only say what would go; so does leaving out --yes.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@options.as_json
@guarded
def purge(
    table: Path, keep: int | None, older_than: str | None, dry_run: bool, yes: bool, as_json: bool
) -> Exit:
    """Delete old audits and candidates.

    TABLE is a workspace, or a plan whose workspace lies beside it. Says what would go and what stays, and
    deletes after a yes alone. With --keep and --older-than, what is old by both goes. The newest audit always
    stays, and one that was released or whose release was interrupted, and so do ledger, journal, salt, train
    and control. The journal says when an audit was purged.

    \b
    Examples:
      synth-audit purge tumours-audit --older-than 90d
      synth-audit purge tumours.yaml --keep 10 --older-than 12w --yes
    """
    if dry_run and yes:
        raise PlanError(
            "--dry-run and --yes contradict each other",
            where="purge",
            expected="one of them",
            fix="leave one out",
        )
    found = api.purge(table, keep=keep, older_than=older_than)
    if not (as_json and yes):
        console.show_purge(found, as_json=as_json)
    if not yes and not (found.goes and not dry_run and not as_json and _confirmed()):
        if found.goes and not as_json:
            say("nothing was deleted; --yes deletes it", err=True)
        return Exit.PASS
    shown = {item.name for item in found.goes}
    gone = api.purge(table, keep=keep, older_than=older_than, dry_run=False, only=shown)
    if as_json:
        console.show_purge(gone, as_json=True)
    else:
        say(f"deleted {len(gone.goes)}")
    return Exit.PASS


def _confirmed() -> bool:
    return sys.stdin.isatty() and click.confirm("Delete this for good?")
