"""Makes what a network draws have the margins that are known, by what is added or looked up afterwards."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Counts, Floats, Floats32

_KNOTS = 256
_ROUNDS = 200
_WORK = 2_000_000
"""Scores that are looked at in one round at most."""

_FEW = 32
_RARE = 1e-4
"""Added to shares before their logarithm is taken."""


def rank_knots(drawn: Floats32) -> Floats:
    """Ascending numbers, of which an equal share of what was drawn lies between any two neighbours.

    ``np.interp(x, knots, np.linspace(0, 1, len(knots)))`` is then the rank of x.
    """
    knots = np.quantile(drawn.astype(np.float64), np.linspace(0, 1, _KNOTS))
    step = max(float(np.ptp(knots)), 1.0) * 1e-9
    return knots + step * np.arange(_KNOTS)  # strictly ascending


def label_offsets(scores: Floats32 | Floats, shares: Floats) -> Floats:
    """What to add to scores so that each label is the largest in about the known share of rows.

    Labels drawn too seldom gain and those drawn too often lose, by the logarithm of how far off they are.

    Args:
        scores: shape (n, k). shares: shape (k,), sum 1.

    Returns:
        Shape (k,).
    """
    scores = scores[: max(_WORK // max(scores.shape[1], 1), 1)]
    scale = float(np.median(np.ptp(scores, axis=1))) or 1.0
    if scores.shape[1] <= _FEW:
        scores = np.asfortranarray(scores, dtype=np.float64)  # label by label
    offsets, best, nearest = np.zeros(len(shares)), np.zeros(len(shares)), np.inf
    for i in range(_ROUNDS):
        drawn = _times_largest(scores, offsets) / len(scores)
        off = float(np.abs(drawn - shares).sum())
        if off < nearest:
            best, nearest = offsets, off
        wanted = np.log((shares + _RARE) / (drawn + _RARE))
        offsets = offsets + 0.3 * scale / (1 + i / 20) * np.clip(wanted, -2, 2)
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
