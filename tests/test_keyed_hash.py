"""Many hashes under one key are those of the standard library."""

from __future__ import annotations

import hmac

import pytest

from synth_audit.hashing import KeyedHash


@pytest.mark.parametrize("length", [0, 1, 32, 63, 64, 65, 200])
def test_it_is_the_hmac(length):
    key = bytes(range(1, length + 1))
    keyed = KeyedHash(key)
    for message in (b"", b"a", b"x" * 300, b""):
        assert keyed(message) == hmac.digest(key, message, "sha256")
