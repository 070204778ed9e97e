"""Commands around a release: sign, purge, roll back, mend, and what several releases expose together."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from synth_audit import api
from synth_audit.cli import console, exits
from synth_audit.cli.exits import Exit, exit_code, guarded, say, say_json, say_whole
from synth_audit.errors import PlanError
from synth_audit.text import shortened

if TYPE_CHECKING:
    from synth_audit.studies.mend import MendRecord


@click.command()
@click.argument("evidence", type=click.Path(path_type=Path), required=False)
@click.option("--by", metavar="NAME", help="Who approves, as the plan names the person.")
@click.option("--key", type=click.Path(path_type=Path), help="The person's private key.")
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), help="Last day on which it counts.")
@click.option("--note", default="", help="What the approval is about, or its condition.")
@click.option("--new-key", type=click.Path(path_type=Path), metavar="FILE", help="Make a private key first.")
@guarded
def approve(
    evidence: Path | None,
    by: str | None,
    key: Path | None,
    until: datetime | None,
    note: str,
    new_key: Path | None,
) -> Exit:
    """Sign evidence that passed, so that its table may be released.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.
    The approval, signed with Ed25519 over the digest of the evidence, is put beside it, and the certificate
    is rendered anew. With `release: {approvals: 2, approvers: {NAME: KEY, ...}}` in the plan, `release` waits
    for two different people. A key with a passphrase takes it in SYNTH_AUDIT_KEY_PASSPHRASE.

    \b
    Examples:
      synth-audit approve --new-key ann.pem
      synth-audit approve tumours-audit --by "Ann Ohm" --key ann.pem --until 2027-06-30 --note "teaching only"
    """
    if new_key is not None:
        public = api.new_key(new_key)
        say_whole(f"wrote {new_key} (mode 0600); keep it to yourself. Under release.approvers in the plan:")
        say_whole(f"  {by or 'NAME'}: {public}")
        if evidence is None:
            return Exit.PASS
    given = {"EVIDENCE": evidence, "--by": by, "--key": key, "--until": until}
    if evidence is None or by is None or key is None or until is None:
        raise PlanError(
            f"{', '.join(name for name, x in given.items() if not x)} must be given",
            where="approve",
            expected="evidence, a name, a key and a date",
            fix="`synth-audit approve --help` shows an example",
        )
    say_whole(str(api.approve(evidence, by=by, key=key, until=until.date(), note=note)))
    return Exit.PASS


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
@exits.as_json
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


@click.command()
@exits.plan
@exits.out
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


@click.command()
@exits.plan
@exits.out
@exits.running
@exits.as_json
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


@click.command()
@exits.plan
@exits.out
@click.option(
    "--tries",
    type=click.IntRange(min=1, max=5),
    default=5,
    show_default=True,
    help="Most candidates to judge; each that may be judged widens every interval.",
)
@click.option("--write", type=click.Path(path_type=Path), help="Plan file to write, beside PLAN, on success.")
@exits.running
@exits.as_json
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
