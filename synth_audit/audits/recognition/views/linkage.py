"""Linkage: match weights that are learned from the release, so that renamed labels are followed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.audits._shared import random_places
from synth_audit.audits.recognition.coded_cells import MOST_BITS, Cells, CodedCells
from synth_audit.audits.recognition.matching import FIRST, LAST, matched, named_once, with_replaced
from synth_audit.audits.recognition.pair_weights import weighed
from synth_audit.audits.recognition.people import SAMPLE, PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo

_PRIOR = 0.1
"""Prior probability that a number was copied; its match weight is optimal at this rate."""

_KEPT = 0.5
"""Prior probability that the label of a copied person was kept."""

_PULL = 4.0
"""Pseudo-counts that pull learned weights to no evidence: four clear pairs must show a label's new name."""

_UNITS = 2.0**20
"""Parts of 1 in which weights are whole numbers, so that the sum of a record's columns fits into 32 bits."""

_NEVER = -(2**30)
"""Less than any sum, by so much that the weight of one column can be taken off."""

Units = npt.NDArray[np.int32]
"""Weights as whole numbers."""

_SHARPNESS = 8
"""Records teach by the eighth power of their rank in clearness: the clearest eighth decides."""


@dataclass(frozen=True, kw_only=True)
class Linkage:
    """Match weights ``W_c = log P(cells | same person) / P(cells | other people)``, summed over columns.

    They start from what labels and ranks usually say, once with labels as they are, once without a word on
    labels. Then they are learned: the row that is best by all other columns is taken for the person's own
    where it is clearly best, and the next eight for other people's. So a label that was renamed for everybody
    is followed by its new name. Scores: margin and mutual margin after each round.

    Source: Fellegi & Sunter 1969; learning without known pairs as in Winkler 1988.
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Record linkage with learned match weights",
        finds="a row that fits once it is learned what its labels stand for",
        cost="minutes",
        source="Fellegi & Sunter 1969; Winkler 1988",
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score with labels as they are, and with labels learned."""
        columns = [c for c in map(CodedCells.of, pool.columns) if len(c.shares) > 1]
        if len(columns) < 2:
            return
        teachers = np.arange(min(SAMPLE, pool.records))  # records stand in random order
        place = random_places(pool.rows, rng)  # of equal rows those teach that come first
        bits = [c.agreement() for c in columns]

        def learned(tables: Sequence[Floats], name: str) -> list[Floats]:
            memory, name, among = pool.memory, f"linkage, {name}", None
            if memory and (known := memory.known(name)) is not None:
                among = with_replaced(known, memory.replaced, pool.rows)
            weights, rows = _learned(columns, bits, tables, teachers, place, among)
            if memory and memory.keeps:
                memory.found[name] = named_once(rows)
            return weights

        known, unknown = (
            [_prior(c, b, labels) for c, b in zip(columns, bits, strict=True)] for labels in (True, False)
        )
        once = learned(unknown, "labels learned, round 1")
        stages = {  # a third round changed nothing on simulated renamings
            "labels as they are": known,
            "labels as they are, round 1": learned(known, "labels as they are, round 1"),
            "labels learned, round 1": once,
            "labels learned, round 2": learned(once, "labels learned, round 2"),
        }
        rows = matched(
            columns,
            [_stacked(of) for of in zip(*stages.values(), strict=True)],
            repeats=pool.repeats,
            memory=pool.memory,
            name="linkage",
        )
        for w, name in enumerate(stages):
            yield Score(f"{name}: margin", rows.margin[w])
            yield Score(f"{name}: mutual margin", rows.mutual[w])


def _stacked(tables: Sequence[Floats]) -> Floats:
    """One column's weights in every stage, moved so that none is negative; margins stay."""
    return np.stack([t - t.min() for t in tables])


def _prior(column: CodedCells, bits: Floats32, labels_known: bool) -> Floats:
    k = len(column.shares)
    if column.numeric:
        weights: Floats = np.floor(bits.astype(np.float64)) * np.log(2) + np.log(_PRIOR)
    elif labels_known:
        same = np.log(1 - _KEPT + _KEPT / np.clip(column.shares, 2.0**-MOST_BITS, 1))
        weights = np.full((k + 1, k + 1), np.log(1 - _KEPT))
        np.fill_diagonal(weights[:k, :k], same)
    else:
        weights = np.zeros((k + 1, k + 1))
    weights[-1] = weights[:, -1] = 0
    return weights


