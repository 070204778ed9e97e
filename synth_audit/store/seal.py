"""A seal on files that go to other machines: HMAC-SHA256 under a key that the environment holds."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from pathlib import Path
from typing import Literal

from synth_audit.core.environment import EVIDENCE_KEY
from synth_audit.core.errors import DataError

KEY_VARIABLE = EVIDENCE_KEY
"""At least 32 bytes as hexadecimal digits or base64; the key is never shown or recorded."""

SUFFIX = ".hmac"

Kind = Literal["evidence", "released"]

_LEAST_BYTES = 32


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


def seal_of(kind: Kind, content: bytes) -> bytes | None:
    """What belongs into :func:`seal_path` beside a file with this content; None without a key."""
    key = evidence_key()
    return None if key is None else f"{_seal(key, kind, content)}\n".encode()


def seal_holds(kind: Kind, content: bytes, seal: bytes | None) -> bool | None:
    """Whether a seal is that of this content; None without a key, False without a seal."""
    wanted = seal_of(kind, content)
    if wanted is None:
        return None
    return seal is not None and hmac.compare_digest(seal.strip(), wanted.strip())


def _seal(key: bytes, kind: Kind, content: bytes) -> str:
    """What kind of file it is is sealed too, so that no seal fits one of another kind."""
    message = b"synth-audit seal 1\0" + kind.encode() + b"\0" + content
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def _decoded(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text)
    except ValueError:
        pass
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
