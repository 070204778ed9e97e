"""The attribute attack learnt from the release itself, and whether real rows hold anything it could find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.audits.privacy._attribute_design import DesignMatrix, Secret
from synth_audit.audits.privacy._attribute_secrets import FEWEST_SCORED, FOLDS, MOST_TESTED, STREAM
from synth_audit.audits.privacy.attribute_attack.attack import (
    BINS,
    CHANCE,
    Attack,
    AttackView,
    Rows,
    Test,
)
from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.errors import PluginError
from synth_audit.core.kind_cells import Grouping
from synth_audit.core.measurement import Interval
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.kernels.games import reference_rows
from synth_audit.kernels.intervals import critical_value, enough_draws, normal_interval
from synth_audit.kernels.linear import Scaling, share_overlooked, signed_r_squared

_MOST_LEARNT = 20_000
_MOST_SCORED = 5_000
_DRAWS = 200
_FEWEST_RARE = 10
_MOST_RARE = 50
"""A rare label of a secret is attacked if it has so many training rows, and no more labels than these."""

_LEAST_TOLD = 0.1
"""Rare labels are not judged where real rows explain less of them: a ratio of two small numbers from a few
rows would leave every release undecided, and there is little to give away."""


@dataclass(frozen=True)
class SkillEstimate:
    """How well a secret is guessed at real rows, learnt from the release and from train.

    Attributes:
        draws: bootstrap over the rows that are scored, shape (b, 2): learnt from the release, from train.
        rows: that were scored. overlooked: tests that found nothing in the release of what is in train.
    """

    skill: float
    real_skill: float
    draws: Floats
    rows: int
    overlooked: tuple[Test, ...]

    @property
    def retained(self) -> float:
        """Without its sign: who knows one secret can turn guesses round that are wrong throughout."""
        return abs(self.skill) / self.real_skill

    def interval(self, level: float) -> Interval:
        """Linearised: ``ρ ± z · sd((a* − ρ b*) / b)`` over the draws, and above it what may be overlooked.

        A test that finds nothing in a few hundred rows does not say that nothing is there: the largest share
        of variance that it would have missed is added to the skill at the upper end.
        """
        ratio = self.skill / self.real_skill
        around = (self.draws[:, 0] - ratio * self.draws[:, 1]) / self.real_skill
        found = normal_interval(self.retained, around, level)
        if not self.overlooked:
            return found
        missed = max(share_overlooked(*test, level) for test in self.overlooked)
        method = f"{found.method}, and what a test overlooks"
        return Interval(found.low, found.high + missed / self.real_skill, level, method)

    def measurable(self, level: float) -> bool:
        """Real rows teach the attack something, beyond what the choice of scored rows explains."""
        spread = float(np.std(self.draws[:, 1], ddof=1))
        return self.rows >= FEWEST_SCORED and self.real_skill > critical_value(level) * spread


@dataclass(frozen=True)
class ReleaseAttack:
    """What the release teaches of one secret.

    Attributes:
        told: to who fits a line and, where groups of single columns tell more in train, looks at those too.
        grouped: they do. rare: to who guesses the rare labels of the secret likewise; None where train tells
            next to nothing of them.
    """

    told: SkillEstimate
    grouped: bool
    rare: SkillEstimate | None

    @classmethod
    def of(cls, subject: Subject, design: DesignMatrix, secret: Secret, seed: int) -> ReleaseAttack:
        """Score on control, or on train where there is none worth it."""
        if not all(c.kind.finite(subject.synthetic.column(c.name)) for c in subject.features):
            raise PluginError("the release holds infinite numbers")
        rng = child_rng(seed, STREAM, "release", secret.name)
        control = subject.control
        apart = control is not None and control.n_rows >= FEWEST_SCORED
        scored = _some(control if control is not None and apart else subject.train, _MOST_SCORED, rng)
        tables = (*(_some(t, _MOST_LEARNT, rng) for t in (subject.synthetic, subject.train)), scored)
        groupings = tuple(_groupings(subject, secret))
        view = AttackView(design, secret, groupings, secret.weights)
        draws = enough_draws(_DRAWS, subject.level)
        test = ReleaseTest.of(view, tables, apart, draws)
        sizes = tuple(g.size for g in groupings)
        grouped = bool(Attack.learnt(test.train, view.weights, sizes).used)
        told = test.skills(sizes if grouped else (), rng)
        rare = _of_rare_labels(subject.train, view)
        if rare is None:
            return cls(told, grouped, None)
        own = ReleaseTest.of(rare, tables, apart, draws)
        found = own.skills(sizes, rng) if Attack.learnt(own.train, own.weights, sizes).parts else None
        return cls(told, grouped, found if found and found.real_skill >= _LEAST_TOLD else None)


@dataclass(frozen=True)
class ReleaseTest:
    """Whom the attack learns from and whom it is scored at.

    Attributes:
        apart: nobody who is scored is in train. Else train's own skill is that of guesses at each of
            :data:`FOLDS` folds, learnt from the others: what was fitted to a row would look too good there,
            and the release too harmless beside it.
        draws: of the bootstrap.
    """

    made: Rows
    train: Rows
    scored: Rows
    weights: Floats
    apart: bool
    draws: int

    @classmethod
    def of(cls, view: AttackView, tables: Sequence[Table], apart: bool, draws: int) -> ReleaseTest:
        """See the release, train and the rows to score on, in this order, by this view."""
        made, train, scored = (view.rows(table) for table in tables)
        return cls(made, train, scored, view.weights, apart, draws)

    def skills(self, sizes: Sequence[int], rng: np.random.Generator) -> SkillEstimate:
        """Skill learnt from the release and from train; without ``sizes`` of groups, of a line alone."""
        n = len(self.scored)
        made, train = (Attack.learnt(rows, self.weights, sizes) for rows in (self.made, self.train))
        real = train.guess(self.scored) if self.apart else self._across(sizes, rng.permutation(n) % FOLDS)
        guesses = (made.guess(self.scored), real)
        counts = [
            np.bincount(rng.integers(max(n, 1), size=n), minlength=n).astype(np.float64)
            for _ in range(self.draws)
        ]
        skills = np.array([[self._skill(g, c) for g in guesses] for c in (None, *counts)])
        return SkillEstimate(float(skills[0, 0]), float(skills[0, 1]), skills[1:], n, made.not_in(train))

    def _across(self, sizes: Sequence[int], folds: Codes) -> Floats:
        """Guesses at each fold, learnt from the others."""
        guesses = np.zeros_like(self.scored.answers)
        for fold in np.unique(folds):
            own = folds == fold
            learnt = Attack.learnt(self.scored.take(~own), self.weights, sizes)
            guesses[own] = learnt.guess(self.scored.take(own))
        return guesses

    def _skill(self, guesses: Floats, counts: Floats | None) -> float:
        return float(signed_r_squared(guesses, self.scored.answers, counts) @ self.weights)


def _of_rare_labels(train: Table, view: AttackView) -> AttackView | None:
    """The labels of the secret that share one number: together they would hide what each hangs on."""
    held = view.design.coding(view.secret.name).rare_counts(train)
    enough = {label: n for label, n in held.items() if n >= _FEWEST_RARE}
    rare = sorted(enough, key=lambda label: -enough[label])[:_MOST_RARE]
    if not rare:
        return None
    weights = np.array([enough[label] for label in rare], dtype=np.float64)
    return replace(view, weights=weights / weights.sum(), rare=tuple(rare))


def _groupings(subject: Subject, secret: Secret) -> Iterator[Grouping]:
    """Of the other columns, as train has them."""
    for column in subject.features:
        if column.name != secret.name:
            yield column.kind.grouping(subject.train, column, bins=BINS)


def _some(table: Table, most: int, rng: np.random.Generator) -> Table:
    return table.take(reference_rows(table.n_rows, (), most, rng))


def unseen(subject: Subject, design: DesignMatrix, secret: Secret, seed: int, *, linear: bool) -> bool:
    """True when no line ties the secret to another column but its groups do.

    A permutation test of the largest ``η²`` of the secret, or of its distance from its median, between the
    labels of another column, or the quantile bins of its numbers; ``p ≤ 0.01`` for all together.
    """
    if linear:
        return False
    rng = child_rng(seed, STREAM, "unseen", secret.name)
    table = _some(subject.train, MOST_TESTED, rng)
    table = table.take(design.present(table, secret.name))
    groups = [grouping.of(table) for grouping in _groupings(subject, secret)]
    if not groups or table.n_rows < FEWEST_SCORED:
        return False
    y = design.encode(table)[:, secret.responses]
    y = np.hstack([y, np.abs(y - np.median(y, axis=0))])
    y = Scaling.of(y).apply(y)
    found = [_between(groups, z) for z in (y, *(rng.permutation(y) for _ in range(199)))]
    observed, *others = np.round(found, 12)
    return bool((1 + np.sum(np.array(others) >= observed)) / 200 <= CHANCE)


def _between(groups: list[Codes], y: Floats) -> float:
    """The largest share of a column's variance that lies between the groups of a grouping."""
    shares = []
    for group in groups:
        sizes = np.maximum(np.bincount(group), 1)
        sums = [np.bincount(group, weights=column, minlength=len(sizes)) for column in y.T]
        shares.append(max(float((s**2 / sizes).sum()) for s in sums) / len(y))
    return max(shares)