def _learned(
    columns: Sequence[CodedCells],
    bits: Sequence[Floats32],
    tables: Sequence[Floats],
    teachers: Positions,
    place: Positions,
    among: Positions | None,
) -> tuple[list[Floats], Positions]:
    """Weights from pairs that all other columns make clear, and the rows of these pairs.

    Args:
        place: of each row in the order in which equal ones are chosen, shape (rows,).
        among: rows that are compared with each teacher, -1 for none, shape (teachers, some); None for all.

    Returns:
        The rows in shape (columns, teachers, kept).
    """
    units = [np.round(t * _UNITS).astype(np.int32) for t in tables]  # their sums are exact in any order
    m = len(columns[0].release)
    kept = min(1 + LAST, m)
    top = np.empty((len(columns), len(teachers), kept), np.intp)
    weight = np.empty(top.shape)
    mine = [replace(column, people=column.people[teachers]) for column in columns]
    pairs = _best_pairs(mine, units, kept) if among is None else _named_pairs(mine, units, among)
    for i, (rows, total) in enumerate(pairs):
        order = np.argsort(place[rows])  # -1 names no row, and weighs less than any
        rows, total = rows[order], total[order]
        first = np.argpartition(total, -kept)[-kept:] if among is None else None
        for c, (column, table) in enumerate(zip(mine, units, strict=True)):
            own, left, weights = table[column.people[i]], rows, total
            if first is not None:
                # So many rows have this without the column, which no row below it gets that loses its least.
                reached = (total[first] - own[column.release[rows[first]]]).min()
                able = np.flatnonzero(total >= reached + own.min())
                left, weights = rows[able], total[able]
            others = weights - own[column.release[left]]
            some = np.flatnonzero(others >= np.partition(others, -kept)[-kept])
            order = some[np.argsort(-others[some], kind="stable")[:kept]]
            top[c, i], weight[c, i] = left[order], others[order] / _UNITS
    learned = []
    for column, of_bits, theirs, of_rows in zip(columns, bits, top, weight, strict=True):
        clear = of_rows[:, 0] - of_rows[:, min(FIRST, kept - 1) :].mean(axis=1)
        teach = (np.argsort(np.argsort(clear, kind="stable")) / len(clear)) ** _SHARPNESS
        learned.append(_weights(column, of_bits, column.people[teachers], column.release[theirs], teach))
    return learned, top


def _best_pairs(
    columns: Sequence[CodedCells], tables: Sequence[Units], kept: int
) -> Iterator[tuple[Positions, Units]]:
    """Rows that may be among the best so many once any column is left out, and their weights."""
    spread = np.max([np.ptp(t, axis=1)[c.people] for c, t in zip(columns, tables, strict=True)], axis=0)
    for records, blocks in weighed(columns, tables):
        best = np.full((kept, len(spread[records])), _NEVER, np.int32)
        able = []
        for rows, total in blocks:
            some = np.flatnonzero(total.max(axis=0) > best[0])
            if len(some):
                best[:, some] = np.sort(np.concatenate([best[:, some], total[:, some]]), axis=0)[-kept:]
            # Without a column a row loses its largest weight at most, and gains its smallest at most.
            least = best[0] - spread[records]
            near = np.flatnonzero(total >= least)  # several times as fast as in two dimensions
            row, record = np.divmod(near, len(least))
            able.append((record, row + rows.start, total.ravel()[near]))
        record, row, weight = map(np.concatenate, zip(*able, strict=True))
        for i, of_record in enumerate(least):
            some = (record == i) & (weight >= of_record)
            yield row[some], weight[some]


def _named_pairs(
    columns: Sequence[CodedCells], tables: Sequence[Units], named: Positions
) -> Iterator[tuple[Positions, Units]]:
    """The rows named for each record, -1 for none, and their weights."""
    for i, rows in enumerate(named):
        total = np.zeros(len(rows), np.int32)
        for column, table in zip(columns, tables, strict=True):
            total += table[column.people[i]][column.release[rows]]
        yield rows, np.where(rows < 0, np.int32(_NEVER), total)


def _weights(column: CodedCells, bits: Floats32, mine: Cells, theirs: Cells, teach: Floats) -> Floats:
    """Weights of one column from the cells of best rows, first, and of the next ones.

    Numbers share one weight for each whole bit of agreement, labels have one for each two of them.
    """
    k = len(column.shares) + 1
    if column.numeric:
        groups = np.minimum(bits, MOST_BITS - 0.01).astype(np.intp)
        key, size = groups[mine[:, None], theirs], int(MOST_BITS)
        usual = 2.0 ** -(np.arange(size) + 1)
    else:
        groups = np.arange(k * k).reshape(k, k)
        key, size = mine[:, None] * k + theirs, k * k
        usual = np.tile(np.clip(np.append(column.shares, 1.0), 2.0**-MOST_BITS, 1), k)
    first = np.bincount(key[:, 0], teach, size)
    others = np.bincount(key[:, 1:].ravel(), np.repeat(teach, key.shape[1] - 1), size) / (key.shape[1] - 1)
    gained = np.maximum(0, first - others - np.sqrt(others + 0.5))
    if column.numeric:
        share = (gained + _PULL * usual) / (gained.sum() + _PULL)
    else:
        by_person = gained.reshape(k, k)
        share = (
            (by_person + _PULL * usual.reshape(k, k)) / (by_person.sum(axis=1, keepdims=True) + _PULL)
        ).ravel()
    most = MOST_BITS * np.log(2)  # no column alone decides for or against a pair
    weights: Floats = np.clip(np.log(share / usual), -most, most)[groups]
    weights[-1] = weights[:, -1] = 0
    return weights
