"""Inference: does the release tell an unknown attribute of a person of whom other attributes are known?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools
from synth_audit.audits._targets import named
from synth_audit.audits.privacy.inference.attacks import (
    CONTROL_RATE,
    EXCESS,
    MODEL_RATE,
    NAIVE_RATE,
    OVERALL_RISK,
    RECONSTRUCTION_RATE,
    RECONSTRUCTION_RISK,
    RISK,
    TRAIN_RATE,
    WORST_RISK,
    Reconstruction,
    SecretAttack,
    SeveralSets,
    Trial,
    overall,
    worst,
)
from synth_audit.audits.privacy.inference.targets import (
    MOST_CELLS,
    MOST_SEARCHED,
    AttackedSecret,
    KnownColumns,
    NearestGuesses,
    guesses,
)
from synth_audit.encode.predictors import predicted
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Findings, Measurement
from synth_audit.neighbours.search import most_queries
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.table.schema import Column, Role

MOST_LEARNT = 5_000
"""Control rows that a model learns from where many columns are known."""


@dataclass(frozen=True, kw_only=True)
class Inference:
    """Guesses a secret from the synthetic row that is nearest on the known columns, for every secret.

    Nearest by Gower's distance, ties broken at random. A label is guessed right when equal, a number or date
    within ``tolerance`` of train's usual range or, for outlying values, of the secret; see
    :class:`~synth_audit.encode.predictors.GuessTolerance`. Records whose secret is missing are not
    attacked: there is nothing to learn. A missing guess is wrong.
    ``risk = (r_train − r_control) / (1 − r_control)`` on the middles of their intervals, its interval that
    of :func:`~synth_audit.stats.attack_success.risk_interval`; ``worst_risk`` is the largest, its interval
    at ``1 − (1 − level) / secrets``. ``overall_risk`` takes the guesses at all secrets together, those at one
    record as one: it is the number to gate where no column is declared sensitive, for the worst of many
    secrets is that of a column which nearly everybody shares, and hardly certain.

    Beside all of ``known``, smaller sets of it are tried: two to five columns, and halves. Half of the sets
    are drawn at random; the others are pairs that stand out on one half of the people (single release rows
    are near in both columns more often to train people than to strangers), and what these grow to. Where a
    generator draws groups of columns apart, all that is known of a secret's group is tried as well.
    ``excess_people = asked_t / people_t · (r_train − r_control)`` for the worst set and secret, chosen on one
    half of the people and measured on the other, both ways, so that trying many raises no false alarm.

    ``reconstruction_risk`` is the same risk by another attacker: a forest that learns the secret from all
    known columns of at most 5,000 release rows, and leaves to the commonest value what it is unsure of; how
    unsure is told by its guesses out of bag, so by the release alone. Trees are grown to single rows, and
    train people are compared with control people, so that memory counts and not usefulness. Plain numbers.

    Where more than 50 columns are known, or a million cells of the release, the work is bounded: one search
    answers for all secrets, which are guessed at the same records (others in place of those whose secret is
    missing), and models of control learn from at most 5,000 rows, by randomised trees. Every guess is the
    same as of a search of its own. In more than 2,000,000 rows of the release, or 670,000 by sets of
    known columns, fewer records are looked up, 1,000 on either side at least, and the intervals are wider.
    On planted leaks nothing is guessed without the release: these rates have no direction to check.

    Fields:
        secrets: columns to guess; left out, those of role sensitive, and every released column in turn
            where the plan declares none.
        known: columns the adversary knows, less the secret; left out, all other released columns.
        n_attacks: at most this many training records, and as many control records, per secret.
        tolerance: relative error at which a guessed number is right, in [0, 1).
        n_trees: trees of the model fitted on control, on 50,000 rows of it at most; 0 for no such model.
        max_secrets: of more columns, where none is named nor declared sensitive, so many are drawn at random.
        known_sets: about how many smaller sets of known columns are tried; 0 for none.
        max_reconstructed: at most so many secrets, drawn at random of more, are guessed by a model of the
            release too; 0 for none.

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
    known_sets: int = 12
    max_reconstructed: int = 20

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Inference",
        question="Does the release give away an attribute of a person of whom other attributes are known?",
        threat_model=(
            "An adversary knows some attributes of a person, looks for the most similar synthetic row and "
            "takes its value of the unknown attribute for the person's."
        ),
        not_covered=(
            "What the population as a whole gives away, which is subtracted; sets of known columns "
            "that were not tried."
        ),
        quantities=(
            OVERALL_RISK,
            WORST_RISK,
            EXCESS,
            RISK,
            TRAIN_RATE,
            CONTROL_RATE,
            NAIVE_RATE,
            MODEL_RATE,
            RECONSTRUCTION_RISK,
            RECONSTRUCTION_RATE,
        ),
        risk="inference",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="Giomi et al. 2022",
    )

    def __post_init__(self) -> None:
        if any(len(set(names)) < len(names) for names in (self.secrets, self.known)):
            raise ValueError("secrets and known must not repeat a column")
        if min(self.n_attacks, self.max_secrets) < 1:
            raise ValueError("n_attacks and max_secrets must be at least 1")
        if min(self.n_trees, self.known_sets, self.max_reconstructed) < 0:
            raise ValueError("n_trees, known_sets and max_reconstructed must not be negative")
        if not 0 <= self.tolerance < 1:
            raise ValueError("tolerance must be in [0, 1)")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Attack at most ``n_attacks`` rows of train and of control for every secret."""
        known = named(subject, self.known, "known") or subject.features
        secrets, notes = self._secrets(subject, context)
        prepared = KnownColumns.of(subject, known)
        attacked = []
        for secret in secrets:
            if reason := prepared.hindrance(secret):
                notes.append(f"{secret.name} is not attacked: {reason}")
            else:
                attacked.append(secret)
        if not attacked:
            raise NotApplicable("; ".join(notes))
        most = most_queries(self.n_attacks, subject.synthetic.n_rows)
        if prepared.many:
            notes += self._bounds(subject, most)
        several = SeveralSets.of(prepared, subject, attacked, self.known_sets, self.n_attacks, context)
        model = Reconstruction.of(prepared, attacked, self.max_reconstructed, context)
        attacks, trials, models = [], list[Trial](), list[Measurement]()
        for target, guess in guesses(prepared, attacked, self.tolerance, most, MOST_LEARNT, context.rng):
            attacks.append(self._attack(prepared, target, guess, alone=not subject.planted))
            trials += several.guessed(target)
            models += [] if subject.planted else model.measured(target, guess, self.n_attacks, subject.level)
        level = subject.level
        by_sets, told = several.measured(trials, self.n_attacks, level)
        measured = [m for attack in attacks for m in attack.measured(self.n_attacks, level)]
        both = (overall(attacks, self.n_attacks, level), worst(attacks, self.n_attacks, level))
        return Findings(
            (*both, *by_sets, *measured, *models),
            notes=(*notes, *told),
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

    def _bounds(self, subject: Subject, most: int) -> list[str]:
        """What the work over many known columns, or rows, is held to, where the tables have more rows."""
        assert subject.control is not None
        notes = []
        if max(subject.train.n_rows, subject.control.n_rows) > most:
            notes.append(
                f"over more than {MOST_SEARCHED} known columns, or {MOST_CELLS:,} cells of the release, all "
                f"secrets are guessed at the same {most} records of either side, so that overall_risk rests "
                "on these alone"
            )
        if subject.control.n_rows > MOST_LEARNT:
            notes.append(f"models of control learn from {MOST_LEARNT} of its rows, drawn at random")
        return notes

    def _attack(
        self, prepared: KnownColumns, target: AttackedSecret, guess: NearestGuesses, *, alone: bool
    ) -> SecretAttack:
        """Judge the guesses at one secret.

        Args:
            alone: whether to guess at the train rows without the release as well.
        """
        truth, judge = target.truth, target.judge
        secrets = [values[rows] for values, rows in zip(truth[:2], guess.chosen, strict=True)]
        hits = [judge.right(truth[2][rows], own) for rows, own in zip(guess.found, secrets, strict=True)]
        without: list[Bools] = []
        if alone and len(guess.learnt):
            train, control, _ = prepared.rows
            answers = [np.full(len(secrets[0]), judge.typical(truth[1]))]
            if self.n_trees:
                asked = prepared.without(target.secret, train.take(guess.chosen[0]))
                others = prepared.without(target.secret, control.take(guess.learnt))
                learnt = truth[1][guess.learnt]
                answers.append(
                    predicted(
                        judge, others, learnt, asked, self.n_trees, guess.seed, randomised=prepared.many
                    )
                )
            without = [judge.right(answer, secrets[0]) for answer in answers]
        return SecretAttack.of(target.secret.name, guess.chosen, hits, without)
