"""Sorted samples, cells of numbers, which cells may be told, and entropy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Codes, Floats


@dataclass(frozen=True, eq=False)
class SortedNumbers:
    """A sample.

    Attributes:
        values: those present, ascending, shape (n,). missing: how many others there are.
    """

    values: Floats
    missing: int

    @classmethod
    def of(cls, numbers: Floats) -> "SortedNumbers":
        """Of numbers in any order, NaN where missing."""
        known = np.sort(numbers[~np.isnan(numbers)])
        return cls(known, len(numbers) - len(known))

    def quantile_cells(self, most: int) -> Floats:
        """Inner edges of at most ``most`` cells of about equal mass, shape (≤ most − 1,).

        A value so frequent that it fills several cells gets one of its own, so spikes survive.
        """
        if not len(self.values):
            return np.empty(0)
        edges = np.unique(np.quantile(self.values, np.linspace(0, 1, most + 1)[1:-1]))
        heavy = edges[self.held(edges) / len(self.values) >= 1 / most]
        return np.unique(np.concatenate([edges, np.nextafter(heavy, -np.inf)]))

    def held(self, at: Floats) -> Codes:
        """How many values are equal to each of ``at``."""
        return self.values.searchsorted(at, "right") - self.values.searchsorted(at, "left")

    def cell_counts(self, edges: Floats) -> Codes:
        """Numbers in each cell of these inner edges, the last for missing, shape (len(edges) + 2,)."""
        # A cell holds what is above the edge below it, and up to its own edge.
        below = self.values.searchsorted(edges, "right")
        return np.append(np.diff(below, prepend=0, append=len(self.values)), self.missing)

    @property
    def last(self) -> Codes:
        """Position of the last of each distinct value, shape (k,)."""
        return np.flatnonzero(np.append(self.values[1:] != self.values[:-1], True)[: len(self.values)])

    def most_frequent(self) -> tuple[Floats, int]:
        """The values that no other is more frequent than, ascending, and how often each is held."""
        last = self.last
        counts = np.diff(last, prepend=-1)
        most = int(counts.max(initial=0))
        return self.values[last[counts == most]], most


def cell_codes(values: Floats, edges: Floats) -> Codes:
    """Cell of each value: 0 … len(edges) from low to high, and len(edges) + 1 for missing, shape (n,)."""
    cells = np.searchsorted(edges, values, side="left")
    return np.where(np.isnan(values), len(edges) + 1, cells).astype(np.int64)


def tellable_cells(counts: Sequence[Codes], fewest: int, *, ordered: bool) -> list[int]:
    """Cells whose numbers of real rows may be told, in order; all others are to be joined into one.

    Each holds ``fewest`` rows of the first table, and as many or none of the second. So does the rest, with
    its missing values and without, or else the next smallest cells join it: it would give away the one small
    cell in it. Missing values join last, since their share is told on its own. What may be told of two
    tables is what may be told of the first alone with more cells joined, so that nobody learns from the
    difference of the two.

    Args:
        counts: rows of train, and of control where it is there, in each cell; the last cell is for missing.
        ordered: the order of cells means something, so the first of equally small ones joins; else all of
            them do, or names or the order of rows would decide.
    """
    large = [i for i, n in enumerate(counts[0].tolist()) if n >= fewest]
    told = _with_enough_beside(counts[:1], large, fewest, ordered)
    if len(counts) > 1:
        told = [i for i in told if not 0 < counts[1][i] < fewest]
        told = _with_enough_beside(counts, told, fewest, ordered)
    return told


def _with_enough_beside(counts: Sequence[Codes], told: list[int], fewest: int, ordered: bool) -> list[int]:
    """Cells without the smallest of them, until enough rows of every table lie in those left out."""
    last = len(counts[0]) - 1
    size = [(i == last, *n, i if ordered else 0) for i, n in enumerate(np.stack(counts, axis=1).tolist())]
    while told:
        rest = np.setdiff1d(np.arange(last + 1), told)
        sums = [int(n[part].sum()) for n in counts for part in (rest, rest[rest < last])]
        lone = any(sums) and sums[0] < fewest
        if not lone and not any(0 < n < fewest for n in sums):
            break
        smallest = min(size[i] for i in told)
        told = [i for i in told if size[i] != smallest]
    return told


def entropy(codes: Codes | Floats) -> float:
    """Shannon entropy ``−Σ p log₂ p`` over the distinct codes in bits, missing counted as one.

    Args:
        codes: or numbers, NaN where missing; shape (n,), n ≥ 1.

    Returns:
        0 or more; equal for equal sets of frequencies, whatever the codes.
    """
    shares = np.sort(np.unique(codes, return_counts=True)[1]) / len(codes)
    return abs(float(np.sum(shares * np.log2(shares))))
