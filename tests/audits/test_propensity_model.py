"""The logistic discriminator against a peer, closed forms and its null."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression

from synth_audit.audits.fidelity.propensity import MOST_TERMS, PropensityFit, propensity_terms
from synth_audit.encode.codes import by_frequency


def standardised(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def fitted(first, second):
    return PropensityFit.of(
        standardised(np.vstack([first, second])), np.arange(len(first) + len(second)) >= len(first)
    )


def test_scores_agree_with_a_peers():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(300, 4)), rng.normal(0.4, 1.3, size=(150, 4))
    found = fitted(first, second)
    x = np.vstack([first, second])
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, found.second)
    assert found.scores == pytest.approx(peer.predict_proba(x)[:, 1], abs=1e-4)
    assert found.scores.mean() == pytest.approx(found.share, abs=1e-9)


def test_one_indicator_by_hand():
    """A saturated model gives each cell its own share of second rows."""
    first, second = np.repeat([[0.0], [1.0]], [60, 40], axis=0), np.repeat([[0.0], [1.0]], [30, 70], axis=0)
    found = fitted(first, second)
    assert found.rank == 1
    by_hand = (90 * (30 / 90 - 0.5) ** 2 + 110 * (70 / 110 - 0.5) ** 2) / 200
    assert found.squared_error == pytest.approx(by_hand, rel=1e-4)
    assert found.expected == pytest.approx(0.25 / 200)
    assert found.expected_resampled == pytest.approx(0.125 / 200)


def test_the_expectations_differ_by_the_share_of_the_first_table():
    rng = np.random.default_rng(0)
    found = fitted(rng.normal(size=(300, 3)), rng.normal(size=(100, 3)))
    assert found.share == 0.25
    assert found.expected == pytest.approx(0.25 * 0.75 * 3 / 400)
    assert found.expected_resampled == pytest.approx(3 * 0.75**2 * 0.25 / 400)


def test_collinear_and_constant_terms_count_once():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    second = np.arange(400) >= 150
    plain = PropensityFit.of(standardised(x), second)
    more = standardised(np.column_stack([x, x[:, 0] + x[:, 1], x[:, 2] + 1e-12 * rng.normal(size=400)]))
    double = PropensityFit.of(np.column_stack([more, np.zeros(400)]), second)
    assert (plain.rank, double.rank) == (3, 3)
    assert double.scores == pytest.approx(plain.scores, abs=1e-6)


def test_tables_that_never_meet_are_told_apart_without_fail():
    x = np.random.default_rng(0).normal(size=(200, 5))
    found = fitted(x[:100], x[100:] + 50)
    assert found.squared_error == pytest.approx(0.25, rel=1e-2)
    assert found.standard_error() > 0
    assert np.isfinite(found.standard_error())


def test_a_copy_in_any_order_is_not_told_apart_at_all():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5))
    found = fitted(x, rng.permutation(x))
    assert found.squared_error == pytest.approx(0, abs=1e-20)
    assert found.standard_error() > 0


def test_no_term_that_varies_leaves_nothing_to_expect():
    found = PropensityFit.of(np.zeros((20, 3)), np.arange(20) >= 10)
    assert (found.rank, found.squared_error, found.expected) == (0, 0, 0)


def halves(x, n, rng):
    order = rng.permutation(len(x))
    return x[order[:n]], x[order[n:]]


def real_design():
    x = load_breast_cancer().data[:, :20]  # near-collinear: radius, perimeter and area
    return standardised(np.column_stack([x, x[:, 0] > 14, np.digitize(x[:, 1], [16, 19, 22]) == 1]))


def ratios(repeats, n, seed=0):
    x, rng = real_design(), np.random.default_rng(seed)
    found = [fitted(*halves(x, n, rng)) for _ in range(repeats)]
    return np.array([f.squared_error / f.expected for f in found]), found


@pytest.mark.parametrize("n", [284, 450])
def test_two_halves_of_a_table_are_at_the_null(n):
    ratio, _ = ratios(50, n)
    assert ratio.mean() == pytest.approx(1, abs=4 * np.sqrt(2 / 22 / 50))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "room"), [(284, 0.05), (450, 0.1)]
)  # 450: 5 rows of the smaller part for a term
def test_two_halves_of_a_table_are_at_the_null_in_a_thousand_repeats(n, room):
    ratio, found = ratios(1000, n)
    rank = found[0].rank
    assert ratio.mean() == pytest.approx(1, abs=room)
    assert ratio.std() == pytest.approx(np.sqrt(2 / rank), rel=0.15)
    held = [abs(f.squared_error - f.expected) <= 1.96 * f.standard_error() for f in found]
    assert np.mean(held) >= 0.95


def test_rows_drawn_from_the_first_table_are_at_the_other_null():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(60):
        first = rng.normal(size=(300, 8))
        found.append(fitted(first, first[rng.integers(0, 300, 600)]))
    assert np.mean([f.squared_error / f.expected_resampled for f in found]) == pytest.approx(1, abs=0.2)
    assert np.mean([f.squared_error / f.expected for f in found]) == pytest.approx(1 / 3, abs=0.1)


@pytest.mark.parametrize("shift", [0.1, 0.5, 1.5])
def test_the_standard_error_is_that_of_new_samples(shift):
    rng = np.random.default_rng(0)
    found = [fitted(rng.normal(size=(250, 3)), rng.normal(shift, 1, (250, 3))) for _ in range(150)]
    spread = np.std([f.squared_error for f in found])
    assert spread == pytest.approx(np.mean([f.standard_error() for f in found]), rel=0.35)


def test_the_same_rows_give_the_same_bits():
    x = real_design()
    one, two = (PropensityFit.of(x, np.arange(len(x)) % 3 == 0) for _ in range(2))
    assert np.array_equal(one.scores, two.scores)
    assert one.standard_error() == two.standard_error()


def test_terms_are_numbers_gaps_and_labels(tables_of):
    n = 50
    first = {"x": [None] * 5 + [float(i) for i in range(n - 5)], "k": ["a", "b"] * (n // 2), "c": [1.0] * n}
    second = {"x": [float(i) for i in range(n)], "k": ["a"] * (n - 1) + ["new"], "c": [1.0] * n}
    tables = tables_of(first, second)
    design = propensity_terms(tables, tables[0].schema.features)
    assert design.shape == (2 * n, 3 + 3)  # x, c, x missing; three labels, of which one is redundant
    assert PropensityFit.of(design, np.arange(2 * n) >= n).rank == 4
    assert design.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert (design[:5, 0] == 0).all()  # missing is the mean
    assert (design[:, 1] == 0).all()
    assert len(np.unique(design[:, 2])) == 2
    assert len({tuple(row) for row in design[[45, 46, -1], 3:]}) == 3


def test_a_table_of_many_labels_has_no_more_terms_than_its_rows_allow(tables_of):
    rng = np.random.default_rng(0)
    frames = [{f"k{i}": rng.choice(list("abcdefghij"), n) for i in range(30)} for n in (300, 300)]
    tables = tables_of(*frames)
    assert propensity_terms(tables, tables[0].schema.features).shape[1] == 60
    wide = [{f"k{i}": rng.choice(list("ab"), 40) for i in range(MOST_TERMS + 1)} for _ in range(2)]
    tables = tables_of(*wide)
    assert propensity_terms(tables, tables[0].schema.features).shape[1] == MOST_TERMS + 1


def test_labels_by_falling_frequency_missing_among_them():
    joint = np.array([0, 1, 1, -1, -1, -1])
    assert by_frequency([joint], joint)[0].tolist() == [2, 1, 1, 0, 0, 0]


def test_a_difference_in_means_shows_and_one_in_dependence_does_not():
    x = load_wine().data[:, :3]
    rng = np.random.default_rng(0)
    rows = standardised(x[rng.integers(0, len(x), 2000)])
    shuffled = np.column_stack([rng.permutation(column) for column in rows.T])
    alone = fitted(rows, shuffled)
    assert alone.squared_error < alone.expected
    moved = fitted(rows, rows + np.array([0.3, 0, 0]))
    assert moved.squared_error > 10 * moved.expected
