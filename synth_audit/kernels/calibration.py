"""Makes what a network draws have the margins that are known, by what is added or looked up afterwards."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Counts, Floats, Floats32

_KNOTS = 256
_ROUNDS = 100
_WORK = 2_000_000
"""Scores that are looked at in one round at most."""

_FEW = 32
_LONGER, _SHORTER = 1.2, 0.5
"""What a step is multiplied by going on, and at a turn."""

_ENOUGH = 0.1
"""Of the deviation that a draw of as many rows has by chance."""


def rank_knots(drawn: Floats32) -> Floats:
    """Ascending numbers, of which an equal share of what was drawn lies between any two neighbours.

    ``np.interp(x, knots, np.linspace(0, 1, len(knots)))`` is then the rank of x.
    """
    knots = np.quantile(drawn.astype(np.float64), np.linspace(0, 1, _KNOTS))
    step = max(float(np.ptp(knots)), 1.0) * 1e-9
    return knots + step * np.arange(_KNOTS)  # strictly ascending


def label_offsets(scores: Floats32 | Floats, shares: Floats) -> Floats:
    """What to add to scores so that each label is the largest in about the known share of rows.

    Labels drawn too seldom gain and those drawn too often lose, each in steps of its own, which grow while
    they go one way and are halved at each turn: the scores of a network that is sure of itself leave no room
    between rare labels, and one length of step for all would fling them past each other.

    Args:
        scores: shape (n, k). shares: shape (k,), sum 1.

    Returns:
        Shape (k,).

    Source: Riedmiller & Braun 1993 for the steps.
    """
    scores = scores[: max(_WORK // max(scores.shape[1], 1), 1)]
    scale = float(np.median(np.ptp(scores, axis=1))) or 1.0
    if scores.shape[1] <= _FEW:
        scores = np.asfortranarray(scores, dtype=np.float64)  # label by label
    offsets, best, nearest = np.zeros(len(shares)), np.zeros(len(shares)), np.inf
    steps, before = np.full(len(shares), scale), np.zeros(len(shares))
    enough = _ENOUGH * float(np.sqrt(shares * (1 - shares) / len(scores)).sum())
    for _ in range(_ROUNDS):
        lacking = shares - _times_largest(scores, offsets) / len(scores)
        off = float(np.abs(lacking).sum())
        if off < nearest:
            best, nearest = offsets, off
        if off <= enough:
            break
        way = np.sign(lacking)
        steps = np.minimum(steps * np.where(way == before, _LONGER, _SHORTER), scale)
        offsets, before = offsets + way * steps, way
    return best


def _times_largest(scores: Floats | Floats32, offsets: Floats) -> Counts:
    """How often each label is the largest, the first of equal ones.

    Of few labels one after the other takes a fraction of the time of searching each short row.
    """
    if scores.shape[1] > _FEW:
        return np.bincount((scores + offsets).argmax(axis=1), minlength=scores.shape[1])
    largest = scores[:, 0] + offsets[0]
    winner = np.zeros(len(scores), dtype=np.intp)
    for label in range(1, scores.shape[1]):
        rival = scores[:, label] + offsets[label]
        np.putmask(winner, rival > largest, label)
        np.maximum(largest, rival, out=largest)
    return np.bincount(winner, minlength=scores.shape[1])
