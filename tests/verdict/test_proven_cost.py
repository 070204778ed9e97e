"""What one release proves of its cost, in words: a bound above 0 is told, and 0 is never safety."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from synth_audit.audits.privacy.one_run import CEILING, EMPIRICAL_EPSILON, EPSILON_REFUTED, OneRun
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.findings.measurement import Findings, Interval
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report.chapters import guarantee_section
from synth_audit.verdict import privacy_budget
from synth_audit.verdict.privacy_budget import EMPIRICAL_EPSILON as TOLD
from synth_audit.verdict.privacy_budget import EPSILON_CEILING, Promise, promise_results, proven_cost

UNPAID = PrivacyAccount(guarantee=None, reason="nothing was spent")


def outcome(epsilon, made=500, claimed=None, audit="one_run"):
    counts = {"n_achieved": made, "n_minimum": 10}
    found = [
        EMPIRICAL_EPSILON.at(epsilon, interval=Interval(epsilon, 4.0, 0.95, "binomial"), **counts),
        CEILING.at(4.5, **counts),
    ]
    if claimed is not None:
        ends = Interval(epsilon - claimed, 4.0 - claimed, 0.95, "binomial")
        found.append(EPSILON_REFUTED.at(3.0 - claimed, interval=ends, **counts))
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
    assert "no proof that it has none" in sentence
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
