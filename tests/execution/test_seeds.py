"""Named child seeds."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.execution.seeds import as_int_seed, child_rng, child_sequence


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
