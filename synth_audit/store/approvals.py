"""Signed statements beside evidence (Ed25519, RFC 8032), and seals on files for other machines."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, with_config

from synth_audit.errors import DataError
from synth_audit.execution.context import EVIDENCE_KEY
from synth_audit.files import create_once, read_plain
from synth_audit.plan.sections import KEY_PREFIX, key_bytes
from synth_audit.store.files import making, sha256_of_bytes
from synth_audit.store.records import CLOSED, SCHEMA_VERSION, Digest, parse_strict, to_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


PASSPHRASE = "SYNTH_AUDIT_KEY_PASSPHRASE"
"""Environment variable with the passphrase of an encrypted private key."""

KEY_VARIABLE = EVIDENCE_KEY
"""At least 32 bytes as hexadecimal digits or base64; the key is never shown or recorded."""

SUFFIX = ".hmac"

_LEAST_BYTES = 32
"""Of the key for evidence."""

_PURPOSE = b"synth-audit approval of evidence, version 1\n"
_APPROVAL_NAME = re.compile(r"approval-[0-9a-f]{16}\.json")
_LARGEST_KEY_FILE = 1 << 14
"""Bytes of an approval or a private key."""

_MOST_APPROVALS = 200
"""Approvals of one audit that are read."""

SealedKind = Literal["evidence", "released"]
Line = Annotated[str, Field(max_length=2000)]


@with_config(CLOSED)
@dataclass(frozen=True)
class Approval:
    """What one person signed.

    Attributes:
        digest: of the evidence that is approved. table: its name there.
        by: the person; key: the public key behind the signature.
        signed: when, ISO 8601 with zone. until: last day, in UTC, on which a release may rest on it.
        signature: base64, over all other fields.
    """

    digest: Digest
    table: Line
    by: Line
    key: Line
    signed: Line
    until: Line
    note: Line
    signature: Line = ""
    schema_version: str = SCHEMA_VERSION

    @property
    def statement(self) -> bytes:
        """The bytes that are signed."""
        said = {k: v for k, v in asdict(self).items() if k != "signature"}
        return _PURPOSE + json.dumps(said, sort_keys=True, ensure_ascii=True).encode()

    @property
    def genuine(self) -> bool:
        """True when the holder of its key signed exactly this."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            key = Ed25519PublicKey.from_public_bytes(key_bytes(self.key))
            key.verify(base64.b64decode(self.signature, validate=True), self.statement)
        except (InvalidSignature, ValueError):
            return False
        return True

    @property
    def last_day(self) -> date:
        """The day under ``until``; raises ``ValueError`` where it is none."""
        return date.fromisoformat(self.until)

    @property
    def moment(self) -> datetime:
        """The time under ``signed``; raises ``ValueError`` where it is none or has no zone."""
        found = datetime.fromisoformat(self.signed)
        if found.tzinfo is None:
            raise ValueError("a time without a zone")
        return found

    @property
    def fingerprint(self) -> str:
        """Enough of the key to compare by eye."""
        return key_fingerprint(self.key)

    def signed_with(self, key: Ed25519PrivateKey) -> Approval:
        """The same with the signature of a key."""
        unsigned = replace(self, key=public_text(key))
        return replace(unsigned, signature=base64.b64encode(key.sign(unsigned.statement)).decode())

    def to_bytes(self) -> bytes:
        """The file of it."""
        return to_json(self).encode()

    @property
    def file_name(self) -> str:
        """Another name for each: none takes the place of another."""
        return f"approval-{sha256_of_bytes(self.to_bytes())[:16]}.json"


def is_approval(name: str) -> bool:
    """True for the name of a file with an approval."""
    return _APPROVAL_NAME.fullmatch(name) is not None


def has_approval(folder: Path) -> bool:
    """True where a file with an approval lies in a folder, whether it counts or not."""
    return os.path.isdir(folder) and any(map(is_approval, os.listdir(folder)))


def parse_approval(content: bytes) -> Approval:
    """An approval from its file.

    Raises:
        ValueError: it is none, or a key is unknown or occurs twice.
    """
    found = parse_strict(Approval, content)
    _ = found.moment, found.last_day  # so that neither fails later
    if not all(isinstance(x, str) and x.isprintable() for x in asdict(found).values()):
        raise ValueError("signs that would mislead a reader")
    return found


