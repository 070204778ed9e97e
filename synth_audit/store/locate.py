"""Finds evidence by path, by release, or all of a table, and refuses evidence that was altered."""

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from synth_audit.errors import Altered, DataError
from synth_audit.files import problem_of
from synth_audit.findings.verdict import Result
from synth_audit.store.approvals import Approval, approval_files, approvals_in
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_store import CERTIFICATE, REPORT, FiledAudit, evidence_store
from synth_audit.store.files import folder_names, holds, write_bytes
from synth_audit.store.journal import AuditEntry, Journal, open_journal, read_journal
from synth_audit.store.records import Released, is_digest
from synth_audit.store.workspace import AuditFolder, Workspace


@dataclass(frozen=True)
class LocatedEvidence:
    """Where evidence is.

    Attributes:
        folder: of its audit; None for a file that lies by itself.
        workspace: None for what lies by itself.
        pointed: the user named only the workspace, and its pointer led here.
        turned: the journal named another audit as the newest than that pointer. A pointer that was turned
            back could show an old pass in place of a new fail.
    """

    file: Path
    folder: AuditFolder | None = None
    workspace: Workspace | None = None
    pointed: bool = False
    turned: bool = False

    @property
    def newest(self) -> bool:
        """True for the newest audit of its workspace, which the tables there belong to, or without one."""
        if self.workspace is None or self.folder is None:
            return True
        try:
            return evidence_store(self.workspace).newest_digest() == self.folder.digest
        except DataError:
            return False

    @property
    def journal(self) -> Journal | None:
        """The journal of its workspace, where it is at hand."""
        return None if self.workspace is None else read_journal(self.workspace)

    def filed(self, *, whole: bool = True) -> FiledAudit:
        """Read what was filed there, once.

        Args:
            whole: read every file of the audit's folder. Otherwise read the evidence and what vouches for it,
                unless an evidence store keeps the audit.

        Raises:
            DataError: it cannot be read, or something in the folder is a link or no file.
        """
        if self.pointed and self.workspace is not None and self.folder is not None:
            return evidence_store(self.workspace).get(self.folder.digest)
        if whole and self.folder is not None:
            return FiledAudit.load(self.folder)
        return FiledAudit.alone(self.file)

    @property
    def certificate(self) -> Path:
        """Where its certificate is, or would be."""
        return self.file.with_name(CERTIFICATE)

    def approvals(self) -> tuple[Approval, ...]:
        """The approvals beside the evidence, whether they count or not."""
        return approvals_in(approval_files(self.file.parent))

    def put_approval(self, approval: Approval) -> Path:
        """Put an approval beside the evidence.

        Raises:
            DataError: it cannot be written.
        """
        return write_bytes(self.file.with_name(approval.file_name), approval.to_bytes())

    def put_report(self, content: bytes) -> Path:
        """Put a report beside the evidence, where one that is there stays.

        Raises:
            DataError: another report is there, or it cannot be written.
        """
        if self.folder is not None and self.workspace is not None and self.journal is not None:
            return evidence_store(self.workspace).put_report(self.folder.digest, content)
        path = self.file.with_name(REPORT)
        if not os.path.lexists(path):
            return write_bytes(path, content)
        if not holds(path, content):
            raise DataError(
                "there is another report beside the evidence",
                where=str(path),
                expected="none, or the same",
                fix="name another file with --to; the one that is there may have been signed",
            )
        return path


def locate_evidence(path: Path) -> LocatedEvidence:
    """The evidence that a path means: the file itself, an audit's folder, or the newest audit of a workspace.

    Raises:
        DataError: there is no evidence at such a place.
    """
    if problem := problem_of(str(path)):
        raise DataError(
            f"the evidence cannot be read: {problem}",
            where=str(path).replace("\0", "\ufffd"),
            expected="an evidence file, the folder of an audit, or a workspace",
            fix="check the path",
        )
    path = path.absolute()
    if (entry := purged_entry(path)) is not None:
        raise DataError(
            f"this audit was purged on {entry.purged[:10]}",
            where=str(path),
            expected="an audit that is still here",
            fix="put a copy of its folder back in its place; it is compared with what was filed",
        )
    if not os.path.isdir(path):  # unlike `Path.is_dir` it takes a name that is too long
        return _of_file(path)
    if path.name == "review":  # a file that somebody laid into it is no audit, whatever it says
        return locate_newest(workspace_at(path.parent))
    if (path / "evidence.json").is_file():
        return _of_file(path / "evidence.json")
    return locate_newest(workspace_at(path))


def locate_newest(workspace: Workspace) -> LocatedEvidence:
    """The newest audit of a workspace, or the released one where the pointer names no audit.

    Others may write to the pointer. So it is read once and compared with the journal, and later changes of it
    do not count.

    Raises:
        DataError: there is no audit, or what names it is damaged.
    """
    digest, journal = _told_newest(workspace), read_journal(workspace)
    if journal is not None and digest != _known_newest(workspace, journal):
        # Another audit may just be filed: its pointer is written last. Where no lock can be made, none is.
        with suppress(DataError), open_journal(workspace) as filed:
            digest, journal = _told_newest(workspace), filed.now
    turned = journal is not None and digest != _known_newest(workspace, journal)
    file = evidence_store(workspace).where(digest)["evidence"]
    return LocatedEvidence(file, AuditFolder(file.parent), workspace, pointed=True, turned=turned)


