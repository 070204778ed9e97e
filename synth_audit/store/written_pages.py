"""Whether the pages beside evidence are the bytes that this program wrote.

The words of a page are checked by rendering it anew, which takes the build that wrote it. Its bytes are
checked by a hash in the restricted folder, where no reviewer can write. The journal has that of a report. A
certificate is written anew with each approval, and its hash has a file of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress

from synth_audit.core.errors import DataError
from synth_audit.core.framing import framed
from synth_audit.store.approvals import Approval
from synth_audit.store.filed_audit import REPORT
from synth_audit.store.journal import read_journal
from synth_audit.store.locate import LocatedEvidence
from synth_audit.store.untrusted_file import read_plain, sha256_of_bytes
from synth_audit.store.workspace_files import make_private, write_text


def report_as_filed(found: LocatedEvidence, content: bytes) -> bool | None:
    """Whether this is the report that was filed; None where no journal knows of one."""
    journal = read_journal(found.workspace) if found.workspace is not None else None
    entry = journal.entry(found.folder.digest) if journal is not None and found.folder is not None else None
    filed = entry.files.get(REPORT) if entry is not None else None
    return None if filed is None else filed == sha256_of_bytes(content)


def keep_certificate_hash(found: LocatedEvidence, content: bytes) -> None:
    """Record what is about to be written, where the restricted folder of the evidence is at hand."""
    if found.workspace is None or found.folder is None or read_journal(found.workspace) is None:
        return
    path = found.workspace.certificate_hash(found.folder.digest)
    with suppress(DataError):  # without it the certificate is as good, and checked by its own build alone
        make_private(path.parent)
        write_text(path, f"{_hash(content, found.approvals())}\n", private=True)


def certificate_as_written(found: LocatedEvidence, content: bytes) -> bool | None:
    """Whether this certificate was written last, with the approvals that lie there; None without a record."""
    if found.workspace is None or found.folder is None:
        return None
    try:
        kept = read_plain(found.workspace.certificate_hash(found.folder.digest))
    except OSError:
        return None
    return kept.decode(errors="replace").strip() == _hash(content, found.approvals())


def _hash(content: bytes, approvals: Sequence[Approval]) -> str:
    return hashlib.sha256(framed([content, *(a.to_bytes() for a in approvals)])).hexdigest()
