"""Which secrets can be attacked through other columns, and whether real rows hold a tie to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.audits._targets import named
from synth_audit.audits.privacy._attribute_design import DesignMatrix, Secret
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Measurement, Quantity
from synth_audit.core.schema import Column, Role
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import Subject
from synth_audit.kernels.attack_success import worst_interval
from synth_audit.kernels.games import reference_rows
from synth_audit.kernels.linear import Regression, Scaling, correlation

STREAM = "attribute_game"
"""Random stream of attack and games, so that both look for ties in the same training rows."""

FEWEST_ROWS = 50
"""Fewer training rows than this hold little but chance associations."""

FEWEST_SCORED = 50
"""Guesses at fewer rows than this say little of an attack."""

FOLDS = 10
"""Where nobody is left outside, real rows teach by nine parts of ten and are scored on the tenth."""

ROWS_EACH = 4
"""With fewer rows than this for each number that predicts a secret nothing is said of R²: sets drawn with
replacement repeat rows, and would soon be explained wholly, by chance."""

MOST_TESTED = 10_000
"""Training rows that are looked at to see whether a secret is associated with anything at all."""

RETAINED = Quantity(
    "retained",
    "Real associations of the secret that are handed on",
    range=(0.0, float("inf")),
    proportional=False,  # what the columns of a mixed table explain is no mixture of what its parts explain
    help="0: other columns tell nothing of the secret in the release; 1: as much as they do in real rows.",
)


@dataclass(frozen=True)
class AttackedSecrets:
    """What of a table can be attacked.

    Attributes:
        complete: every secret that the table has is attacked, or never varies.
        notes: which are not attacked, and why.
    """

    design: DesignMatrix
    secrets: tuple[Secret, ...]
    complete: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, subject: Subject, names: Sequence[str]) -> AttackedSecrets:
        """The columns named, else those of role sensitive.

        Raises:
            NotApplicable: train has too few rows, a secret is the target, or none can be attacked.
        """
        n = subject.train.n_rows
        if n < FEWEST_ROWS:
            raise NotApplicable(f"train has {n} rows; the attack needs {FEWEST_ROWS}")
        design = DesignMatrix.anchored_on(subject.train, subject.features)
        columns = _columns(subject, names)
        secrets, notes = _secrets(design, columns)
        missed = _missed(subject, columns, secrets)
        unjudged = (f"{name} varies and is not attacked, so the whole is not judged" for name in missed)
        return cls(design, tuple(secrets), not missed, (*notes, *unjudged))


def _columns(subject: Subject, names: Sequence[str]) -> tuple[Column, ...]:
    chosen = named(subject, names, "columns") or tuple(
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


def _missed(subject: Subject, columns: Sequence[Column], secrets: Sequence[Secret]) -> list[str]:
    """Secrets of the table, named or not, that vary and are not attacked."""
    attacked = {secret.name for secret in secrets}
    sensitive = [c for c in subject.schema.with_role(Role.SENSITIVE) if c.released]
    wanted = {c.name: c for c in (*columns, *sensitive)}
    return [name for name in wanted if name not in attacked and _varies(subject, name)]


def _varies(subject: Subject, name: str) -> bool:
    labels = subject.train.labels(name)
    return len(set(labels[~subject.train.missing(name)])) > 1


def worst(found: Sequence[Measurement], level: float) -> Measurement:
    """The largest value as a number of the whole, the measurements being at a level at which they hold
    together."""
    largest = max(found, key=lambda m: m.value)
    if len(found) == 1:
        return replace(largest, id=largest.id.whole)
    intervals = [m.interval for m in found if m.interval]
    interval = worst_interval(intervals, level, f"{len(found)} numbers")
    return replace(largest, id=largest.id.whole, interval=interval)


def associated(subject: Subject, design: DesignMatrix, secret: Secret, seed: int) -> bool:
    """True when the other columns tell more of the secret in train than chance would, by a permutation test.

    ``p = (1 + #{R² of the shuffled secret ≥ R²}) / (1 + #shuffles) ≤ 1 − level``.
    """
    rng = child_rng(seed, STREAM, "association", secret.name)
    rows = reference_rows(subject.train.n_rows, (), MOST_TESTED, rng)
    table = subject.train.take(rows)
    values = design.encode(table)[design.present(table, secret.name)]
    z = Scaling.of(values).apply(values)
    answer = z[:, secret.responses]
    shuffles = round(10 / (1 - subject.level)) - 1
    regression = Regression.on(correlation(z[:, secret.predictors]), secret.groups, len(z))
    known = z[:, secret.predictors] / max(len(z) - 1, 1)
    found = [
        float((regression.coefficients(r) * r).sum(axis=0) @ secret.weights)
        for y in (answer, *(rng.permutation(answer) for _ in range(shuffles)))
        for r in (known.T @ y,)
    ]
    observed, *others = np.round(found, 12)
    return bool((1 + np.sum(np.array(others) >= observed)) / (1 + shuffles) <= 1 - subject.level + 1e-12)
