"""HMAC-SHA256 of many messages under one key."""

from __future__ import annotations

import hashlib

_BLOCK = 64
"""Bytes of a block of SHA-256."""


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
