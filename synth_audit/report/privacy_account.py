"""What a fit spent on privacy, what that guarantees, under which assumptions, and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synth_audit.core.accounting import PrivacyAccount
from synth_audit.core.outcome import AuditOutcome
from synth_audit.core.series import Series
from synth_audit.judging.proven_cost import proven_cost
from synth_audit.report import words
from synth_audit.report.series_figures import pictures_of
from synth_audit.report.view import Cells, Fact


def certificate(
    account: PrivacyAccount, outcomes: Sequence[AuditOutcome], training: Sequence[Series] = ()
) -> dict[str, Any]:
    """The section on the formal guarantee: what is claimed, what the release proves, the account, and how the
    fit came to it."""
    proved = proven_cost(outcomes)
    curves = tuple(picture for picture, _ in pictures_of(training, (), "training"))
    return {
        "claim": _claim(account),
        "proved": "" if proved is None else proved.sentence,
        "reason": words.sentence(account.reason),
        **privacy_account(account),
        "curves": curves,
    }


def _claim(account: PrivacyAccount) -> str:
    if account.guarantee is None:
        return (
            "The generator gives no formal privacy guarantee. "
            "The measurements above are all there is to rely on."
        )
    parts = (("ε", account.guarantee.epsilon), ("δ", account.guarantee.delta))
    known = ", ".join(f"{name} = {words.bare_number(x)}" for name, x in parts)
    return f"The generator claims differential privacy with {known}."


def privacy_account(account: PrivacyAccount) -> dict[str, Any]:
    """The parts of the section on the formal guarantee; all empty where nothing was spent."""
    if not account.mechanisms:
        return {"facts": (), "mechanisms": Cells("", (), ()), "lists": ()}
    rows = tuple(
        (
            words.sentence(m.what),
            str(m.mechanism),
            f"{m.count:,}",
            "–" if m.epsilon_alone is None else words.bare_number(m.epsilon_alone),
        )
        for m in account.mechanisms
    )
    header = ("What it bought", "Mechanism", "Times", "ε alone")
    guarantee = account.guarantee
    listed = () if guarantee is None else (
        ("It holds if", tuple(map(words.sentence, guarantee.assumptions))),
        ("It does not cover", tuple(map(words.sentence, guarantee.not_protected))),
    )  # fmt: skip
    return {
        "facts": _facts(account),
        "mechanisms": Cells("What was spent on what", header, rows),
        "lists": listed,
    }


def _facts(account: PrivacyAccount) -> tuple[Fact, ...]:
    table = Fact(
        "All fits on this table",
        f"ε = {words.bare_number(account.table_epsilon)}, δ = {words.bare_number(account.table_delta)}",
        "everything that was ever drawn from it, this candidate included",
    )
    guarantee = account.guarantee
    if guarantee is None:
        return (table,)
    return (
        Fact(
            "This fit",
            f"ε = {words.bare_number(guarantee.epsilon)}, δ = {words.bare_number(guarantee.delta)}",
        ),
        table,
        Fact(
            "Whose presence is hidden", f"one {guarantee.unit}", f"tables differ by: {guarantee.neighbouring}"
        ),
        Fact("Added up by", guarantee.accountant),
    )
