"""What the marginals of a release say of each person tested, without a look at which side anybody is on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from synth_audit.audits._targets import drawn
from synth_audit.audits.privacy._target_pool import TargetPool
from synth_audit.core.arrays import Codes, Floats, Positions
from synth_audit.core.parts import LabelPart, VectorPart
from synth_audit.core.subject import Subject
from synth_audit.kernels.marginal_ratio import MarginalRatios, dependence_tree

MOST_PARTS = 100
"""Of more columns so many are looked at, drawn at random: 4,950 pairs are counted."""

MOST_PAIRS = 1_000
"""Of more pairs so many, drawn at random, are averaged."""

Cells = tuple[Codes, Codes]
"""Cells of the real rows and of the release's."""


def by_marginals(
    subject: Subject, people: TargetPool, bins: int, most_rows: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Scores of everybody tested by name, higher for likelier members, shape (n,) each.

    Args:
        bins: of a number, with about as many real rows of train and control together in each.
        most_rows: of the release, drawn at random.
    """
    rows = drawn(np.arange(subject.synthetic.n_rows), most_rows, rng)
    cells = list(_cells(subject, people, rows, bins))
    seen = drawn(np.arange(len(cells)), MOST_PARTS, rng)
    pool, made = (np.column_stack([cells[i][side] for i in seen]) for side in (0, 1))
    sizes = [1 + int(max(pool[:, i].max(), made[:, i].max())) for i in range(len(seen))]
    ratios = MarginalRatios(made, pool, sizes, len(people))
    found = {"columns": np.sum([ratios.of(i) for i in range(len(sizes))], axis=0)}
    if len(sizes) > 1:
        pairs = list(combinations(range(len(sizes)), 2))
        asked = drawn(np.arange(len(pairs)), MOST_PAIRS, rng)
        found["pairs"] = ratios.mean_of([pairs[i] for i in asked])
        found["tree"] = ratios.of_tree(dependence_tree(made, sizes))
    return found


def _cells(subject: Subject, people: TargetPool, rows: Positions, bins: int) -> Iterator[Cells]:
    """Cells of each number and label that columns are read as, of the pool and of these release rows."""
    assert subject.control is not None
    of_train, of_control = people.rows
    for column in subject.features:
        tables = (subject.train, subject.control, subject.synthetic)
        values = [table.column(column.name) for table in tables]
        for part in column.kind.parts(values[:2]):
            if isinstance(part, VectorPart):  # texts are labels too
                continue
            read: Sequence[Codes | Floats] = (
                part.read(values) if isinstance(part, LabelPart) else [part.read(v) for v in values]
            )
            train, control, made = read
            pool = np.concatenate([train[of_train], control[of_control]])[people.order]
            joint = np.concatenate([pool, made[rows]])
            edges = np.unique(joint) if isinstance(part, LabelPart) else _edges(pool, bins)
            found = np.searchsorted(edges, joint, "right")
            found[np.isnan(joint)] = len(edges) + 1  # what is missing lies beyond all numbers
            yield found[: len(pool)], found[len(pool) :]


def _edges(values: Floats, bins: int) -> Floats:
    known = values[~np.isnan(values)]
    if not len(known):
        return known
    edges: Floats = np.unique(np.quantile(known, np.arange(1, bins) / bins))
    return edges
