"""Whom claims are made of, on which side chance put them, and scores that use no side."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.hashing import KeyedHash
from synth_audit.neighbours.coordinates import smallest_type
from synth_audit.neighbours.gower import Mixed
from synth_audit.neighbours.search import Nearest, nearest, nearest_other, row_kinds
from synth_audit.plugins.audit import Subject
from synth_audit.table.kind import Clues
from synth_audit.table.people import entities_of, has_key
from synth_audit.table.rules import ordering
from synth_audit.table.schema import Column, Schema
from synth_audit.table.schema_inference import kind_of
from synth_audit.table.table import BATCH, Table, joined

_PLACE = np.dtype(">u8")
"""What is drawn for an entity: its place among all."""

_FEWEST, _MOST = 2, 5
"""Columns that somebody knows who knows few."""

_CELLS = 20
"""Cells of a number's robust range in which two numbers agree that are near."""


_TOUCHING = 1e-9
"""Added to every distance, as little as distances are rounded to, so that a copy has a finite logarithm."""


@dataclass(frozen=True, eq=False)
class ClaimablePeople:
    """Entities of train and control together, in random order, with their rows in one pooled table.

    The pooled table does not tell sides: its order is random, and what kind a column is of is read off all of
    its rows.

    Attributes:
        pooled: rows of these people, and of others.
        rows: positions in it of their rows, those of one person together.
        first: where in ``rows`` those of each person begin, ascending, shape (n,).
        members: who is in train, shape (n,). No score may look at it but on the known half.
        known: the half that rules are chosen on: every second one, shape (n,).
    """

    pooled: Table
    rows: Positions
    first: Positions
    members: Bools
    known: Bools

    def __len__(self) -> int:
        return len(self.first)


def gather(subject: Subject, most: int, beside: int, key: bytes, *, single: bool) -> ClaimablePeople:
    """Draw people of whom claims may be made.

    Rows without a key are told by what they hold, and equal ones may share a coin, so only those without an
    equal are taken; who has a key is one person with all of its rows. The draw depends on the entities and
    ``key`` alone, not on the order of their rows.

    Args:
        most: at most so many rows of theirs. beside: at most so many further rows in the pooled table.
        key: of the draws; must have nothing to do with that of the split.
        single: take only people of one row: a guarantee that is made to rows promises others nothing.

    Raises:
        NotApplicable: one entity is on both sides, so it was not entities that were divided.
    """
    drawn, keyed = (
        np.concatenate(part) for part in zip(*(_draws(t, key) for t in subject.real), strict=True)
    )
    member = np.arange(len(drawn)) < subject.train.n_rows
    _, start, number = np.unique(drawn, return_index=True, return_inverse=True)
    size, inside = np.bincount(number), np.bincount(number, member)
    with_key = keyed[start]
    if np.any((inside > 0) & (inside < size) & with_key):
        raise NotApplicable(
            "rows of one entity are in train and in control: it was not entities that were divided"
        )
    allowed = (size == 1) | (with_key & (not single))
    chosen = allowed & (np.cumsum(size * allowed) <= most)
    order = np.argsort(number, kind="stable")
    wanted = chosen[number[order]]
    wanted[np.flatnonzero(~wanted)[:beside]] = True
    kept = order[wanted]
    rows = np.flatnonzero(chosen[number[kept]])
    who, inside_train = np.flatnonzero(chosen), kept < subject.train.n_rows
    train, control = subject.real
    parts = [train.take(kept[inside_train]), control.take(kept[~inside_train] - train.n_rows)]
    return ClaimablePeople(
        pooled=joined(parts).take(np.argsort(np.argsort(~inside_train, kind="stable"))),
        rows=rows,
        first=np.searchsorted(number[kept[rows]], who),
        members=inside[who] > 0,
        known=np.arange(len(who)) % 2 == 0,
    )


def _draws(table: Table, key: bytes) -> tuple[npt.NDArray[np.uint64], Bools]:
    """The place drawn for the entity of each row, and whether it has a key; shape (n,) each."""
    keyed_hash, found, keyed = KeyedHash(key), bytearray(), []
    for part in table.parts(BATCH):
        entities = entities_of(part)
        found += b"".join(keyed_hash(entity)[: _PLACE.itemsize] for entity in entities)
        keyed.append(np.fromiter(map(has_key, entities), dtype=bool, count=len(entities)))
    return np.frombuffer(bytes(found), dtype=_PLACE), np.concatenate(keyed)


def pooled_schema(subject: Subject, pooled: Table) -> Schema:
    """The columns that are compared, of the kinds that train and control together show.

    A schema is inferred from train, and so might tell which rows those are. Domains stay as they are:
    distances do not look at them.
    """
    ranked, columns = ordering(subject.schema.rules), list[Column]()
    for column in subject.features:
        clues = Clues(
            categories=column.declared_categories is not None,
            bounds=column.declared_bounds is not None,
            ranked=column.name in ranked,
        )
        found = None if column.kind_declared else kind_of(pooled.column(column.name), clues)
        columns.append(column if found is None else replace(column, kind=found))
    return Schema(tuple(columns))


@dataclass(frozen=True, eq=False)
class PeopleScores:
    """Scores by name, higher for likelier members.

    Attributes:
        values: shape (s, n).
        isolation: distance of each person to the nearest other row of the pooled table, shape (n,).
    """

    names: tuple[str, ...]
    values: Floats
    isolation: Floats


