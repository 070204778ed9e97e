"""How much a release looks as if it knew a person: computed from it and from real rows of unknown side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.privacy.one_run.people import ClaimablePeople, pooled_schema
from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.subject import Subject
from synth_audit.encoding.gower import GowerEncoder
from synth_audit.kernels.density import log_density_ratio, log_frequency_ratio
from synth_audit.kernels.gower import Mixed, nearest, nearest_other

_FEWEST, _MOST = 2, 5
"""Columns that somebody knows who knows few."""

_CELLS = 20
"""Cells of a number's robust range in which two numbers agree that are near."""


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
    encoder = GowerEncoder.anchored_on(pooled, schema.features)
    real, made = encoder.encode([pooled, release])
    order = np.array(encoder.order)
    near = nearest(real.take(people.rows), made)
    other = nearest_other(real, people.rows)
    width = max(len(set(encoder.order)), 1)
    found = {"nearest row": -near.first, "density ratio": log_density_ratio(near, other, width)}
    for how, cells in (("exact", None), ("near", _CELLS)):
        codes = [_codes(real, made, j, cells) for j in range(len(order))]
        ratios = []
        for subset in _subsets(sorted(set(encoder.order)), subsets, rng):
            groups = _agreeing([codes[j] for j in np.flatnonzero(np.isin(order, subset))])
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


def _codes(real: Mixed, made: Mixed, part: int, cells: int | None) -> Codes:
    """One part of both tables as numbers that equal (or near) values share, real rows first."""
    p = real.numbers.shape[1]
    if part >= p:
        return np.concatenate([x.labels[:, part - p] for x in (real, made)])
    values = np.concatenate([x.numbers[:, part] for x in (real, made)])
    return np.unique(values if cells is None else np.floor(values * cells), return_inverse=True)[1]


def _agreeing(codes: list[Codes]) -> Codes:
    """Numbers that rows share exactly when they share all of these codes, shape (n,)."""
    total = np.zeros(len(codes[0]), dtype=np.int64)
    for code in codes:
        least = int(code.min(initial=0))
        total = np.unique(total * (int(code.max(initial=0)) - least + 1) + code - least, return_inverse=True)[
            1
        ]
    return total
