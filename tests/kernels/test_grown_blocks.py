"""Mixed blocks: two numbers and a few answers of yes or no single people out together, and are found so."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.grown_blocks import grown_blocks, rare_blocks, recognised, smallest_seen

STEP, WIDTH = 1e4, 4
N, K = 500, 150
BLOCK = (1, 3, 8, 9, 10)


def rows_of(rng, n):
    """Six labels of ninety, and six answers."""
    return np.hstack([rng.integers(0, 90, (n, 6)), rng.integers(0, 2, (n, 6))]) * STEP


def dealt(share):
    rng = np.random.default_rng(1)
    release, people = rows_of(rng, N), rows_of(rng, N + K)
    copied = int(share * N)
    release[:copied, BLOCK] = people[:copied, BLOCK]
    return release, people, np.arange(N + K) < N


@pytest.mark.parametrize("share", [0.2, 0.0])
def test_a_block_of_numbers_and_answers_grows_where_it_was_copied(share):
    release, people, member = dealt(share)
    chosen = np.arange(N + K) % 2 == 0
    found = grown_blocks(release, people, member, chosen, STEP, 5, WIDTH)
    if not share:
        assert not found
        return
    assert set(found[0]) <= set(BLOCK)
    assert {1, 3} < set(found[0])
    [hit] = recognised(release, people, found[:1], STEP, WIDTH)
    judged = hit[~chosen[hit]]
    assert (judged < N).sum() / (N / 2) > 0.15
    assert (judged >= N).sum() / (K / 2) < 0.05


@pytest.mark.parametrize(("strangers", "told"), [(250, True), (40, False)])
def test_coarse_columns_that_many_strangers_share_count_where_strangers_are_many(strangers, told):
    rng = np.random.default_rng(2)
    values = np.array([30, 30, 3, 2, 2, 9, 9])
    release, people = (rng.integers(0, values, (n, 7)) * STEP for n in (1000, 1000 + strangers))
    release[:200, :5] = people[:200, :5]
    member = np.arange(len(people)) < 1000
    found = grown_blocks(release, people, member, np.ones(len(people), dtype=bool), STEP, 5, WIDTH)
    [hit] = recognised(release, people, [(0, 1, 2, 3, 4)], STEP, WIDTH)
    assert 0.03 < (hit >= 1000).sum() / strangers < 0.2
    assert ((0, 1, 2, 3, 4) in found) is told


@pytest.mark.parametrize(("width", "told"), [(1, True), (16, False)])
def test_an_exact_number_beside_common_answers_is_found_by_the_row_next_in_rank(width, told):
    rng = np.random.default_rng(3)
    release, people = (
        np.column_stack([rng.permutation(4_000)[:n], rng.integers(0, 2, (n, 5)) * STEP]) for n in (800, 1000)
    )
    release[:120] = people[:120]
    member = np.arange(1000) < 800
    found = grown_blocks(release, people, member, np.ones(1000, dtype=bool), STEP, 5, width)
    assert bool(found) is told


def test_columns_that_every_row_keeps_of_somebody_are_found_though_most_strangers_share_them():
    rng = np.random.default_rng(5)
    people = rng.integers(0, [9, 7, 5, 3, 4, 4], (800, 6)) * STEP
    release = rng.integers(0, [9, 7, 5, 3, 4, 4], (600, 6)) * STEP
    release[:, :4] = people[:600, :4]
    member = np.arange(800) < 600
    found = grown_blocks(release, people, member, np.ones(800, dtype=bool), STEP, 5, 1)
    [hit] = recognised(release, people, [(0, 1, 2, 3)], STEP, 1)
    assert (hit >= 600).sum() / 200 > 0.3
    assert found[0] == (0, 1, 2, 3)


@pytest.mark.parametrize("share", [0.1, 0.0])
def test_columns_of_a_tenth_that_many_strangers_share_are_found_where_nobody_else_has_them(share):
    rng = np.random.default_rng(7)
    kinds = np.array([40, 12, 5, 4, 4, 3, 3, 2, 2, 40, 40])
    people, release = (np.rint(rng.beta(1, 2, (n, 11)) * kinds) * STEP for n in (1400, 1000))
    copied = round(share * 1000)
    release[:copied, :9] = people[:copied, :9]
    found = rare_blocks(release, people, STEP, 8)
    if not share:
        assert len(found) < 4
        return
    best, who = found[0]
    assert set(best) <= set(range(9))
    assert np.isin(np.arange(copied), who).mean() > 0.5
    naive = [
        i
        for i, x in enumerate(people[:200][:, best])
        if (release[:, best] == x).all(axis=1).any() and (people[:, best] == x).all(axis=1).sum() == 1
    ]
    # of the people every second row is looked at, and of a column of numbers the next one in rank
    assert set(naive) <= set(who.tolist())
    assert not any(set(s) < set(t) for s, _ in found for t, _ in found)


def test_people_are_recognised_who_share_all_columns_with_one_row():
    release = np.array([[1, 1], [2, 2], [3, 3]]) * STEP
    people = np.array([[1, 1], [1, 2], [3, 3], [4, 4]]) * STEP
    both, second = recognised(release, people, [(0, 1), (1,)], STEP, WIDTH)
    assert both.tolist() == [0, 2]
    assert second.tolist() == [0, 1, 2]


def test_with_more_people_smaller_shares_are_seen():
    seen = [smallest_seen(n, n // 4) for n in (100, 300, 1000, 3000)]
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > 0.15
    assert seen[2] == 0.05
    assert smallest_seen(5, 2) > 0.9
