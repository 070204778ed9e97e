"""Scores of a release: how much it looks as if the canary had been behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Integers
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.kernels import release_scores as scores
from synth_audit.mechanism_test.neighbours import Neighbours, Value, range_of

FAILED = "no release: the run failed"


@dataclass(frozen=True, eq=False)
class Watch:
    """Looks at releases that one of two neighbours is behind."""

    neighbours: Neighbours

    @property
    def names(self) -> tuple[str, ...]:
        """What is looked at; the last tells of runs without a release."""
        found: list[str] = []
        for column in self._columns:
            found += (scores.label_names if _labelled(column) else scores.number_names)(column.name)
        return (*found, *scores.row_names([c.name for c in self._columns]), FAILED)

    def of(self, release: Table | None) -> Floats:
        """Scores of one release, finite, shape (len(names),); of None, those of a failure."""
        if release is None:
            return np.append(np.zeros(len(self.names) - 1), 1.0)
        parts: list[Floats] = []
        agreeing: list[Bools] = []
        for column in self._columns:
            told, agrees = self._column(column, release)
            parts.append(told)
            agreeing.append(agrees)
        found = np.concatenate([*parts, scores.row_scores(agreeing, release.n_rows), [0.0]])
        finite: Floats = np.nan_to_num(found, posinf=1e300, neginf=-1e300)
        return finite

    @property
    def _columns(self) -> tuple[Column, ...]:
        return self.neighbours.without.schema.features

    def _column(self, column: Column, release: Table) -> tuple[Floats, Bools]:
        canary: Value = self.neighbours.canary[column.name]
        if _labelled(column):
            return scores.label_scores(release.labels(column.name), None if canary is None else str(canary))
        low, high = column.declared_bounds or self._seen(column)
        number = np.nan if canary is None else float(canary)
        return scores.number_scores(release.numbers(column.name), number, low, high)

    def _seen(self, column: Column) -> tuple[float, float]:
        ends = [self.neighbours.having.schema[column.name].bounds, column.bounds]
        known = [end for end in ends if end is not None]
        return min(e[0] for e in known), max(e[1] for e in known)


def digests(releases: list[str]) -> Integers:
    """Releases, by their fingerprints, as codes."""
    return np.unique(releases, return_inverse=True)[1].astype(np.int64)


def _labelled(column: Column) -> bool:
    return isinstance(range_of(column).usual, str)
