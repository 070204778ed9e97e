"""The people behind a table: set aside as control by a keyed coin, counted, and told from equal rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Bools, Codes32, Counts, Floats, Integers
from synth_audit.errors import DataError
from synth_audit.hashing import KeyedHash, count, frame
from synth_audit.table.content_hash import Bytes
from synth_audit.table.schema import Column, Role, Schema
from synth_audit.table.table import BATCH, Table

_FEW = 0.01
"""Share of rows with an equal below which nothing is asked: all equal rows count as one person's."""

_CELLS = 50_000_000
"""Cells up to which it is asked: 4 bytes are held of each."""

_PAIRS = 66
"""Pairs of columns that are left out together, at most: all of twelve columns."""

_TIMES = 2
"""How many rows alike by chance there must be for each equal row that chance does not explain."""

_SURER = 3
"""By how many times more, where a person entered twice is the rule."""

_MISFIT = 0.05
"""By how much the expected number may be wrong in all."""

_MOST = 3, 6
"""A row's equals are no chance beyond so many times their expected number, and so many."""

_BESIDE, _FEWEST_BESIDE = 40, 25
"""Rows that count as rare as another: on either side one in so many, and no fewer than so many."""

_HALVINGS = 9
"""Shares of rare rows that are tried: all, half of them, and so on."""

_Keys = npt.NDArray[np.uint64]

_SCALE = 2**64
"""Values of a hash of 64 bits, of which a share is set aside."""

_BY_KEY, _BY_ROW, _AGAIN = frame("entity"), frame("row"), frame("again")

_TEXT = frame("")[:1]
"""Tag of a text in its frame."""

_BYTES = 32
"""Of a SHA-256."""

SIGNS = 8 * _BYTES


def chance_equals(table: Table) -> Bools:
    """Which rows equal another one as rows of different people do in a table so dense, shape (n,).

    Each of them is a person of its own. None is where keys tell people.

    Somebody may be in a table twice, and in a table of few values strangers have equal rows. Which of the two
    it was is told from the table alone, for each group of equal rows: :attr:`NearRows.expected` has λ others
    by chance. What chance leaves over, δ for each row, is counted among rare rows, where it shows best, since
    people enter a table twice whether their rows are rare or common. It is taken from above: a standard
    deviation and a misfit of 5 % of the λ are added, and fewer equals than expected count as if they were
    more, since then λ is not to be relied on. Chance explains a group if
    ``λ ≥ 2 δ (1 + 3 min(δ, 1))`` and it has at most ``3 λ + 6`` others: two rows alike by chance for each one
    that chance leaves over, and eight where that is everybody's, so that hardly anybody in control meets in
    train no row but the own double. Nothing is explained where all sizes of groups share a divisor, as in a
    table laid twice under itself, where fewer than one row in a hundred has an equal, or where more than
    5 × 10⁷ cells would have to be compared.
    """
    names = sorted(c.name for c in table.schema.features)
    n = table.n_rows
    if key_columns(table.schema) or len(names) < 2 or n * len(names) > _CELLS:
        return np.zeros(n, dtype=bool)
    keys = RowKeys.of([_codes(table.texts(name)) for name in names])
    equals = keys.alike_but_in()
    if np.mean(equals > 0) < _FEW or np.gcd.reduce(equals + 1) > 1:
        return np.zeros(n, dtype=bool)
    near = NearRows.told_by(keys)
    expected, (factor, beside) = near.expected, _MOST
    most = factor * expected + beside
    left = near.unexplained(most)
    explained: Bools = (near.equals > 0) & (near.equals <= most)
    return explained & (expected >= _TIMES * left * (1 + _SURER * min(left, 1)))