def _told_newest(workspace: Workspace) -> str | None:
    """The newest audit according to the pointers in the review folder."""
    store = evidence_store(workspace)
    digest = store.newest_digest()
    if digest is None and workspace.owner is None and (released := store.released()) is not None:
        return released.digest
    return digest


def _known_newest(workspace: Workspace, journal: Journal) -> str | None:
    """The newest audit according to the journal."""
    newest, released = journal.newest.get(workspace.place), journal.released
    if newest is None and workspace.owner is None and released is not None:
        return released.digest
    return newest


def purged_entry(path: Path) -> AuditEntry | None:
    """The journal's entry of an audit whose folder was purged, named by the folder or its evidence.

    Raises:
        DataError: the journal is damaged.
    """
    folder = path.absolute()
    folder = folder.parent if folder.name == "evidence.json" else folder
    if os.path.lexists(folder) or folder.parts[-3:-1] != ("review", "audits"):
        return None
    journal = read_journal(workspace_at(folder.parent.parent.parent))
    entry = journal.entry(folder.name) if journal is not None else None
    return entry if entry is not None and entry.purged else None


def workspace_at(root: Path) -> Workspace:
    """The workspace in a folder; a candidate of a sweep knows whose it is."""
    owner = Workspace(root.parent.parent)
    if root.parent.name == owner.candidates.name and owner.review.is_dir():
        return owner.candidate(root.name)
    return Workspace(root)


def _of_file(path: Path) -> LocatedEvidence:
    folder = path.parent
    if path.name != "evidence.json":
        return LocatedEvidence(path.resolve())
    if folder.parent.name == "audits" and folder.parent.parent.name == "review":
        return LocatedEvidence(path, AuditFolder(folder), workspace_at(folder.parent.parent.parent))
    if folder.name == "review":  # nothing is filed there, as the journal of the workspace tells
        return LocatedEvidence(path, None, workspace_at(folder.parent))
    return LocatedEvidence(path, AuditFolder(folder) if (folder / "measurements.parquet").exists() else None)


def newest_evidence(workspace: Workspace) -> Evidence:
    """The evidence that was filed last, if it still is what was filed.

    Raises:
        DataError: there is none. Altered: it was; see :func:`checked_evidence`.
    """
    return checked_evidence(locate_newest(workspace))


def checked_evidence(found: LocatedEvidence) -> Evidence:
    """The evidence at a place; in its workspace it must be what was filed there, byte for byte.

    Otherwise a page about forged numbers would carry the name of this program.

    Raises:
        DataError: it cannot be read.
        Altered: its digest does not match its content, the journal has other content for it, or the journal
            named a newer audit than the pointer that led here.
    """
    filed = found.filed(whole=False)
    evidence = filed.evidence
    if not evidence.intact:
        raise _altered(found, "evidence whose digest matches its content")
    if (journal := found.journal) is not None:
        entry = journal.entry(evidence.digest)
        named = found.folder is None or found.folder.digest == evidence.digest
        if entry is None or not named or not entry.names(filed.evidence_file):
            raise _altered(found, "what the journal in the restricted folder knows")
    if found.turned:
        raise Altered(
            "the pointer in the review folder does not name the newest audit",
            where=str(found.file),
            expected="the newest audit in the journal of the restricted folder",
            fix="run the audit again, or name the folder of the one that is meant",
        )
    return evidence


def _altered(found: LocatedEvidence, expected: str) -> Altered:
    return Altered(
        "the evidence was altered after the audit",
        where=str(found.file),
        expected=expected,
        fix="run the audit again; `synth-audit verify` shows what does not agree",
    )


def releases_of(workspace: Workspace) -> tuple[Released, ...]:
    """All releases of a table, oldest first; without its journal, only the one that the pointer names.

    Raises:
        DataError: the journal or the pointer is damaged.
    """
    home = workspace.home
    journal = read_journal(home)
    if journal is not None:
        return journal.releases
    told = evidence_store(home).released()
    return () if told is None else (told,)


def release_before(workspace: Workspace, digest: str) -> Evidence | None:
    """Evidence of the last release before that of this audit; None where there was none, or it is gone."""
    digests = [released.digest for released in releases_of(workspace)]
    if digest in digests:
        digests = digests[: digests.index(digest)]
    return released_evidence(workspace, digests[-1]) if digests else None


def released_evidence(workspace: Workspace, digest: str) -> Evidence | None:
    """Evidence of a release that is still there, and whole."""
    try:
        found = evidence_store(workspace.home).get(digest).evidence
    except DataError:
        return None
    return found if found.intact and found.digest == digest else None


