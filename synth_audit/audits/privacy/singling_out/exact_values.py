"""Which columns leave with exact values of real people?"""

from __future__ import annotations

import numpy as np

from synth_audit.audits.privacy.singling_out.quantities import EXACT_VALUES
from synth_audit.core.measurement import Measurement, Reference
from synth_audit.kernels.attack_success import corrected_level, worst_interval
from synth_audit.kernels.predicates import ColumnCodebook
from synth_audit.kernels.singling_out import PredicateTrial

_FEWEST = 20
"""Guesses on a column below which nothing is said of it."""

_NAMED = 10
"""Columns that the note names."""

_HONEST = Reference(0.0, "a release that is independent of the training rows")


def exact_values(
    trial: PredicateTrial | None, lexicon: ColumnCodebook, level: float
) -> tuple[list[Measurement], tuple[str, ...]]:
    """The risk of guesses on each column, and a note that names the columns where it is proven.

    Args:
        trial: of guesses on single columns; None where none was made.
    """
    if trial is None:
        return [], ()
    of_column = trial.predicates.columns[:, 0]
    asked, times = np.unique(of_column, return_counts=True)
    asked = asked[times >= _FEWEST]
    found, proven = [], []
    for j in asked:
        some = of_column == j
        risk = trial.risk_of(some, corrected_level(level, len(asked)))
        interval = worst_interval([risk.interval], level, f"{len(asked)} columns")
        name, n = lexicon.names[j], int(some.sum())
        found.append(
            EXACT_VALUES.at(
                risk.value, column=name, interval=interval, n_requested=n, n_achieved=n, reference=_HONEST
            )
        )
        if risk.interval.low > 0:
            proven.append((-risk.value, name))
    return found, _note([name for _, name in sorted(proven)])


def _note(columns: list[str]) -> tuple[str, ...]:
    if not columns:
        return ()
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    return (
        f"columns that leave with exact values of real people: {', '.join(columns[:_NAMED])}{more}. No row "
        "need be copied for that: a value that one person alone has tells that the person was in train. "
        "Round these columns or put their values into coarser classes",
    )
