"""What was filed of one audit, read once, so that what is checked is what is used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synth_audit.errors import Altered
from synth_audit.store.approvals import SUFFIX, is_approval
from synth_audit.store.evidence import Evidence, parse_evidence
from synth_audit.store.files import is_plain_folder, read_plain, sha256_of_bytes, write_bytes
from synth_audit.store.journal import AuditEntry
from synth_audit.store.workspace import AuditFolder

EVIDENCE, MEASUREMENTS, REPORT = "evidence.json", "measurements.parquet", "report.html"
SEAL = EVIDENCE + SUFFIX
TABLE = "synthetic.parquet"
"""The audited rows and values alone, of a table made elsewhere that passed."""

CERTIFICATE = "certificate.html"
"""Rendered anew with each approval, so that it is compared with what it shows and not with what was filed."""

_LARGEST = 1 << 29
"""Bytes of all files of an audit together; what lies there beyond them would only exhaust the memory."""

LARGEST_TABLE = _LARGEST // 4 * 3
"""Bytes of that table, so that there is room for the other files."""


@dataclass(frozen=True)
class FiledAudit:
    """The files of an audit, wherever they are kept.

    Attributes:
        digest: that its evidence must have.
        files: content by name of every file, seals too.
        where: its evidence, for messages.
    """

    digest: str
    files: Mapping[str, bytes]
    where: Path

    @classmethod
    def load(cls, folder: AuditFolder) -> FiledAudit:
        """What is in a folder; hidden files may be left from a kill and do not count.

        Raises:
            Altered: it is missing, it or something in it is a link or no file, or it holds no evidence.
        """
        try:
            among = folder.path.parent
            if not is_plain_folder(folder.path) or (among.name == "audits" and not is_plain_folder(among)):
                raise NotADirectoryError
            names = [n for n in sorted(os.listdir(folder.path)) if not n.startswith(".")]
            files: dict[str, bytes] = {}
            for name in names:
                room = _LARGEST - sum(map(len, files.values()))
                files[name] = read_plain(folder.path / name, largest=room)
        except OSError as error:
            raise altered_folder(folder, f"cannot be read ({type(error).__name__})") from None
        if EVIDENCE not in files:
            raise altered_folder(folder, "holds no evidence")
        return cls(folder.digest, files, folder.evidence)

    def write(self, folder: Path) -> None:
        """Write its files into a folder."""
        for name, content in self.files.items():
            write_bytes(folder / name, content)

    @property
    def measurements(self) -> bytes | None:
        """Its measurements as a file, where they are there."""
        return self.files.get(MEASUREMENTS)

    @property
    def report(self) -> bytes | None:
        """Its report, where one is there."""
        return self.files.get(REPORT)

    @property
    def seal(self) -> bytes | None:
        """The seal of its evidence, where one is there."""
        return self.files.get(SEAL)

    @property
    def evidence_file(self) -> bytes:
        """Its evidence as a file."""
        return self.files[EVIDENCE]

    @property
    def evidence(self) -> Evidence:
        """The evidence in it.

        Raises:
            ValueError: it is none.
        """
        return parse_evidence(self.files[EVIDENCE].decode())

    def altered(self, entry: AuditEntry) -> tuple[str, ...]:
        """Names of files that are not what was filed, or that were not filed at all.

        Approvals vouch for themselves, and come later.
        """
        filed = {n: x for n, x in self.files.items() if n != CERTIFICATE and not is_approval(n)}
        found = {name: sha256_of_bytes(content) for name, content in filed.items()}
        return tuple(n for n in sorted({*found, *entry.files}) if found.get(n) != entry.files.get(n))


def altered_folder(folder: AuditFolder, what: str) -> Altered:
    """The error for a folder that is not as this program left it."""
    return Altered(
        f"the folder of an audit {what}",
        where=str(folder.path),
        expected="what this program filed, unaltered, and no link in its place",
        fix="find out who altered it (`synth-audit verify` tells what), move it away and run the audit again",
    )
