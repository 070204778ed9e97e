"""Larger sets of known columns that tell little each: those that rows of the release share with people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.encoding.known_columns import KnownColumn
from synth_audit.kernels.weak_blocks import WeakBlock, few_labels, weak_blocks

FEWEST, MOST = 6, 16
"""Columns of a set."""

BLOCKS = (8, 11, 14)
"""Surest columns of a block of which all but one are known, each the secret in turn."""

_MOST_BITS = 3.0
"""A column tells little where two rows agree in it by a chance of one in eight, or more."""

_LABELS = 8
"""Labels of such a column by which blocks are searched for, the rarest together."""


def weak_columns(columns: Sequence[KnownColumn]) -> list[int]:
    """Positions of the columns that tell little each."""
    return [i for i, column in enumerate(columns) if 0 < _bits(column.shares) <= _MOST_BITS]


def weak_sets(
    columns: Sequence[KnownColumn], weak: Sequence[int], n_release: int, rng: np.random.Generator
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """The surest columns of the two most evident blocks, and sets of 6 to 16 of them; each ascending.

    The sets are the surest columns, more and more, and all of a block but one, which is then the secret.

    Whoever is looked up is looked at, of train and control alike, without asking who is of which.

    Args:
        columns: rows of the release first, then those of the people.
    """
    if len(weak) <= FEWEST:
        return (), ()
    codes = np.empty((len(columns[0].labels), len(weak)), np.int8)
    for place, i in enumerate(weak):
        codes[:, place] = few_labels(columns[i].values, _LABELS)
    blocks = weak_blocks(codes[:n_release], codes[n_release:], rng)
    found = (s for block in blocks for s in _sets(block))
    parts = (sorted(block.order[:k].tolist()) for block in blocks for k in BLOCKS if k <= len(block.order))
    return tuple(tuple(weak[i] for i in s) for s in parts), tuple(
        dict.fromkeys(tuple(weak[i] for i in s) for s in found)
    )


def _sets(block: WeakBlock) -> Iterator[tuple[int, ...]]:
    order = block.order.tolist()
    surest = order[: int(np.clip(block.size, FEWEST + 1, MOST + 1))]
    yield from (tuple(sorted(set(surest) - {secret})) for secret in surest)
    yield from (tuple(sorted(order[:k])) for k in range(FEWEST, min(MOST, len(order) - 1) + 1, 2))


def _bits(shares: Floats) -> float:
    """What it tells that two rows agree: −log2 of the chance that they do."""
    return float(-np.log2((shares**2).sum()))
