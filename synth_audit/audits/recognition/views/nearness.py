"""Nearness: is a row nearer to the person than rows and other people usually are?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats32
from synth_audit.audits.recognition.coded_cells import CodedCells
from synth_audit.audits.recognition.matching import matched
from synth_audit.audits.recognition.people import CENTRAL, PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo

_LABELS = (1.0, 0.25)
"""Distance of different labels: as far as a whole range, or as near as a quarter, so that numbers decide."""

FLOOR = 0.02
"""Distance that is added before ratios are taken; smaller differences are rounding."""


@dataclass(frozen=True, kw_only=True)
class Nearness:
    """Distances to release rows, alone and beside distances to other people.

    Column distances are ``|x - s|`` in central ranges or in ranks, at most 1, and those of labels. Their sum
    is ``d``. Scores: the margin of the best row over the next ones, the mutual margin, and
    ``log((d_people + e) / (d_release + e))``, which compares the nearest row with the nearest other person.
    An isolated person is far from every row and from everybody, so only the ratio shows a copy of one.

    Source: Gower 1971; relative nearness as in distance ratios (NNDR, Lowe 2004).
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Distances in all columns",
        finds="a row that is unusually near in all columns together",
        source="Gower 1971; Lowe 2004",
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score by values and by ranks, with far and with near labels."""
        columns = [CodedCells.of(c) for c in pool.columns]
        tables = [nearness_tables(c) for c in columns]
        rows = matched(columns, tables, repeats=pool.repeats, memory=pool.memory, name="nearness")
        people = matched([c.among_people() for c in columns], tables, person=pool.person)
        for w, name in enumerate(f"{scale}, labels {x:g}" for x in _LABELS for scale in ("values", "ranks")):
            yield Score(f"{name}: margin", rows.margin[w])
            yield Score(f"{name}: mutual margin", rows.mutual[w])
            yield Score(f"{name}: beside the nearest person", rows.best[w] - people.best[w])
            usual = people.best[w] - people.margin[w]
            yield Score(f"{name}: beside near people", rows.best[w] - (people.best[w] + usual) / 2)
            far = float(sum(t[w].max() for t in tables))
            ratio = np.log(far - people.best[w] + FLOOR) - np.log(far - rows.best[w] + FLOOR)
            yield Score(f"{name}: ratio", ratio)


def nearness_tables(column: CodedCells) -> Floats32:
    """One minus the distance of two cells, for each weighting, shape (4, k + 1, k + 1)."""
    k = len(column.shares)
    tables = np.zeros((4, k + 1, k + 1), np.float32)
    for w, (labels, scale) in enumerate((x, scale) for x in _LABELS for scale in (False, True)):
        if column.numeric:
            at = column.ranks() if scale else _in_ranges(column)
            tables[w, :k, :k] = 1 - np.minimum(1, np.abs(at[:, None] - at))
            tables[w, k, k] = 1
        else:
            tables[w] = labels * np.eye(k + 1)
    return tables


def _in_ranges(column: CodedCells) -> np.ndarray:
    cumulated = np.cumsum(column.shares)
    low, high = (column.middles[np.searchsorted(cumulated, q).clip(max=len(cumulated) - 1)] for q in CENTRAL)
    width = (high - low) or float(np.ptp(column.middles)) or 1.0
    return column.middles / width
