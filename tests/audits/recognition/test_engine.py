"""The engine: no leak without one, a leak of its size, and an exact p-value."""

import doctest
import importlib

import numpy as np
import pytest

from synth_audit.audits.recognition import engine


def scored(n_train, n_control, leak, seed, *, views=60, shift=4.0):
    """Scores of normal noise in which a share of the training people stand out in one view of ten."""
    rng = np.random.default_rng([7, seed])
    n = n_train + n_control
    scores = rng.normal(size=(views, n))
    member = rng.permutation(n) < n_train
    people = rng.permutation(np.flatnonzero(member))[: round(leak * n_train)]
    scores[np.ix_(np.arange(0, views, 10), people)] += shift
    return [engine.ViewScores(engine.information(scores))], member, rng


def test_bits_are_the_tail_share_of_a_naive_count():
    scores = np.random.default_rng(1).integers(0, 9, (3, 40)).astype(float)
    scores[1, :5] = np.nan
    known = np.where(np.isnan(scores), -np.inf, scores)
    naive = [[-np.log2(np.mean(row >= x)) for x in row] for row in known]
    assert engine.information(scores) == pytest.approx(np.array(naive), abs=1e-6)


def test_excesses_are_those_of_a_naive_count():
    rng = np.random.default_rng(2)
    bits, side = rng.random((2, 200)).astype(np.float32), rng.random(200) < 0.7
    looked_at = rng.random(200) < 0.5
    train, control = side & looked_at, ~side & looked_at
    found, _ = engine.excesses(engine.leading(bits, engine.VIEW_SIZES), train, control, engine.VIEW_SIZES)
    for row, mine in zip(bits, found, strict=True):
        order = np.argsort(-row)
        for size, excess in zip(engine.VIEW_SIZES, mine, strict=True):
            top = order[: engine.claim_count(size, 200)]
            assert excess == pytest.approx(
                train[top].sum() / train.sum() - control[top].sum() / control.sum()
            )


@pytest.mark.parametrize("sizes", [(300, 100), (800, 200)])
def test_without_a_leak_hardly_any_lower_bound_is_above_zero(sizes):
    lows = [engine.recognise(*scored(*sizes, 0.0, seed)).interval(0.98).low for seed in range(60)]
    assert sum(low > 0 for low in lows) <= 4


@pytest.mark.parametrize("leak", [0.05, 0.2, 1.0])
def test_a_leak_is_measured_at_its_size(leak):
    found = [engine.recognise(*scored(1000, 300, leak, seed, shift=8.0)) for seed in range(5)]
    for one in found:
        interval = one.interval(0.98)
        assert interval.low > 0.01
        assert interval.low <= min(leak, 0.64 * 1.3 / 1.0) + 0.01
        assert one.excess == pytest.approx(min(leak, 0.8), abs=0.25 * leak + 0.01)


def test_a_rule_rests_on_the_views_that_carry_the_leak():
    [views], member, _ = scored(1000, 300, 0.1, 1)
    rule = engine.chosen(views, member, np.ones(1300, dtype=bool))
    assert set(rule.views[:6]) == set(range(0, 60, 10))
    assert list(rule.weights) == sorted(rule.weights, reverse=True)


def test_the_people_claimed_most_are_those_who_leak():
    draws, member, rng = scored(1000, 300, 0.1, 2, shift=9.0)
    found = engine.recognise(draws, member, rng)
    assert member[found.claims >= 0.5].mean() > 0.95


def test_draws_that_disagree_widen_the_interval():
    draws, member, rng = scored(600, 200, 0.1, 3)
    other, _, _ = scored(600, 200, 0.0, 4)
    agree = engine.recognise(draws * 2, member, rng).interval(0.95)
    differ = engine.recognise([*draws, *other], member, rng).interval(0.95)
    assert differ.high - differ.low > agree.high - agree.low


def test_a_p_value_is_small_for_a_leak_alone():
    assert engine.p_value(*scored(300, 100, 0.3, 5)) == pytest.approx(1 / 300)
    without = [engine.p_value(*scored(300, 100, 0.0, seed)) for seed in range(6, 16)]
    assert sum(p <= 0.05 for p in without) <= 3
    assert max(without) > 0.5


def test_a_leak_that_one_view_of_many_shows_is_strong():
    clear = []
    for seed in range(3):
        [views], member, rng = scored(800, 200, 0.0, seed, views=100)
        views.bits[0, np.flatnonzero(member)[:50]] = 12.0
        strength = np.mean([engine.recognise([views], member, rng, halvings=1).strength for _ in range(4)])
        without = [
            engine.recognise([views], rng.permutation(member), rng, halvings=1).strength for _ in range(60)
        ]
        clear.append((strength - np.mean(without)) / np.std(without))
    assert np.mean(clear) > 4.6  # deviations; 3.8 where the strongest views count alike


@pytest.mark.parametrize("name", ["engine", "people"])
def test_examples_in_docstrings_hold(name):
    module = importlib.import_module(f"synth_audit.audits.recognition.{name}")
    assert doctest.testmod(module, extraglobs={"np": np}) == (0, 1)
