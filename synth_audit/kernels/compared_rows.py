"""What the rows that people are compared with weigh, of many people at once: arrays only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Codes, Floats32, Integers, Positions
from synth_audit.kernels.linked_columns import Blocks, LinkedColumn

_KEPT, _AT_ONCE, _TOGETHER = 1024, 32, 32
"""People whose weights are held, of these handed out at once, and weighed beside the same rows."""

_OUT = np.float32(-1e5)
"""Added to the weight of a row that was compared already."""


class ComparedRows(NamedTuple):
    """What the rows compared with some people weigh.

    Attributes:
        people: who they are, shape (b,). total: of each row in all columns, shape (b, compared).
        lightest: in the column where it weighs least, the same shape; None where that was not asked for.
        weights: of every cell of every column to each person, shape (b, cells).
    """

    people: Positions
    total: Floats32
    lightest: Floats32 | None
    weights: Floats32

    def weights_at(self, places: Codes) -> Floats32:
        """What cells weigh by their places, shape (b, d, some)."""
        first = np.arange(len(self.weights)) * self.weights.shape[1]
        found: Floats32 = self.weights.ravel()[places + first[:, None, None]]
        return found


def compared(
    columns: Sequence[LinkedColumn], blocks: Blocks, tables: Sequence[Floats32], *, lightest: bool
) -> Iterator[ComparedRows]:
    """Everybody once, a few at a time, in some order.

    People are taken together whose blocks of rows overlap: the weights of one cell to all of them lie beside
    one another, so that a row is looked up once for all. A row's weights are added in the order of columns
    whoever else is there, so that nobody's depend on it.

    Args:
        tables: what each pair of a person's and a row's cell weighs in each column.
        lightest: whether the least weight of each row is asked for.
    """
    everybody = np.argsort(blocks.starts[0], kind="stable")
    for kept in (everybody[k : k + _KEPT] for k in range(0, len(everybody), _KEPT)):
        weights = np.hstack([table[c.people[kept]] for c, table in zip(columns, tables, strict=True)])
        total = np.empty((len(kept), blocks.compared), np.float32)
        least = np.empty_like(total) if lightest else None
        for block, starts in enumerate(blocks.starts[:, kept]):
            here = slice(block * blocks.width, (block + 1) * blocks.width)
            for some in _overlapping(starts, blocks.width):
                low = int(starts[some[0]])
                rows = slice(low, int(starts[some[-1]]) + blocks.width)
                places = blocks.places[:, block * blocks.n_release :][:, rows]
                by_cell = np.ascontiguousarray(weights[some].T)
                found = [(total, _summed(by_cell, places))]
                if least is not None:
                    found.append((least, _lightest(by_cell, places)))
                for into, of_rows in found:
                    of_people = np.ascontiguousarray(of_rows.T)
                    for person, of_person, start in zip(some, of_people, starts[some] - low, strict=True):
                        into[person, here] = of_person[start : start + blocks.width]
        for k in range(0, len(kept), _AT_ONCE):
            part = slice(k, k + _AT_ONCE)
            if blocks.first_place is not None:
                total[part, blocks.width :] += _OUT * blocks.seen_before(kept[part])
            yield ComparedRows(kept[part], total[part], None if least is None else least[part], weights[part])


def _overlapping(starts: Positions, width: int) -> Iterator[Positions]:
    """Positions of people whose blocks overlap by a half, in the order of their starts."""
    order = np.argsort(starts, kind="stable")
    ordered, k = starts[order], 0
    while k < len(order):
        end = min(k + _TOGETHER, int(np.searchsorted(ordered, ordered[k] + width // 2, "right")))
        yield order[k:end]
        k = end


def _summed(by_cell: Floats32, places: Integers) -> Floats32:
    """Weights of rows to people, shape (rows, people)."""
    from scipy.sparse import csr_matrix  # here, since a code location must not load it

    d, rows = places.shape
    indices = places.T.astype(np.int32).ravel()
    holds = (np.ones(rows * d, np.float32), indices, np.arange(0, rows * d + 1, d, dtype=np.int32))
    found: Floats32 = csr_matrix(holds, (rows, len(by_cell))) @ by_cell
    return found


def _lightest(by_cell: Floats32, places: Integers) -> Floats32:
    """The least weight of each row to each person, shape (rows, people)."""
    least: Floats32 = by_cell.take(places[0], axis=0, mode="clip")
    other = np.empty_like(least)
    for of_column in places[1:]:
        by_cell.take(of_column, axis=0, out=other, mode="clip")
        np.minimum(least, other, out=least)
    return least
