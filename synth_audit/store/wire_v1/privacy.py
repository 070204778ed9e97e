"""What a fit spent of a privacy budget, to the evidence file and back."""

from __future__ import annotations

from synth_audit.core.accounting import (
    Mechanism,
    MechanismRecord,
    Neighbouring,
    PrivacyAccount,
    PrivacyGuarantee,
    Unit,
)
from synth_audit.store.wire_v1 import models


def write_account(a: PrivacyAccount) -> models.WireAccount:
    """Into the file."""
    return models.WireAccount(
        guarantee=None if a.guarantee is None else _write_guarantee(a.guarantee),
        reason=a.reason,
        mechanisms=tuple(map(_write_mechanism, a.mechanisms)),
        several_rows=a.several_rows,
        table_epsilon=a.table_epsilon,
        table_delta=a.table_delta,
    )


def read_account(w: models.WireAccount) -> PrivacyAccount:
    """From the file; raises ``PluginError`` for a spending that cannot have been."""
    return PrivacyAccount(
        guarantee=None if w.guarantee is None else _read_guarantee(w.guarantee),
        reason=w.reason,
        mechanisms=tuple(map(_read_mechanism, w.mechanisms)),
        several_rows=w.several_rows,
        table_epsilon=w.table_epsilon,
        table_delta=w.table_delta,
    )


def _write_guarantee(g: PrivacyGuarantee) -> models.WireGuarantee:
    return models.WireGuarantee(
        unit=g.unit.value,
        neighbouring=g.neighbouring.value,
        epsilon=g.epsilon,
        delta=g.delta,
        accountant=g.accountant,
        mechanisms=tuple(map(_write_mechanism, g.mechanisms)),
        assumptions=g.assumptions,
        not_protected=g.not_protected,
    )


def _read_guarantee(w: models.WireGuarantee) -> PrivacyGuarantee:
    return PrivacyGuarantee(
        unit=Unit(w.unit),
        neighbouring=Neighbouring(w.neighbouring),
        epsilon=w.epsilon,
        delta=w.delta,
        accountant=w.accountant,
        mechanisms=tuple(map(_read_mechanism, w.mechanisms)),
        assumptions=w.assumptions,
        not_protected=w.not_protected,
    )


def _write_mechanism(m: MechanismRecord) -> models.WireMechanism:
    return models.WireMechanism(
        what=m.what,
        mechanism=m.mechanism.value,
        noise_multiplier=m.noise_multiplier,
        sampling_rate=m.sampling_rate,
        epsilon=m.epsilon,
        delta=m.delta,
        count=m.count,
        rows=m.rows,
        epsilon_alone=m.epsilon_alone,
    )


def _read_mechanism(w: models.WireMechanism) -> MechanismRecord:
    return MechanismRecord(
        what=w.what,
        mechanism=Mechanism(w.mechanism),
        noise_multiplier=w.noise_multiplier,
        sampling_rate=w.sampling_rate,
        epsilon=w.epsilon,
        delta=w.delta,
        count=w.count,
        rows=w.rows,
        epsilon_alone=w.epsilon_alone,
    )
