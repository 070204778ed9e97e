"""Matrices of associations to look at: real, synthetic and their difference."""

from __future__ import annotations

import numpy as np

from synth_audit.audits.fidelity.associations.gaps import AssociationMatrices
from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.identity import MeasurementId
from synth_audit.core.schema import Column
from synth_audit.core.series import Series
from synth_audit.core.subject import Subject
from synth_audit.encoding.column_cells import ColumnCells, told_pairs

MOST_COLUMNS = 40
"""Columns of a picture."""

DIGITS = 2
"""Decimals of a picture: enough to see, too few to work values out from."""


def matrices(
    subject: Subject,
    scale: ColumnCells,
    real: Floats,
    pairs: Bools,
    most_rows: int,
    rng: np.random.Generator,
) -> tuple[Series, ...]:
    """Real, synthetic and difference; withheld where few rows of either table stand apart."""
    shown = [scale.columns.index(c) for c in subject.schema.leading_features(MOST_COLUMNS)]
    rows = scale.rows(subject.synthetic.sample(most_rows, rng))
    made = AssociationMatrices.of(rows, scale.numeric).mixed.values
    told = pairs & (told_pairs(rows, scale, subject.suppression) | ~told_pairs(rows, scale, 1))
    # A column that does not vary at all in the release betrays nobody, and must be seen to be constant.
    return tuple(
        _matrix(shows, np.where(told, values, np.nan), shown, scale.columns, diagonal)
        for shows, values, diagonal in (
            ("train", real, 1.0),
            ("synthetic", made, 1.0),
            ("difference", made - real, 0.0),
        )
    )


def _matrix(
    shows: str,
    values: Floats,
    shown: list[int],
    columns: tuple[Column, ...],
    diagonal: float,
) -> Series:
    values = np.clip(values.round(DIGITS), -1.0, 1.0) + 0.0
    np.fill_diagonal(values, diagonal)
    names = tuple(columns[i].name for i in shown)
    return Series(
        id=MeasurementId("", "associations", shows),
        title="Associations between columns",
        kind="matrix",
        x_label="column",
        y_label="column",
        x=names,
        lines={name: tuple(values[i, shown].tolist()) for name, i in zip(names, shown, strict=True)},
    )
