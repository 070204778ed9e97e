"""Whom rows single out, by the worst of several ways: what audits that link people to rows have in common."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.measurement import Measurement, Quantity, Reference
from synth_audit.kernels.held_out import held_out_share

HALVINGS = 8
"""Times that the people are halved, to choose a way on one half and count on the other."""

_FEWEST_STRANGERS = 100
"""Control people with fewer of whom nothing is decided."""

_QUANTILE, _OF_FEW = 0.98, 60
"""The quantile of strangers above which a row stands out, times one and this over their number: of few it is
uncertain."""

HARDLY_ANY = 0.99
"""The quantile of strangers above which a row stands out in any case: sums of a few values come in steps, of
which one may lie above the limit and be reached by nearly as many strangers as the other quantile leaves."""


def stranger_limit(strangers: Floats, enough: float = 0.0) -> float:
    """What somebody's row must tell: ``1 + 60 / k`` times the 98 % quantile of k strangers, or the 99 %.

    Args:
        strangers: what the best row tells of each, shape (k,). enough: and more than this.
    """
    usual, most = np.quantile(strangers, (_QUANTILE, HARDLY_ANY))
    return float(max(enough, (1 + _OF_FEW / len(strangers)) * usual, most))


def linked_share(
    quantity: Quantity,
    linked: Bools,
    member: Bools,
    second: Bools,
    level: float,
    *,
    requested: int,
    usual: str,
    asked: Bools | None = None,
) -> tuple[Measurement, list[int]]:
    """The share of train people who are linked less that of control, by the worst way, and which these are.

    Args:
        linked: who is, by each way, shape (people, ways); asked: who was asked, everybody if left out.
        member: who is in train, shape (people,). second: who is in the second half, each time.
        usual: what a difference of 0 means.
    """
    share, worst = held_out_share(
        linked, np.ones_like(linked) if asked is None else asked, member, second, level
    )
    found = quantity.at(
        share.value,
        interval=share.interval,
        n_requested=requested,
        n_achieved=int(min(np.bincount(member))),
        n_minimum=_FEWEST_STRANGERS,
        reference=Reference(0.0, usual),
    )
    return found, worst
