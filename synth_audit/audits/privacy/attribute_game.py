"""The attribute game: how much of what ties a secret to other columns does the generator hand on?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from synth_audit.audits.privacy._attribute_design import DesignMatrix, Secret
from synth_audit.audits.privacy._attribute_quantities import (
    MAB,
    MR2,
    MSE,
    REAL_MAB,
    REAL_MR2,
    RETAINED,
    WCAB,
)
from synth_audit.audits.privacy._attribute_release import Released, associated, unseen
from synth_audit.audits.privacy._attribute_rounds import Sizes, play
from synth_audit.audits.privacy._attribute_tallies import ROWS_EACH, Tally, measured, remarks
from synth_audit.audits.privacy._targets import named
from synth_audit.core.audit import AuditInfo, Leak, Need
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Findings
from synth_audit.core.schema import Column, Role
from synth_audit.core.subject import Subject
from synth_audit.kernels.parallel import single_threaded_algebra

FEWEST_ROWS = 50
"""Fewer reference rows than this hold little but chance associations."""


@dataclass(frozen=True, kw_only=True)
class AttributeGame:
    """Plays an attacker who fits the same generator on rows of his own and regresses the secret on the rest.

    In each iteration m the generator is fitted to a reference sample of train and draws ``sets`` tables. Each
    is standardised (n − 1) and the secret regressed on all other columns by least squares, with the solution
    of smallest norm where they are collinear. With d other columns k, and sets l:
    ``mab = mean over k, m, l of |β_kml|``, ``wcab`` their maximum, ``mr2`` the mean adjusted R²; ``mse`` is
    the squared error of the guess ``Σ β_k x_k`` at rows of the reference, standardised by their holder.

    ``retained = |skill| / skill_real``: skill is the signed squared correlation of those guesses with the
    secrets of real rows outside the reference, averaged over sets; skill_real that of β learnt from the
    reference rows themselves. Where train leaves fewer than 50 others, the reference rows are scored, and
    skill_real is cross-fitted in ten folds. 0 is a release whose other columns tell nothing of the secret,
    1 one that teaches the attack as much as real rows do. Without a column it is the worst number of all
    secrets, its interval corrected for their number; there is none while a secret could not be judged.

    The same is asked of the release at hand, learnt from all of it against all of train and scored on control
    (on train, cross-fitted, if there is none): of β, and where in train the groups of a column, its labels or
    quantile bins, differ in what β leaves, of guesses that add the group's mean, read off the other rows of
    the group. That follows bends and as many labels as a column has; what columns tell only together it does
    not. Labels of the secret that share one number, and have 10 training rows each, are attacked apart. What
    an F test at 1 % does not find in the release counts as 0, with what the test may overlook at the upper
    end of the interval.

    A secret that nothing in the real rows is associated with, by a permutation test on train, cannot be given
    away through linear associations and gets no ``retained`` in games. Where tests find something that no
    attack here measures, the whole is not judged. Rows that lack the secret teach nothing, and numbers are
    read no further than train's own smallest and largest.

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

    Raises:
        ValueError: a field is out of range, or a column is named twice.
        NotApplicable: train has too few rows, a secret is the target, or none can be attacked.

    Source: TVineSynth, Definition 2.2 and Appendix G; Stadler et al. 2022.
    """

    iterations: int = 10
    reference: int = 500
    sets: int = 50
    rows: int = 500
    columns: tuple[str, ...] = ()
    tail: float = 0.05

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Attribute game",
        question="How much of what other columns tell of a secret does this way of making data hand on?",
        threat_model=(
            "An adversary knows the generator and all of a person's attributes but one, learns from "
            "synthetic data how they hang together, and infers the one."
        ),
        not_covered=(
            "What other columns tell only together, such as a product of two; whether a value is missing; "
            "copies of single records. What the population has in common counts as well: a release that "
            "hands on a true association is useful for it and tells of everybody to whom it applies."
        ),
        quantities=(RETAINED, MAB, REAL_MAB, WCAB, MR2, REAL_MR2, MSE),
        risk="inference",
        needs=(Need.GENERATOR,),  # and a secret: one of role sensitive, or one that `columns` names
        leak=Leak.ASSOCIATIONS,
        default=False,
        spreads=True,
        cost="minutes",
        source="TVineSynth, Definition 2.2; Stadler et al. 2022",
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
        n = subject.train.n_rows
        if n < FEWEST_ROWS:
            raise NotApplicable(f"train has {n} rows; the game needs reference samples of {FEWEST_ROWS}")
        design = DesignMatrix.anchored_on(subject.train, subject.features)
        columns = self._columns(subject)
        secrets, notes = _secrets(design, columns)
        complete, missed = _complete(subject, columns, secrets)
        notes.extend(missed)
        if n < self.reference:
            notes.append(f"reference samples are all {n} training rows, since there are no {self.reference}")
        sizes = Sizes(self.reference, self.sets, self.rows, self.tail)
        played = partial(play, subject, context, design, secrets, sizes)
        rounds = context.map("iteration", played, list(enumerate(context.rng.spawn(self.iterations))))
        with single_threaded_algebra():
            related = [associated(subject, design, secret, context.seed) for secret in secrets]
            released = [Released.of(subject, design, secret, context.seed) for secret in secrets]
            hidden = [
                unseen(subject, design, secret, context.seed, linear=linear)
                for secret, linear in zip(secrets, related, strict=True)
            ]
        tallies = [
            Tally(
                name=secret.name,
                rounds=tuple(r[i] for r in rounds),
                released=released[i],
                associated=related[i],
                unseen=hidden[i],
                explained=ROWS_EACH * len(secret.predictors) <= min(n, self.reference, self.rows),
                level=subject.level,
                suppression=subject.suppression,
            )
            for i, secret in enumerate(secrets)
        ]
        return Findings(
            tuple(measured(tallies, subject.level, complete=complete)),
            tuple(t.boxes() for t in tallies),
            (*notes, *remarks(tallies, self.sets * self.iterations)),
        )

    def _columns(self, subject: Subject) -> tuple[Column, ...]:
        chosen = named(subject, self.columns, "columns") or tuple(
            c for c in subject.schema.with_role(Role.SENSITIVE) if c.released
        )
        if not chosen:
            raise NotApplicable("needs a sensitive column, or a secret that `columns` names")
        for column in chosen:
            if Role.TARGET in column.roles:
                raise NotApplicable(
                    f"column {column.name!r} is both a secret and the target: a release that serves to "
                    "predict it must tell of it"
                )
        return chosen


def _secrets(design: DesignMatrix, columns: Sequence[Column]) -> tuple[list[Secret], list[str]]:
    """What can be attacked, and why the others cannot.

    Raises:
        NotApplicable: nothing can.
    """
    found, notes = [], []
    for column in columns:
        secret = design.secret(column.name)
        if secret is None:
            notes.append(f"{column.name} is not attacked: no value or label of it is frequent and varies")
        elif not len(secret.predictors):
            notes.append(f"{column.name} is not attacked: no other column varies in train")
        else:
            found.append(secret)
    if not found:
        raise NotApplicable("; ".join(notes))
    return found, notes


def _complete(
    subject: Subject, columns: Sequence[Column], secrets: Sequence[Secret]
) -> tuple[bool, list[str]]:
    """Whether every secret of the table is attacked or never varies, and which are not."""
    attacked = {secret.name for secret in secrets}
    sensitive = [c for c in subject.schema.with_role(Role.SENSITIVE) if c.released]
    wanted = {c.name: c for c in (*columns, *sensitive)}
    missed = [name for name in wanted if name not in attacked and _varies(subject, name)]
    return not missed, [f"{name} varies and is not attacked, so the whole is not judged" for name in missed]


def _varies(subject: Subject, name: str) -> bool:
    labels = subject.train.labels(name)
    return len(set(labels[~subject.train.missing(name)])) > 1
