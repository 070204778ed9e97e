"""Ways in which columns of people and of a release are laid beside each other to look for common lags."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from synth_audit.core.arrays import Floats, Integers
from synth_audit.core.parts import TIME, LabelPart, NumberPart, VectorPart
from synth_audit.core.resolution import decimal_grids, resolution_of, time_grids
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.core.text_form import column_forms
from synth_audit.encoding.codes import cells_of
from synth_audit.encoding.plain_numbers import PlainNumbers, numbers_in_text, plain_numbers
from synth_audit.kernels.lag_spikes import (
    MISSING,
    LagColumn,
    LagSpike,
    lag_spikes,
    moved_on,
    near_spikes,
)
from synth_audit.kernels.lagged_links import Shift, moved_by

_PARTS, _FEW_PARTS = 64, 24
"""Coarse steps of the central range of a column, and coarser ones for numbers that noise moved."""

_CELLS, _LARGEST, _SMALLEST = 2**22, 1024, 64
"""Lags looked at in all pairs of a view, and steps after which a column begins anew."""

_DIGITS, _SECONDS = 100, 120
"""Steps that low digits, and seconds of a time of day, begin anew after; of coarser times half as many."""

_WORD = re.compile(r"\w+")

_OFFSET = 0.381966
"""Part of a step by which all values are moved, so that no number lies where two steps meet."""

_FEWEST = 20
"""Numbers of people that a view of them needs."""

_EACH = 6
"""Lags of a pair of columns that are looked at."""

_MOST_SERIES, _BEST = 32, 4
"""Columns of one sort that may have moved on together, and by how many columns is tried."""


@dataclass(frozen=True, eq=False)
class LagView:
    """Columns in one way of reading them.

    Attributes:
        name: of what all lags of it are. columns: numbers first, then labels.
        shift: one to be tried in any case. searched: whether others are looked for.
        near: whether values near one another are looked for, without lags.
    """

    name: str
    columns: Sequence[LagColumn]
    shift: Shift | None = None
    searched: bool = True
    near: bool = False

    def spikes(self) -> Iterator[LagSpike]:
        """Lags of pairs of columns that stand out."""
        if not self.searched:
            return iter(())
        if self.near:
            return near_spikes(self.columns)
        return lag_spikes(self.columns, _EACH)


@dataclass(frozen=True, eq=False)
class NumbersBeside:
    """Numbers of one column of a table, those of the release first."""

    numbers: PlainNumbers
    known: Floats = field(repr=False)
    step: float
    place: int
    n_release: int

    @property
    def time(self) -> bool:
        return self.numbers.unit == TIME

    @cached_property
    def span(self) -> float:
        """Width of the central 90 % of people's numbers but the commonest, of all of them where that is 0."""
        values, counts = np.unique(self.people, return_counts=True)
        some = np.repeat(values, np.minimum(counts, max(1, len(self.people) // 20)))
        low, high = np.quantile(some, (0.05, 0.95))
        return float(high - low) or float(np.ptp(some))

    @cached_property
    def people(self) -> Floats:
        found = self.known[self.n_release :]
        return found[np.isfinite(found)]

    def column(self, values: Floats, step: float, size: int, **options: bool | int) -> LagColumn:
        """Steps of values, the release's first."""
        known = np.isfinite(values)
        steps = np.full(len(values), MISSING)
        places = np.floor(np.where(known, values, 0.0) / step + _OFFSET)
        known &= np.abs(places) < 2**52
        steps[known] = places[known].astype(np.int64)
        if not options.get("whole", True):
            steps[known] %= size
        return LagColumn(
            steps[self.n_release :],
            steps[: self.n_release],
            size,
            sources=(self.place, self.place),
            **options,  # type: ignore[arg-type]
        )


def lag_views(numbers: Sequence[NumbersBeside], labels: Sequence[LagColumn]) -> Iterator[LagView]:
    """All ways, one after the other; in each numbers come first."""
    largest = _largest(len(numbers))
    plain = [*_exact(numbers, largest), *labels]
    yield LagView("as they are", plain, moved_by(plain))
    yield LagView("in low digits", [*_low_digits(numbers), *labels])
    yield LagView("in steps of their spread", [*_coarse(numbers), *labels])
    wide = [replace(c, size=2 * _PARTS) for c in labels]
    yield LagView("near them", [*_near(numbers, _PARTS), *wide], near=True)
    yield LagView("not far from them", [*_near(numbers, _FEW_PARTS), *wide], near=True)
    yield LagView("in factors", [*_factors(numbers), *labels])
    yield from _moved_on(numbers, labels)


def numbers_beside(
    tables: Sequence[Table], columns: Sequence[Column], reference: Sequence[Table]
) -> list[NumbersBeside]:
    """Numbers of the release, train and control, also within texts.

    Args:
        tables: these three. reference: train first, and control, which say how columns are read.
    """
    by_name = {c.name: c for c in columns}
    n_release = tables[0].n_rows
    found = []
    read = (*plain_numbers(tables, columns, reference), *numbers_in_text(tables, columns, reference))
    for place, numbers in enumerate(read):
        known = numbers.read()
        real = known[n_release:]
        if np.isfinite(real).sum() >= _FEWEST:
            found.append(
                NumbersBeside(numbers, known, _step(numbers, by_name[numbers.name], real), place, n_release)
            )
    return found


def _step(numbers: PlainNumbers, column: Column, real: Floats) -> float:
    """How finely the numbers are given."""
    time = numbers.unit == TIME
    given = column.resolution or resolution_of(
        real, time_grids() if time else decimal_grids(), decimal=not time
    )
    if given is None:
        return numbers.spread / 5000
    return 86_400e6 if given.grid.calendar else given.grid.step


def labels_beside(
    tables: Sequence[Table],
    columns: Sequence[Column],
    reference: Sequence[Table],
    numbers: Sequence[NumbersBeside] = (),
) -> list[LagColumn]:
    """Labels of the same tables; texts are equal that have the same words in whatever order.

    Args:
        numbers: what :func:`numbers_beside` found; other columns of numbers have so few that they are labels.
    """
    found, read = [], {x.numbers.name for x in numbers}
    for place, column in enumerate(columns):
        parts = column.kind.parts([cells_of(t, column) for t in reference])
        many = any(isinstance(part, VectorPart) for part in parts)
        if column.name not in read and all(isinstance(part, NumberPart) for part in parts):
            parts = (LabelPart(column.kind.codes),)
        for part in parts:
            if isinstance(part, LabelPart):
                codes = _bags(tables, column) if many else part.read([cells_of(t, column) for t in tables])
                release, people = codes[0], np.concatenate(codes[1:])
                source = -1 - place
                found.append(
                    LagColumn(_known(people), _known(release), 2, fixed=True, sources=(source, source))
                )
    return found


def _bags(tables: Sequence[Table], column: Column) -> list[Integers]:
    """Codes of texts, equal where they have the same words in whatever order."""
    numbered: dict[tuple[str, ...], int] = {}

    def code(text: str | None) -> int:
        return -1 if text is None else numbered.setdefault(tuple(sorted(_WORD.findall(text))), len(numbered))

    texts = [column_forms(column.kind.labels(cells_of(t, column))).to_pylist() for t in tables]
    return [np.array([code(text) for text in of], np.int64) for of in texts]


def _known(codes: Integers) -> Integers:
    return np.where(codes < 0, MISSING, codes).astype(np.int64)


def _largest(n: int) -> int:
    """Steps of a column such that all pairs of n of them have a bounded number of lags."""
    pairs = max(1, n * (n - 1) // 2)
    most = int(2 ** int(math.log2(math.sqrt(_CELLS / pairs))))
    return min(_LARGEST, max(_SMALLEST, most))


def _exact(numbers: Sequence[NumbersBeside], largest: int) -> Iterator[LagColumn]:
    for x in numbers:
        wide = 1.3 * np.ptp(x.people) / x.step + 2
        size = min(largest, 2 ** int(np.ceil(np.log2(wide)))) if wide < largest else largest
        yield x.column(x.known, x.step, size)


def _low_digits(numbers: Sequence[NumbersBeside]) -> Iterator[LagColumn]:
    for x in numbers:
        size = (_SECONDS if x.step < 60e6 else _SECONDS // 2) if x.time else _DIGITS
        if np.ptp(x.people) / x.step > 2 * size:
            yield x.column(x.known, x.step, size, whole=False)


def _coarse(numbers: Sequence[NumbersBeside]) -> Iterator[LagColumn]:
    for x in numbers:
        if x.span / _PARTS > 1.2 * x.step:
            yield x.column(x.known, x.span / _PARTS, 2 * _PARTS, near=1)


def _near(numbers: Sequence[NumbersBeside], parts: int) -> Iterator[LagColumn]:
    """Numbers that are near if they are within a step of their spread, or of their own if that is coarser."""
    for x in numbers:
        yield x.column(x.known, max(x.step, x.span / parts), 2 * _PARTS, near=1, fixed=True)


def _factors(numbers: Sequence[NumbersBeside]) -> Iterator[LagColumn]:
    for x in numbers:
        if np.mean(x.people > 0) >= 0.5 and not x.time and len(np.unique(x.people)) > 2 * _FEWEST:
            logs = np.log(x.known, out=np.full(len(x.known), np.nan), where=x.known > 0)
            low, high = np.quantile(logs[x.n_release :][np.isfinite(logs[x.n_release :])], (0.05, 0.95))
            if high > low:
                yield x.column(logs, float(high - low) / _PARTS, 2 * _PARTS, near=1)


def _moved_on(numbers: Sequence[NumbersBeside], labels: Sequence[LagColumn]) -> Iterator[LagView]:
    """Columns of one sort, each in the place of the one that stands so many places before it."""
    sorts: dict[tuple[object, ...], list[NumbersBeside]] = {}
    for x in numbers:
        sorts.setdefault((x.numbers.unit, x.step), []).append(x)
    for alike in sorts.values():
        if 3 <= len(alike) <= _MOST_SERIES:
            n, own = len(alike), [replace(c, size=2 * _PARTS) for c in _exact(alike, 2 * _PARTS)]
            for score, k, lag in sorted(moved_on(own), reverse=True)[:_BEST]:
                moved = [
                    replace(c, release=own[(i + k) % n].release, sources=(i, (i + k) % n))
                    for i, c in enumerate(own)
                ]
                shift = moved_by([*moved, *labels], lag, score)
                yield LagView("in columns further on", [*moved, *labels], shift, searched=False)
