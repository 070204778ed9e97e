"""People and release as the views see them: pooled, in random order, without a word on sides."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.encode.codes import cells_of
from synth_audit.errors import NotApplicable
from synth_audit.execution.executor import SharedValue
from synth_audit.plugins.audit import Subject
from synth_audit.table.kind import TIME, LabelPart, NumberPart, VectorPart
from synth_audit.table.label_forms import column_forms
from synth_audit.table.people import persons
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

MOST_COLUMNS = 64
"""Columns that are compared, drawn at random from wider tables: one bit each in a machine word."""

MOST_RECORDS = 4
"""Records of one person that are looked up, drawn at random. A release may hold any of them."""

WORK = 1.2e9
"""People times columns times release rows that one view compares: about two CPU seconds."""

FEWEST_PEOPLE = 800
"""People who are looked up in any release, however large."""

MOSTLY = 0.95
"""Share of the labels that must read as numbers, for a column to be compared by its numbers alone; and of the
differences between numbers that must be as large as the grain."""

CENTRAL = (0.05, 0.95)
"""Quantiles between which a number is measured: extremes and codes such as 9999 do not set its unit."""

SAMPLE = 700
"""Records, and release rows, from which a view learns at most: enough for counts of some hundred labels."""

LONGEST = 2000
"""Letters of a text whose words are compared."""

Side = Literal["people", "release"]
SIDES: tuple[Side, Side] = ("people", "release")

Values: TypeAlias = npt.NDArray[Any]
"""Numbers as float64, or codes of labels; as int32 those of a release, which has many rows."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class PooledColumn:
    """One column of the people's records and of the release.

    Attributes:
        people, release: numbers, NaN where missing; or codes of labels, below 0 where missing; shape
            (records,) and (rows,).
        numeric: whether differences mean something.
        step: power of ten of which all numbers are multiples; 0 for labels.
        time: whether the numbers are microseconds since 1970.
    """

    name: str
    people: Floats = field(repr=False)
    release: Values = field(repr=False)
    numeric: bool
    step: float = 0.0
    time: bool = False

    def cells(self, side: Side) -> Floats:
        """Numbers or codes of one side, NaN where missing."""
        values: Values = getattr(self, side)
        return values if self.numeric else np.where(values < 0, np.nan, values)

    @property
    def width(self) -> float:
        """Central range of the people's numbers, the whole range where it is 0, or 1."""
        low, high = np.nanquantile(self.people, CENTRAL)
        return float(high - low) or float(np.nanmax(self.people) - np.nanmin(self.people)) or 1.0

    @cached_property
    def grain(self) -> float:
        """How coarsely the release gives its numbers: most of them, in order, are at least this far apart."""
        known = np.unique(self.release[np.isfinite(self.release)])
        if not self.numeric or len(known) < 2:
            return 0.0
        with np.errstate(over="ignore"):  # differences of huge numbers are infinite
            return float(np.quantile(np.diff(known), 1 - MOSTLY, method="lower"))


