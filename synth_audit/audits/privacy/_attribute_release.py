"""The attribute attack learnt from the release itself, and whether real rows hold anything it could find."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from synth_audit.audits.privacy._attribute_design import Design, Secret
from synth_audit.audits.privacy._attribute_rounds import FEWEST_SCORED, NAME, Learnt, Trial
from synth_audit.core.errors import PluginError
from synth_audit.core.measurement import Interval
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.kernels.encode import codes
from synth_audit.kernels.games import reference_rows
from synth_audit.kernels.intervals import critical_value, enough_draws, normal_interval
from synth_audit.kernels.linear import Regression, Scaling, correlation

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_MOST_LEARNT = 20_000
_MOST_SCORED = 5_000
_DRAWS = 200
_BINS = 8
_CHANCE = 0.01
_MOST_TESTED = 10_000
"""Training rows that are looked at to see whether a secret is associated with anything at all."""


@dataclass(frozen=True)
class Released:
    """How well the secret is guessed at real rows, learnt from the release and from train.

    Attributes:
        draws: bootstrap over the rows that are scored, shape (b, 2): learnt from the release, from train.
        rows: that were scored.
    """

    skill: float
    real_skill: float
    draws: Floats
    rows: int

    @classmethod
    def of(cls, subject: Subject, design: Design, secret: Secret) -> Released:
        """Score on control, or on train where there is none worth it."""
        rng = child_rng(subject.seed, NAME, "release", secret.name)
        control = subject.control
        scored = control if control is not None and control.n_rows >= FEWEST_SCORED else subject.train
        table = _some(scored, _MOST_SCORED, rng)
        trial = Trial.on(design.encode(table), design.present(table, secret.name), secret)
        sources = [_learnt(_some(t, _MOST_LEARNT, rng), design, secret) for t in _both(subject)]
        n = len(trial.truth)
        counts = [
            np.bincount(rng.integers(max(n, 1), size=n), minlength=n).astype(np.float64)
            for _ in range(enough_draws(_DRAWS, subject.level))
        ]
        draws = np.array([[trial.skill(source, c) for source in sources] for c in counts])
        return cls(trial.skill(sources[0]), trial.skill(sources[1]), draws, n)

    @property
    def retained(self) -> float:
        return self.skill / self.real_skill

    def interval(self, level: float) -> Interval:
        """Linearised: ``ρ ± z · sd((a* − ρ b*) / b)`` over the draws."""
        around = (self.draws[:, 0] - self.retained * self.draws[:, 1]) / self.real_skill
        return normal_interval(self.retained, around, level)

    def measurable(self, level: float) -> bool:
        """Real rows teach the attack something, beyond what the choice of scored rows explains."""
        spread = float(np.std(self.draws[:, 1], ddof=1))
        return self.rows >= FEWEST_SCORED and self.real_skill > critical_value(level) * spread


def _both(subject: Subject) -> tuple[Table, Table]:
    for column in subject.features:
        if column.kind.numeric and np.isinf(subject.synthetic.numbers(column.name)).any():
            raise PluginError("the release holds infinite numbers")
    return subject.synthetic, subject.train


def _some(table: Table, most: int, rng: np.random.Generator) -> Table:
    return table.take(reference_rows(table.n_rows, (), most, rng))


def _learnt(table: Table, design: Design, secret: Secret) -> Learnt:
    """What one table teaches; nothing where an F test at 1 % finds its regression no better than chance.

    Guesses from chance coefficients correlate with the truth by anything, either way. Many sets even that
    out, one release does not.
    """
    from scipy.special import fdtrc  # here, since a code location must not load it

    present = design.present(table, secret.name)
    learnt = Learnt.of_rows(design.encode(table), present, secret)
    q, n = len(secret.predictors), int(present.sum())
    free = n - q - 1
    if free >= 1:
        left = min(max((1 - float(learnt.r_squared[0])) * free / (n - 1), 1e-12), 1.0)
        if fdtrc(q, free, (1 - left) / q / (left / free)) <= _CHANCE:
            return learnt
    return replace(learnt, coefficients=np.zeros_like(learnt.coefficients))


def associated(subject: Subject, design: Design, secret: Secret) -> bool:
    """True when the other columns tell more of the secret in train than chance would, by a permutation test.

    ``p = (1 + #{R² of the shuffled secret ≥ R²}) / (1 + #shuffles) ≤ 1 − level``.
    """
    rng = child_rng(subject.seed, NAME, "association", secret.name)
    rows = reference_rows(subject.train.n_rows, (), _MOST_TESTED, rng)
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


def unseen(subject: Subject, design: Design, secret: Secret, *, linear: bool) -> bool:
    """True when real rows tie the secret to another column in a way that the attack cannot see.

    A permutation test of the largest ``η²`` of the secret, or of its distance from its median, between the
    labels of a column that has no numbers of its own, and, where no linear association was found, between
    the quantile bins of a number too; ``p ≤ 0.01`` for all together.
    """
    rng = child_rng(subject.seed, NAME, "unseen", secret.name)
    table = _some(subject.train, _MOST_TESTED, rng)
    table = table.take(design.present(table, secret.name))
    coded = {c.column.name for c in design.codings}
    groups = [
        _binned(table.numbers(c.name)) if c.kind.numeric else codes([table], c)[0] + 1
        for c in subject.features
        if c.name != secret.name and (c.name not in coded or (not linear and c.kind.numeric))
    ]
    if not groups or table.n_rows < FEWEST_SCORED:
        return False
    y = design.encode(table)[:, secret.responses]
    y = np.hstack([y, np.abs(y - np.median(y, axis=0))])
    y = Scaling.of(y).apply(y)
    found = [_between(groups, z) for z in (y, *(rng.permutation(y) for _ in range(199)))]
    observed, *others = np.round(found, 12)
    return bool((1 + np.sum(np.array(others) >= observed)) / 200 <= 0.01)


def _binned(values: Floats) -> Codes:
    """Quantile bins from 1 on; 0 where missing."""
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(len(values), dtype=np.int64)
    edges = np.unique(np.quantile(values[known], np.arange(1, _BINS) / _BINS))
    return np.where(known, 1 + np.searchsorted(edges, values, side="right"), 0).astype(np.int64)


def _between(groups: list[Codes], y: Floats) -> float:
    """The largest share of a column's variance that lies between the groups of a grouping."""
    shares = []
    for group in groups:
        sizes = np.maximum(np.bincount(group), 1)
        sums = [np.bincount(group, weights=column, minlength=len(sizes)) for column in y.T]
        shares.append(max(float((s**2 / sizes).sum()) for s in sums) / len(y))
    return max(shares)
