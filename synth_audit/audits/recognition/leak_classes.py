"""Planted leaks: rows of the release replaced by what some training people would leave, by class of leak.

A class is one function from the cells of the people to the cells of the rows that they leave. It sees the
pooled columns alone, so every table has every class of which it has the columns.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.audits.recognition.people import MOSTLY, PooledColumn, PooledPeople
from synth_audit.findings.sensitivity import LEAK_NAMES

MOVED = 0.02
"""Standard deviation, as a share of the people by rank, by which a near copy's numbers are moved."""

REDRAWN = 0.1
"""Share of a near copy's labels that are drawn anew."""

PARTS = 3
"""A fragment is one column in three, and three columns at least: the two of most values, and others."""

SHIFT = (0.1, 0.3)
"""Shares of a number's central range by which shifted copies are moved, one for each column."""

_EQUAL = 1e-6
"""Part of a step by which rounding errors may move a number off its grid."""

Cells = list[Floats]
"""One array of cells for each column: numbers, or codes of labels."""


@dataclass(frozen=True, kw_only=True)
class LeakClass:
    """A class of leaks.

    Attributes:
        name: in measurements; pages show its title from :data:`LEAK_NAMES`.
        left: the planted cells, made from the people's records, the pool and the rows that are replaced.
        by_value: whether the people are those with the largest or rarest values of one column.
        columns: columns that it needs.
        of_one_person: whether all that a row reveals is about one person.
    """

    name: str
    left: Callable[[Positions, PooledPeople, Positions, np.random.Generator], Cells]
    by_value: bool = False
    columns: int = 1
    of_one_person: bool = True

    @property
    def title(self) -> str:
        """The title that every page shows."""
        return LEAK_NAMES[self.name].title


def planted(
    pool: PooledPeople, member: Bools, leak: LeakClass, share: float, rng: np.random.Generator
) -> tuple[PooledPeople, Positions, Bools]:
    """Replace rows of the release by what a share of the training people would leave.

    Args:
        member: who is in the training set, shape (people,).
        share: of the training people, in (0, 1]; at most as many as the release has rows.

    Returns:
        The pool with the new release, the people who leave a row, and whose side the choice of these
        settles, shape (people,): their own, and that of everyone more unusual, who would have been chosen
        from the training set.
    """
    n = min(max(1, round(share * member.sum())), pool.rows)
    able, settled = np.flatnonzero(member), np.zeros(len(member), dtype=np.bool_)
    if leak.by_value:
        column = pool.columns[int(rng.integers(len(pool.columns)))]
        unusual = pool.of_people(_unusual(column))
        people = rng.permutation(able)
        people = people[np.argsort(-unusual[people], kind="stable")[:n]]
        settled = unusual > unusual[people].min()
    else:
        people = rng.permutation(able)[:n]
    settled[people] = True
    order = rng.permutation(pool.records)
    first = order[np.unique(pool.person[order], return_index=True)[1]]  # one record of each person
    records, rows = first[people], rng.permutation(pool.rows)[:n]
    left = leak.left(records, pool, rows, rng)
    columns = []
    for column, cells in zip(pool.columns, left, strict=True):
        release = column.release.copy()
        release[rows] = _as_released(cells, column) if column.numeric else cells
        columns.append(replace(column, release=release))
    words = []
    for text in pool.words:
        texts = list(text.release)
        for row, record in zip(rows, records, strict=True):
            texts[row] = text.people[record]
        words.append(replace(text, release=tuple(texts)))
    memory = pool.memory and replace(pool.memory, replaced=np.sort(rows), columns=pool.columns)
    return replace(pool, columns=tuple(columns), words=tuple(words), memory=memory), people, settled


def _as_released(cells: Floats, column: PooledColumn) -> Floats:
    """Numbers with the digits that the release gives: on its grid, and in single precision where it is."""
    known, step = column.release[np.isfinite(column.release)], column.grain
    if not 0 < step < np.inf:
        return cells
    start = known.min()
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may be huge
        places = (known - start) / step
        if (np.abs(places - np.rint(places)) < _EQUAL).mean() >= MOSTLY:
            rounded = start + np.rint((cells - start) / step) * step
            return np.where(np.abs(rounded - cells) < _EQUAL * step, cells, rounded)
        single = np.array_equal(known.astype(np.float32), known)
        return cells.astype(np.float32).astype(np.float64) if single else cells