def approvals_in(files: Mapping[str, bytes]) -> tuple[Approval, ...]:
    """Those among the files of an audit, oldest first; what is none is left out, as it approves nothing."""
    found = []
    for name in sorted(n for n in files if is_approval(n))[:_MOST_APPROVALS]:
        with suppress(ValueError):
            found.append(parse_approval(files[name]))
    return tuple(sorted(found, key=lambda a: (a.moment, a.key)))


def approval_files(folder: Path) -> dict[str, bytes]:
    """The files in a folder that are named like approvals; one that cannot be read is left out."""
    found = {}
    with suppress(OSError):
        for name in sorted(filter(is_approval, os.listdir(folder)))[:_MOST_APPROVALS]:
            with suppress(OSError):
                found[name] = read_plain(folder / name, largest=_LARGEST_KEY_FILE)
    return found


def new_key(path: Path) -> str:
    """Make a private key in a new file that its owner alone may read; returns the public one.

    Raises:
        DataError: something is in its place, or it cannot be written.
    """
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, secret = Ed25519PrivateKey.generate(), os.environ.get(PASSPHRASE, "").encode()
    hidden = form.BestAvailableEncryption(secret) if secret else form.NoEncryption()
    content = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, hidden)
    with making(path):
        if not create_once(path, content):
            raise FileExistsError
    return public_text(key)


def read_key(path: Path) -> Ed25519PrivateKey:
    """A private key from its file (PEM, PKCS #8), which nobody else may read.

    Raises:
        DataError: it cannot be read, others may read it, or it holds no Ed25519 key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        content = read_plain(path, largest=_LARGEST_KEY_FILE)
        open_to_others = stat.S_IMODE(os.lstat(path).st_mode) & 0o077
    except OSError as error:
        raise _no_key(path, f"the key cannot be read ({type(error).__name__})") from None
    if open_to_others:
        raise _no_key(path, "others than its owner may read the key", f"chmod 600 {path}; better, a new key")
    try:
        key = load_pem_private_key(content, os.environ.get(PASSPHRASE, "").encode() or None)
    except (TypeError, ValueError):
        fix = f"an encrypted key takes its passphrase in {PASSPHRASE}"
        raise _no_key(path, "the file holds no key that can be opened", fix) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, "the key is of another kind")
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    """The public key as a plan names it."""
    return KEY_PREFIX + base64.b64encode(key.public_key().public_bytes_raw()).decode()


def key_fingerprint(key: str) -> str:
    """Enough of a public key, as a plan names it, to compare by eye."""
    return sha256_of_bytes(key.encode())[:16]


def _no_key(path: Path, what: str, fix: str = "") -> DataError:
    return DataError(
        what,
        where=str(path),
        expected="a private Ed25519 key in PEM, mode 0600",
        fix=fix or "`synth-audit approve --new-key FILE` makes one",
    )


def evidence_key() -> bytes | None:
    """The key, or None when there is none.

    Raises:
        DataError: it is set, and no key.
    """
    text = os.environ.get(KEY_VARIABLE, "").strip()
    if not text:
        return None
    key = _decoded(text)
    if key is None or len(key) < _LEAST_BYTES:
        raise DataError(
            "the key for evidence is no key",
            where=KEY_VARIABLE,
            expected=f"at least {_LEAST_BYTES} random bytes as hexadecimal digits or base64",
            fix="make one with `openssl rand -hex 32`, or unset the variable",
        )
    return key


def seal_path(path: Path) -> Path:
    """The file beside ``path`` that holds its seal."""
    return path.with_name(path.name + SUFFIX)


def seal_beside(path: Path) -> bytes | None:
    """The seal beside ``path``; None where none can be read."""
    try:
        return read_plain(seal_path(path))
    except OSError:
        return None


def seal_of(kind: SealedKind, content: bytes) -> bytes | None:
    """What belongs into :func:`seal_path` beside a file with this content; None without a key.

    The kind of the file is sealed too, so that no seal fits one of another kind.
    """
    key = evidence_key()
    if key is None:
        return None
    message = b"synth-audit seal 1\0" + kind.encode() + b"\0" + content
    return f"{hmac.new(key, message, hashlib.sha256).hexdigest()}\n".encode()


def seal_holds(kind: SealedKind, content: bytes, seal: bytes | None) -> bool | None:
    """Whether a seal is that of this content; None without a key, False without a seal."""
    wanted = seal_of(kind, content)
    if wanted is None:
        return None
    return seal is not None and hmac.compare_digest(seal.strip(), wanted.strip())


def _decoded(text: str) -> bytes | None:
    with suppress(ValueError):
        return bytes.fromhex(text)
    with suppress(ValueError):
        return base64.b64decode(text, validate=True)
    return None
