"""A lower bound on epsilon above the one guaranteed holds the release; anything less does not."""

import math
from dataclasses import replace

import pytest

from synth_audit.audits.privacy import membership_game, one_run
from synth_audit.audits.privacy.one_run import CEILING, EMPIRICAL_EPSILON, OneRun
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.dp.guarantee import Neighbouring, PrivacyGuarantee, Unit
from synth_audit.errors import OUT_OF_TIME
from synth_audit.findings.measurement import Findings, Interval
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report.chapters import guarantee_section
from synth_audit.verdict import privacy_budget
from synth_audit.verdict.privacy_budget import EMPIRICAL_EPSILON as TOLD
from synth_audit.verdict.privacy_budget import EPSILON_CEILING, Promise, promise_results, proven_cost

UNPAID = PrivacyAccount(guarantee=None, reason="nothing was spent")


def game(gain, low, high, epsilon=1.0, delta=0.0):
    headline = membership_game.PRIVACY_GAIN.at(gain, interval=Interval(low, high, 0.95, "t"), n_achieved=100)
    found = membership_game.refuted(headline, epsilon, delta)
    return AuditOutcome("membership_game", "privacy", Status.MEASURED, measurements=(found,))


def judged(*outcomes):
    return promise_results(Promise(1.0, 0.0, UNPAID), outcomes)[1]


@pytest.mark.parametrize(("delta", "epsilon"), [(0.0, 1.0), (0.01, 2.0)])
def test_the_bound_turns_around(delta, epsilon):
    gain = membership_game.least_gain(epsilon, delta)
    [m] = game(gain, gain, gain, epsilon, delta).measurements
    assert m.value == pytest.approx(0.0)


def test_a_proof_against_the_guarantee_blocks():
    result = judged(game(0.1, 0.05, 0.2))
    assert result.result is Result.FAIL
    assert result.blocking
    assert result.value > 0
    assert "above the claim" in result.explanation


@pytest.mark.parametrize("outcomes", [(), (game(0.9, 0.8, 1.0),), (game(0.3, 0.05, 0.6),)])
def test_no_proof_does_not(outcomes):
    assert judged(*outcomes).result is Result.PASS


@pytest.mark.parametrize(
    "outcome",
    [
        game(0.1, 0.05, math.nan),
        game(math.nan, math.nan, math.nan),
        replace(game(0.1, 0.05, 0.2), measurements=(membership_game.EPSILON_REFUTED.at(3.0),)),
        AuditOutcome(
            "membership_game",
            "privacy",
            Status.NOT_APPLICABLE,
            info=membership_game.MembershipGame.info,
            reason=OUT_OF_TIME,
        ),
    ],
)
def test_a_game_that_says_nothing_leaves_it_open(outcome):
    found = judged(game(0.9, 0.8, 1.0), outcome)
    assert found.result is Result.INSUFFICIENT
    assert found.advice
    assert judged(game(0.1, 0.05, 0.2), outcome).result is Result.FAIL


def test_another_audit_that_ran_out_of_time_says_nothing_of_it():
    late = AuditOutcome("inference", "privacy", Status.NOT_APPLICABLE, info=None, reason=OUT_OF_TIME)
    assert judged(game(0.9, 0.8, 1.0), late).result is Result.PASS


GUARANTEE = PrivacyGuarantee(Unit.ENTITY, Neighbouring.ADD_OR_REMOVE, 1.0, 0.0, "pld", (), (), ())


@pytest.mark.parametrize(
    ("spent", "result"),
    [
        ({}, Result.PASS),
        ({"table_epsilon": 1.5}, Result.FAIL),
        ({"table_epsilon": math.nan}, Result.FAIL),
        ({"table_delta": math.nan}, Result.FAIL),
        ({"guarantee": replace(GUARANTEE, epsilon=math.nan)}, Result.FAIL),
        ({"guarantee": replace(GUARANTEE, delta=0.1)}, Result.FAIL),
        ({"guarantee": replace(GUARANTEE, unit=Unit.ROW), "several_rows": True}, Result.FAIL),
        ({"guarantee": None, "reason": "no DP guarantee: it is a copy"}, Result.FAIL),
    ],
)
def test_a_budget_is_kept_by_numbers_alone(spent, result):
    account = PrivacyAccount(**({"guarantee": GUARANTEE, "table_epsilon": 1.0, "table_delta": 0.0} | spent))
    found = promise_results(Promise(1.0, 0.0, account), ())[0]
    assert found.result is result
    assert found.explanation.count("guarantee: ") <= 1


def test_without_a_declared_budget_there_are_no_such_gates():
    assert promise_results(Promise.of({}, UNPAID), (game(0.1, 0.05, 0.2),)) == []


def outcome(epsilon, made=500, claimed=None, audit="one_run"):
    counts = {"n_achieved": made, "n_minimum": 10}
    found = [
        EMPIRICAL_EPSILON.at(epsilon, interval=Interval(epsilon, 4.0, 0.95, "binomial"), **counts),
        CEILING.at(4.5, **counts),
    ]
    if claimed is not None:
        ends = Interval(epsilon - claimed, 4.0 - claimed, 0.95, "binomial")
        found.append(one_run.EPSILON_REFUTED.at(3.0 - claimed, interval=ends, **counts))
    empty = AuditOutcome(audit, "privacy", Status.MEASURED, OneRun.info)
    return empty.with_findings(Findings(tuple(found)))


def test_the_names_are_those_of_the_audit():
    names = {q.name for q in OneRun.info.quantities}
    assert {TOLD, EPSILON_CEILING, privacy_budget.EPSILON_REFUTED} <= names


def test_a_bound_is_told_with_what_could_have_been():
    found = proven_cost([outcome(0.85)])
    assert (found.epsilon, found.ceiling, found.level) == (0.85, 4.5, 0.95)
    assert "at least 0.85 (95 % confidence)" in found.sentence
    assert "above 4.50" in found.sentence


def test_nothing_proved_is_no_safety():
    sentence = proven_cost([outcome(0.0)]).sentence
    assert "It may have one all the same" in sentence
    assert "safe" not in sentence


def test_the_largest_of_several_is_told():
    assert proven_cost([outcome(0.2), outcome(1.2, audit="another")]).epsilon == 1.2


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [outcome(0.0, made=3)],
        [replace(outcome(2.0), status=Status.NOT_APPLICABLE)],
        [outcome(math.nan)],
        [replace(outcome(2.0), family="fidelity")],
    ],
)
def test_without_a_number_nothing_is_told(outcomes):
    assert proven_cost(outcomes) is None
    assert guarantee_section(UNPAID, outcomes)["proved"] == ""


def test_it_stands_beside_the_claim():
    body = guarantee_section(UNPAID, [outcome(0.85)])
    assert "no formal privacy guarantee" in body["claim"]
    assert "at least 0.85" in body["proved"]


@pytest.mark.parametrize(("epsilon", "result"), [(2.0, Result.FAIL), (0.5, Result.PASS), (0.0, Result.PASS)])
def test_a_bound_above_the_claim_holds_the_release(epsilon, result):
    [_, found] = promise_results(Promise(1.0, 0.0, UNPAID), [outcome(epsilon, claimed=1.0)])
    assert found.result is result
    assert found.blocking
    assert found.value == pytest.approx(epsilon - 1.0)
