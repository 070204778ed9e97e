"""Named child seeds of one seed, and the secret salt that fits, draws and splits depend on."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from synth_audit.hashing import framed

LENGTH = 32
"""Bytes of a salt."""

_POOL = 8
"""Words of state that seed a generator: 256 bits."""

_SEED = 16
"""Bytes of a seed."""


def child_sequence(seed: int, *names: str) -> np.random.SeedSequence:
    """Seed sequence for one named use of a seed.

    The entropy is ``[seed, *SHA-256(names joined by U+001F)]``: names that differ have streams of their own,
    unless they hold that control character, and the result depends on nothing but its arguments.

    Args:
        seed: a non-negative integer of any size.
        names: the path of the consumer, for example ``("audit", "closest_record")``.
    """
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4)]
    return np.random.SeedSequence([seed, *words])


def child_rng(seed: int, *names: str) -> np.random.Generator:
    """Random generator for one named use of a seed; see :func:`child_sequence`."""
    return np.random.default_rng(child_sequence(seed, *names))


def public_key(seed: int, *names: str) -> bytes:
    """32 bytes for a split that touches no release, such as halves of train that leaks are planted in."""
    return hashlib.sha256(framed(["synth-audit public key", str(seed), *names])).digest()


def public_seed(*names: str) -> int:
    """Whole number below 2^128 that follows from the names, for draws that have no secret to rest on."""
    return int.from_bytes(hashlib.sha256(framed(["synth-audit public seed", *names])).digest()[:16], "big")


def as_int_seed(rng: np.random.Generator) -> int:
    """Draw an integer seed in [0, 2**31) for a library that takes no numpy generator."""
    return int(rng.integers(0, 2**31))


@dataclass(frozen=True)
class Salt:
    """32 bytes that nobody outside the restricted workspace may learn.

    Everything is derived from it by HMAC-SHA256 under a purpose of its own, so that what leaks of one use,
    such as the state of a generator that a release was drawn with, tells nothing of another.

    Raises:
        ValueError: it has another length.
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != LENGTH:
            raise ValueError(f"a salt has {LENGTH} bytes")

    @classmethod
    def fresh(cls) -> Salt:
        """A new one from the operating system's entropy."""
        return cls(secrets.token_bytes(LENGTH))

    @classmethod
    def parse(cls, text: str) -> Salt:
        """The salt written as 64 hexadecimal digits; raises ``ValueError`` for anything else."""
        if not re.fullmatch(r"[0-9a-f]{64}\n?", text):
            raise ValueError("no salt")
        return cls(bytes.fromhex(text.strip()))

    def text(self) -> str:
        """How the salt is kept: 64 hexadecimal digits and the end of the line."""
        return f"{self.secret.hex()}\n"

    @property
    def commitment(self) -> str:
        """``SHA-256("commitment", salt)``: which salt it was, and nothing of what it is."""
        return hashlib.sha256(framed(["synth-audit salt commitment", self.secret])).hexdigest()

    def key(self, purpose: str) -> bytes:
        """``HMAC(salt, purpose)``, 32 bytes, for one use."""
        return _hmac(self.secret, framed(["synth-audit salt key", purpose]))

    def rng(self, *names: str) -> np.random.Generator:
        """Random generator for one named use; nobody can make it again without the salt."""
        words = _hmac(self.key("generator"), framed(names))
        entropy = int.from_bytes(words, "big")
        return np.random.default_rng(np.random.SeedSequence(entropy, pool_size=_POOL))

    def seed(self, *names: str) -> int:
        """Whole number below 2^128 for one named use, which nobody can guess without the salt."""
        return int.from_bytes(_hmac(self.key("seed"), framed(names))[:_SEED], "big")

    def digest(self, data: bytes) -> str:
        """``HMAC-SHA256`` of ``data``, 64 hexadecimal digits: without the salt it confirms no guess."""
        return _hmac(self.key("content"), data).hex()

    def __reduce__(self) -> NoReturn:
        """A salt does not travel: whatever is sent to workers or kept in caches cannot hold it."""
        raise TypeError("a salt cannot be pickled")


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
