"""Columns of a table whose numbers stand there by what they are to one another, not by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Floats, Positions
from synth_audit.encoding.plain_numbers import PlainNumbers
from synth_audit.kernels.linked_columns import LinkedColumn
from synth_audit.kernels.relative_numbers import difference, folded, in_range, ratio

_MISSING = -1e9


class RelatedNumbers(NamedTuple):
    """All columns of a table in one view.

    Attributes:
        name: of what stays in it. learnt: whether labels are learnt in it, as they may be renamed too.
    """

    name: str
    columns: Sequence[LinkedColumn]
    learnt: bool


def related_numbers(
    others: Sequence[LinkedColumn], numbers: Sequence[PlainNumbers], rows: Positions, n_release: int
) -> Iterator[RelatedNumbers]:
    """Views in which a row stays as it was though one secret moved, scaled or turned round all its numbers.

    Of differences and ratios each number stands beside the next by range, and the last beside the first.

    Args:
        others: columns of labels, and of numbers too few to be related.
        numbers: of the release first, then of people, of whom ``rows`` keeps some.
    """
    if len(numbers) < 2:
        return

    def columns(values: Iterator[Floats]) -> list[LinkedColumn]:
        found = (np.nan_to_num(x[rows], nan=_MISSING) for x in values)
        return [*others, *(LinkedColumn.of(x, n_release, numeric=True) for x in found)]

    in_turn = sorted(numbers, key=lambda x: (x.low, x.high, x.spread))  # whatever their columns' order
    ring = list(zip(in_turn, [*in_turn[1:], in_turn[0]], strict=True))[: 1 if len(numbers) == 2 else None]
    shifted = (difference(_share(x), _share(y), circular=True) for x, y in ring)
    yield RelatedNumbers("differences of numbers in their ranges", columns(shifted), learnt=True)
    scaled = (ratio(x.read(), y.read()) for x, y in ring)
    yield RelatedNumbers("ratios of numbers", columns(scaled), learnt=True)
    moved = (difference(_spread(x), _spread(y), circular=False) for x, y in ring)
    yield RelatedNumbers("differences of numbers by their spread", columns(moved), learnt=False)
    turned = (folded(_share(x)) for x in numbers)
    yield RelatedNumbers("numbers by how far they are from the middle", columns(turned), learnt=False)


def _share(column: PlainNumbers) -> Floats:
    return in_range(column.read(), column.low, column.high)


def _spread(column: PlainNumbers) -> Floats:
    return in_range(column.read(), 0.0, column.spread)
