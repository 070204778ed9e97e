from __future__ import annotations

import copy
import hashlib
import hmac
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from synth_audit.execution.seeds import Salt

FIXED = Salt(bytes(range(32)))


def test_it_shows_nothing_of_itself():
    for said in (repr(FIXED), str(FIXED), f"{FIXED}", repr([FIXED])):
        assert "Salt()" in said
        assert FIXED.secret.hex() not in said
        assert "\\x" not in said


@pytest.mark.parametrize("carry", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_does_not_travel(carry):
    with pytest.raises(TypeError, match="cannot be pickled"):
        carry(FIXED)


def test_fresh_ones_differ():
    with ThreadPoolExecutor(4) as pool:
        salts = list(pool.map(lambda _: Salt.fresh(), range(50)))
    assert len({s.secret for s in salts}) == 50
    assert len(salts[0].secret) == 32


def test_text_and_back():
    assert FIXED.text() == bytes(range(32)).hex() + "\n"
    assert Salt.parse(FIXED.text()) == Salt.parse(FIXED.text().strip()) == FIXED


@pytest.mark.parametrize(
    "text", ["", "00" * 31, "00" * 33, "zz" * 32, "AB" * 32, " " + "00" * 32, "00" * 32 + "\n\n"]
)
def test_what_is_no_salt(text):
    with pytest.raises(ValueError, match="no salt"):
        Salt.parse(text)


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_another_length_is_refused(length):
    with pytest.raises(ValueError, match="32 bytes"):
        Salt(bytes(length))


def test_derived_values_are_fixed():
    """Written down, since splits and evidence of years rest on them: computed here from the definitions."""

    def part(text):
        return b"\x01" + len(text).to_bytes(8, "big") + text

    two = (2).to_bytes(8, "big")
    key = hmac.new(
        FIXED.secret, two + part(b"synth-audit salt key") + part(b"split"), hashlib.sha256
    ).digest()
    assert FIXED.key("split") == key
    secret = b"\x02" + (32).to_bytes(8, "big") + FIXED.secret
    committed = hashlib.sha256(two + part(b"synth-audit salt commitment") + secret).hexdigest()
    assert FIXED.commitment == committed
    assert FIXED.digest(b"rows") == hmac.new(FIXED.key("content"), b"rows", hashlib.sha256).hexdigest()
    assert FIXED.rng("generator", "vine", "fit").integers(0, 2**31, 3).tolist() == [
        746374571,
        831051636,
        602738875,
    ]


def test_a_seed_is_a_number_of_128_bits():
    key = FIXED.key("seed")
    framed = (1).to_bytes(8, "big") + b"\x01" + (1).to_bytes(8, "big") + b"a"
    assert FIXED.seed("a") == int.from_bytes(hmac.new(key, framed, hashlib.sha256).digest()[:16], "big")


def test_no_two_uses_share_a_value():
    names = [("a", "b"), ("ab",), ("a",), ("a", "b", ""), ("a\x1fb",), ()]
    values = [FIXED.commitment, FIXED.secret.hex(), FIXED.digest(b""), FIXED.digest(b"split")]
    values += [FIXED.key(k).hex() for k in ("split", "content", "generator", "")]
    values += [FIXED.rng(*n).bytes(32).hex() for n in names] + [FIXED.seed(*n) for n in names]
    other = Salt(bytes(31) + b"\x01")
    values += [other.commitment, other.digest(b""), other.key("split").hex(), other.rng("a").bytes(32).hex()]
    assert len(set(values)) == len(values)


def test_one_bit_of_the_salt_moves_everything():
    flipped = [Salt(bytes([1 << b]) + bytes(31)) for b in range(8)]
    draws = np.array([s.rng("x").random(2000) for s in flipped])
    for one, two in itertools.combinations(draws, 2):
        assert abs(np.corrcoef(one, two)[0, 1]) < 0.1
    assert np.array_equal(flipped[0].rng("x").random(2000), draws[0])
