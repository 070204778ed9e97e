"""Commands around a release: sign, attest, release, roll back and purge."""

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import synth_audit as api
from synth_audit.cli import shared
from synth_audit.cli.shared import FILE, CommandJob, main
from synth_audit.cli.terminal import Exit, say, say_json, say_whole
from synth_audit.errors import PlanError
from synth_audit.text import shortened

if TYPE_CHECKING:
    from synth_audit.store.purge import PurgeRecord

JOB = CommandJob.RELEASE


@main.command(job=JOB)
@click.argument("evidence", type=FILE, required=False)
@click.option("--by", metavar="NAME", help="Who approves, as the plan names the person.")
@click.option("--key", type=FILE, help="The person's private key.")
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), help="Last day on which it counts.")
@click.option("--note", default="", help="What the approval is about, or its condition.")
@click.option("--new-key", type=FILE, metavar="FILE", help="Make a private key first.")
def approve(
    evidence: Path | None,
    by: str | None,
    key: Path | None,
    until: datetime | None,
    note: str,
    new_key: Path | None,
) -> Exit:
    """Sign evidence that passed, for a release.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.
    The approval, signed with Ed25519 over the digest of the evidence, is filed with it, and the certificate
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


@main.command(job=JOB)
@shared.evidence
@click.option("--by", metavar="NAME", required=True, help="Who signs.")
@click.option("--key", type=FILE, required=True, help="The person's private key.")
@click.option("--to", type=FILE, default=Path("attestation.json"), help="File to write.")
@click.option("--file", type=FILE, help="The released file, to bind its SHA-256.")
@click.option("--ro-crate", type=FILE, metavar="ZIP", help="Also describe the release as an RO-Crate.")
@click.option("--dcat", type=FILE, metavar="JSON", help="Also describe it as DCAT-AP in JSON-LD.")
@click.option("--url", default="", help="Where the release is to be had.")
@click.option("--licence", metavar="URL", default="", help="Address of its licence.")
def attest(evidence: Path, **given: Any) -> Exit:
    """Sign the outcome of an audit for others.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.
    Writes an in-toto statement in a DSSE envelope, signed with an Ed25519 key as `approve --new-key` makes.
    It is checked without this program. A refusal is attested too, without --file.

    \b
    Example:
      synth-audit attest tumours-audit --by "Ann Ohm" --key ann.pem --file tumours.parquet
    """
    for path in api.attest(evidence, **given):
        say_whole(f"wrote {path}")
    return Exit.PASS


@main.command(job=JOB)
@shared.plan
@shared.out
@click.option("--synthetic", type=FILE, help="The audited file, when made elsewhere.")
@shared.candidate
def release(plan: Path, out: Path | None, synthetic: Path | None, candidate: str | None) -> Exit:
    """Release the audited table, or refuse.

    The evidence must pass and be about exactly these bytes and this plan.

    \b
    Examples:
      synth-audit release tumours.yaml --out audits/tumours
      synth-audit release tumours.yaml --candidate vine-truncation-5
    """
    record = api.release(plan, out, synthetic, candidate=candidate)
    say_whole(f"released {record.table.rows:,} rows to {record.where}")
    for warning in record.warnings:
        say(f"  warning: {warning}", fg="yellow")
    return Exit.PASS


@main.command(job=JOB)
@shared.plan
@shared.out
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


@main.command(job=JOB)
@click.argument("table", type=FILE)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="N",
    help="So many of the newest audits, and the candidates of the newest sweep, are not old.",
)
@click.option("--older-than", metavar="AGE", help="Nothing younger is old: 90d, 12w, 36h.")
@click.option("--monthly", is_flag=True, help="The last audit of each month is not old.")
@click.option("--dry-run", is_flag=True, help="Only say what would go; so does leaving out --yes.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@shared.as_json
def purge(
    table: Path,
    keep: int | None,
    older_than: str | None,
    monthly: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> Exit:
    """Delete old audits and candidates.

    TABLE is a workspace, or a plan with its workspace in the same folder. Lists what would go and what stays,
    and deletes only after a yes. With --keep and --older-than, only what is old by both goes. The newest
    audit always stays, and so does each that was ever released or approved. Interrupted releases, ledger,
    journal, salt, train and control stay too. The journal says when an audit was purged.

    \b
    Examples:
      synth-audit purge tumours-audit --older-than 90d
      synth-audit purge tumours.yaml --keep 30 --monthly --older-than 12w --yes
    """
    if dry_run and yes:
        raise PlanError(
            "--dry-run and --yes contradict each other",
            where="purge",
            expected="one of them",
            fix="leave one out",
        )
    found = api.purge(table, keep=keep, older_than=older_than, monthly=monthly)
    if not (as_json and yes):
        _show_purge(found, as_json=as_json)
    asked = found.goes and not dry_run and not as_json and sys.stdin.isatty()
    if not yes and not (asked and click.confirm("Delete this for good?")):
        if found.goes and not as_json:
            say("nothing was deleted; --yes deletes it", err=True)
        return Exit.PASS
    shown = {item.name for item in found.goes}
    gone = api.purge(table, keep=keep, older_than=older_than, monthly=monthly, dry_run=False, only=shown)
    if as_json:
        _show_purge(gone, as_json=True)
    else:
        say(f"deleted {len(gone.goes)}")
    return Exit.PASS


def _show_purge(record: "PurgeRecord", *, as_json: bool) -> None:
    """Print what goes and what stays, and why."""
    if as_json:
        keys = ("name", "told", "made", "size", "reason")
        plain = {
            n: [{k: getattr(item, k) for k in keys} for item in getattr(record, n)] for n in ("goes", "stays")
        }
        say_json({"done": record.done, **plain})
        return
    verb = "gone" if record.done else "would go"
    heads = (
        f"{verb}: {len(record.goes)} ({_bytes(record.size)})",
        f"stays: {len(record.stays)}, and the ledger, the journal, the salt, train and control",
    )
    for head, items in zip(heads, (record.goes, record.stays), strict=True):
        say(head, bold=True)
        for item in items:
            made = f", {item.made[:10]}" if item.made else ""
            why = f": {item.reason}" if item.reason else ""
            say(f"  {shortened(item.name, 40)}  {item.told}{made}, {_bytes(item.size)}{why}")


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
