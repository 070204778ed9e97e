"""What the release says of each person tested, computed without knowing on which side anybody is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.audits._targets import ISOLATED_FROM, drawn, random_places
from synth_audit.audits.privacy._target_pool import TargetPool
from synth_audit.core.arrays import Floats
from synth_audit.core.subject import Subject
from synth_audit.encoding.gower import GowerEncoder
from synth_audit.encoding.value_ranks import value_ranks
from synth_audit.kernels.density import (
    likelihood_influence,
    log_density_ratio,
    neighbourhood_count,
    plagiarism_share,
    tree_share,
)
from synth_audit.kernels.gower import Mixed, nearest, nearest_several

_NEIGHBOURS = ISOLATED_FROM
"""Nearest rows of the release, and of the real ones, that are looked at."""

_SHARPNESS = 8.0
"""Widths of the kernels of ``gen_lra`` in the mean distance between a real row and the nearest other one. On
planted leaks wider kernels tell members less well, narrower ones hardly better."""

_MOST_REFERENCE = 10_000
"""Real rows from which trees learn at most."""


@dataclass(frozen=True, eq=False)
class DistanceScores:
    """Scores of everybody tested by name, higher for likelier members, shape (n,) each.

    Attributes:
        isolation: mean distance to the nearest other real rows, shape (n,).
    """

    values: dict[str, Floats]
    isolation: Floats


def by_distance(subject: Subject, people: TargetPool, rng: np.random.Generator) -> DistanceScores:
    """Scores by Gower's distance on robust ranges: one search each for who is near whom."""
    assert subject.control is not None
    encoder = GowerEncoder.anchored_on(subject.train, subject.features, beside=[subject.control])
    train, control, synthetic = encoder.encode(
        [subject.train, subject.control, subject.synthetic], [*people.rows, None]
    )
    pool = _joined(train, control).take(people.order)
    own = np.arange(len(people))
    tested = pool.take(own)
    made = nearest_several(tested, synthetic, _NEIGHBOURS, place=random_places(len(synthetic), rng))
    real = nearest_several(tested, pool, _NEIGHBOURS, own=own)
    asked, where = np.unique(made.index, return_inverse=True)
    back = nearest(synthetic.take(asked), pool)
    where = where.reshape(made.index.shape)
    besides = np.where(back.index[where] == own[:, None], back.second[where], back.first[where])
    width = float(real.distance[:, 0].mean()) / _SHARPNESS or 1.0
    values = {
        "distance": -made.distance[:, 0],
        "density_ratio": log_density_ratio(made.nearest, real.nearest, len(subject.features)),
        "gen_lra": likelihood_influence(made.distance, besides, width),
        "dpi": plagiarism_share(made.distance, real.distance),
        "neighbourhood": neighbourhood_count(made.distance),
    }
    return DistanceScores(values, real.distance.mean(axis=1))


def by_trees(
    subject: Subject, people: TargetPool, most_learnt: int, n_trees: int, rng: np.random.Generator
) -> Floats:
    """Share of trees that take a person for a release row, beyond that of a row in equally dense places.

    Half of the trees learn from one half of the real rows and judge the other half, and the other way round:
    nobody is judged by trees that have seen the own row.
    """
    assert subject.control is not None
    n = subject.synthetic.n_rows
    learnt = drawn(np.arange(n), most_learnt, rng)
    real = [subject.train, subject.control]
    train, control, made = value_ranks(
        [*real, subject.synthetic], subject.features, real=real, rows=[*people.rows, learnt]
    )
    pool = np.concatenate([train, control])[people.order]
    second = rng.permutation(len(pool)) < len(pool) // 2
    found = np.empty(len(people))
    for half in (second, ~second):
        judged = np.flatnonzero(half[: len(people)])
        reference = drawn(np.flatnonzero(~half), min(most_learnt, _MOST_REFERENCE), rng)
        seed = int(rng.integers(2**31))
        share = tree_share(pool[judged], made, pool[reference], -(-n_trees // 2), seed)
        found[judged] = share - round(len(made) / (len(made) + len(reference)), 9)
    return found


def _joined(*parts: Mixed) -> Mixed:
    numbers, labels = (np.concatenate([getattr(p, x) for p in parts]) for x in ("numbers", "labels"))
    return Mixed(numbers, labels, parts[0].weights)
