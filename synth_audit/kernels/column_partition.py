"""Columns divided into parts that are drawn apart from one another, and what crosses between them."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Codes, Floats


def random_partition(n_columns: int, n_parts: int, rng: np.random.Generator) -> Codes:
    """The part of each column, 0 … n_parts − 1, at random and of sizes that differ by one at most."""
    return rng.permutation(np.arange(n_columns) % n_parts)


def correlated_partition(strength: Floats, n_parts: int) -> Codes:
    """Parts of equal size with strong relations *across* them: the two columns of the strongest go apart.

    Again and again the largest entry between two columns that have no part yet is found, and its columns go
    into two different parts, of those with most room the two in which they leave least inside, ties to the
    first. A last single column goes where there is room. Sizes differ by one at most.

    Args:
        strength: how strongly columns hang together, with either sign, shape (d, d).
        n_parts: between 1 and d.

    Source: Disjoint Generative Models (Lautrup et al. 2025), section 4.3; which of two parts gets which
    column is not said there.
    """
    strength = np.abs(strength)
    d = len(strength)
    part = np.full(d, -1, dtype=np.int64)
    if n_parts == 1:
        return part + 1
    room = np.bincount(np.arange(d) % n_parts, minlength=n_parts)
    while (left := np.flatnonzero(part < 0)).size > 1:
        i, j = _strongest(strength, left)
        p, q = _two_parts(strength, part, room, i, j)
        part[i], part[j] = p, q
        room[[p, q]] -= 1
    part[part < 0] = int(np.argmax(room))
    return part


def exterior_to_interior(strength: Floats, part: Codes) -> float:
    """‖across parts‖_F / ‖inside parts‖_F over pairs of different columns; ∞ where nothing is inside.

    Args:
        strength: shape (d, d); NaN counts as 0. part: of each column, shape (d,).
    """
    known = np.nan_to_num(strength)
    inside = part[:, None] == part
    apart = float(np.linalg.norm(known[~inside]))
    within = float(np.linalg.norm(known[inside & ~np.eye(len(part), dtype=bool)]))
    return apart / within if within > 0 else float("inf")


def _strongest(strength: Floats, left: Codes) -> tuple[int, int]:
    among = strength[np.ix_(left, left)].copy()
    np.fill_diagonal(among, -1.0)
    i, j = np.unravel_index(int(np.argmax(among)), among.shape)
    return int(left[i]), int(left[j])


def _two_parts(strength: Floats, part: Codes, room: Codes, i: int, j: int) -> tuple[int, int]:
    """Different parts for i and for j, of those with most room, with least relation inside."""
    second = np.sort(room)[-2]
    wide = [int(p) for p in np.flatnonzero(room >= max(int(second), 1))]
    inside = np.array([[strength[k, part == p].sum() for p in wide] for k in (i, j)])
    most = [int(room[p] == room.max()) for p in wide]
    pairs = [
        # The widest part must be one of the two, or sizes would drift apart.
        (-(most[a] + most[b]), float(inside[0, a] + inside[1, b]), a, b)
        for a in range(len(wide))
        for b in range(len(wide))
        if a != b
    ]
    _, _, a, b = min(pairs)
    return wide[a], wide[b]