@dataclass(frozen=True, eq=False)
class RowKeys:
    """A random number for each label of a column: sums of two different rows are equal once in 2⁶⁴ times.

    Attributes:
        codes: of each column, from 0 on, shape (n,) each. numbers: of each code of each column.
        whole: the sum of each row, shape (n,).
    """

    codes: Sequence[Codes32]
    numbers: Sequence[_Keys]
    whole: _Keys

    @classmethod
    def of(cls, codes: Sequence[Codes32]) -> RowKeys:
        """Draw them; the same codes have the same."""
        draws = np.random.default_rng(0)
        numbers = [draws.integers(2**64, size=int(c.max(initial=0)) + 1, dtype=np.uint64) for c in codes]
        whole: _Keys = np.zeros(len(codes[0]), np.uint64)
        for number, code in zip(numbers, codes, strict=True):
            whole += number[code]
        return cls(codes, numbers, whole)

    def alike_but_in(self, *columns: int) -> Counts:
        """How many other rows agree with each in all other columns, shape (n,)."""
        from pandas import factorize  # here, so that looking around stays light

        left = self.whole.copy()
        for column in columns:
            left -= self.numbers[column][self.codes[column]]
        which, _ = factorize(left)
        return np.asarray(np.bincount(which)[which] - 1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NearRows:
    """Of each row, how many others differ from it in no column, in one alone, and in two; shape (n,) each.

    Attributes:
        equals: others that are equal to it.
        products: Σ n_a n_b over pairs of columns, where n_a others differ from it in column a alone.
        both: Σ n_ab over the same pairs, where n_ab others differ from it in a and in b and nowhere else.
    """

    equals: Counts
    products: Counts
    both: Counts

    @classmethod
    def of(cls, codes: Sequence[Codes32]) -> NearRows:
        """Count them, given the codes of each column, from 0 on, shape (n,) each."""
        return cls.told_by(RowKeys.of(codes))

    @classmethod
    def told_by(cls, keys: RowKeys) -> NearRows:
        """Count them, given the keys of rows."""
        columns, equals = range(len(keys.codes)), keys.alike_but_in()
        one = [keys.alike_but_in(a) - equals for a in columns]
        products, both = np.zeros_like(equals), np.zeros_like(equals)
        for a, b in sorted(combinations(columns, 2), key=lambda pair: pair[1] - pair[0])[:_PAIRS]:
            products += one[a] * one[b]
            both += keys.alike_but_in(a, b) - equals - one[a] - one[b]
        return cls(equals, products, both)

    @cached_property
    def expected(self) -> Floats:
        """λ: how many others are equal to each row by chance, from ``Σ n_a n_b / Σ n_ab``.

        Of those who differ in a as many agree in b as of those who agree in a. That holds where two columns
        are independent given all the others, and is too few where agreements come together. Equal rows are
        not counted, so that nobody who is in the table twice raises it; 0 where no pair has near rows.
        The ratio of few rows is uncertain: half of λ is that of rows that are as rare, but it is at most
        twice the row's own.
        """
        own = self.products / np.maximum(self.both, 1)
        order, beside = np.lexsort((self.products, self.both)), max(_FEWEST_BESIDE, len(own) // _BESIDE)
        products, both = (np.append(0, np.cumsum(each[order])) for each in (self.products, self.both))
        first = np.searchsorted(self.both[order], self.both) - beside
        last = np.searchsorted(self.both[order], self.both, side="right") + beside
        first, last = np.maximum(first, 0), np.minimum(last, len(own))
        as_rare = (products[last] - products[first]) / np.maximum(both[last] - both[first], 1)
        estimate: Floats = np.minimum((own + as_rare) / 2, 2 * own)
        return estimate

    def unexplained(self, most: Floats) -> float:
        """δ: equals of a row beyond those expected, at most, by the share of rare rows that bounds it best.

        Rows are rare that few others differ from in two columns: that hardly hangs on the chance by which
        n_a came out too small or too large. Numbers of equals vary by ``2 λ + 4 λ²``, as sizes of cells are
        Poisson by chance.

        Args:
            most: so many equals of each row are counted at most, shape (n,).
        """
        others, expected = np.minimum(self.equals, most), self.expected
        order = np.lexsort((others, expected, self.both))  # the same sums in whatever order rows come
        rows = np.unique(len(order) >> np.arange(_HALVINGS))
        rows = rows[rows > 0]
        found, usual, squares = (np.cumsum(each[order])[rows - 1] for each in (others, expected, expected**2))
        deviation = np.sqrt(2 * np.maximum(np.maximum(found, usual), 1) + 4 * squares)
        above = np.abs(found - usual) + deviation + _MISFIT * usual
        return float(np.min(above / rows))


def _codes(labels: pa.ChunkedArray) -> Codes32:
    """Labels as numbers from 0 on, equal ones alike; a missing one is a label."""
    found = labels.combine_chunks().dictionary_encode(null_encoding="encode").indices
    return np.asarray(found.to_numpy(), dtype=np.int32)


def set_aside(table: Table, control: float, key: bytes, *, apart: bool = False) -> Bools:
    """Which rows are set aside as control, shape (n,).

    Each entity goes to control when ``HMAC-SHA256(key, entity) / 2**64 < control`` (first 8 bytes): an
    independent coin with bias ``control`` that depends on nothing but the key and the entity. All rows of an
    entity stay together, rows appended later move none, and their order does not matter.

    Args:
        control: expected share of entities set aside, in (0, 1); the actual share varies with the coins.
        key: decides the coins; who lacks it cannot tell train from control.
        apart: of equal rows in a table without keys, all but the first of those that chance explains get
            coins of their own (:func:`chance_equals`). The table decides which, so that one row more may
            move others: not for what is proved of one person more or less.

    Raises:
        DataError: all of them, or none.
    """
    aside = np.concatenate([in_control(entities_of(part), control, key) for part in table.parts(BATCH)])
    again = chance_equals(table) if apart else np.zeros(table.n_rows, dtype=bool)
    if again.any():
        aside[again] = in_control(_repeated(table.take(again)), control, key)
    if aside.all() or not aside.any():
        raise DataError(
            f"the split leaves no {'train' if aside.all() else 'control'} rows",
            where=f"split of {table.n_rows} rows",
            expected="rows on both sides",
            fix="use a table with more entities, or another `split.control` share",
        )
    return aside


def in_control(entities: Sequence[bytes], control: float, key: bytes) -> Bools:
    """True where an entity is set aside, shape (n,)."""
    limit, keyed = int(control * _SCALE).to_bytes(8, "big"), KeyedHash(key)
    side = {entity: keyed(entity) < limit for entity in set(entities)}
    return np.fromiter(map(side.__getitem__, entities), dtype=bool, count=len(entities))


def key_columns(schema: Schema) -> tuple[Column, ...]:
    """What identifies an entity: the split keys, else the only identifier, else (empty) the whole row."""
    if keys := schema.with_role(Role.SPLIT_KEY):
        return keys
    identifiers = schema.with_role(Role.IDENTIFIER)
    return identifiers if len(identifiers) == 1 else ()


def has_key(entity: bytes) -> bool:
    """Whether an entity of :func:`entities_of` is told by a key, and not by what its row holds."""
    return entity.startswith(_BY_KEY)


def entities_of(table: Table) -> list[bytes]:
    """The entity of each row as bytes that no other entity has.

    Rows without a key stand for themselves, and so do rows of a keyless table: equal rows are one entity,
    unless :func:`set_aside` tells them apart. The order of columns does not matter, nor the
    type that a key is stored in: 7, 7.0 and "7" are one key, so that a table keeps its split when it moves
    between a file and a warehouse.
    """
    keys = key_columns(table.schema)
    if not keys:
        return _labelled(_BY_ROW, table, table.schema.features)
    missing = np.all([table.missing(c.name) for c in keys], axis=0)
    found = _labelled(_BY_KEY, table, keys)
    keyless = np.flatnonzero(missing)
    for place, row in zip(
        keyless, _labelled(_BY_ROW, table.take(keyless), table.schema.features), strict=True
    ):
        found[place] = row
    return found


def _repeated(table: Table) -> list[bytes]:
    """The entity of each row, of the second and later ones of its equals with their number."""
    before, found = Counter[bytes](), list[bytes]()
    for part in table.parts(BATCH):
        for entity in entities_of(part):
            found.append(_AGAIN + count(before[entity]) + entity if before[entity] else entity)
            before[entity] += 1
    return found


def persons(table: Table) -> Integers:
    """The number of the entity of each row, from 0 in order of first appearance, shape (n,).

    In a keyless table every row is an entity of its own, also where rows are equal.
    """
    if not key_columns(table.schema):
        return np.arange(table.n_rows)
    known: dict[bytes, int] = {}
    numbers = (
        known.setdefault(entity, len(known)) for part in table.parts(BATCH) for entity in entities_of(part)
    )
    return np.fromiter(numbers, np.int64, count=table.n_rows)


def _labelled(kind: bytes, table: Table, columns: Sequence[Column]) -> list[bytes]:
    """For each row its labels in frames, the columns by name; no row shares its bytes with another kind."""
    start = kind + count(len(columns))
    parts = [_framed(table.texts(name)) for name in sorted(c.name for c in columns)]
    if not parts:
        return [start] * table.n_rows
    found: list[bytes] = _joined(pa.scalar(start, pa.large_binary()), *parts).to_numpy().tolist()
    return found


def _framed(labels: pa.ChunkedArray) -> pa.ChunkedArray:
    """Each label as :func:`synth_audit.hashing.frame` has it."""
    content = labels.cast(pa.large_binary())
    lengths = pc.binary_length(content).fill_null(0).combine_chunks().dictionary_encode()
    heads = pa.array([_TEXT + count(n) for n in lengths.dictionary.to_pylist()], pa.large_binary())
    return _joined(heads.take(lengths.indices), content).fill_null(frame(None))


def _joined(*parts: pa.Scalar | pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes one after the other, null where one of them is."""
    found = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


@dataclass(frozen=True)
class PeopleSketch:
    """The sketch of Alon, Matias & Szegedy (1996) of a set of people.

    A keyed hash gives each person 256 signs s ∈ {−1, 1}; ``sums`` are their sums. Of two sets the mean of
    (sums − sums')² is the number of people who are in one of them alone: exactly 0 and 1 where it is 0 or 1,
    else with a standard deviation of √(2/256) = 9 %.

    Attributes:
        people: how many there are; equal rows of a table without keys are people of their own, and the k-th
            of them has signs of its own: those of all would leave with the square of their number.
        sums: of their signs, 256.
    """

    people: int
    sums: tuple[int, ...]

    @classmethod
    def of(cls, tables: Iterable[Table], key: bytes) -> PeopleSketch:
        """The sketch of the people of several tables.

        Args:
            key: who lacks it cannot tell whose signs they are; sketches of different keys do not compare.
        """
        keyed, held, named = KeyedHash(key), bytearray(), False
        for table in tables:
            named = named or bool(key_columns(table.schema))
            for part in table.parts(BATCH):
                held += b"".join(map(keyed, entities_of(part)))
        digests = np.frombuffer(held, np.uint8).reshape(-1, _BYTES)
        earlier = _earlier_equals(digests)
        if not named:
            for i in np.flatnonzero(earlier):
                other = keyed(digests[i].tobytes() + count(int(earlier[i])))
                digests[i] = np.frombuffer(other, np.uint8)
        counted = (earlier == 0) | (not named)  # where people have keys, one may have several rows
        ones = np.zeros(SIGNS, np.int64)
        for start in range(0, len(digests), BATCH):
            part = digests[start : start + BATCH][counted[start : start + BATCH]]
            ones += np.unpackbits(part, axis=1).sum(axis=0, dtype=np.int64)
        people = int(counted.sum())
        return cls(people, tuple((2 * ones - people).tolist()))

    def differing(self, sums: npt.ArrayLike) -> Floats:
        """About how many people are in one of the two alone, for the sums of each other sketch.

        Args:
            sums: shape (256,) or (n, 256); the result has shape () or (n,).
        """
        found: Floats = np.mean((np.array(self.sums) - sums) ** 2, axis=-1)
        return found


def _earlier_equals(digests: Bytes) -> Integers:
    """How many digests before each one are equal to it, shape (n,)."""
    heads = np.ascontiguousarray(digests[:, :8]).view(np.uint64).ravel()
    order = np.argsort(heads, kind="stable")
    heads, places, first = heads[order], np.arange(len(heads)), np.ones(len(heads), dtype=bool)
    first[1:] = heads[1:] != heads[:-1]
    earlier = np.empty(len(heads), np.int64)
    earlier[order] = places - np.maximum.accumulate(places * first)
    return earlier
