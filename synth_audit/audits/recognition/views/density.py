"""Density: has the release more rows near the person than the population would have?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits.recognition.people import PooledPeople
from synth_audit.audits.recognition.side_test import log_odds
from synth_audit.audits.recognition.view import Score, ViewInfo

_MOST_ROWS = 100_000
"""Release rows that are compared with people: beyond that the people, some thousand, set the error."""


@dataclass(frozen=True, kw_only=True)
class Density:
    """Log density of the release over that of the population, by a classifier.

    Boosted trees tell release rows from people of the other fold. Their log odds for a person estimate
    ``log p_release(x) / p_population(x)``, which an overfitted generator raises at its training people.

    Source: van Breugel et al. 2023 (DOMIAS), with a classifier's ratio in place of two densities.
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Density of the release over that of the population",
        finds="rows that crowd where few other people are",
        source="van Breugel et al. 2023",
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score by the log odds of a classifier that has not seen the person's own records."""
        rows = np.arange(pool.rows)
        if len(rows) > _MOST_ROWS:
            rows = np.sort(rng.permutation(rows)[:_MOST_ROWS])
        people = np.column_stack([c.cells("people") for c in pool.columns])
        release = np.column_stack([c.cells("release")[rows] for c in pool.columns])
        fold = rng.integers(2, size=pool.people)[pool.person]
        odds = np.full(pool.records, -np.inf)
        for mine in (fold == 0, fold == 1):
            if mine.any() and not mine.all():
                cells = np.vstack([people[~mine], release])
                odds[mine] = log_odds(cells, np.arange(len(cells)) >= (~mine).sum(), people[mine], rng)
        yield Score("boosted trees", odds)
