"""Who stands behind a table, in 256 numbers that tell how many people differ, and not who they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Integers
from synth_audit.core.entities import entities_of, key_columns
from synth_audit.core.fingerprint import Bytes
from synth_audit.core.framing import count
from synth_audit.core.keyed_hash import KeyedHash
from synth_audit.core.table import BATCH, Table

_BYTES = 32
SIGNS = 8 * _BYTES


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
        keyed, parts, named = KeyedHash(key), list[bytes](), False
        for table in tables:
            named = named or bool(key_columns(table.schema))
            parts += (b"".join(map(keyed, entities_of(part))) for part in table.parts(BATCH))
        digests = np.frombuffer(b"".join(parts), np.uint8).reshape(-1, _BYTES)
        earlier = _earlier_equals(digests)
        if named:  # one person may have several rows
            digests = digests[earlier == 0]
        else:
            again = np.flatnonzero(earlier)
            others = b"".join(keyed(digests[i].tobytes() + count(int(earlier[i]))) for i in again)
            digests = digests.copy()
            digests[again] = np.frombuffer(others, np.uint8).reshape(-1, _BYTES)
        sums = sum(
            (_signs(digests[start : start + BATCH]) for start in range(0, len(digests), BATCH)),
            start=np.zeros(SIGNS, np.int64),
        )
        return cls(len(digests), tuple(sums.tolist()))

    def differing(self, other: PeopleSketch) -> float:
        """About how many people are in one of the two alone."""
        return float(np.mean((np.array(self.sums) - np.array(other.sums)) ** 2))

    def shared(self, other: PeopleSketch) -> float:
        """About how many people are in both."""
        return (self.people + other.people - self.differing(other)) / 2


def _earlier_equals(digests: Bytes) -> Integers:
    """How many digests before each one are equal to it, shape (n,)."""
    heads = np.ascontiguousarray(digests[:, :8]).view(np.uint64).ravel()
    order = np.argsort(heads, kind="stable")
    _, starts, sizes = np.unique(heads[order], return_index=True, return_counts=True)
    earlier = np.empty(len(heads), np.int64)
    earlier[order] = np.arange(len(heads)) - np.repeat(starts, sizes)
    return earlier


def _signs(digests: Bytes) -> Integers:
    """Sums of the signs, shape (256,)."""
    ones: Integers = np.unpackbits(digests, axis=1).sum(axis=0, dtype=np.int64)
    return 2 * ones - len(digests)
