"""Draws from the system's entropy follow from the test's name, in fixtures too."""

import os

import numpy as np
import pytest

from synth_audit.dp.mechanisms import laplace_noise, poisson_sample, random_bits
from synth_audit.execution.seeds import Salt

DRAWS = {
    "laplace": lambda: laplace_noise(1.0, 3).tolist(),
    "poisson": lambda: poisson_sample(50, 0.5).tolist(),
    "bits": lambda: random_bits(60),
    "salt": lambda: Salt.fresh().text(),
    "generator": lambda: np.random.default_rng().random(),
}


@pytest.fixture(scope="module")
def kept():
    return {}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("again", [False, True])
def test_a_name_gives_the_same_draws_and_two_draws_differ(draw, again, kept, seeded_as):
    with seeded_as(draw):
        first, second = DRAWS[draw](), DRAWS[draw]()
    assert first != second
    assert kept.setdefault(draw, first) == first


def test_the_systems_own_entropy_is_left_to_names_of_files():
    assert os.urandom(16) != os.urandom(16)


@pytest.mark.xdist_group("together")
def test_tests_of_a_group_are_dealt_to_one_process(request):
    if not request.config.getoption("loadgroup", False):
        pytest.skip("all tests run in this process")
    assert request.node.nodeid.rpartition("@")[2] == "together"