def _unusual(column: PooledColumn) -> Floats:
    """How large a number, or how rare a label, each record has; missing cells last."""
    if column.numeric:
        return np.where(np.isnan(column.people), -np.inf, column.people)
    codes, back, counts = np.unique(column.people, return_inverse=True, return_counts=True)
    return np.where(codes[back] < 0, -np.inf, -counts[back]).astype(np.float64)


def _copies(records: Positions, pool: PooledPeople, rows: Positions, rng: np.random.Generator) -> Cells:
    return [c.people[records] for c in pool.columns]


def _near_copies(records: Positions, pool: PooledPeople, rows: Positions, rng: np.random.Generator) -> Cells:
    made = []
    for column, mine in zip(pool.columns, _copies(records, pool, rows, rng), strict=True):
        if column.numeric:
            known = np.sort(column.people[np.isfinite(column.people)])
            place = (np.searchsorted(known, mine, "left") + np.searchsorted(known, mine, "right") - 1) / 2
            moved = np.rint(place + rng.normal(scale=MOVED * len(known), size=len(mine)))
            cells = known[np.clip(moved, 0, len(known) - 1).astype(np.intp)]
            made.append(np.where(np.isnan(mine), np.nan, cells))
        else:
            made.append(np.where(rng.random(len(mine)) < REDRAWN, column.release[rows], mine))
    return made


def _fragments(records: Positions, pool: PooledPeople, rows: Positions, rng: np.random.Generator) -> Cells:
    d = len(pool.columns)
    values = [len(np.unique(c.people)) for c in pool.columns]
    most = sorted(range(d), key=lambda j: -values[j])
    kept = {*most[:2], *rng.permutation(most[2:])[: max(PARTS, round(d / PARTS)) - 2].tolist()}
    return [c.people[records] if j in kept else c.release[rows] for j, c in enumerate(pool.columns)]


def _shifted(records: Positions, pool: PooledPeople, rows: Positions, rng: np.random.Generator) -> Cells:
    """Numbers are moved; without numbers, labels are renamed."""
    made = []
    numbers = any(c.numeric for c in pool.columns)
    for column, mine in zip(pool.columns, _copies(records, pool, rows, rng), strict=True):
        if column.numeric:
            made.append(_rounded(mine + rng.uniform(*SHIFT) * column.width, column))
        elif numbers:
            made.append(mine)
        else:
            names = rng.permutation(int(column.people.max()) + 1)
            made.append(np.where(mine < 0, mine, names[mine.astype(np.intp)]))
    return made


def _mixtures(records: Positions, pool: PooledPeople, rows: Positions, rng: np.random.Generator) -> Cells:
    away = sum(_apart(c, records) for c in pool.columns)
    away = np.where(pool.person[records][:, None] == pool.person, np.inf, away)
    other, weight = np.argmin(away, axis=1), rng.random(len(records))
    made = []
    for column, mine in zip(pool.columns, _copies(records, pool, rows, rng), strict=True):
        theirs = column.people[other]
        if column.numeric:
            made.append(_rounded(mine + weight * (theirs - mine), column))
        else:
            made.append(np.where(weight < 0.5, mine, theirs))
    return made


def _apart(column: PooledColumn, mine: Positions) -> Floats:
    """Gower distance of some records from all in one column, 1 where either is missing."""
    a, b = column.people[mine][:, None], column.people
    if not column.numeric:
        return np.asarray(a != b, np.float64)
    away: Floats = np.nan_to_num(np.minimum(1, np.abs(a - b) / column.width), nan=1.0)
    return away


def _rounded(values: Floats, column: PooledColumn) -> Floats:
    return np.rint(values / column.step) * column.step


CLASSES = (
    LeakClass(name="copies", left=_copies),
    LeakClass(name="near_copies", left=_near_copies),
    LeakClass(name="fragments", left=_fragments, columns=4),
    LeakClass(name="shifted", left=_shifted),
    LeakClass(name="mixtures", left=_mixtures, of_one_person=False),
    LeakClass(name="subgroup", left=_near_copies, by_value=True),
)
"""What an adversary must be able to find on a table, from plain to disguised."""
