"""The signature of a person under evidence."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from synth_audit import api
from synth_audit.core.errors import PlanError
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say_whole


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
