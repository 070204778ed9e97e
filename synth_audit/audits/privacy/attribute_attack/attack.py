"""What an attacker learns of a secret from one table: a straight line, and what groups tell beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.privacy._attribute_design import DesignMatrix, Secret
from synth_audit.core.arrays import Bools, Codes, Floats
from synth_audit.core.kind_cells import Grouping
from synth_audit.core.table import Table
from synth_audit.encoding.label_forms import label_forms
from synth_audit.kernels.linear import GroupMeans, Regression, Scaling, chance_of_share, correlation

Test = tuple[int, int, float]

BINS = 8
"""Quantile bins of a number: enough to follow a bend, with rows enough in each."""

CHANCE = 0.01
"""What tests find with this probability by chance is not believed."""


@dataclass(frozen=True)
class Rows:
    """People who have a secret, as the attack sees them.

    Attributes:
        known: standardised predictors, shape (n, q). answers: what stands for the secret, shape (n, c).
        groups: by each other column, shape (n,).
    """

    known: Floats
    answers: Floats
    groups: tuple[Codes, ...]

    def __len__(self) -> int:
        return len(self.known)

    def take(self, rows: Bools) -> Rows:
        """Those that the mask, shape (n,), chooses."""
        return Rows(self.known[rows], self.answers[rows], tuple(g[rows] for g in self.groups))


@dataclass(frozen=True)
class AttackView:
    """What of a table bears on one secret.

    Attributes:
        rare: labels of the secret that share one number in the design; the answers are then indicators of
            these. None for the numbers of the design.
        weights: of the answers, shape (c,), summing to 1.
    """

    design: DesignMatrix
    secret: Secret
    groupings: tuple[Grouping, ...]
    weights: Floats
    rare: tuple[str, ...] | None = None

    def rows(self, table: Table) -> Rows:
        """The rows of a table that hold the secret."""
        table = table.take(self.design.present(table, self.secret.name))
        values = self.design.encode(table)
        z = Scaling.of(values).apply(values)
        answers = z[:, self.secret.responses]
        if self.rare is not None:
            labels = label_forms(table, self.secret.name)
            marks = np.column_stack([labels == label for label in self.rare]).astype(np.float64)
            answers = Scaling.of(marks).apply(marks)
        return Rows(z[:, self.secret.predictors], answers, tuple(g.of(table) for g in self.groupings))


@dataclass(frozen=True)
class Attack:
    """Guesses ``Σ β_k x_k + Σ γ_j m_j(g_j)`` with m_j the mean, in group g_j of column j, of what β leaves.

    Attributes:
        line: β, shape (q, c); all 0 where an F test at 1 % finds the regression no better than chance.
        means, slopes: m_j, and γ, shape (j, c), of the columns ``used``, whose groups differ in what β leaves
            by an F test at 1 %, corrected for the number of columns.
        tests: of the line and of each column: degrees of freedom used and free, and the p-value believed.
    """

    line: Floats
    used: tuple[int, ...]
    means: tuple[GroupMeans, ...]
    slopes: Floats
    tests: tuple[Test, ...]

    @classmethod
    def learnt(cls, rows: Rows, weights: Floats, sizes: Sequence[int] = ()) -> Attack:
        """Learn from rows.

        Guesses from chance coefficients correlate with the truth by anything, either way: many sets even that
        out, one release does not. Hence the tests.

        Args:
            weights: of the answers, shape (c,). sizes: numbers of groups; left out, only β is learnt.
        """
        x, y = (Scaling.of(v).apply(v) for v in (rows.known, rows.answers))
        line, free = _least_squares(x, y), max(len(x) - 1, 0)
        explained = float((line * (x.T @ y)).sum(axis=0) @ weights) / max(free, 1)
        if chance_of_share(explained, x.shape[1], free) > CHANCE:
            line = np.zeros_like(line)
        left = y - x @ line
        grouped = rows.groups[: len(sizes)]
        means = [GroupMeans.of(g, left, size) for g, size in zip(grouped, sizes, strict=True)]
        each = CHANCE / max(len(means), 1)
        used = tuple(j for j, m in enumerate(means) if len(x) and m.chance(left, weights) <= each)
        told = [means[j].of_others(rows.groups[j], left) for j in used]
        slopes = np.zeros_like(left[:0])
        if told:
            parts = np.stack(told, axis=1)
            slopes = np.column_stack(
                [_least_squares(parts[:, :, i], left[:, i : i + 1]) for i in range(left.shape[1])]
            )
        tests = ((x.shape[1], free, CHANCE), *((m.spent, free, each) for m in means))
        return cls(line, used, tuple(means[j] for j in used), slopes, tests)

    @property
    def parts(self) -> frozenset[int]:
        """What is believed: 0 for the line, and 1 + j for each column used."""
        line = {0} if np.any(self.line) else set()
        return frozenset(line | {1 + j for j in self.used})

    def not_in(self, other: Attack) -> tuple[Test, ...]:
        """The tests by which this attack does not believe what another does."""
        return tuple(self.tests[part] for part in sorted(other.parts - self.parts))

    def guess(self, rows: Rows) -> Floats:
        """Guesses at the answers, shape (n, c), in standard deviations of those who were learnt from."""
        guesses: Floats = rows.known @ self.line
        for j, means, slope in zip(self.used, self.means, self.slopes, strict=True):
            guesses = guesses + slope * means.at(rows.groups[j])
        return guesses


def _least_squares(x: Floats, y: Floats) -> Floats:
    """Coefficients, shape (q, c), without intercept, of smallest norm."""
    if not x.shape[1]:
        return np.zeros((0, y.shape[1]))
    n = max(len(x) - 1, 1)
    return Regression.on(correlation(x), np.zeros(x.shape[1], dtype=np.intp), len(x)).coefficients(
        x.T @ y / n
    )
