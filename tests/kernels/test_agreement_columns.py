"""Agreement of a person and a row in whatever columns: against a slow twin, ties, missing values, labels."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.agreement_columns import THRESHOLDS, AgreementColumn, standing_out


def tables(n=30, m=50):
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 25, (n + m, 2)).astype(float)
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    labels = rng.integers(-1, 4, (n + m, 2))
    columns = [AgreementColumn.of_numbers(x[:n], x[n:]) for x in numbers.T]
    return numbers, [*columns, *(AgreementColumn.of_labels(x[:n], x[n:]) for x in labels.T)]


def bits_of_two_numbers(x, s, people, release):
    """−log2 of the mean share of both sides as near by rank in both."""
    sides = [side[np.isfinite(side)] for side in (people, release)]

    def rank(value):
        return np.mean([np.mean(side < value) + np.mean(side == value) / 2 for side in sides])

    away = abs(rank(x) - rank(s))
    near = np.mean([np.mean([abs(rank(v) - rank(x)) <= away + 1e-9 for v in side]) for side in sides])
    return min(10.0, -np.log2(near))


def test_numbers_agree_by_the_share_as_near():
    numbers, columns = tables()
    people, release = numbers[:30, 0], numbers[30:, 0]
    for i, j in [(0, 0), (3, 7), (5, 40), (11, 11), (29, 49), (8, 23)]:
        [found] = columns[0].of_pairs(np.array([i]), np.array([j]))
        known = np.isfinite(people[i]) and np.isfinite(release[j])
        expected = bits_of_two_numbers(people[i], release[j], people, release) if known else 0.0
        assert found == pytest.approx(expected, abs=1e-5)


def test_labels_agree_if_equal_by_how_rare_they_are():
    people, release = np.array([0, 0, 1, -1]), np.array([0, 1, 2, -1, -1])
    column = AgreementColumn.of_labels(people, release)
    found = column.of_pairs(np.array([0, 2, 2, 3, 0]), np.array([0, 1, 2, 3, 1]))
    assert found == pytest.approx([1.0, -np.log2((1 / 3 + 1 / 3) / 2), 0.0, 0.0, 0.0])


def test_a_missing_label_or_one_that_nobody_has_agrees_with_nothing():
    column = AgreementColumn.of_labels(np.full(3, -1), np.full(4, -1))
    assert not column.of_pairs(np.arange(3), np.arange(3)).any()


def test_labels_that_stand_for_others_of_people_say_less_than_equal_ones():
    less = np.zeros((3, 3), bool)
    less[0, 2] = True
    column = AgreementColumn.of_labels(np.array([0, 1, 2, -1]), np.array([0, 1, 1, 2]), less)
    shares = np.array([1 / 3 + 1 / 4, 1 / 3 + 1 / 2, 1 / 3 + 1 / 4]) / 2
    expected = np.diag(-np.log2(shares))
    expected[0, 2] = -np.log2(shares[0] + shares[2])
    assert column.bits[:3, :3] == pytest.approx(expected, abs=1e-6)
    assert not column.bits[3].any()
    assert not column.bits[:, 3].any()


def test_the_sums_are_those_of_a_slow_twin():
    _, columns = tables()
    found = standing_out(columns, 1, np.random.default_rng(0))
    who, which = (x.ravel() for x in np.meshgrid(np.arange(30), np.arange(50), indexing="ij"))
    for k, t in enumerate(THRESHOLDS):
        terms = np.array([np.maximum(0, c.of_pairs(who, which) - t) for c in columns])
        differ = terms.std(axis=1) > 0
        weights = np.ones(len(terms))
        weights[differ] = 1 / (np.corrcoef(terms[differ]) ** 2).sum(axis=0)
        top = -np.sort(-(weights @ terms).reshape(30, 50), axis=1)
        assert found[:, k] == pytest.approx(top[:, 0] - top[:, 4:8].mean(axis=1), abs=4 / 16)


def test_the_best_of_many_rows_are_those_of_all():
    rng = np.random.default_rng(5)
    people, release = rng.normal(size=20), rng.normal(size=5_003)
    column = AgreementColumn.of_numbers(people, release)
    found = standing_out([column], 2, np.random.default_rng(0))[:, 0]
    bits = column.of_pairs(*(x.ravel() for x in np.meshgrid(np.arange(20), np.arange(5_003), indexing="ij")))
    top = -np.sort(-bits.reshape(20, -1), axis=1)
    assert found == pytest.approx(top[:, 0] - top[:, 8:16].mean(axis=1), abs=2 / 16)


def test_numbers_mirrored_are_near_whose_ranks_are_turned_round():
    x = np.arange(200.0)
    column = AgreementColumn.of_numbers(x, x[::-1].copy(), mirrored=True)
    everybody = np.arange(200)
    assert column.of_pairs(everybody, everybody).min() > 6
    assert column.of_pairs(np.array([0]), np.array([199])) == pytest.approx(0.0, abs=0.02)


def test_a_mirrored_number_agrees_alike_with_what_equal_ones_may_have_become():
    x = np.repeat([0.0, 1.0, 2.0], [600, 300, 100])  # of the noughts 100 are twos now, and 300 ones
    column = AgreementColumn.of_numbers(x, x, mirrored=True)
    bits = column.of_pairs(np.zeros(3, int), np.array([0, 700, 950]))
    assert bits == pytest.approx([0.0, -np.log2(0.4), -np.log2(0.4)], abs=1e-5)
    bits = column.of_pairs(np.full(3, 950), np.array([0, 700, 950]))
    assert bits == pytest.approx([-np.log2(0.6), -np.log2(0.9), 0.0], abs=1e-5)


def test_columns_that_agree_together_share_their_weight():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 900))
    twice = [AgreementColumn.of_numbers(x[:300], x[300:])] * 2
    once = [twice[0], AgreementColumn.of_numbers(y[:300], y[300:])]
    told = [standing_out(c, 1, np.random.default_rng(0))[:, 0].mean() for c in (twice, twice[:1], once)]
    assert told[0] == pytest.approx(told[1], rel=0.05)
    assert told[2] > 1.3 * told[1]
