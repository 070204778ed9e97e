"""Curves of precision and recall, told in steps that give no single person away."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from synth_audit.audits.fidelity.coverage.pair import Curves
from synth_audit.core.arrays import Floats
from synth_audit.core.identity import MeasurementId
from synth_audit.core.series import Series
from synth_audit.core.subject import Subject

_GRID = np.arange(1, 50) / 50


CONTROL = "control rows"


def curves(seen: Mapping[str, Curves], subject: Subject, setting: str) -> tuple[Series, ...]:
    """Pictures of P_α and R_β, a line for each label; none where train has too few rows for any.

    Whoever holds the release could tell from P_α where the real radii lie: so the share α and the share
    1 − α stand for as many rows of train as may be told of. Numbers of real rows are rounded to multiples of
    that.

    Args:
        seen: by label: the release, and :data:`CONTROL` if there are control rows.
    """
    n, fewest = subject.train.n_rows, subject.suppression
    alphas = _GRID[np.minimum(_GRID, 1 - _GRID) * n >= fewest - 1e-9]
    if not len(alphas):
        return ()
    inside = {label: pair.precision.share_within(alphas) for label, pair in seen.items()}
    if subject.control is not None and CONTROL in inside:
        compared = min(subject.control.n_rows, subject.synthetic.n_rows)
        inside[CONTROL] = _in_steps(inside[CONTROL], compared, fewest)
    covered = {label: _in_steps(pair.recall.share_within(alphas), n, fewest) for label, pair in seen.items()}
    return (
        Series(
            id=MeasurementId("", "precision_curve", setting),
            title="Rows inside the balls of the real ones",
            kind="line",
            x_label="most typical share of train",
            y_label="share of rows in the same ball",
            x=tuple(alphas.tolist()),
            lines=_lines(inside),
        ),
        Series(
            id=MeasurementId("", "recall_curve", setting),
            title="Real rows inside the balls of others",
            kind="line",
            x_label="most typical share of the synthetic or control rows",
            y_label="share of train in the same ball",
            x=tuple(alphas.tolist()),
            lines=_lines(covered),
        ),
    )


def _lines(found: Mapping[str, Floats]) -> dict[str, tuple[float, ...]]:
    return {label: tuple(ys.tolist()) for label, ys in found.items()}


def _in_steps(shares: Floats, n: int, step: int) -> Floats:
    """Shares of n rows with their numbers rounded to multiples of ``step``."""
    rounded: Floats = np.minimum(np.rint(shares * n / step) * step / n, 1.0)
    return rounded
