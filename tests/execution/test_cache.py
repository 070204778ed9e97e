"""The run's cache, child seeds and salt."""

import copy
import hashlib
import hmac
import itertools
import pickle
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from synth_audit.execution.context import Cache
from synth_audit.execution.seeds import Salt, as_int_seed, child_rng, child_sequence


def test_the_same_inputs_are_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return b"result"

    cache = Cache(tmp_path)
    assert cache.get("train", "seed 1", make=make) == b"result"
    assert cache.get("train", "seed 1", make=make) == b"result"
    assert len(made) == 1
    cache.get("train", "seed 2", make=make)
    cache.get("trainseed", " 1", make=make)
    assert len(made) == 3


def test_without_a_folder_nothing_is_kept():
    assert Cache().get("x", make=lambda: b"1") == b"1"
    assert Cache().get("x", make=lambda: b"2") == b"2"


def test_who_asks_meanwhile_waits(tmp_path):
    made = []

    def slow():
        made.append(1)
        time.sleep(0.2)
        return b"slow"

    asked = [
        threading.Thread(target=Cache(tmp_path).get, args=("k",), kwargs={"make": slow}) for _ in range(4)
    ]
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join()
    assert made == [1]


def test_what_fails_is_not_kept(tmp_path):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Cache(tmp_path).get("k", make=fail)
    assert Cache(tmp_path).get("k", make=lambda: b"ok") == b"ok"


def test_others_may_not_read_it(tmp_path):
    Cache(tmp_path).get("k", make=lambda: b"learnt from real rows")
    kept = [p for p in tmp_path.iterdir() if p.suffix != ".lock"]
    assert [stat.S_IMODE(p.stat().st_mode) for p in kept] == [0o600]


def test_what_was_put_is_found_and_got(tmp_path):
    cache = Cache(tmp_path)
    assert cache.find("a", "b") is None
    cache.put("a", "b", made=b"1")
    assert cache.find("a", "b") == b"1"
    assert cache.find("ab", "") is None
    assert cache.get("a", "b", make=lambda: b"2") == b"1"
    Cache().put("a", made=b"1")
    assert Cache().find("a") is None


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


def test_streams_are_stable():
    assert child_rng(0, "audit", "closest_record").integers(0, 2**31, 3).tolist() == [
        1259661567,
        1203647650,
        2035337450,
    ]
    assert child_rng(7, "generator", "vine", "fit").integers(0, 2**31, 3).tolist() == [
        2015039203,
        529887814,
        470390847,
    ]


def test_a_name_has_one_stream_whatever_else_was_asked_for():
    alone = child_rng(3, "audit", "a").random(4)
    child_rng(3, "audit", "b").random(100)
    assert np.array_equal(child_rng(3, "audit", "a").random(4), alone)


@pytest.mark.parametrize(
    "other", [(4, "audit", "a"), (3, "audit", "b"), (3, "a", "audit"), (3, "auditaa"), (3,)]
)
def test_names_and_seeds_have_streams_of_their_own(other):
    assert not np.array_equal(child_rng(3, "audit", "a").random(4), child_rng(*other).random(4))


def test_the_sequence_depends_on_its_arguments_only():
    assert child_sequence(1, "x").entropy == child_sequence(1, "x").entropy
    assert np.array_equal(child_sequence(1, "x").generate_state(4), child_sequence(1, "x").generate_state(4))


def test_integer_seeds_are_in_range_and_reproducible():
    draws = [as_int_seed(np.random.default_rng(i)) for i in range(50)]
    assert all(0 <= x < 2**31 for x in draws)
    assert len(set(draws)) == 50
    assert draws[0] == as_int_seed(np.random.default_rng(0))
