"""How much of a person a row keeps, whatever stands beside it: agreement counts, disagreement says nothing.

In column c a row r agrees with person x by ``e_c = −log2 P(a row or person is as near to x as r is)`` bits,
numbers by rank, labels if they are equal; 0 where a value is missing. All in all they agree by
``T_t = Σ_c w_c max(0, e_c − t)``: what is not nearer than by luck in one of 2^t is left out, so that values
of somebody else beside those kept cost nothing. Columns that agree together anyway share their weight,
``w_c = 1 / Σ_k ρ²_ck``, with ρ the correlation of their terms over pairs of strangers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Codes, Floats, Floats32, Positions

THRESHOLDS = (0.0, 1.0, 2.0, 3.0)
"""Bits of each column that are left out; as many as are added at once."""

_CELLS = 256
"""Cells that numbers are cut into at most."""

_MOST_BITS, _STEPS = 10.0, 16
"""Bits of one column at most, and steps of a bit."""

_PAIRS = 2**15
"""Pairs of a person and a row, at most, that say which columns agree together."""

_FIRST, _LAST = 4, 8
"""The best row must stand out from those at these places, where further copies of one person do not reach."""

_TOGETHER = 64
"""Rows of whose agreement the best is looked for at once."""

Packed = npt.NDArray[np.uint64]
"""Steps for each threshold, 16 bits each, which are looked up and added together."""


@dataclass(frozen=True, eq=False)
class AgreementColumn:
    """One column of people and of a release, in cells.

    Attributes:
        people, release: cells, shape (n,) and (m,).
        bits: by which two cells agree, of a person and of a row, shape (k, k), or where only equal ones do,
            shape (k,).
    """

    people: Codes = field(repr=False)
    release: Codes = field(repr=False)
    bits: Floats32 = field(repr=False)

    @property
    def size(self) -> int:
        """Cells."""
        return len(self.bits)

    def of_pairs(self, people: Positions, rows: Positions) -> Floats32:
        """Bits by which people and rows agree, one by one."""
        mine, theirs = self.people[people], self.release[rows]
        if self.bits.ndim == 2:
            return self.bits[mine, theirs]
        return np.where(mine == theirs, self.bits[mine], np.float32(0))

    @classmethod
    def of_numbers(cls, people: Floats, release: Floats, *, mirrored: bool = False) -> Self:
        """Numbers, NaN where there is none.

        Args:
            mirrored: those agree whose ranks, one of them counted from the other end, are near.
        """
        values = np.concatenate([people, release])
        known = np.isfinite(values)
        some = np.unique(values[known])
        if len(some) > _CELLS:
            some = np.unique(np.quantile(values[known], np.linspace(0, 1, _CELLS + 1)[1:-1], method="lower"))
        cells = np.where(known, np.searchsorted(some, values, side="right"), len(some) + 1)
        of_people, of_release = cells[: len(people)], cells[len(people) :]
        shares = _shares(of_people, of_release, len(some) + 1)
        bits = np.zeros((len(some) + 2, len(some) + 2), np.float32)
        bits[:-1, :-1] = _nearness(shares, mirrored)
        return cls(of_people, of_release, bits)

    @classmethod
    def of_labels(cls, people: Codes, release: Codes, less: Bools | None = None) -> Self:
        """Codes of labels, below 0 where there is none.

        Args:
            less: which labels of rows others of people agree with too, but less than equal ones, (k, k).
        """
        size = int(max(people.max(initial=-1), release.max(initial=-1))) + 1 if less is None else len(less)
        of_people, of_release = (np.where(x < 0, size, x) for x in (people, release))
        shares = _shares(of_people, of_release, size)
        bits = np.append(_bits(shares), 0.0).astype(np.float32)
        if less is None:
            return cls(of_people, of_release, bits)
        table = np.diag(bits)
        table[:-1, :-1] += less * _bits(shares + less @ shares)[:, None]
        return cls(of_people, of_release, table.astype(np.float32))


def _shares(people: Codes, release: Codes, size: int) -> Floats:
    """Mean of both sides' shares of each cell, missing ones aside."""
    found = [np.bincount(x[x < size], minlength=size)[:size] for x in (people, release)]
    shares: Floats = sum(x / max(1, x.sum()) for x in found) / 2
    return shares


def _bits(shares: Floats) -> Floats:
    return -np.log2(np.clip(shares, 2.0**-_MOST_BITS, 1.0))


