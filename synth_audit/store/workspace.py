"""Where an audit keeps its files: restricted (real rows, mode 0700) and review (for readers)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from synth_audit.errors import DataError
from synth_audit.store.files import make_private, making, refuse_strange, refuse_unusable
from synth_audit.store.pointers import AuditFolder, Newest, read_pointer


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

    @property
    def register(self) -> Workspace:
        """The workspace whose ledger counts reports."""
        return self.home.table or self.home

    @property
    def home(self) -> Workspace:
        """The workspace of the table itself."""
        return self.owner or self

    @property
    def restricted(self) -> Path:
        """Folder with real rows, readable by its owner alone."""
        return self.root / "restricted"

    @property
    def review(self) -> Path:
        """Folder that may be shown."""
        return self.root / "review"

    @property
    def salt(self) -> Path:
        """The secret of the table that split, fits, draws and hashes rest on; all its candidates share it."""
        return self.home.restricted / "salt"

    @property
    def train(self) -> Path:
        """Rows the generator sees."""
        return self.restricted / "train.parquet"

    @property
    def control(self) -> Path:
        """Real rows it never sees."""
        return self.restricted / "control.parquet"

    @property
    def synthetic(self) -> Path:
        """The candidate."""
        return self.restricted / "synthetic.parquet"

    @property
    def checkpoints(self) -> Path:
        """What fits that were broken off would resume from."""
        return self.restricted / "checkpoints"

    @property
    def split_record(self) -> Path:
        """What the split did."""
        return self.restricted / "split.json"

    @property
    def synthetic_record(self) -> Path:
        """What the generator did."""
        return self.restricted / "synthetic.json"

    @property
    def exposed(self) -> Path:
        """The most exposed training rows by position, with the attacks that hit them."""
        return self.restricted / "exposed_records.parquet"

    @property
    def journal(self) -> Path:
        """What was audited, reported and released, written where no reviewer can write."""
        return self.home.restricted / "journal.json"

    @property
    def journal_lock(self) -> Path:
        """Held while the journal is written, and what it tells of."""
        return self.journal.with_name(".journal.lock")

    @property
    def scratch(self) -> Path:
        """Where temporary files with real rows are made; what a kill leaves there goes at the next start."""
        return self.home.restricted / "scratch"

    @property
    def audits(self) -> Path:
        """Every audit in a folder of its own."""
        return self.review / "audits"

    def audit(self, digest: str) -> AuditFolder:
        """The folder of the audit with this digest.

        Raises:
            DataError: it is no digest.
        """
        return AuditFolder.of(self.audits, digest)

    def kept_rows(self, digest: str) -> Path:
        """The candidate that the audit was about, while the audit is the newest or the released one."""
        return self.restricted / "audits" / self.audit(digest).digest / "synthetic.parquet"

    def certificate_hash(self, digest: str) -> Path:
        """Hash of the certificate of an audit as it was written last; an audit that is purged keeps it."""
        return self.restricted / "certificates" / f"{self.audit(digest).digest}.sha256"

    @property
    def newest_pointer(self) -> Path:
        """Names the newest audit."""
        return self.review / "newest.json"

    @property
    def released_pointer(self) -> Path:
        """Names the audit of what was released last, and where that went."""
        return self.review / "released.json"

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
    def measurements(self) -> Path:
        """Every measurement of the newest audit, one row each."""
        return self.newest.measurements

    @property
    def report(self) -> Path:
        """The report of the newest audit."""
        return self.newest.report

    @property
    def calibration(self) -> Path:
        """How the audits answered planted leaks of all sizes."""
        return self.review / "calibration.json"

    @property
    def calibration_page(self) -> Path:
        """The same as a page with pictures."""
        return self.review / "calibration.html"

    @property
    def frontier(self) -> Path:
        """The record of a sweep over candidates."""
        return self.review / "frontier.json"

    @property
    def kept_frontier(self) -> Path:
        """The same where no reviewer can write: what is purged goes by it."""
        return self.restricted / "frontier.json"

    @property
    def frontier_page(self) -> Path:
        """The same as a page with pictures."""
        return self.review / "frontier.html"

    @property
    def mend(self) -> Path:
        """What was tried to mend a refused release."""
        return self.review / "mend.json"

    @property
    def candidates(self) -> Path:
        """The candidates of a sweep, each a workspace of its own."""
        return self.root / "candidates"

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
        return self
