"""Inference: does the release tell an unknown attribute of a person of whom other attributes are known?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits.privacy._targets import drawn, named, random_places
from synth_audit.audits.privacy.inference.attacks import (
    CONTROL_RATE,
    MODEL_RATE,
    NAIVE_RATE,
    OVERALL_RISK,
    RISK,
    TRAIN_RATE,
    WORST_RISK,
    SecretAttack,
    overall,
    worst,
)
from synth_audit.core.arrays import Bools
from synth_audit.core.audit import AuditInfo, Need
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Findings
from synth_audit.core.schema import Column, Role
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.encoding.gower import GowerEncoder
from synth_audit.kernels.gower import Mixed, nearest
from synth_audit.kernels.secret_guesses import predicted


@dataclass(frozen=True, kw_only=True)
class Inference:
    """Guesses a secret from the synthetic row that is nearest on the known columns, for every secret.

    Nearest by Gower's distance, ties broken at random. A label is guessed right when equal, a number or date
    within ``tolerance`` of train's usual range or, for outlying values, of the secret; see
    :class:`~synth_audit.kernels.secret_guesses.GuessTolerance`. Records whose secret is missing are not
    attacked: there is nothing to learn. A missing guess is wrong.
    ``risk = (r_train − r_control) / (1 − r_control)`` on the middles of their intervals, its interval that
    of :func:`~synth_audit.kernels.attack_success.risk_interval`; ``worst_risk`` is the largest, its interval
    at ``1 − (1 − level) / secrets``. ``overall_risk`` takes the guesses at all secrets together, those at one
    record as one: it is the number to gate where no column is declared sensitive, for the worst of many
    secrets is that of a column which nearly everybody shares, and hardly certain.

    Fields:
        secrets: columns to guess; left out, those of role sensitive, and every released column in turn
            where the plan declares none.
        known: columns the adversary knows, less the secret; left out, all other released columns.
        n_attacks: at most this many training records, and as many control records, per secret.
        tolerance: relative error at which a guessed number is right, in [0, 1).
        n_trees: trees of the model fitted on control, on at most 50,000 rows of it.
        max_secrets: of more columns, where none is named nor declared sensitive, so many are drawn at random.

    Raises:
        ValueError: a field is out of range, or a column is named twice.

    Source: Giomi et al. 2022; contrastive privacy metrics, section 3.4.
    """

    secrets: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    n_attacks: int = 2000
    tolerance: float = 0.05
    n_trees: int = 10
    max_secrets: int = 50

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Inference",
        question="Does the release give away an attribute of a person of whom other attributes are known?",
        threat_model=(
            "An adversary knows some attributes of a person, looks for the most similar synthetic row and "
            "takes its value of the unknown attribute for the person's."
        ),
        not_covered=(
            "What the population as a whole gives away, which is subtracted; adversaries who know other "
            "columns than these; guesses made from many synthetic rows at once."
        ),
        quantities=(OVERALL_RISK, WORST_RISK, RISK, TRAIN_RATE, CONTROL_RATE, NAIVE_RATE, MODEL_RATE),
        risk="inference",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="Giomi et al. 2022",
    )

    def __post_init__(self) -> None:
        if any(len(set(names)) < len(names) for names in (self.secrets, self.known)):
            raise ValueError("secrets and known must not repeat a column")
        if min(self.n_attacks, self.n_trees, self.max_secrets) < 1:
            raise ValueError("n_attacks, n_trees and max_secrets must be at least 1")
        if not 0 <= self.tolerance < 1:
            raise ValueError("tolerance must be in [0, 1)")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Attack at most ``n_attacks`` rows of train and of control for every secret."""
        known = named(subject, self.known, "known") or subject.features
        secrets, skipped = self._secrets(subject, context)
        prepared = _EncodedTables.of(subject, known)
        attacks = []
        for secret in secrets:
            if reason := prepared.hindrance(secret):
                skipped.append(f"{secret.name} is not attacked: {reason}")
            else:
                attacks.append(self._attack(prepared, secret, context.rng))
        if not attacks:
            raise NotApplicable("; ".join(skipped))
        level = subject.level
        measured = [m for attack in attacks for m in attack.measured(self.n_attacks, level)]
        return Findings(
            (overall(attacks, self.n_attacks, level), worst(attacks, self.n_attacks, level), *measured),
            notes=tuple(skipped),
            exposures=tuple(attack.exposure for attack in attacks),
        )

    def _secrets(self, subject: Subject, context: RunContext) -> tuple[Sequence[Column], list[str]]:
        """The columns to guess, and a note where some are left out.

        The draw is the same in every examination with one seed: the planted leaks are of the same columns.
        """
        declared = named(subject, self.secrets, "secrets") or tuple(
            c for c in subject.schema.with_role(Role.SENSITIVE) if c.released
        )
        every = subject.features
        if declared or len(every) <= self.max_secrets:
            return declared or every, []
        rng = context.child("inference", "secrets").rng
        chosen = np.sort(rng.choice(len(every), self.max_secrets, replace=False))
        note = f"{self.max_secrets} of {len(every)} columns were drawn to be guessed; name others as secrets"
        return [every[i] for i in chosen], [note]

    def _attack(self, prepared: _EncodedTables, secret: Column, rng: np.random.Generator) -> SecretAttack:
        """Guess one secret for train and control rows, and for the train rows without the release as well."""
        truth, judge = secret.kind.secret(prepared.tables, secret, self.tolerance)
        train, control, synthetic = prepared.without(secret)
        present = [np.flatnonzero(~np.isnan(values)) for values in truth[:2]]
        chosen = [drawn(rows, self.n_attacks, rng) for rows in present]
        place, seed = random_places(len(synthetic), rng), int(rng.integers(2**31))
        # One search for both sides, since a search of half as many rows takes more than half as long.
        asked = _joined(train.take(chosen[0]), control.take(chosen[1]))
        guesses = truth[2][nearest(asked, synthetic, place=place).index]
        secrets = [values[rows] for values, rows in zip(truth[:2], chosen, strict=True)]
        n = len(chosen[0])
        without: list[Bools] = []
        if len(present[1]):
            others = drawn(present[1], _MOST_LEARNT, rng)
            model = predicted(
                judge, control.take(others), truth[1][others], train.take(chosen[0]), self.n_trees, seed
            )
            constant = np.full(n, judge.typical(truth[1]))
            without = [judge.right(guess, secrets[0]) for guess in (constant, model)]
        hits = judge.right(guesses[:n], secrets[0]), judge.right(guesses[n:], secrets[1])
        return SecretAttack.of(secret.name, chosen, hits, without)