def _nearness(shares: Floats, mirrored: bool) -> Floats:
    """Bits of the share of numbers as near by rank, for each two cells, shape (k, k).

    Which of the equal numbers at one end stands for which at the other is anybody's guess: mirrored, two
    cells are as far apart as the middle of either is beyond the ranks of the other.
    """
    middle = np.cumsum(shares) - shares / 2
    bits = np.empty((len(shares), len(shares)))
    for row, place, share in zip(bits, 1 - middle if mirrored else middle, shares, strict=True):
        away = np.abs(middle - place)
        if mirrored:
            away = np.maximum(0.0, away - np.maximum(shares, share) / 2)
        order = np.argsort(away, kind="stable")
        last = np.searchsorted(away[order], away[order] + 1e-12, side="right") - 1
        row[order] = _bits(np.cumsum(shares[order])[last])
    return bits


def standing_out(columns: Sequence[AgreementColumn], repeats: int, rng: np.random.Generator) -> Floats:
    """By how many bits each person's best row agrees more than the mean of the fifth to eighth best.

    Args:
        columns: at least one, 400 at most.
        repeats: release rows for each person of train; so many times further down the others are.

    Returns:
        for each threshold, shape (n, thresholds).
    """
    m = len(columns[0].release)
    out = np.empty((len(columns[0].people), len(THRESHOLDS)))
    for person, total in enumerate(summed(columns, _packed(columns, rng))):
        for k, steps in enumerate(total.view(np.uint16).reshape(m, -1).T):
            out[person, k] = _outweighs(np.ascontiguousarray(steps), repeats)
    return out / _STEPS


def summed(columns: Sequence[AgreementColumn], tables: Sequence[Packed]) -> Iterator[Packed]:
    """For each person the sum of what all columns say of each row, shape (m,); overwritten by the next.

    Args:
        tables: what each column says of two cells, in the shape of its bits.
    """
    starts = np.cumsum([0, *(c.size for c in columns)])
    places = np.array([c.release + s for c, s in zip(columns, starts, strict=False)], np.intp)
    row = np.zeros(starts[-1], np.uint64)
    found, total = np.empty(places.shape, np.uint64), np.empty(places.shape[1], np.uint64)
    for person in range(len(columns[0].people)):
        for c, table, start in zip(columns, tables, starts, strict=False):
            cell = c.people[person]
            if table.ndim == 2:
                row[start : start + c.size] = table[cell]
            else:
                row[start + c.people[person - 1]] = 0
                row[start + cell] = table[cell]
        row.take(places, out=found, mode="clip")
        yield found.sum(axis=0, out=total)


def _packed(columns: Sequence[AgreementColumn], rng: np.random.Generator) -> list[Packed]:
    """What two cells agree by, in all thresholds together, for each column."""
    n, m = (len(x) for x in (columns[0].people, columns[0].release))
    pairs = np.arange(n * m) if n * m <= _PAIRS else rng.integers(n * m, size=_PAIRS)
    who, which = np.divmod(pairs, m)
    bits = np.array([c.of_pairs(who, which) for c in columns])
    weights = [_shared_weights(np.maximum(0.0, bits - t)) for t in THRESHOLDS]
    tables = []
    for c, *shared in zip(columns, *weights, strict=True):
        steps = [
            np.rint(_STEPS * w * np.maximum(0.0, c.bits - t)) for t, w in zip(THRESHOLDS, shared, strict=True)
        ]
        tables.append(np.stack(steps, axis=-1).astype(np.uint16).view(np.uint64)[..., 0])
    return tables


def _shared_weights(terms: Floats32) -> Floats:
    """One over how many columns agree together with each, itself among them, shape (d,)."""
    apart = terms - terms.mean(axis=1, keepdims=True)
    size = np.sqrt((apart**2).sum(axis=1))
    apart /= np.where(size > 0, size, 1.0)[:, None]
    weights: Floats = 1 / np.maximum(1.0, ((apart @ apart.T) ** 2).sum(axis=1))
    return weights


def _outweighs(bits: npt.NDArray[np.uint16], repeats: int) -> float:
    """By how much the largest is above those further down."""
    n = min(_LAST * repeats, len(bits))
    whole = len(bits) // _TOGETHER
    if whole > 2 * n:  # the n largest are among those of the n blocks whose largest are largest, and the rest
        blocks = bits[: whole * _TOGETHER].reshape(whole, _TOGETHER)
        best = np.argpartition(blocks.max(axis=1), -n)[-n:]
        bits = np.concatenate([blocks[best].ravel(), bits[whole * _TOGETHER :]])
    top = np.sort(np.partition(bits, -n)[-n:])
    return float(top[-1]) - float(top[: max(1, n - _FIRST * repeats)].mean())
