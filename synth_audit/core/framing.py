"""Several values as one string of bytes that no other values have, to be hashed."""

from __future__ import annotations

from collections.abc import Iterable

_MISSING, _TEXT, _BYTES = b"\x00", b"\x01", b"\x02"
_WIDTH = 8


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
