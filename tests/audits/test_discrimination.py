"""What the trees see, and how sure they are of it."""

import numpy as np
import pytest

from synth_audit.audits.fidelity.propensity import SMALLEST_LEAF, TreeFeatures, discriminate, tree_features
from synth_audit.stats.roc import cross_fitted_interval, mean_auroc


def features(first, second, discrete=False):
    x = np.vstack([first, second])
    return TreeFeatures(x, np.full(x.shape[1], discrete), max(2 * SMALLEST_LEAF, len(x) // SMALLEST_LEAF))


def told(first, second, seed=0, **more):
    settings = {"n_folds": 4, "n_trees": 30} | more
    return discriminate(features(first, second), len(first), rng=np.random.default_rng(seed), **settings)


def covers(interval, value):
    return interval.low <= value <= interval.high


def test_alike_tables_are_not_told_apart_and_different_ones_are():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4))
    alike = told(x[:500], x[500:])
    assert covers(cross_fitted_interval(alike[0], 0.95), 0.5)
    moved = told(x[:500], x[500:] + np.array([1.0, 0, 0, 0]))
    assert mean_auroc(moved[0]) > 0.7
    lost = [mean_auroc(folds) for folds in moved[1]]
    assert lost[0] > 0.15 > 5 * max(lost[1:])


def test_dependence_between_columns_is_seen():
    rng = np.random.default_rng(0)
    z = rng.normal(size=1000)
    together = np.column_stack([z, z + 0.3 * rng.normal(size=1000)])
    apart = np.column_stack([rng.permutation(column) for column in together.T])
    assert mean_auroc(told(together, apart)[0]) > 0.8


def test_a_copy_scores_below_a_coin():
    x = np.random.default_rng(0).normal(size=(400, 4))
    assert mean_auroc(told(x, x)[0]) < 0.45


def test_tables_that_never_meet_leave_an_interval():
    x = np.random.default_rng(0).normal(size=(200, 2))
    found = told(x[:100], x[100:] + 100)
    assert mean_auroc(found[0]) == 1
    around = cross_fitted_interval(found[0], 0.95)
    assert around.low == pytest.approx(1 - 1.96**2 / (100 + 1.96**2), abs=1e-3)
    few = told(x[:10], x[10:20], n_folds=5)  # too few for a leaf, so all scores are ties
    assert mean_auroc(few[0]) == 0.5
    assert covers(cross_fitted_interval(few[0], 0.95), 0.6)


def test_more_columns_than_rows_to_shuffle():
    x = np.random.default_rng(0).normal(size=(60, 80))
    found = told(x[:40], x[40:], n_folds=2, n_trees=3)
    assert len(found[1]) == 80
    assert all(len(folds) == 2 for folds in found[1])


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads():
    from threadpoolctl import threadpool_limits

    x = np.random.default_rng(0).normal(size=(300, 3))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(told(x[:200], x[200:], n_trees=5))
    for one, two in zip(found[0][0], found[1][0], strict=True):
        assert np.array_equal(one.members, two.members)


def test_features_are_order_numbers(tables_of):
    first = {"x": [3.0, 1e200, None, -5.0], "k": ["a", "a", None, "b"], "no": [None, None, None, 1.0]}
    second = {"x": [3.0, 4.0, None, -5.0], "k": ["new", "a", "a", "b"], "no": [None] * 3 + [2.0]}
    tables = tables_of(first, second)
    found = tree_features(tables, tables[0].schema.features)
    assert found.values[:, 0].tolist() == [1, 3, -1, 0, 1, 2, -1, 0]
    assert found.values[:4, 1].tolist() == found.values[[5, 6, 2, 7], 1].tolist()
    assert found.discrete.tolist() == [False, True, False]


def test_rare_labels_are_joined(tables_of):
    names = [f"n{i}" for i in range(500)]
    tables = tables_of({"k": names}, {"k": names})
    found = tree_features(tables, tables[0].schema.features)
    assert found.bins == 1000 // SMALLEST_LEAF
    assert found.values.max() == found.bins - 1


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "discrete"), [(400, 400, False), (500, 150, False), (400, 400, True)])
def test_intervals_cover_a_coin_between_alike_tables(n, m, discrete):
    """Of few trees: between alike tables more of them learn nothing more, and take most of the time."""
    rng = np.random.default_rng(0)
    held, lost = [], []
    for seed in range(150):
        x = rng.integers(0, 2, (n + m, 3)).astype(float) if discrete else rng.normal(size=(n + m, 5))
        made = discriminate(features(x[:n], x[n:], discrete), n, 5, 8, np.random.default_rng(seed))
        held.append(covers(cross_fitted_interval(made[0], 0.95), 0.5))
        lost += [covers(cross_fitted_interval(folds, 0.95), 0.0) for folds in made[1]]
    assert np.mean(held) >= 0.92
    assert np.mean(lost) >= 0.92
