"""A lower bound on epsilon above the one guaranteed holds the release; anything less does not."""

from __future__ import annotations

import pytest

from synth_audit.audits.privacy.membership_game.measures import PRIVACY_GAIN, least_gain, refuted
from synth_audit.core.accounting import PrivacyAccount
from synth_audit.core.measurement import Interval
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.verdict import Result
from synth_audit.judging.privacy_budget import Promise, promise_results

UNPAID = PrivacyAccount(guarantee=None, reason="nothing was spent")


def game(gain, low, high, epsilon=1.0, delta=0.0):
    headline = PRIVACY_GAIN.at(gain, interval=Interval(low, high, 0.95, "t"), n_achieved=100)
    found = refuted(headline, epsilon, delta)
    return AuditOutcome("membership_game", "privacy", Status.MEASURED, measurements=(found,))


def judged(*outcomes):
    return promise_results(Promise(1.0, 0.0, UNPAID), outcomes)[1]


@pytest.mark.parametrize(("delta", "epsilon"), [(0.0, 1.0), (0.01, 2.0)])
def test_the_bound_turns_around(delta, epsilon):
    gain = least_gain(epsilon, delta)
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


def test_without_a_declared_budget_there_are_no_such_gates():
    assert promise_results(Promise.of({}, UNPAID), (game(0.1, 0.05, 0.2),)) == []
