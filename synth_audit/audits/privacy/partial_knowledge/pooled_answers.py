"""Whom a block of answers gives away on average over its columns, each the secret to one who knows the rest.

Each answer alone is claimed of many strangers too, and which of them is claimed best differs by chance: what
a block tells of all its columns together is known more surely.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.audits.privacy.partial_knowledge.attacks import Attacks, Knowledge
from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.measurement import Estimate, Interval
from synth_audit.kernels.held_out import mean_of_halves
from synth_audit.kernels.intervals import critical_value

_FEWEST_CLAIMED = 10
"""Control people of a half of whom claims must be made; where hardly any are, single columns tell enough."""


def pooled_excess(attacks: Attacks, blocks: Sequence[tuple[int, ...]], level: float) -> Estimate | None:
    """Share of train people claimed rightly beyond luck, on average over the columns of a block.

    The worse block of one half of the people is measured on the other, both ways. None without a block, or
    where hardly a claim is made about control.
    """
    of_blocks = [_claims(attacks, block) for block in blocks]
    halves = []
    for half in (0, 1):
        found = [_of_halves(attacks, claims, half, level) for claims in of_blocks]
        known = [pair for pair in found if pair is not None]
        if not known:
            return None
        halves.append(max(known, key=lambda pair: pair[0].value)[1])
    return mean_of_halves(halves, level)


def _claims(attacks: Attacks, block: tuple[int, ...]) -> tuple[Floats, Floats]:
    """For each person the share of the block's columns that are claimed, and that are claimed rightly."""
    made, right = (np.zeros(len(attacks.people.member)) for _ in range(2))
    for secret in block:
        known = tuple(i for i in block if i != secret)
        found = attacks.again(Knowledge(known, equal=True), about=secret)
        made[found.who] += found.made[:, 0] / len(block)
        right[found.who] += found.right[:, 0] / len(block)
    return made, right


def _of_halves(
    attacks: Attacks, claims: tuple[Floats, Floats], half: int, level: float
) -> tuple[Estimate, Estimate] | None:
    """What the other half chooses by, and what this one has."""
    of = [
        excess_of_shares(*claims, attacks.people.member, attacks.people.of(h), level)
        for h in (1 - half, half)
    ]
    return None if of[0] is None or of[1] is None else (of[0], of[1])


def excess_of_shares(
    made: Floats, right: Floats, member: Bools, judged: Bools, level: float
) -> Estimate | None:
    """``r_t − c_t · r_c / c_c``, r and c being the mean shares claimed rightly and claimed.

    Its interval is by the delta method. Claims about one person hang together, so people are the units.

    Args:
        made, right: shares of a block's columns for each person; member: who is in train; judged: whose
            claims count; shape (people,).
    """
    train, control = judged & member, judged & ~member
    if (made[control] > 0).sum() < _FEWEST_CLAIMED:
        return None
    luck = float(right[control].sum() / made[control].sum())
    beyond = right - luck * made
    more = float(made[train].mean() / made[control].mean())
    error = np.sqrt(beyond[train].var() / train.sum() + more**2 * beyond[control].var() / control.sum())
    value, half_width = float(beyond[train].mean()), critical_value(level) * float(error)
    return Estimate(value, Interval(value - half_width, value + half_width, level, "delta, by person"))
