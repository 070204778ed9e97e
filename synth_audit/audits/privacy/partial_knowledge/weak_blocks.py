"""Which columns, each telling little of a person, do rows of a release have from one person together?

Two to five answers of yes or no leave dozens of rows equal by chance; fourteen may leave one. Which fourteen
of forty is found here by a mixture as of record linkage (Fellegi & Sunter 1969): arrays only. It never asks
who is in train, so whoever is judged by what it finds may have been looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.audits.privacy._known_columns import KnownColumn
from synth_audit.encode.codes import few_labels
from synth_audit.stats.association import one_hot, starts

Columns = tuple[int, ...]
"""Positions of columns, ascending."""

LabelCodes = npt.NDArray[Any]
"""Codes of labels in whatever type of whole numbers."""

FEWEST, MOST = 6, 16
"""Columns of a set that tell little each."""

BLOCKS = (8, 11, 14)
"""Surest columns of a block of which all but one are known, each the secret in turn."""

_MOST_BITS = 3.0
"""A column tells little where two rows agree in it by a chance of one in eight, or more."""

_KEPT = 8
"""Labels of such a column by which blocks are searched for, the rarest together."""

_ASKED, _ROWS = 2000, 2000
"""People, and rows of the release and of other people beside them, that are compared at most."""

_MOST_COLUMNS, _LABELS = 96, 150
"""Columns that are searched at most, and labels of all of them beyond which fewer people are asked."""

_COUNTING, _FEWEST_COUNTED = 4e9, 2000
"""Products by which pairs of columns are counted, and rows in which they are in any case."""

_ALIKE = 0.9
"""Share of columns about which two starts agree that lead to the same block."""

_TRIAL, _STEPS = 4, 6
"""Steps of every start, and further ones of the better two."""

_PACE = 1.0
"""Log odds for each standard error."""

_SURE = 6.0
"""Log odds beyond which none are told apart."""

_FAR = np.float32(-60.0)
"""Log odds of a row beside the best, below which all are alike: of many columns far smaller ones make numbers
that float32 has no digits for, with which products take fifty times as long."""

_LEAST, _MOST = 0.02, 0.98
"""A column is never given up for a start, nor taken for granted."""

_FEW = 0.1
"""Share of people of whom a row is looked for, in the evidence."""


@dataclass(frozen=True, eq=False)
class WeakBlock:
    """Columns that rows seem to have from one person.

    Attributes:
        order: columns that were searched, the most surely shared first.
        size: how many more probably are than are not.
        evidence: how much better rows of the release fit people than other people do, in standard errors.
    """

    order: Positions
    size: int
    evidence: float


def weak_sets(
    columns: Sequence[KnownColumn], n_release: int, rng: np.random.Generator
) -> tuple[list[Columns], list[Columns]]:
    """The surest columns of the two most evident blocks, and sets of 6 to 16 of them; each ascending.

    The sets are the surest columns, more and more, and all of a block but one, which is then the secret.
    Whoever is looked up is looked at, of train and control alike, without asking who is of which.

    Args:
        columns: rows of the release first, then those of the people.
    """
    # What it tells that two rows agree: −log2 of the chance that they do.
    counts = (np.unique(column.known_secret(), return_counts=True)[1] for column in columns)
    bits = [float(-np.log2(((n / n.sum()) ** 2).sum())) for n in counts]
    weak = [i for i, told in enumerate(bits) if 0 < told <= _MOST_BITS]
    if len(weak) <= FEWEST:
        return [], []
    codes = np.column_stack([few_labels(columns[i].values, _KEPT).astype(np.int8) for i in weak])
    parts, sets = list[Columns](), dict[Columns, None]()
    for block in weak_blocks(codes[:n_release], codes[n_release:], rng):
        order = [weak[i] for i in block.order]
        parts += [tuple(sorted(order[:k])) for k in BLOCKS if k <= len(order)]
        surest = order[: int(np.clip(block.size, FEWEST + 1, MOST + 1))]
        sets |= dict.fromkeys(tuple(sorted(set(surest) - {secret})) for secret in surest)
        longer = range(FEWEST, min(MOST, len(order) - 1) + 1, 2)
        sets |= dict.fromkeys(tuple(sorted(order[:k])) for k in longer)
    return parts, list(sets)


def weak_blocks(release: LabelCodes, people: LabelCodes, rng: np.random.Generator) -> list[WeakBlock]:
    """The two most evident blocks.

    A row r copies column j of person i with probability q_j, so the two are by
    ``Π_j (1 − q_j + q_j [x_ij = y_rj] / p_j(x_ij))`` likelier to belong together than by chance. Of each
    person, rows of the release weigh by that, and so do the rows of as many other people; q_j rises where
    the former agree in j more than the latter, beyond what the middle column does, in standard errors. The
    search starts from no idea and from those two halves of the columns between which the release has lost
    most of what connects them.

    Args:
        release: shape (m, d), people: shape (n, d); labels 0 … k−1 that both share, in any type.
    """
    lost = _lost_association(release, people)
    kept = np.sort(np.argsort(-np.maximum(lost, 0).sum(axis=0), kind="stable")[:_MOST_COLUMNS])
    release, people, lost = release[:, kept], people[:, kept], lost[np.ix_(kept, kept)]
    search = _BlockSearch.of(release, people, rng)
    split = max(_cuts(lost), key=lambda odds: -float(np.sign(odds) @ lost @ np.sign(odds)))
    tried = [search.climbed(odds, _TRIAL) for odds in (np.zeros(len(kept)), split, -split)]
    ends = (search.climbed(odds, _STEPS) for odds in _different(tried))
    found = [
        WeakBlock(kept[np.argsort(-odds, kind="stable")], int((odds > 0).sum()), evidence)
        for odds, evidence in ends
    ]
    return sorted(found, key=lambda block: -block.evidence)


def _different(tried: Sequence[tuple[Floats, float]]) -> list[Floats]:
    """The two with most evidence, but not twice about the same columns."""
    first, *others = (odds for odds, _ in sorted(tried, key=lambda found: -found[1]))
    same = [bool(((first > 0) == (odds > 0)).mean() > _ALIKE) for odds in others]
    return [first, *(odds for odds, alike in zip(others, same, strict=True) if not alike)][:2]


@dataclass(frozen=True, eq=False)
class _BlockSearch:
    """Rows to compare, each label a column of zeros and ones.

    Attributes:
        widths: labels of each column, shape (d,).
        release, others: rows, shape (rows, labels). places: the label of each cell of the people asked, shape
            (asked, d). own: each one's place among ``others``, −1 for none.
        shares: how frequent each one's value is in both, shape (asked, d).
    """

    widths: Positions
    release: Floats32
    others: Floats32
    places: Positions
    own: Positions
    shares: Floats

    @classmethod
    def of(cls, release: LabelCodes, people: LabelCodes, rng: np.random.Generator) -> Self:
        widths = _widths(release, people)
        n = min(len(release), len(people), _ROWS)
        rows, order = rng.permutation(len(release))[:n], rng.permutation(len(people))
        # From the other end, so that few of those asked stand among the rows that they are compared with.
        most = int(np.clip(_ASKED * _LABELS / widths.sum(), _ASKED // 5, _ASKED))
        asked = np.arange(len(people))[::-1][:most]
        rows_release, rows_others = (one_hot(x, widths) for x in (release[rows], people[order[:n]]))
        shares = (rows_release.sum(axis=0) + rows_others.sum(axis=0) + 1) / (2 * n + 2)
        places = people[order[asked]] + starts(widths)
        own = np.where(asked < n, asked, -1)
        return cls(widths, rows_release, rows_others, places, own, shares[places].astype(np.float64))

    def climbed(self, odds: Floats, steps: int) -> tuple[Floats, float]:
        """Log odds that columns are shared after so many steps, and the evidence before the last of them."""
        evidence = 0.0
        for _ in range(steps):
            q = np.clip(1 / (1 + np.exp(-odds)), _LEAST, _MOST)
            # What agreement in each label tells, 0 for labels that a person has not; shape (asked, labels).
            weights = np.zeros((len(self.places), self.release.shape[1]), dtype=np.float32)
            told = np.log((1 - q + q / self.shares) / (1 - q)).astype(np.float32)
            np.put_along_axis(weights, self.places, told, axis=1)
            mine, fit = self._agreement(weights, self.release, None)
            usual, fit_usual = self._agreement(weights, self.others, self.own)
            base = np.log(1 - q).sum() - np.log(len(self.release))
            fitted, fitted_usual = (
                np.log1p(_FEW * np.expm1(np.minimum(f + base, 20))) for f in (fit, fit_usual)
            )
            evidence = float(_standardised((fitted - fitted_usual)[:, None])[0])
            apart = _standardised(mine - usual)
            odds = np.clip(odds + np.clip(apart - np.median(apart), -3, 3) * _PACE, -_SURE, _SURE)
        return odds, evidence

    def _agreement(self, weights: Floats32, rows: Floats32, own: Positions | None) -> tuple[Floats, Floats]:
        """How far rows agree with each person in each column, weighed by how well they fit, and how well all
        fit together."""
        fit = weights @ rows.T
        if own is not None:
            fit[np.flatnonzero(own >= 0), own[own >= 0]] = -np.float32(1e4)
        most = fit.max(axis=1, keepdims=True)
        fit -= most
        np.maximum(fit, _FAR, out=fit)
        np.exp(fit, out=fit)
        total = fit.sum(axis=1, keepdims=True)
        fit /= total
        agreed = np.take_along_axis(fit @ rows, self.places, axis=1).astype(np.float64)
        return agreed, (np.log(total) + most)[:, 0].astype(np.float64)


def _widths(release: LabelCodes, people: LabelCodes) -> Positions:
    """Labels of each column."""
    widths: Positions = np.maximum(release.max(axis=0), people.max(axis=0)).astype(np.intp) + 1
    return widths


def _standardised(values: Floats) -> Floats:
    """Mean of each column in its standard errors."""
    z: Floats = values.mean(axis=0) / np.sqrt(values.var(axis=0) / len(values) + 1e-9)
    return z


def _lost_association(release: LabelCodes, people: LabelCodes) -> Floats:
    """How much pairs of columns hang together differently in release and people, shape (d, d).

    Squared differences of the covariances of their labels, in what chance makes of them: about 0 where there
    is none.
    """
    widths = _widths(release, people)
    most = max(_FEWEST_COUNTED, int(_COUNTING / widths.sum() ** 2))
    sides = [one_hot(codes[:: -(-len(codes) // most)], widths) for codes in (release, people)]
    pooled = sum(side.sum(axis=0) for side in sides) / sum(map(len, sides))
    covariances = [
        side.T @ side / len(side) - np.outer(side.mean(axis=0), side.mean(axis=0)) for side in sides
    ]
    scale = 1 / np.sqrt(np.maximum(pooled, 1e-6))
    apart = (covariances[0] - covariances[1]) * np.outer(scale, scale)
    rows = 1 / sum(1 / len(side) for side in sides)
    column = np.repeat(np.arange(len(widths)), widths)
    member = (column[None] == np.arange(len(widths))[:, None]).astype(np.float64)
    chi = member @ (apart.astype(np.float64) ** 2 * rows) @ member.T
    free = np.array([max(1, int((pooled[column == j] > 0).sum()) - 1) for j in range(len(widths))])
    free = np.outer(free, free).astype(np.float64)
    lost: Floats = np.clip((chi - free) / np.sqrt(2 * free), -3, 30)
    np.fill_diagonal(lost, 0.0)
    return lost


def _cuts(lost: Floats) -> Iterator[Floats]:
    """Two cuts in which no column would better change sides, as log odds by what each adds to the cut."""
    directions: npt.NDArray[np.float64] = np.linalg.eigh(lost)[1]
    for direction in directions.T[:2]:
        side = np.where(direction > 0, 1.0, -1.0)
        for _ in range(10 * len(side)):
            gain = side * (lost @ side)
            worst = int(np.argmax(gain))
            if gain[worst] <= 1e-9:
                break
            side[worst] *= -1
        adds = np.maximum(-side * (lost @ side), 0.0)
        usual = float(np.median(adds))
        yield np.clip(side * (adds + 1e-6) / (usual + 1e-6), -2.0, 2.0)
