"""The attribute game: how much of what ties a secret to other columns does the generator hand on?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from synth_audit.audits.privacy._attribute_secrets import (
    FEWEST_ROWS,
    RETAINED,
    ROWS_EACH,
    AttackedSecrets,
    associated,
)
from synth_audit.audits.privacy.attribute_game.iterations import GameSizes, play
from synth_audit.audits.privacy.attribute_game.results import (
    ADVANTAGE,
    MAB,
    MR2,
    MSE,
    REAL_MAB,
    REAL_MR2,
    REAL_MSE,
    WCAB,
    SecretResult,
    advantages_below,
    measured,
    remarks,
)
from synth_audit.findings.measurement import Findings
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.run.context import RunContext
from synth_audit.run.threads import single_threaded_algebra


@dataclass(frozen=True, kw_only=True)
class AttributeGame:
    """Plays an attacker who fits the same generator on rows of his own and regresses the secret on the rest.

    In each iteration m the generator is fitted to a reference sample of train and draws ``sets`` tables. Each
    is standardised (n − 1) and the secret regressed on all other columns by least squares, with the solution
    of smallest norm where they are collinear. With d other columns k, and sets l:
    ``mab = mean over k, m, l of |β_kml|``, ``wcab`` their maximum, ``mr2`` the mean adjusted R²; ``mse``
    (MSE_S) is the squared error of the guess ``Σ β_k x_k`` at rows of the reference, standardised by their
    holder, and ``real_mse`` (MSE_R) that of one learnt from sets drawn from the reference with replacement.

    ``retained = |skill| / skill_real``: skill is the signed squared correlation of those guesses with the
    secrets of real rows outside the reference, averaged over sets; skill_real that of β learnt from the
    reference rows themselves. Where train leaves fewer than 50 others, the reference rows are scored, and
    skill_real is cross-fitted in ten folds. 0 is a release whose other columns tell nothing of the secret,
    1 one that teaches the attack as much as real rows do. Without a column it is the worst number of all
    secrets, its interval corrected for their number; there is none while a secret could not be judged.

    ``advantage`` is how much oftener a guess comes nearer than the mean for reference rows than for rows
    outside: what the generator tells of people because it saw them, and the one part of the game that a
    guarantee bounds, by ``(e^ε' − 1 + 2δ') / (e^ε' + 1)`` with (ε', δ') for one row in another's place.

    A secret that no line through other columns tells of in train, by a permutation test, gets no ``retained``
    here: games fit lines alone. Bends, groups of labels and the release at hand are ``attribute_attack``'s.
    Rows that lack the secret teach nothing, and numbers are read no further than train's own smallest and
    largest.

    Labels are indicators; the size of a label's effect is the standard deviation of what all its indicators
    add, which for a number is |β|. A secret of several labels is regressed as one indicator each, weighted
    by frequency. A missing value is read as the mean of its column in the set, and a numeric column with
    gaps has a second number that says where they are.

    Fields:
        iterations: fits on a new reference sample, at least 2.
        reference: rows of that sample; all of train when it has fewer.
        sets: tables drawn from each fit. rows: of each table.
        columns: secrets; left out, the columns of role sensitive.
        tail: share of reference rows whose secret counts as outlying, in (0, 1).
        achilles: besides four outlying and four random targets of each iteration, as published, guess at
            four Achilles' heels: the rows that hold the secret with the largest mean distance to their five
            nearest other rows of the reference.

    Raises:
        ValueError: a field is out of range, or a column is named twice.
        NotApplicable: train has too few rows, a secret is the target, or none can be attacked.

    Source: TVineSynth, Definition 2.2 and Appendix G; Stadler et al. 2022; Meeus et al. 2023.
    """

    iterations: int = 10
    reference: int = 500
    sets: int = 50
    rows: int = 500
    columns: tuple[str, ...] = ()
    tail: float = 0.05
    achilles: bool = False

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Attribute game",
        question="How much of what other columns tell of a secret does this way of making data hand on?",
        threat_model=(
            "An adversary knows the generator and all of a person's attributes but one, learns from "
            "synthetic data how they hang together, and infers the one."
        ),
        not_covered=(
            "The release at hand, and ties that no line shows, which `attribute_attack` measures; what other "
            "columns tell only together, such as a product of two; whether a value is missing; copies of "
            "single records. What the population has in common counts as well: a release that hands on a "
            "true association is useful for it and tells of everybody to whom it applies."
        ),
        quantities=(RETAINED, MAB, REAL_MAB, WCAB, MR2, REAL_MR2, MSE, REAL_MSE, ADVANTAGE),
        risk="inference",
        needs=(Need.GENERATOR,),  # and a secret: one of role sensitive, or one that `columns` names
        leak=Leak.ASSOCIATIONS,
        default=False,
        spreads=True,
        cost="minutes",
        source="TVineSynth, Definition 2.2; Stadler et al. 2022; Meeus et al. 2023 (targets)",
    )

    def __post_init__(self) -> None:
        if self.iterations < 2:
            raise ValueError("iterations must be at least 2, or nothing is known of how much they differ")
        if self.reference < FEWEST_ROWS or self.rows < FEWEST_ROWS:
            raise ValueError(f"reference and rows must be at least {FEWEST_ROWS}")
        if self.sets < 1:
            raise ValueError("sets must be at least 1")
        if not 0 < self.tail < 1:
            raise ValueError("tail must be in (0, 1)")
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("columns must not repeat a column")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Play the iterations: reference samples and fits by the seed, sets drawn from ``context.rng``."""
        attacked = AttackedSecrets.of(subject, self.columns)
        n, secrets, notes = subject.train.n_rows, attacked.secrets, list(attacked.notes)
        if n < self.reference:
            notes.append(f"reference samples are all {n} training rows, since there are no {self.reference}")
        sizes = GameSizes(self.reference, self.sets, self.rows, self.tail, self.achilles)
        played = partial(play, subject, context, attacked.design, secrets, sizes)
        iterations = context.map("iteration", played, list(enumerate(context.rng.spawn(self.iterations))))
        with single_threaded_algebra():
            related = [associated(subject, attacked.design, secret, context.seed) for secret in secrets]
        results = [
            SecretResult(
                name=secret.name,
                iterations=tuple(results[i] for results in iterations),
                associated=related[i],
                explained=ROWS_EACH * len(secret.predictors) <= min(n, self.reference, self.rows),
                level=subject.level,
                suppression=subject.suppression,
            )
            for i, secret in enumerate(secrets)
        ]
        return Findings(
            tuple(measured(results, subject.level, complete=attacked.complete)),
            (*(r.boxes() for r in results), *advantages_below(results)),
            (*notes, *remarks(results, self.sets * self.iterations)),
        )
