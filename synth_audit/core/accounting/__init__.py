"""Differential privacy: what was spent, by which mechanism, and the guarantee that follows."""

from __future__ import annotations

from synth_audit.core.accounting.accountant import NO_GUARANTEE, Accountant
from synth_audit.core.accounting.contributions import bound_contributions
from synth_audit.core.accounting.guarantee import (
    Budget,
    Mechanism,
    MechanismRecord,
    Neighbouring,
    PrivacyGuarantee,
    Unit,
)
from synth_audit.core.accounting.terms import FitTerms, PrivacyAccount

__all__ = [
    "NO_GUARANTEE",
    "Accountant",
    "Budget",
    "FitTerms",
    "Mechanism",
    "MechanismRecord",
    "Neighbouring",
    "PrivacyAccount",
    "PrivacyGuarantee",
    "Unit",
    "bound_contributions",
]
