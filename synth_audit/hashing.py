"""Values as bytes that no other values have, and HMAC-SHA256 of many messages under one key."""

import hashlib
from collections.abc import Iterable

_MISSING, _TEXT, _BYTES = b"\x00", b"\x01", b"\x02"
_WIDTH = 8
"""Bytes of a length: 64 bits, so that no content is too long for its frame."""

_BLOCK = 64
"""Bytes of a block of SHA-256."""


def framed(parts: Iterable[str | bytes | None]) -> bytes:
    """The number of parts, then each in its frame; see :func:`frame`.

    No other sequence of parts gives the same bytes: ``("a", "b")`` differs from ``("ab",)``, a missing part
    from any text, text from the bytes that encode it.
    """
    every = [frame(part) for part in parts]
    return count(len(every)) + b"".join(every)


def count(n: int) -> bytes:
    """The number of parts as it stands before their frames."""
    return n.to_bytes(_WIDTH, "big")


def frame(part: str | bytes | None) -> bytes:
    """One part: a tag of its type, its length in 8 bytes, its bytes; a missing one is its tag alone."""
    if part is None:
        return _MISSING
    tag, content = (_TEXT, part.encode()) if isinstance(part, str) else (_BYTES, part)
    return tag + len(content).to_bytes(_WIDTH, "big") + content


class KeyedHash:
    """``HMAC(key, m) = H((K ⊕ opad) ‖ H((K ⊕ ipad) ‖ m))`` (RFC 2104), with what the key alone decides kept.

    For millions of short messages that is several times as fast as setting the key up for each.
    """

    def __init__(self, key: bytes) -> None:
        block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(b ^ 0x36 for b in block))
        self._outer = hashlib.sha256(bytes(b ^ 0x5C for b in block))

    def __call__(self, message: bytes) -> bytes:
        """The 32 bytes of a message."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()
