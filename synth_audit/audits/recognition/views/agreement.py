"""Agreement: does one row agree with the person in more than chance allows, whatever else it holds?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.audits.recognition.coded_cells import CodedCells
from synth_audit.audits.recognition.matching import matched, shared_weights
from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo

THRESHOLDS = (0.0, 1.0, 2.0, 3.0)
"""Bits of every column that do not count: what agrees no better than one cell in 2^t agrees by luck."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Information in bits by which a row agrees with a person; disagreement counts nothing.

    ``T_t = sum_c w_c max(0, e_c - t)`` with ``e_c = -log2`` of the share of cells that are as near, and
    weights w_c that let columns which repeat one another count once. A row that holds half of a person's
    values beside somebody else's is near in no distance, but agrees.

    Source: frequency weights as in Fellegi & Sunter 1969; soft thresholds as in Donoho & Johnstone 1994.
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Agreement in part of the columns",
        finds="a row that agrees in unusually many values, beside whatever others",
        source="Fellegi & Sunter 1969; Donoho & Johnstone 1994",
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score by four thresholds, and beside other people."""
        yield from agreement_scores(pool.columns, pool, rng, name="agreement", person=pool.person)


def agreement_scores(
    columns: Iterable[PooledColumn],
    pool: PooledPeople,
    rng: np.random.Generator,
    *,
    name: str,
    person: Positions | None = None,
) -> Iterator[Score]:
    """Scores by how many bits rows agree with each record in these columns.

    Args:
        name: of the comparison, in the pool's memory.
        person: given where the best row is also compared with the best other people.
    """
    cells = [CodedCells.of(c) for c in columns]
    bits = [c.agreement() for c in cells]
    able = [i for i, b in enumerate(bits) if b.any()]
    cells, bits = [cells[i] for i in able], [bits[i] for i in able]
    if len(cells) < 2:
        return
    over = [[np.maximum(0, b - t) for b in bits] for t in THRESHOLDS]
    weights = [shared_weights(cells, tables, rng) for tables in over]
    tables: list[Floats] = [
        np.stack([weights[t][c] * over[t][c] for t in range(len(THRESHOLDS))]) for c in range(len(cells))
    ]
    rows = matched(cells, tables, repeats=pool.repeats, memory=pool.memory, name=name)
    people = None if person is None else matched([c.among_people() for c in cells], tables, person=person)
    for t, threshold in enumerate(THRESHOLDS):
        yield Score(f"{threshold:g} bits: margin", rows.margin[t])
        yield Score(f"{threshold:g} bits: mutual margin", rows.mutual[t])
        if people is not None:
            yield Score(f"{threshold:g} bits: beside the best person", rows.best[t] - people.best[t])
