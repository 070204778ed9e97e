"""Joins of parts where a validator finds that they belong together."""

import numpy as np
import pytest

from synth_audit.generators.disjoint.join import FEWEST, Validation, learnt, shares_above, validated_join

RULES = Validation(patience=5, rounds=100)


def join(score, *, n=100, pool=300, rules=RULES, parts=2):
    return validated_join(n, pool, parts, score, rules, np.random.default_rng(0))


def alike(rows):
    return 1 - np.abs(rows[:, 0] - rows[:, 1]) / 300


def test_no_row_is_used_twice_and_every_round_is_counted():
    found = join(alike)
    assert found.rows.shape == (100, 2)
    assert all(len(set(column)) == 100 for column in found.rows.T)
    assert sum(admitted for _, admitted in found.rounds) == 100
    assert len(found.first) == 300
    assert 30 <= found.rounds[0][1] < 35, "the top tenth of the first round, with ties"
    at_random = np.abs(np.subtract(*np.random.default_rng(1).permuted([np.arange(300)] * 2, axis=1))).mean()
    assert np.abs(np.subtract(*found.rows.T)).mean() < at_random / 2


def test_a_threshold_decays_after_idle_rounds_and_patience_ends():
    never = join(
        lambda rows: np.zeros(len(rows)), rules=Validation(threshold=0.5, decay=0.5, patience=3, rounds=100)
    )
    assert len(never.rows) == 0
    assert [threshold for threshold, _ in never.rounds] == [0.5, 0.25, 0.125]
    late = join(
        lambda rows: np.full(len(rows), 0.2),
        rules=Validation(threshold=0.5, decay=0.5, patience=3, rounds=100),
    )
    assert [admitted for _, admitted in late.rounds] == [0, 0, 100]
    few = join(alike, n=300, rules=Validation(decay=0.0, patience=100, rounds=4))
    assert len(few.rounds) == 4
    assert 0 < len(few.rows) < 300


def test_shares_above_are_those_at_the_threshold_and_above():
    [above] = shares_above([np.array([0.1, 0.5, 0.5, 0.9])], np.array([0.0, 0.5, 0.6, 1.0]))
    assert above.tolist() == [1.0, 0.75, 0.25, 0.0]


@pytest.fixture(scope="module")
def twins():
    """Two parts that say the same, up to noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    return [x, x + 0.3 * rng.normal(size=x.shape)]


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("random_forest", 0.8),
        pytest.param("gradient_boosting", 0.79, marks=pytest.mark.slow),
        ("k_nearest", 0.8),
        pytest.param("svm", 0.8, marks=pytest.mark.slow),
        pytest.param("mlp", 0.6, marks=pytest.mark.slow),
        ("one_class_svm", 0.7),
        pytest.param("isolation_forest", 0.6, marks=pytest.mark.slow),
    ],
)
def test_every_validator_tells_what_belongs_together(twins, name, least):
    found = learnt(twins, name, np.random.default_rng(1), tuned=True)
    assert found.auc > least
    assert len(found.joined) == 4 * len(found.real)
    together, apart = (found.probability(np.array([[1.0, y]])) for y in (1.0, -1.5))
    assert 0 < apart < together < 1
    again = learnt(twins, name, np.random.default_rng(1), tuned=True)
    assert np.array_equal(again.real, found.real)


@pytest.mark.parametrize("name", ["isolation_forest", "k_nearest"])
def test_the_fewest_rows_are_enough_without_a_warning(twins, name):
    found = learnt([part[:FEWEST] for part in twins], name, np.random.default_rng(1), tuned=True)
    assert 0 <= found.auc <= 1


@pytest.mark.slow
def test_calibration_brings_probabilities_to_what_is_held_out(twins):
    rough, tuned = (
        learnt(twins, "random_forest", np.random.default_rng(1), tuned=how) for how in (False, True)
    )

    def loss(v):
        return -np.log(v.real).mean() - np.log(1 - v.joined).mean()

    assert loss(tuned) < loss(rough)
    few = [part[:FEWEST] for part in twins]
    assert len(learnt(few, "random_forest", np.random.default_rng(0), tuned=True).real) > 0