_MOST_LEARNT = 50_000
"""Control rows from which the model of an attacker without the release learns at most."""


@dataclass(frozen=True, eq=False)
class _EncodedTables:
    """The tables on the known columns, encoded once for all secrets."""

    subject: Subject
    tables: tuple[Table, ...]
    order: tuple[str, ...]
    rows: tuple[Mixed, ...]

    @classmethod
    def of(cls, subject: Subject, known: Sequence[Column]) -> _EncodedTables:
        assert subject.control is not None
        encoder = GowerEncoder.anchored_on(subject.train, known, beside=[subject.control])
        tables = (subject.train, subject.control, subject.synthetic)
        return cls(subject, tables, encoder.order, tuple(encoder.encode(tables)))

    def hindrance(self, secret: Column) -> str:
        """Why a column cannot be guessed; empty when it can."""
        [values] = codes([self.subject.train], secret)
        if len(np.unique(values[values >= 0])) < 2:
            return "its values in train do not differ"
        if not set(self.order) - {secret.name}:
            return "no known column varies in train"
        return ""

    def without(self, secret: Column) -> tuple[Mixed, ...]:
        """Train, control and synthetic rows without the secret."""
        rows = self.rows
        for place in reversed([i for i, name in enumerate(self.order) if name == secret.name]):
            rows = tuple(table.without(place) for table in rows)
        return rows


def _joined(one: Mixed, other: Mixed) -> Mixed:
    return Mixed(
        np.concatenate([one.numbers, other.numbers]), np.concatenate([one.labels, other.labels]), one.weights
    )
