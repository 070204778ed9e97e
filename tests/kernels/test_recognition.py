"""Shared telling values: which sets recognise whom, and joined sets judged on other people."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.recognition import _parts, _Sharing, shared_sets

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


def test_columns_that_tell_the_same_recognise_nobody():
    rng = np.random.default_rng(0)

    def one_size(n, spread):
        return rng.normal(size=(n, 1)) + rng.normal(0, spread, (n, 5))

    assert len(shared_sets(one_size(400, 0.01), one_size(200, 0.01), STEP, 200, least=3).who) < 20
    size = rng.normal(size=400)
    release = np.column_stack([size, 3 * size, size**3, np.exp(size)])
    assert not shared_sets(release, release[:50], STEP, 50, least=3).sets, "units of one size are one value"
    apart = rng.normal(size=(400, 5))
    assert len(set(shared_sets(apart, apart[:50], STEP, 200, least=3).who)) == 50


def test_whoever_lent_a_value_shares_it_with_no_more_rows():
    release = np.sort(np.random.default_rng(0).normal(size=(400, 1)), axis=0)
    between = (release[100:200] + release[101:201]) / 2
    for people in (release[100:200], between):
        column = _Sharing.of(release[:, 0], people[:, 0], STEP)
        assert set(column.end - column.first) == {2}


def blocks_of(rng, n, share, sets):
    """Some train people's values in one of several sets of columns, in rows that are others' beside."""
    release, people = rng.normal(size=(n, 12)), rng.normal(size=(n + n // 2, 12))
    for row in range(int(share * n)):
        one = sets[row % len(sets)]
        release[row, one] = people[row, one]
    return release, people


@pytest.mark.parametrize(("share", "seen"), [(0.4, True), (0.0, False)])
def test_few_people_are_judged_in_parts_so_that_most_of_them_choose(share, seen):
    rng = np.random.default_rng(1)
    sets = [rng.choice(12, 4, replace=False) for _ in range(10)]
    release, people = blocks_of(rng, 300, share, sets)
    member, second = np.arange(450) < 300, np.arange(450) % 2 == 0
    found = shared_sets(release, people, STEP, 450, least=3)
    estimate, _ = found.united(member, second, 0.95)
    assert estimate.interval.high < 0.05 or seen
    assert (estimate.interval.low > 0.2) is seen
    truth = np.arange(450) < 300 * share
    assert estimate.value <= truth[:300].mean() + 0.05


def test_parts_divide_each_half_of_either_side_alike():
    rng = np.random.default_rng(0)
    member, second = rng.permutation(90) < 60, rng.permutation(90) < 45
    part = _parts(member, second, 3)
    assert set(part) == set(range(6))
    for half in (False, True):
        for side in (member, ~member):
            sizes = np.bincount(part[(second == half) & side], minlength=6)[3 * half : 3 * half + 3]
            assert np.ptp(sizes) <= 1
