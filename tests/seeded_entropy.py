"""Seeds every draw from the system's entropy, so that no test passes or fails by chance.

The product's noise and salts must not be seeded, and its generators are handed seeds. Here what they draw
comes from a stream of the test's or fixture's own, and so does a generator that a test makes without a seed.
Worker processes that are started anew, and programs run by their command, still draw from the system: a test
of these must not rest on a draw, or it states how likely it is to fail.
"""

import random
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from synth_audit.dp import mechanisms
from synth_audit.execution import seeds

_default_rng = np.random.default_rng


class _Stream:
    rng = _default_rng(0)

    def bytes(self, count: int) -> bytes:
        return self.rng.bytes(count)


_STREAM = _Stream()


@contextmanager
def seeded(name: str) -> Iterator[None]:
    """Inside, all draws follow from the name."""
    before, seed = _STREAM.rng, zlib.crc32(name.encode())
    _STREAM.rng = _default_rng(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - libraries without a seed draw from it
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    try:
        yield
    finally:
        _STREAM.rng = before


def install() -> None:
    """Put the stream in place of the system's entropy, in this process."""
    system: Any = SimpleNamespace(
        urandom=_STREAM.bytes,
        token_bytes=_STREAM.bytes,
        randbits=lambda count: int.from_bytes(_STREAM.bytes((count + 7) // 8)) >> -count % 8,
    )
    mechanisms.os = mechanisms.secrets = seeds.secrets = system

    def default_rng(seed: Any = None) -> np.random.Generator:
        return _default_rng(int.from_bytes(_STREAM.bytes(16)) if seed is None else seed)

    np.random.default_rng = default_rng
