"""What people leave whose rows were entered by hand, with a slip in every number."""

from __future__ import annotations

import numpy as np
from tables import Dealt
from values import Rng, Rows, number_columns


def mistyped(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Every number with a slip where its range allows: two neighbouring digits exchanged, or one left out."""
    made = people.copy()
    for c in number_columns(dealt.train):
        column = dealt.train[c]
        low, high = column.min(), column.max()
        slipped = [_slip(x, low, high, rng) for x in people[c]]
        made[c] = np.array(slipped, dtype=column.dtype)
    return made


def _slip(number: float, low: float, high: float, rng: Rng) -> float:
    """One of the numbers that a slip makes of it; itself if none lies in the range."""
    text = f"{abs(number):.10g}"
    digits = [i for i, sign in enumerate(text) if sign.isdigit()]
    slips = {text[:i] + text[i + 1 :] for i in digits if len(digits) > 1}
    slips |= {text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in digits if i + 1 in digits}
    usable = sorted(
        x for x in (np.copysign(float(s), number) for s in slips) if low <= x <= high and x != number
    )
    return float(rng.choice(usable)) if usable else number
