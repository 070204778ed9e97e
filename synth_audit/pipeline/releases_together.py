"""What several releases of the same people tell together: their rows as one table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from synth_audit.errors import DataError
from synth_audit.findings.verdict import Result
from synth_audit.plan.plan import Plan
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.files import read_parquet
from synth_audit.store.history import released_evidence
from synth_audit.store.journal import read_journal
from synth_audit.store.salts import known_salt
from synth_audit.store.stage_records import SplitRecord
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import fingerprint


@dataclass(frozen=True)
class Together:
    """Real rows, and the rows of several releases made from them.

    Attributes:
        digests: of their audits, the newest first.
    """

    train: pa.Table
    control: pa.Table
    synthetic: pa.Table
    digests: tuple[str, ...]


def releases_together(workspace: Workspace) -> Together:
    """The release that is out there, the one before and the newest candidate that passed, of these people.

    Rows of older releases are not kept. A release from other training rows is left out: its control rows may
    be training rows of another, so that nobody would be a stranger. The same rows twice tell no more.

    Raises:
        DataError: there are not two such releases, or what was kept is not what was audited.
    """
    journal = read_journal(workspace)
    split = SplitRecord.read(workspace.split_record)
    found: dict[str, tuple[str, pa.Table]] = {}
    kept: list[str | None] = []
    if journal is not None:
        releases = (journal.released, journal.previous)
        kept = [journal.newest.get(workspace.place), *(r.digest for r in releases if r is not None)]
    for digest in filter(None, dict.fromkeys(kept)):
        evidence = released_evidence(workspace, digest)
        if evidence is None or evidence.verdict is not Result.PASS:
            continue
        if evidence.tables["train"].hmac == split.train.hmac:
            rows = read_parquet(evidence_store(workspace).rows(digest), made_by="audit")
            content = fingerprint(rows)
            if content != evidence.tables["synthetic"].sha256:
                raise _refused("the rows that were kept are not those that were audited", workspace)
            found.setdefault(content, (digest, rows))
    if len(found) < 2:
        raise _refused(
            f"{len(found)} of the releases that are kept come from the present training rows", workspace
        )
    tables = [rows for _, rows in found.values()]
    if any(not table.schema.equals(tables[0].schema) for table in tables):
        raise _refused("the releases have different columns", workspace)
    train, control = (read_parquet(x, made_by="split") for x in (workspace.train, workspace.control))
    salt = known_salt(workspace)
    for real, record in ((train, split.train), (control, split.control)):
        if salt.digest(fingerprint(real).encode()) != record.hmac:
            raise _refused("the real rows are not those that the split left", workspace)
    return Together(
        train,
        control,
        pa.concat_tables(tables),
        tuple(digest for digest, _ in found.values()),
    )


def plan_of_all(plan: Plan) -> Plan:
    """The plan for auditing them: what was claimed or wished of one release is not of all."""
    left_out = dict.fromkeys(("source", "generator", "privacy", "release", "frontier", "rows"))
    return plan.model_copy(update={"name": f"{plan.name}-together", **left_out})


def _refused(what: str, workspace: Workspace) -> DataError:
    return DataError(
        what,
        where=str(workspace.root),
        expected="two or more releases of the same training rows, with the same columns",
        fix="this is asked after a second release of the same people, from another plan or generator",
    )
