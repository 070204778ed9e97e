import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_audit.hashing import KeyedHash, count, frame, framed

PARTS = st.lists(st.none() | st.text(max_size=4) | st.binary(max_size=4), max_size=4)


@given(PARTS, PARTS)
def test_different_parts_give_different_bytes(one, other):
    alike = [type(x) for x in one] == [type(x) for x in other] and one == other
    assert (framed(one) == framed(other)) is alike


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["a", "b"], ["ab"]),
        (["a\x1fb"], ["a", "b"]),
        (["a", ""], ["a"]),
        ([None], [""]),
        ([None], ["\x00"]),
        ([None, "a"], ["a", None]),
        (["a"], [b"a"]),
        ([framed(["a"])], ["a"]),
        ([], [None]),
    ],
)
def test_what_a_separator_would_confuse(one, other):
    assert framed(one) != framed(other)


@given(PARTS)
def test_frames_made_once_join_to_the_same_bytes(parts):
    assert count(len(parts)) + b"".join(map(frame, parts)) == framed(parts)


def test_the_form_is_fixed():
    """Splits of years rest on these bytes."""
    assert framed(["é", None, b"\x07"]).hex() == (
        "0000000000000003" + "01" + "0000000000000002" + "c3a9" + "00" + "02" + "0000000000000001" + "07"
    )


@pytest.mark.parametrize("length", [0, 1, 32, 63, 64, 65, 200])
def test_it_is_the_hmac(length):
    key = bytes(range(1, length + 1))
    keyed = KeyedHash(key)
    for message in (b"", b"a", b"x" * 300, b""):
        assert keyed(message) == hmac.digest(key, message, "sha256")
