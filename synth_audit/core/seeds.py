"""Named child seeds of one seed: adding a plug-in moves no other plug-in's numbers.

They move audits only, which start from the secret salt (:mod:`synth_audit.core.salt`) or, where there is
none, from the candidate. Whatever touches a release derives from the salt alone.
"""

from __future__ import annotations

import hashlib

import numpy as np

from synth_audit.core.framing import framed


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
