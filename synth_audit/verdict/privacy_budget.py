"""The gates of a plan with a privacy budget, and what was proved of a release's cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from synth_audit import registry
from synth_audit.dp.accountant import NO_GUARANTEE, PrivacyAccount
from synth_audit.findings.measurement import Measurement
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.stats.attack_success import corrected_level
from synth_audit.stats.resampling import critical_value
from synth_audit.verdict import insufficient_evidence as lacking
from synth_audit.verdict.criteria import PRIVACY_BUDGET, REFUTED, own_result

EPSILON_REFUTED = "epsilon_refuted"
"""The quantity by which an audit says how far above a claimed epsilon its own lower bound lies."""

EMPIRICAL_EPSILON = "empirical_epsilon"
"""The quantity by which an audit tells the largest ε that one release refutes."""

EPSILON_CEILING = "epsilon_ceiling"
"""The largest that it could have told of this table."""

_SLACK = 1e-9
"""Share by which a sum may exceed its budget by rounding alone."""


@dataclass(frozen=True)
class Promise:
    """A declared budget and what was spent of it.

    Attributes:
        epsilon, delta: as declared for the table.
    """

    epsilon: float
    delta: float
    account: PrivacyAccount

    @classmethod
    def of(cls, plan: Mapping[str, Any], account: PrivacyAccount) -> Self | None:
        """Of a plan as plain values; None when it declares no budget."""
        declared = plan.get("privacy")
        if not declared:
            return None
        return cls(float(declared["epsilon"]), float(declared.get("delta", 0.0)), account)


def promise_results(promise: Promise | None, outcomes: Sequence[AuditOutcome]) -> list[GateResult]:
    """The results of both gates; none without a declared budget."""
    return [] if promise is None else [_budget(promise), _refuted(outcomes)]


def _budget(promise: Promise) -> GateResult:
    account = promise.account
    fault = _fault(promise, account)
    if fault or account.guarantee is None:
        return own_result(PRIVACY_BUDGET, Result.FAIL, fault, "Mend this, then fit again if budget is left.")
    words = (
        f"This fit guarantees epsilon {account.guarantee.epsilon:.4g} at delta {account.guarantee.delta:g}; "
        f"all fits on the table together cost {account.table_epsilon:.4g} of {promise.epsilon:g}."
    )
    return own_result(
        PRIVACY_BUDGET, Result.PASS, words, value=account.table_epsilon, maximum=promise.epsilon
    )


def _fault(promise: Promise, account: PrivacyAccount) -> str:
    """Why the budget is not kept; empty when it is."""
    if account.guarantee is None:
        return f"There is no guarantee: {account.reason.removeprefix(NO_GUARANTEE)}."
    if account.several_rows and not account.guarantee.covers_entities:
        return "The guarantee is made to single rows, and some entities have several."
    for epsilon in (account.table_epsilon, account.guarantee.epsilon):
        if not epsilon <= promise.epsilon * (1 + _SLACK):  # so that no comparison with NaN passes
            return f"Epsilon {epsilon:.4g} is spent, and {promise.epsilon:g} was declared."
    for delta in (account.table_delta, account.guarantee.delta):
        if not delta <= promise.delta * (1 + _SLACK):
            return f"The guarantee holds at a larger delta than the declared {promise.delta:g}."
    return ""


def _refuted(outcomes: Sequence[AuditOutcome]) -> GateResult:
    games = [o for o in outcomes if o.family == registry.PRIVACY]
    found = [m for m in _measured(games, EPSILON_REFUTED) if _known(m)]
    worst = max(found, key=lambda m: corrected_low(m, len(found)), default=None)
    low = None if worst is None else corrected_low(worst, len(found))
    refuted = low is not None and low > 0
    undecided = next(filter(None, map(_undecided, games)), "")
    if undecided and not refuted:
        return own_result(REFUTED, Result.INSUFFICIENT, undecided, lacking.MORE_TIME)
    if worst is None:
        return own_result(
            REFUTED, Result.PASS, "No game was played against the guarantee, so none refutes it."
        )
    words = (
        f"{worst.id}: an attacker does as well as only an epsilon at least {low:.3g} above the claim allows."
        if refuted
        else "The lower bound that the game proves on epsilon does not exceed the claim."
    )
    return own_result(
        REFUTED,
        Result.FAIL if refuted else Result.PASS,
        words,
        "Do not release this table; look for the fault in the generator.",
        measurement=worst.id,
        bound="value",
        value=low,
        maximum=0.0,
    )


def _known(bound: Measurement) -> bool:
    return bound.interval is not None and bound.finite


def _undecided(game: AuditOutcome) -> str:
    """Why a game that was to be played says nothing of the guarantee; empty when it does, or was none."""
    declared = [quantity.name for quantity in game.info.quantities] if game.info else []
    if game.status is not Status.MEASURED and game.cut_short and EPSILON_REFUTED in declared:
        return lacking.GAME_CUT_SHORT.format(audit=game.audit)
    if not all(map(_known, _measured([game], EPSILON_REFUTED))):
        return lacking.GAME_NOT_COMPUTED.format(audit=game.audit)
    return ""


def corrected_low(m: Measurement, n: int) -> float:
    """The interval's lower end at the level at which n of them hold together, stretched as a normal one."""
    assert m.interval is not None
    level = m.interval.level
    stretch = critical_value(corrected_level(level, n)) / critical_value(level)
    return m.value - stretch * (m.value - m.interval.low)


@dataclass(frozen=True)
class ProvenCost:
    """A lower bound on ε from one release.

    Attributes:
        epsilon: no smaller ε allows what was found; 0 where nothing was proved.
        ceiling: the most that could have been proved here; None where it is not known.
        level: with what confidence.
    """

    epsilon: float
    ceiling: float | None
    level: float

    @property
    def sentence(self) -> str:
        """For a reader, who must not take 0 for safety."""
        most = "" if self.ceiling is None else f" No epsilon above {self.ceiling:.2f} could be shown here."
        if self.epsilon > 0:
            sure = f"{100 * self.level:.4g} %"
            return (
                f"This release costs an epsilon of at least {self.epsilon:.2f} ({sure} confidence): claims "
                "of who was in its training data, made from the release, are right more often than any "
                f"smaller epsilon allows.{most}"
            )
        return (
            "No cost was proved from the release itself. It may have one all the same: better claims of who "
            f"was in its training data may prove it.{most}"
        )


def proven_cost(outcomes: Sequence[AuditOutcome]) -> ProvenCost | None:
    """The largest lower bound of any privacy audit; None where none was measured with enough claims."""
    found = [m for m in _measured(outcomes, EMPIRICAL_EPSILON) if m.interval and m.finite and not m.short]
    if not found:
        return None
    largest = max(found, key=lambda m: m.value)
    ceilings = [
        m.value for m in _measured(outcomes, EPSILON_CEILING) if m.id.audit == largest.id.audit and m.finite
    ]
    assert largest.interval is not None
    return ProvenCost(largest.value, max(ceilings, default=None), largest.interval.level)


def _measured(outcomes: Sequence[AuditOutcome], quantity: str) -> list[Measurement]:
    return [
        m
        for o in outcomes
        if o.family == registry.PRIVACY and o.status is Status.MEASURED
        for m in o.measurements
        if m.id.quantity == quantity
    ]
