"""Mechanisms as functions: true claims stand, false ones fall, and the answer says how tight it is."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import PlanError, PluginError
from synth_audit.mechanism_test.examination import Claim, ClaimAnswer, Effort, Finding
from synth_audit.mechanism_test.white_box import FunctionMechanism, array_pairs, given_pairs, named

GAUSSIAN = Claim(1.0, 1e-5)
SIGMA = 3.7304  # the analytic Gaussian mechanism of sensitivity 1 at (1, 1e-5)


def laplace(epsilon, seed=0):
    rng = np.random.default_rng(seed)
    return lambda table, n: table.sum() + rng.laplace(0, 1 / epsilon, n)


def gaussian(sigma, seed=0):
    rng = np.random.default_rng(seed)
    return lambda table, n: table.sum() + sigma * rng.standard_normal(n)


def response(epsilon, seed=0):
    """Whether the table holds a one, told truly with probability e^ε / (1 + e^ε)."""
    rng = np.random.default_rng(seed)
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    return lambda table, n: (rng.random(n) < truth) == bool(table.any())


ANSWERS = {
    "tight": (response(1.0), None, 20_000, ClaimAnswer.TIGHT, (0.85, 1), "tight to"),
    "gaussian": (gaussian(SIGMA), GAUSSIAN, 1_000_000, ClaimAnswer.TIGHT, (0.7, 1), "tight to"),
    "noise at half": (laplace(2.0), None, 4000, ClaimAnswer.VIOLATED, (1.2, 2), "not 1"),
    "doubtful": (laplace(1.0), Claim(0.9), 8000, ClaimAnswer.DOUBTFUL, (0.9, 1.1), "more than is claimed"),
    "a constant": (lambda table, n: np.zeros(n), None, 2000, ClaimAnswer.NOT_REFUTED, (0, 0), "could have"),
    "rows": (lambda table, n: np.full(n, len(table)), None, 2000, ClaimAnswer.VIOLATED, (1, 9), "not 1"),
    "missing": (lambda t, n: np.full(n, np.nan if t.any() else 0.0), None, 2000, "violated", (1, 9), "not 1"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_and_the_epsilon_that_it_rests_on(asked, case):
    draws, claim, runs, answer, (low, high), said = ANSWERS[case]
    found = asked(draws, claim, runs=runs)
    assert found.answer == answer
    assert low <= (found.epsilon_at_least if answer == "violated" else found.epsilon_shown) <= high
    assert found.epsilon_at_least <= min(found.epsilon_shown, found.largest)
    assert said in found.reason


@pytest.mark.parametrize("make", [laplace, response])
@pytest.mark.parametrize("runs", [60, 1000])
def test_true_claims_are_not_refuted(make, runs, asked):
    refuted = [asked(make(1.0, i), runs=runs, seed=i).answer is ClaimAnswer.VIOLATED for i in range(60)]
    assert sum(refuted) == 0  # 0.06 are allowed


@pytest.mark.slow
@pytest.mark.parametrize("make", [laplace, response])
def test_of_a_thousand_true_claims_hardly_one_is_refuted(make, asked):
    refuted = sum(asked(make(1.0, i), runs=1000, seed=i).answer is ClaimAnswer.VIOLATED for i in range(1000))
    assert refuted <= 5  # 1 is expected at most; more than 5 have probability 0.0006


def test_more_delta_than_is_claimed_is_a_violation(asked):
    """Name and shame: the canary leaves as it is in one of twenty runs."""
    rng = np.random.default_rng(0)
    found = asked(lambda table, n: table.any() & (rng.random(n) < 0.05), Claim(1.0, 1e-5), runs=4000)
    assert found.answer is ClaimAnswer.VIOLATED
    allowed = asked(lambda table, n: table.any() & (rng.random(n) < 0.05), Claim(1.0, 0.05), runs=4000)
    assert allowed.answer is ClaimAnswer.NOT_REFUTED


def test_noise_that_repeats_is_refuted_whatever_its_size(asked):
    def seeded(table, n):
        return table.sum() + np.random.default_rng(7).laplace(0, 100, n)

    found = asked(seeded)
    assert found.answer is ClaimAnswer.VIOLATED
    assert "noise repeats" in found.reason
    assert found.repeats < 1e-4
    assert json.loads(found.to_json())["epsilon_at_least"] is None


def test_too_few_runs_for_a_large_epsilon_are_no_answer(asked):
    found = asked(laplace(10.0), Claim(10.0), runs=500)
    assert found.answer is ClaimAnswer.NOT_TESTABLE
    assert f"{found.runs_to_refute:,}" in found.reason
    assert found.runs_to_refute > 100_000


def test_what_is_found_inside_breaks_a_claim_that_runs_cannot_refute(asked):
    found = asked(laplace(1.0), findings=(Finding("no noise was drawn"),))
    assert found.answer is ClaimAnswer.VIOLATED
    assert found.reason == "no noise was drawn"


def test_replacing_moves_a_bounded_sum_as_far_as_adding(asked):
    claim = Claim(1.0, neighbouring=Neighbouring.REPLACE)
    assert asked(laplace(1.0), claim, runs=4000).answer is ClaimAnswer.TIGHT
    pairs = array_pairs(claim, 5)
    assert {len(p.without) for p in pairs} == {len(p.having) for p in pairs} == {5}


def test_the_result_is_json_without_numbers_that_json_lacks(asked):
    plain = json.loads(asked(laplace(1.0), GAUSSIAN, runs=200).to_json())
    assert plain["claim"] == {
        "epsilon": 1.0,
        "delta": 1e-5,
        "neighbouring": "add or remove one",
        "rows": 1,
    }
    assert plain["curve"][0]["fpr_low"] <= plain["curve"][0]["fpr_high"]


@pytest.mark.parametrize(
    "draws",
    [lambda table, n: 1 / 0, lambda table, n: np.zeros(n + 1), lambda table, n: np.zeros((n, len(table)))],
)
def test_a_function_that_breaks_the_contract_is_told_of(draws, asked):
    with pytest.raises(PluginError, match="mechanism"):
        asked(draws)


def test_named_functions_are_found_and_others_refused(tmp_path, monkeypatch):
    (tmp_path / "own_mechanism.py").write_text("def f(t, n): return [0.0] * n\nx = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert named("own_mechanism:f", "function")(None, 2) == [0.0, 0.0]
    for text in ("own_mechanism:g", "own_mechanism:x", "no_such_module_here:f", "f", ""):
        with pytest.raises(PlanError):
            named(text, "function")


def test_neighbours_of_the_users_own(asked):
    pairs = given_pairs([("doubled", np.ones(2), np.ones(4)), (np.zeros(1), np.ones(1))])
    assert [p.name for p in pairs] == ["doubled", "pair 2"]
    assert asked(FunctionMechanism(laplace(1.0), pairs), runs=3000).case == "doubled"
    with pytest.raises(PluginError, match="neighbours"):
        given_pairs([np.ones(5)])


@pytest.mark.parametrize(("runs", "seconds"), [(59, None), (100, 0.0)])
def test_no_effort_tests_nothing(runs, seconds):
    with pytest.raises(PlanError, match="too few"):
        Effort(runs, seconds)


@pytest.mark.parametrize("wrong", [(0.0, 0.0), (math.inf, 0.0), (1.0, 1.0), (1.0, -1e-9)])
def test_claims_out_of_range_are_refused(wrong):
    with pytest.raises(PlanError, match="claim"):
        Claim(*wrong)
