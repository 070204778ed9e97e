"""Columns as numbers for a linear attacker: what predicts a secret, and what stands for the secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.core.kind_prediction import Coding
from synth_audit.core.schema import Column
from synth_audit.core.table import Table


@dataclass(frozen=True)
class Secret:
    """Where a secret and its predictors stand in the design.

    Attributes:
        responses: positions of the numbers that stand for the secret: itself, the indicator of one of two
            labels, or the indicator of each frequent label.
        weights: of the responses, summing to 1: the labels' frequencies in train, so that what is frequent
            counts most.
        predictors: positions of the numbers of all other columns; groups: their column, numbered from 0.
    """

    name: str
    responses: Positions
    weights: Floats
    predictors: Positions
    groups: Positions


@dataclass(frozen=True)
class DesignMatrix:
    """The columns that vary in train as numbers; anchored on train, so that no candidate moves its yardstick.

    Numbers and dates stand for themselves, as in the paper's tables. A label becomes indicators, since no
    order of its codes could carry what it says of a secret; one of two labels is a single 0/1 number. Labels
    that fewer than :data:`.codings.RARE` of the rows hold share one indicator, if together they are frequent
    enough. Numbers are read no further than train's own smallest and largest. A numeric column with gaps
    also gets a 0/1 number that says where they are, for being missing can say as much as a value.
    """

    codings: tuple[Coding, ...]

    @classmethod
    def anchored_on(cls, train: Table, columns: Sequence[Column]) -> DesignMatrix:
        """Read off train which columns vary and which labels are frequent."""
        codings: list[Coding] = []
        for column in columns:
            start = codings[-1].start + codings[-1].width if codings else 0
            coding = column.kind.coding(train, column, start)
            if coding is not None:
                codings.append(coding)
        return cls(tuple(codings))

    def encode(self, table: Table) -> Floats:
        """The numbers of a table, shape (n, p), NaN where missing."""
        return np.hstack([np.empty((table.n_rows, 0)), *(c.numbers(table) for c in self.codings)])

    def present(self, table: Table, name: str) -> Bools:
        """Rows of a table that hold a value of a coded column, shape (n,)."""
        return self.coding(name).present(table)

    def coding(self, name: str) -> Coding:
        """The coding of a column that varies."""
        return next(c for c in self.codings if c.column.name == name)

    def secret(self, name: str) -> Secret | None:
        """The secret in this column, or None when nothing in it varies."""
        own = next((c for c in self.codings if c.column.name == name), None)
        if own is None or not own.responses:
            return None
        others = [c for c in self.codings if c is not own and c.regressors]
        shares = np.array(list(own.responses.values()))
        return Secret(
            name=name,
            responses=np.array(list(own.responses), dtype=np.intp),
            weights=shares / shares.sum(),
            predictors=np.array([p for c in others for p in c.regressors], dtype=np.intp),
            groups=np.array([i for i, c in enumerate(others) for _ in c.regressors], dtype=np.intp),
        )