@dataclass(frozen=True)
class PastAudit:
    """One audit.

    Attributes:
        evidence: as its file is now. sound: its digest matches, and the journal (if readable) agrees.
        approvals: in the same folder. released: its last release, if any. out: it is the current release.
        certificate, report: the pages in the same folder, None where there is none.
    """

    evidence: Evidence
    sound: bool
    approvals: tuple[Approval, ...]
    released: Released | None
    out: bool
    certificate: Path | None
    report: Path | None


@dataclass(frozen=True)
class Month:
    """Audits of one month, as the journal has them.

    Attributes:
        name: year and month, such as ``2026-11``.
        verdicts: how many audits ended in each.
        releases: audits of the month that were released, whenever.
    """

    name: str
    verdicts: Mapping[Result, int]
    releases: int


@dataclass(frozen=True)
class TableHistory:
    """The audits of one workspace, oldest first.

    Attributes:
        place: the folder of the workspace, as it was named.
        audits: the newest, and the one that is out.
        earlier: the others by month, those that were purged too.
        unread: number of folders without readable evidence.
        unlisted: number of audits that are neither shown nor counted by month, for lack of a journal.
        purged: number of audits that the journal records as purged.
        releases: number of releases.
    """

    place: str
    audits: tuple[PastAudit, ...]
    earlier: tuple[Month, ...] = ()
    unread: int = 0
    unlisted: int = 0
    purged: int = 0
    releases: int = 0

    @property
    def table(self) -> str:
        """Name of the table in the newest audit, or of the folder where there is no audit."""
        return self.audits[-1].evidence.table if self.audits else Path(self.place).name

    @property
    def total(self) -> int:
        """Number of audits, those that were purged too."""
        counted = sum(sum(month.verdicts.values()) for month in self.earlier)
        return len(self.audits) + counted + self.unlisted


NEWEST = 30
"""Audits of a table whose evidence is read: a month of daily ones. The journal counts those before."""


def table_history(root: Path) -> TableHistory:
    """Read a workspace; its journal, where it may be read, says what was filed.

    The evidence of the newest 30 audits is read. Which they are follows from the journal. Without it, it
    follows from the pointer in the review folder and from when the files were written.

    Raises:
        DataError: the folder is no workspace, or its journal or pointer is damaged.
    """
    workspace = Workspace(root)
    if not os.path.isdir(workspace.review):
        raise DataError(
            "the folder is no workspace",
            where=str(root),
            expected="a folder with review/ in it",
            fix="name the workspaces of tables, such as tumours-audit",
        )
    journal, releases = read_journal(workspace), releases_of(workspace)
    there = {name for name in folder_names(workspace.audits) if is_digest(name)}
    own = [e for e in journal.audits if not e.place or e.digest in there] if journal else []
    known = [e.digest for e in own if e.digest in there]
    named = set[str | None]()
    if journal is None:
        known, named = sorted(there, key=partial(_written, workspace)), {_told_newest(workspace)}
    shown = there & {*named, *(there - {*known}), *known[-NEWEST:], *(r.digest for r in releases[-1:])}
    found, unread = [], 0
    for digest in shown:
        try:
            filed = evidence_store(workspace).get(digest)
            found.append(_past(workspace, filed, journal, releases))
        except DataError:
            unread += 1
    found.sort(key=lambda a: (a.evidence.attempt, a.evidence.created, a.evidence.digest))
    return TableHistory(
        str(root),
        tuple(found),
        _months([e for e in own if e.digest not in shown], {r.digest for r in releases}),
        unread,
        unlisted=len(there - shown) if journal is None else 0,
        purged=sum(bool(e.purged) for e in journal.audits) if journal else 0,
        releases=len(releases),
    )


def _written(workspace: Workspace, digest: str) -> tuple[int, str]:
    """When the evidence was written, in nanoseconds, 0 where there is none; of equals the digest decides."""
    try:
        return os.lstat(workspace.audit(digest).evidence).st_mtime_ns, digest
    except OSError:
        return 0, digest


def _months(entries: Sequence[AuditEntry], released: Set[str]) -> tuple[Month, ...]:
    """Audits counted by month, oldest first."""
    months = defaultdict[str, list[AuditEntry]](list)
    for entry in entries:
        months[entry.created[:7]].append(entry)
    return tuple(
        Month(name, Counter(e.verdict for e in of), sum(e.digest in released for e in of))
        for name, of in sorted(months.items())
    )


def _past(
    workspace: Workspace, filed: FiledAudit, journal: Journal | None, releases: tuple[Released, ...]
) -> PastAudit:
    evidence = filed.evidence
    entry = journal.entry(evidence.digest) if journal is not None else None
    # What the journal has byte for byte was whole when it was filed.
    as_filed = evidence.intact if journal is None else entry is not None and not filed.altered(entry)
    mine = [r for r in releases if r.digest == evidence.digest]
    folder = workspace.audit(filed.digest)
    return PastAudit(
        evidence=evidence,
        sound=evidence.digest == filed.digest and as_filed,
        approvals=approvals_in(filed.files),
        released=mine[-1] if mine else None,
        out=bool(mine) and mine[-1] == releases[-1],
        certificate=folder.certificate if CERTIFICATE in filed.files else None,
        report=folder.report if REPORT in filed.files else None,
    )