@dataclass(frozen=True, eq=False)
class PooledWords:
    """The words of one column of texts, as codes; one array for each record and row."""

    name: str
    people: tuple[Positions, ...] = field(repr=False)
    release: tuple[Positions, ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class ReleaseMemory:
    """What comparisons with a release found, so that a planted leak costs the rows that it replaces.

    A row that is left as it is seldom stands out for a person for whom it did not before. So once rows were
    replaced, a view need look only at what it found, and at the new rows.

    Attributes:
        found: by the name of the comparison.
        replaced: rows replaced since; none while all rows are compared.
        columns: with the release as it was.
    """

    found: dict[str, Any] = field(default_factory=dict, repr=False)
    replaced: Positions = field(default_factory=lambda: np.empty(0, np.intp), repr=False)
    columns: tuple[PooledColumn, ...] = ()

    def known(self, name: str) -> Any:
        """What a comparison found before rows were replaced; None while all rows are compared."""
        return None if self.keeps else self.found.get(name)

    @property
    def keeps(self) -> bool:
        """Whether comparisons are to leave what they find."""
        return not len(self.replaced)


@dataclass(frozen=True, eq=False)
class PooledPeople(SharedValue):
    """What every view is given.

    Attributes:
        columns: columns that vary among the people. words: columns of texts.
        person: the person whose record it is, 0 … people − 1, shape (records,).
        rows: rows of the release.
        repeats: rows of the release for one training record, rounded up: so many rows may be of one person.
        memory: what comparisons found; None where nothing need be kept.
    """

    columns: tuple[PooledColumn, ...]
    words: tuple[PooledWords, ...]
    person: Positions = field(repr=False)
    rows: int
    repeats: int
    memory: ReleaseMemory | None = field(default=None, repr=False)

    @property
    def records(self) -> int:
        """Records of all people."""
        return len(self.person)

    @property
    def people(self) -> int:
        """People on both sides."""
        return int(self.person.max()) + 1

    def of_people(self, scores: Floats) -> Floats:
        """Highest score of each person's records, from shape (records,) to (people,)."""
        found = np.full(self.people, -np.inf)
        np.maximum.at(found, self.person, scores)
        return found


@dataclass(frozen=True, eq=False)
class Sides:
    """Who is in the training set, which only the engine may see.

    Attributes:
        member: who is, shape (people,).
        person, rows: the person of each record, and its position in the person's own table, shape (records,).
    """

    member: Bools = field(repr=False)
    person: Positions = field(repr=False)
    rows: Positions = field(repr=False)

    def positions(self, people: Bools) -> Positions:
        """Positions of the records of some people of one side, ascending."""
        return np.sort(self.rows[people[self.person]])


def pooled(subject: Subject, most: int, rng: np.random.Generator) -> tuple[PooledPeople, Sides]:
    """Draw people from both sides, and read their records beside the release.

    Args:
        most: people drawn from either side.

    Returns:
        The pool, and who is in the training set.

    Raises:
        NotApplicable: there is no control set, either side has fewer than four people, the release has fewer
            than three rows, or no column varies.
    """
    if subject.control is None or subject.synthetic.n_rows < 3:
        raise NotApplicable("a control set and three release rows are needed")
    features = [subject.features[i] for i in sorted(rng.permutation(len(subject.features))[:MOST_COLUMNS])]
    able = max(FEWEST_PEOPLE, int(WORK / (subject.synthetic.n_rows * max(1, len(features)))))
    sides = [_drawn(table, most, rng) for table in (subject.train, subject.control)]
    sides = _fewer(sides, able, rng)
    if min(len(side) for side in sides) < 4:
        raise NotApplicable("cross-fitting needs four people on either side")
    order = rng.permutation(sum(map(len, sides)))
    member = order < len(sides[0])
    records = [rows for side in sides for rows in side]
    person = np.repeat(np.arange(len(order)), [len(records[i]) for i in order])
    table = np.concatenate([np.full(len(records[i]), i >= len(sides[0])) for i in order])
    rows = np.concatenate([records[i] for i in order])
    tables = (subject.train, subject.control)
    places = np.where(table, subject.train.n_rows + rows, rows)
    columns = [c for f in features for c in _columns(f, tables, subject.synthetic, places)]
    if not columns:
        raise NotApplicable("no column varies")
    words = [w for f in features for w in _words(f, tables, subject.synthetic, places)]
    repeats = math.ceil(subject.synthetic.n_rows / subject.train.n_rows)
    pool = PooledPeople(tuple(columns), tuple(words), person, subject.synthetic.n_rows, repeats)
    return pool, Sides(member, person, rows)


def _drawn(table: Table, most: int, rng: np.random.Generator) -> list[Positions]:
    """Records of so many people of a table, some of each."""
    person = persons(table)
    shuffled = rng.permutation(table.n_rows)
    order = shuffled[np.argsort(person[shuffled], kind="stable")]
    starts = np.flatnonzero(np.diff(person[order], prepend=-1))
    ends = np.append(starts[1:], len(order))
    some = rng.permutation(len(starts))[:most]
    return [np.sort(order[starts[i] : ends[i]][:MOST_RECORDS]) for i in some]


def _fewer(sides: Sequence[list[Positions]], able: int, rng: np.random.Generator) -> list[list[Positions]]:
    """Where so many people cannot be looked up: of control a third at least, if it has as many."""
    train, control = sides
    n_control = min(len(control), max(able // 3, able - len(train)))
    return [train[: max(4, able - n_control)], control[: max(4, n_control)]]


def _columns(
    column: Column, tables: Sequence[Table], release: Table, places: Positions
) -> Iterator[PooledColumn]:
    """The numbers of a column, and its labels where these are not all numbers."""
    cells = [cells_of(t, column) for t in tables]
    parts = column.kind.parts(cells)
    covered = np.zeros(len(places), dtype=np.bool_)
    for part in parts:
        if isinstance(part, NumberPart):
            real = np.concatenate([part.read(c) for c in cells])
            values = real[places]
            covered |= np.isfinite(values)
            made = part.read(cells_of(release, column))
            if _varies(values):
                yield PooledColumn(column.name, values, made, True, decimal_step(values), part.unit == TIME)
    labels = next((part for part in parts if isinstance(part, LabelPart)), None)
    if labels is not None:
        *real_codes, made_codes = labels.read([*cells, cells_of(release, column)])
        codes = np.concatenate(real_codes)[places].astype(np.float64)
        if _varies(codes) and covered.sum() < MOSTLY * (codes >= 0).sum():
            yield PooledColumn(column.name, codes, made_codes.astype(np.int32), False)


def decimal_step(values: Floats) -> float:
    """The largest power of ten, from 1 down to 1e-9, of which all numbers are multiples.

    >>> decimal_step(np.array([1.5, 2.25, np.nan]))
    0.01
    """
    known = np.unique(values[np.isfinite(values)])
    for decimals in range(9):
        with np.errstate(over="ignore", invalid="ignore"):  # no infinite number is near a multiple
            scaled = known * 10.0**decimals
            off = np.abs(scaled - np.rint(scaled)) > 1e-6 * np.maximum(1.0, np.abs(scaled))
        if not off.any():
            return float(10.0**-decimals)
    return 1e-9


def _varies(values: Floats) -> bool:
    return len(np.unique(np.nan_to_num(values, nan=-np.inf))) > 1


def _words(
    column: Column, tables: Sequence[Table], release: Table, places: Positions
) -> Iterator[PooledWords]:
    cells = [cells_of(t, column) for t in tables]
    if any(isinstance(part, VectorPart) for part in column.kind.parts(cells)):
        numbered: dict[str, int] = {}
        real = [words for c in cells for words in _coded(column, c, numbered)]
        made = tuple(_coded(column, cells_of(release, column), numbered))
        yield PooledWords(column.name, tuple(real[i] for i in places), made)


def _coded(column: Column, cells: object, numbered: dict[str, int]) -> Iterator[Positions]:
    for text in column_forms(column.kind.labels(cells)).to_pylist():
        words = set() if text is None else set(_WORD.findall(text[:LONGEST]))
        yield np.array(sorted(numbered.setdefault(w, len(numbered)) for w in sorted(words)), np.intp)
