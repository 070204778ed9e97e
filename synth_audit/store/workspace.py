"""Where files are: restricted (real rows, mode 0700), review (for readers), and the folder of one audit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from synth_audit.errors import DataError
from synth_audit.store.files import make_private, making, refuse_strange, refuse_unusable
from synth_audit.store.records import Newest, is_digest, read_pointer


@dataclass(frozen=True)
class PathBelow:
    """A path of a workspace, or of an audit's folder, as an attribute of it.

    Attributes:
        name: below its root. shared: candidates have it in the workspace of their table.
    """

    name: str
    shared: bool = False

    def __get__(self, place: Workspace | AuditFolder, kind: type | None = None) -> Path:
        if isinstance(place, AuditFolder):
            return place.path / self.name
        return (place.home if self.shared else place).root / self.name


@dataclass(frozen=True)
class AuditFolder:
    """What is left of one audit, under the digest of its evidence; nothing in it is ever replaced but the
    certificate, which shows approvals too."""

    path: Path

    evidence = PathBelow("evidence.json")
    """The evidence file."""

    measurements = PathBelow("measurements.parquet")
    """Every measurement, one row each."""

    table = PathBelow("synthetic.parquet")
    """The audited rows and values alone, of a table made elsewhere that passed."""

    report = PathBelow("report.html")
    """The report."""

    certificate = PathBelow("certificate.html")
    """The certificate."""

    @property
    def digest(self) -> str:
        """The digest that its evidence must have."""
        return self.path.name


@dataclass(frozen=True)
class Workspace:
    """The folder of one audited table.

    ``restricted/`` holds real and unreleased rows; ``review/`` holds no real row and no small count.

    Attributes:
        owner: of a candidate, the workspace whose table it was made from; it keeps the journal of both.
        place: of a candidate, its folder as seen from its owner.
        table: of a snapshot, the workspace of the table, which counts the reports of all its snapshots.
    """

    root: Path
    owner: Workspace | None = None
    place: str = ""
    table: Workspace | None = None

    restricted = PathBelow("restricted")
    """Folder with real rows, readable by its owner alone."""

    review = PathBelow("review")
    """Folder that may be shown."""

    salt = PathBelow("restricted/salt", shared=True)
    """The secret of the table that split, fits, draws and hashes rest on; all its candidates share it."""

    train = PathBelow("restricted/train.parquet")
    """Rows the generator sees."""

    control = PathBelow("restricted/control.parquet")
    """Real rows it never sees."""

    synthetic = PathBelow("restricted/synthetic.parquet")
    """The candidate."""

    checkpoints = PathBelow("restricted/checkpoints")
    """What fits that were broken off would resume from."""

    outcomes = PathBelow("restricted/outcomes", shared=True)
    """Outcomes of the last run's audits, of which the next run measures again only what changed."""

    split_record = PathBelow("restricted/split.json")
    """What the split did."""

    synthetic_record = PathBelow("restricted/synthetic.json")
    """What the generator did."""

    exposed = PathBelow("restricted/exposed_records.parquet")
    """The most exposed training rows by position, with the attacks that hit them."""

    journal = PathBelow("restricted/journal.json", shared=True)
    """What was audited, reported and released, written where no reviewer can write."""

    journal_lock = PathBelow("restricted/.journal.lock", shared=True)
    """Held while the journal is written, and what it tells of."""

    scratch = PathBelow("restricted/scratch", shared=True)
    """Where temporary files with real rows are made; what a kill leaves there goes at the next start."""

    audits = PathBelow("review/audits")
    """Every audit in a folder of its own."""

    newest_pointer = PathBelow("review/newest.json")
    """Names the newest audit."""

    released_pointer = PathBelow("review/released.json")
    """Names the audit of what was released last, and where that went."""

    calibration = PathBelow("review/calibration.json")
    """How the audits answered planted leaks of all sizes."""

    calibration_page = PathBelow("review/calibration.html")
    """The same as a page with pictures."""

    frontier = PathBelow("review/frontier.json")
    """The record of a sweep over candidates."""

    kept_frontier = PathBelow("restricted/frontier.json")
    """The same where no reviewer can write: what is purged goes by it."""

    frontier_page = PathBelow("review/frontier.html")
    """The same as a page with pictures."""

    mend = PathBelow("review/mend.json")
    """What was tried to mend a refused release."""

    candidates = PathBelow("candidates")
    """The candidates of a sweep, each a workspace of its own."""

    @property
    def register(self) -> Workspace:
        """The workspace whose ledger counts reports."""
        return self.home.table or self.home

    @property
    def home(self) -> Workspace:
        """The workspace of the table itself."""
        return self.owner or self

    def audit(self, digest: str) -> AuditFolder:
        """The folder of the audit with this digest.

        Raises:
            DataError: it is no digest.
        """
        if not is_digest(digest):
            raise DataError(
                "an audit is named by something that is no digest",
                where=str(self.audits),
                expected="64 hexadecimal digits",
                fix="run the audit again; `synth-audit verify` shows what else does not agree",
            )
        return AuditFolder(self.audits / digest)

    def kept_rows(self, digest: str) -> Path:
        """The candidate that the audit was about, while the audit is the newest or the released one."""
        return self.restricted / "audits" / self.audit(digest).digest / "synthetic.parquet"

    def certificate_hash(self, digest: str) -> Path:
        """Hash of the certificate of an audit as it was written last; an audit that is purged keeps it."""
        return self.restricted / "certificates" / f"{self.audit(digest).digest}.sha256"

    @property
    def newest(self) -> AuditFolder:
        """The folder of the newest audit.

        Raises:
            DataError: there is no audit, or what names it is damaged.
        """
        pointer = read_pointer(Newest, self.newest_pointer)
        if pointer is None:
            raise DataError(
                "there is no evidence here",
                where=str(self.root),
                expected="the workspace of an audit that has ended",
                fix="run the audit first (`synth-audit run PLAN`), or name its folder if it has one",
            )
        return self.audit(pointer.digest)

    @property
    def evidence(self) -> Path:
        """The evidence file of the newest audit."""
        return self.newest.evidence

    @property
    def report(self) -> Path:
        """The report of the newest audit."""
        return self.newest.report

    def candidate(self, slug: str) -> Workspace:
        """The workspace of one candidate of a sweep."""
        return Workspace(self.candidates / slug, owner=self, place=f"{self.candidates.name}/{slug}")

    def prepare(self) -> Workspace:
        """Make both folders, the restricted one with mode 0700.

        Raises:
            DataError: a folder cannot be made, is a link or another user's, or the restricted one was open to
                others.
        """
        refuse_unusable(self.root)
        with making(self.root):
            if os.path.lexists(self.root):
                refuse_strange(self.root)
            self.review.mkdir(parents=True, exist_ok=True)
        refuse_strange(self.review)
        make_private(self.restricted)
        ignored = self.restricted / ".gitignore"
        if not os.path.lexists(ignored):
            with making(self.restricted):  # whole at once: an empty one would ignore nothing
                made = ignored.with_name(f".gitignore-{os.getpid()}")
                made.write_text("*\n", encoding="utf-8")  # real rows go into no repository by mistake
                made.chmod(0o600)
                made.replace(ignored)
        return self
