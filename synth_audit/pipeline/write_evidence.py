"""Files what an audit found: evidence and measurements for reviewers, positions of rows for the owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.judging.measurement_frame import measurement_frame
from synth_audit.store.chained_log import Head
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_records import EarlierAudit
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.filed_audit import LARGEST_TABLE
from synth_audit.store.ledger import Attempt
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import write_parquet


@dataclass(frozen=True, eq=False)
class Audited:
    """Evidence, which may be shown, and the positions of exposed training rows, which may not."""

    evidence: Evidence
    exposed: pa.Table

    def numbered(self, attempt: int, ledger: Head, earlier: Sequence[Attempt] = ()) -> Audited:
        """The same as an attempt on a table, with how far its ledger had come and what was tried before."""
        listed = tuple(EarlierAudit(a.at, a.plan, a.suite, a.verdict, a.evidence) for a in earlier)
        return replace(self, evidence=replace(self.evidence, attempt=attempt, ledger=ledger, earlier=listed))


def write_evidence(
    audited: Audited, workspace: Workspace, rows: Path | None = None, table: pa.Table | None = None
) -> Evidence:
    """File an audit in the workspace; see :class:`synth_audit.store.evidence_store.EvidenceStore`.

    Args:
        rows: the file of the candidate that was audited, where the workspace has it.
        table: what may be shared of a candidate made elsewhere; one too large for the folder is left out.

    Returns:
        The evidence as it is filed.
    """
    workspace.prepare()
    write_parquet(workspace.exposed, audited.exposed, private=True)
    content = None if table is None else _parquet(table)
    if content is not None and len(content) > LARGEST_TABLE:
        content = None
    return evidence_store(workspace).put(audited.evidence, measurement_bytes(audited.evidence), rows, content)


def measurement_bytes(evidence: Evidence) -> bytes:
    """The measurements as a Parquet file."""
    return _parquet(measurement_frame(evidence))


def _parquet(table: pa.Table) -> bytes:
    into = pa.BufferOutputStream()
    pq.write_table(table, into)
    content: bytes = into.getvalue().to_pybytes()
    return content