def score(subject: Subject, people: ClaimablePeople, subsets: int, rng: np.random.Generator) -> PeopleScores:
    """All scores of all people; of several rows of a person the highest counts.

    * ``nearest row``: minus Gower's distance on robust ranges to the nearest release row;
    * ``density ratio``: density of the release over that of the pooled table without the row itself, after
      DOMIAS, by the distances to the nearest row of each;
    * ``few columns``: how much more often the release than the pooled table without the row holds what it
      holds in a random subset of two to five columns, numbers compared exactly or by cells of a twentieth of
      their robust range: each subset for itself, and their mean.

    Args:
        subsets: random subsets of columns.
    """
    schema = pooled_schema(subject, people.pooled)
    pooled, release = (t.under(schema) for t in (people.pooled, subject.synthetic))
    encoded = Encoded([pooled, release], schema.features)
    real, made = encoded.mixed()
    order = np.array(encoded.order)
    near = nearest(real.take(people.rows), made)
    other = nearest_other(real, people.rows)
    width = max(len(set(encoded.order)), 1)
    found = {"nearest row": -near.first, "density ratio": log_density_ratio(near, other, width)}
    for how, cells in (("exact", None), ("near", _CELLS)):
        codes = [_codes(real, made, j, cells) for j in range(len(order))]
        ratios = []
        for subset in _subsets(sorted(set(encoded.order)), subsets, rng):
            groups = row_kinds(np.column_stack([codes[j] for j in np.flatnonzero(np.isin(order, subset))]))
            of_real, of_made = groups[: len(real)], groups[len(real) :]
            ratios.append(log_frequency_ratio(of_made, of_real)[people.rows])
            found[f"few columns, {how}, {len(ratios)}"] = ratios[-1]
        if ratios:
            found[f"few columns, {how}"] = np.mean(ratios, axis=0)
    return PeopleScores(
        tuple(found),
        np.maximum.reduceat(np.stack(list(found.values())), people.first, axis=1),
        np.maximum.reduceat(other.first, people.first),
    )


def _subsets(names: list[str], wanted: int, rng: np.random.Generator) -> Iterator[list[str]]:
    """Different random subsets of columns; none where all columns are few already."""
    if len(names) <= _FEWEST:
        return
    most = min(_MOST, len(names) - 1)
    sizes = rng.integers(_FEWEST, most + 1, wanted)
    drawn = [tuple(sorted(rng.choice(names, size, replace=False).tolist())) for size in sizes]
    yield from map(list, dict.fromkeys(drawn))


def _codes(real: Mixed, made: Mixed, part: int, cells: int | None) -> npt.NDArray[Any]:
    """One part of both tables as numbers that equal (or near) values share, real rows first."""
    p = real.numbers.shape[1]
    if part >= p:
        return np.concatenate([x.labels[:, part - p] for x in (real, made)])
    values = np.concatenate([x.numbers[:, part] for x in (real, made)])
    codes = np.unique(values if cells is None else np.floor(values * cells), return_inverse=True)[1]
    return codes.astype(smallest_type(codes))  # those of all columns are held at once


def log_density_ratio(to_synthetic: Nearest, to_reference: Nearest, n_columns: int) -> Floats:
    """How much denser the release is around each record than the population, in log units up to a constant.

    The nearest-neighbour estimate of a density is ``k / (n r^d)`` with r the distance to the nearest of n
    rows, k the rows at that distance and d the number of columns, so
    ``log ratio = log k_s − log k_r + d · (log r_r − log r_s)``. Counting k keeps it an estimate where records
    repeat and r is 0 in both tables. The constant log n_r − log n_s is left out: it moves no rank.
    On Adult with a blurred copy of train this tells members better than more neighbours do, and much better
    than kernels on principal components, which smooth the copies away.
    Source: van Breugel et al. 2023 (DOMIAS), with Loftsgaarden & Quesenberry 1965 as density.

    Args:
        to_synthetic, to_reference: neighbours of the same n records. n_columns: d ≥ 1.

    Returns:
        Shape (n,), higher for likelier members; rounded to nine decimals.
    """
    counts = np.log(to_synthetic.ties) - np.log(to_reference.ties)
    distances = np.log(to_reference.first + _TOUCHING) - np.log(to_synthetic.first + _TOUCHING)
    ratio: Floats = np.round(counts + n_columns * distances, 9)
    return ratio


def log_frequency_ratio(of_synthetic: Codes, of_reference: Codes) -> Floats:
    """How much more often the release holds what a record holds than the population without it does.

    ``log((n_s + ½) / N_s) − log((n_r − 1 + ½) / (N_r − 1))`` with n the rows that agree with the record:
    the density ratio on columns of which one only asks whether they agree. The halves keep it finite where
    nobody does (Haldane 1956).

    Args:
        of_synthetic, of_reference: numbers ≥ 0 that rows share exactly when they agree, shape (N_s,) and
            (N_r,); the records are the rows of the reference, at least two.

    Returns:
        Shape (N_r,), higher for likelier members; rounded to nine decimals.
    """
    size = 1 + max(int(of_synthetic.max(initial=0)), int(of_reference.max(initial=0)))
    made, real = (np.bincount(x, minlength=size)[of_reference] for x in (of_synthetic, of_reference))
    scale = np.log((len(of_reference) - 1) / len(of_synthetic))
    ratio: Floats = np.round(np.log(made + 0.5) - np.log(real - 0.5) + scale, 9)
    return ratio
