"""Whom the membership game is played about: outlying, random, lonely and isolated training rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.audits._targets import drawn, most_isolated, named
from synth_audit.core.arrays import Positions
from synth_audit.core.errors import NotApplicable
from synth_audit.core.schema import Column, Role, quantitative
from synth_audit.core.subject import Subject
from synth_audit.encoding.euclidean import EuclideanEncoder
from synth_audit.kernels.euclidean import nearest_other

MOST_SEARCHED = 20_000
"""At most this many rows are looked at, drawn at random, for those farthest from all others."""


def outlier_columns(subject: Subject, names: Sequence[str]) -> tuple[Column, ...]:
    """The columns whose outlying rows are targets: those named, else sensitive, else numeric ones, else all.

    Raises:
        NotApplicable: a named column is not in the table, or not released.
    """
    if names:
        return named(subject, names, "columns")
    features = subject.features
    sensitive = tuple(c for c in features if Role.SENSITIVE in c.roles)
    return sensitive or quantitative(features) or features


def choose(
    subject: Subject,
    columns: Sequence[Column],
    wanted: dict[str, int],
    tail: float,
    rng: np.random.Generator,
) -> dict[str, Positions]:
    """Positions in train of the targets of each kind; kinds without any are left out.

    ``outlying``: rows beyond the tails of a column, of its rarest labels, or of the texts least like all
    others, the columns in turn, drawn at random among those rows. ``vulnerable``: the rows farthest from
    their nearest other row. ``achilles``: the rows with the largest mean distance to their five nearest other
    rows. ``random``: any rows but these.

    Args:
        wanted: how many of each kind; fewer come back when fewer are there.
    """
    n = subject.train.n_rows
    found: dict[str, Positions] = {}
    if wanted["outlying"]:
        found["outlying"] = _in_turn(
            [c.kind.outlying(subject.train, c, tail) for c in columns], wanted["outlying"], rng
        )
    if wanted["vulnerable"]:
        found["vulnerable"] = _lonely(subject, wanted["vulnerable"], rng)
    if wanted["achilles"]:
        asked = drawn(np.arange(n), MOST_SEARCHED, rng)
        found["achilles"] = most_isolated(subject.train, subject.features, asked, wanted["achilles"], rng)
    if wanted["random"]:
        taken = np.concatenate([np.empty(0, dtype=np.intp), *found.values()])
        found["random"] = drawn(np.setdiff1d(np.arange(n), taken), wanted["random"], rng)
    found = {kind: positions for kind, positions in found.items() if len(positions)}
    if not found:
        raise NotApplicable("no training row is outlying, and no other targets are asked for")
    return found


def _in_turn(candidates: Sequence[Positions], most: int, rng: np.random.Generator) -> Positions:
    """At most so many rows, one from each list in turn, none twice, ascending."""
    waiting = [rng.permutation(rows).tolist() for rows in candidates]
    chosen: set[int] = set()
    while len(chosen) < most and any(waiting):
        for rows in waiting:
            while rows and rows[-1] in chosen:
                rows.pop()
            if rows and len(chosen) < most:
                chosen.add(rows.pop())
    return np.array(sorted(chosen), dtype=np.intp)


def _lonely(subject: Subject, most: int, rng: np.random.Generator) -> Positions:
    """The rows with the largest Euclidean distance to their nearest other row, ties at random."""
    [rows] = EuclideanEncoder.anchored_on(subject.train, subject.features).encode([subject.train])
    asked = rng.permutation(drawn(np.arange(len(rows)), MOST_SEARCHED, rng))
    apart = nearest_other(rows, asked).first
    return np.sort(asked[np.argsort(-apart, kind="stable")[:most]])
