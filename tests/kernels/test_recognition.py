"""Shared telling values: which sets recognise whom, and joined sets judged on other people."""

from __future__ import annotations

import numpy as np

from synth_audit.kernels.recognition import shared_sets

STEP = 1e4


def test_a_row_shared_in_three_values_is_found_and_single_values_are_not():
    rng = np.random.default_rng(0)
    release = rng.integers(0, 400, (300, 6)) * STEP
    people = rng.integers(400, 800, (20, 6)) * STEP
    people[3, [1, 2, 4]] = release[7, [1, 2, 4]]
    people[5, 0] = release[9, 0]
    found = shared_sets(release, people, STEP, 20)
    hits = {(int(i), found.sets[k]) for i, k in zip(found.who, found.which, strict=True)}
    assert (3, (1, 2, 4)) in hits
    assert {i for i, _ in hits} == {3}


def test_common_values_recognise_nobody():
    same = np.random.default_rng(0).integers(0, 2, (200, 8)) * STEP
    assert not shared_sets(same, same, STEP, 200).sets


def test_people_looked_up_are_bounded_and_only_they_count():
    release = np.random.default_rng(0).integers(0, 50, (100, 5)) * STEP
    found = shared_sets(release, release + 100 * STEP, STEP, 40)
    assert found.asked.sum() == 40
    assert not found.sets
    member, second = np.arange(100) < 50, np.arange(100) % 2 == 0
    nobody = found.beside([(0, 1)], [np.arange(50)], np.array([[True], [False]]))
    assert nobody.sets[-1] == (0, 1)
    estimate, sets = nobody.united(member, second, 0.95)
    assert sets == [(0, 1)], "the half that may choose it does"
    assert abs(estimate.value - 0.5) < 0.01, "of one half all of train, of the other nobody"
