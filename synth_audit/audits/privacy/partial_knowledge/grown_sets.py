"""Sets of a few telling columns and others that tell little, by which single rows are shared with people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.audits.privacy._asked_people import AskedPeople
from synth_audit.encoding.known_columns import SECRET_STEP, KnownColumn
from synth_audit.kernels.grown_blocks import grown_blocks, recognised
from synth_audit.kernels.recognition import SharedSets
from synth_audit.kernels.shared_windows import window_width

_MOST_SETS, _MOST_ROWS = 40, 4000
"""Sets of telling columns and others that either half of the people grows, and rows of a release in which
they do: among more rows two numbers and a few answers are nobody's own."""

_FEWEST_COLUMNS, _MOST_COLUMNS = 5, 40
"""Columns from which on such sets are looked for, and of how many, those with most different values."""

_NEXT, _WIDER = 1, (0.03, 0.06)
"""Rows that share a number where it was copied as it is: strangers hardly do; and shares of the release that
share it, for sets that hold where numbers were moved or swapped."""


def with_grown(
    shared: SharedSets, columns: Sequence[KnownColumn], n_release: int, people: AskedPeople
) -> SharedSets:
    """Also by sets of telling columns and others together, which either half may choose that they grew on.

    Args:
        columns: rows of the release first, then those of the people.
    """
    plain = [i for i, c in enumerate(columns) if not c.parents]
    if n_release > _MOST_ROWS or len(plain) < _FEWEST_COLUMNS:
        return shared
    order = np.argsort([-int(columns[i].values.max()) for i in plain], kind="stable")
    plain = sorted(plain[i] for i in order[:_MOST_COLUMNS])
    cells = np.column_stack([columns[i].known_secret() for i in plain])
    release, asked = cells[:n_release], cells[n_release:]
    least = window_width(n_release)
    for width in (_NEXT, least, *(max(least, round(part * n_release)) for part in _WIDER)):
        halves: dict[tuple[int, ...], list[int]] = {}
        for half in (0, 1):
            chosen = people.of(half)
            for s in grown_blocks(release, asked, people.member, chosen, SECRET_STEP, _MOST_SETS, width):
                halves.setdefault(s, []).append(half)
        hits = recognised(release, asked, list(halves), SECRET_STEP, width)
        able = np.array([[half in of for of in halves.values()] for half in (0, 1)], dtype=bool)
        sets = [tuple(plain[i] for i in s) for s in halves]
        shared = shared.beside(sets, hits, able.reshape(2, -1))
    return shared
