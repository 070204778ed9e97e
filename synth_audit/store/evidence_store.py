"""Where evidence is kept and found: modules outside this package ask here and know no path of it.

The one backend is :class:`~synth_audit.store.evidence_folders.EvidenceFolders`, a folder for each audit.
Another, such as a database, is a class like it in a file of its own, which :func:`evidence_store` hands out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.filed_audit import FiledAudit
    from synth_audit.store.journal import AuditEntry, Journal
    from synth_audit.store.pointers import Released
    from synth_audit.store.workspace import Workspace


class EvidenceStore(Protocol):
    """The audits of one workspace: filed under the digest of their evidence, and never replaced."""

    def put(
        self, evidence: Evidence, measurements: bytes, rows: Path | None = None, table: bytes | None = None
    ) -> Evidence:
        """File an audit, as the newest; the same evidence again stays as it was filed first.

        Args:
            measurements: the file of them.
            rows: the file of the candidate, where there is one.
            table: the file that may be shared, of a candidate made elsewhere that passed.

        Returns:
            The evidence as it is filed.
        """

    def put_report(self, digest: str, content: bytes) -> Path:
        """Put a report beside its evidence, where one that is there stays; returns where it is."""

    def get(self, digest: str) -> FiledAudit:
        """What was filed of one audit.

        Raises:
            DataError: it is not there, or was tampered with so that it cannot be read.
        """

    def newest(self) -> FiledAudit:
        """What was filed last.

        Raises:
            DataError: there is no audit, or what names it is damaged.
        """

    def newest_digest(self) -> str | None:
        """Which audit readers are told is the newest; None where nothing is.

        Raises:
            DataError: what names it is damaged.
        """

    def released(self) -> Released | None:
        """What readers are told is out there; None where nothing is.

        Raises:
            DataError: what says so is damaged.
        """

    def release_sealed(self) -> bool | None:
        """Whether what :meth:`released` tells is sealed by the key at hand; None without key or release."""

    def list(self) -> tuple[AuditEntry, ...]:
        """Every audit that was filed on the table, in order; nothing where the journal is not at hand."""

    def kept(self) -> Mapping[str, int]:
        """Digest of each audit of which there is anything, known to the journal or not, and its bytes."""

    def remove(self, digest: str) -> None:
        """Delete what was filed of an audit; nothing is left of it but the journal's entry.

        Raises:
            DataError: it cannot be deleted wholly.
        """

    def where(self, digest: str | None = None) -> Mapping[str, Path]:
        """Where a person finds evidence, measurements, report and table of an audit; of the newest if None.

        Raises:
            DataError: there is no such audit.
        """

    def rows(self, digest: str) -> Path:
        """Where the rows of the candidate are while its audit is the newest or the released one."""

    def adopt(self, filed: FiledAudit, journal: Journal, put_rows: Callable[[Path], object]) -> bool:
        """Keep in the table's own workspace what is about to leave, with its rows.

        Returns:
            False where something else than what the journal knows is in its place.
        """

    def tell_release(self, journal: Journal) -> None:
        """Tell readers what is out there."""

    def drop_rows(self, journal: Journal) -> None:
        """Delete the rows of candidates whose audit is neither the newest nor that of a release."""


def evidence_store(workspace: Workspace) -> EvidenceStore:
    """The evidence of a workspace."""
    from synth_audit.store.evidence_folders import EvidenceFolders

    return EvidenceFolders(workspace)
