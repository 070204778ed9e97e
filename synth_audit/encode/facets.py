"""What statistics, models and attackers ask of a column, each kind in its own way.

A kind answers them beside what :class:`synth_audit.table.kind.Kind` asks; here they take tables and columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Bools, Codes, Floats, Labels, Positions, Target
from synth_audit.stats.margins import Margin
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

MarginMethod: TypeAlias = Literal["kde", "empirical"]
"""How a distribution of numbers is learnt: a kernel density, or the sample's own distribution."""


class Grouping(Protocol):
    """Groups of the values of one column, as train has them."""

    @property
    def size(self) -> int:
        """How many groups there are at most."""

    def of(self, table: Table) -> Codes:
        """The group of each row, shape (n,), in 0 … size − 1."""


class AnchoredCells(Grouping, Protocol):
    """Cells that train fixes, missing among them, so that tables can be cross-tabulated alike."""

    @property
    def not_compared(self) -> int:
        """The cell that correlations pass over, −1 for none."""


class SharedCells(Protocol):
    """Cells of one column in several tables, the last for missing."""

    @property
    def codes(self) -> tuple[Codes, ...]:
        """The cell of each row, shape (n,) for each table."""

    @property
    def size(self) -> int:
        """How many cells there are."""

    @property
    def names(self) -> tuple[str, ...]:
        """What stands under the bar of each cell, that of missing last."""

    @property
    def ordered(self) -> bool:
        """True where neighbours may be joined: cells of numbers, low to high."""

    @property
    def axis(self) -> str:
        """What stands along the axis of the cells."""


class Univariate(Protocol):
    """The distribution of one column and its missing values: a class of ``synth_audit.encode.univariate``."""

    def sample(self, n: int, rng: np.random.Generator) -> Floats | Labels:
        """Plain values, shape (n,)."""


class RankScale(Protocol):
    """How one column becomes numbers whose ranks carry its dependence on others."""

    @property
    def labels(self) -> Labels | None:
        """Labels in the order of their codes 0, 1, …; None where values are numbers already."""

    def of(self, table: Table) -> Floats:
        """Numbers, shape (n,), NaN where missing or a label that train lacks."""


class GuessRule(Protocol):
    """When a guess at a secret is right, and what can be guessed without a release."""

    def right(self, guesses: Floats, secrets: Floats) -> Bools:
        """Which guesses are right, shape (n,); a missing guess is wrong."""

    def typical(self, values: Floats) -> float:
        """The guess of one who knows the population only."""

    def classes(self, values: Floats) -> tuple[Codes, Floats]:
        """The class of each present value, shape (n,), and the guess for each class."""


class Coding(Protocol):
    """How one column becomes the numbers of a linear model (contrast coding)."""

    @property
    def column(self) -> Column:
        """The column."""

    @property
    def start(self) -> int:
        """Position of its first number in the design."""

    @property
    def width(self) -> int:
        """How many numbers it becomes."""

    @property
    def regressors(self) -> list[int]:
        """Positions that predict other columns."""

    @property
    def responses(self) -> dict[int, float]:
        """Position and share in train of each number that stands for this column as a secret."""

    def numbers(self, table: Table) -> Floats:
        """Shape (n, width), NaN where a number is missing."""

    def present(self, table: Table) -> Bools:
        """Rows that hold a value that train may teach something of, shape (n,)."""

    def rare_counts(self, train: Table) -> Mapping[str, int]:
        """How many rows of train hold each label that is too rare for a number of its own, ascending."""


class Aspect(StrEnum):
    """In what a value can be new to a column."""

    LABEL = "labels"
    SPELLING = "spellings"
    FORM = "long or hidden text"
    CONSTANT = "constants"
    RESOLUTION = "finer digits"
    RANGE = "far numbers"
    MISSING = "missing values"


@dataclass(frozen=True, eq=False)
class Novelty:
    """Cells of a release that are new to a column in one aspect.

    Attributes:
        rows: of the release, shape (m,).
        usual: training rows that would be as new, had the rows of their entity not been there, shape (n,):
            fresh rows of the same people bring as many.
    """

    aspect: Aspect
    rows: Bools
    usual: Bools


class Facets(Protocol):
    """A column as counts, distributions, predictors, secrets and news."""

    def anchored_cells(
        self, train: Table, column: Column, *, most_cells: int, most_labels: int
    ) -> AnchoredCells:
        """At most so many cells of about equal mass in train for numbers; one for each of so many labels."""

    def shared_cells(
        self, tables: Sequence[Table], real: Sequence[Table], column: Column, *, most: int, fewest: int
    ) -> SharedCells:
        """Cells to compare tables in; real rows alone decide which.

        Args:
            real: tables, train first, in which a cell should hold ``fewest`` rows.
            most: cells of numbers; labels have one each.
        """

    def grouping(self, train: Table, column: Column, *, bins: int) -> Grouping:
        """The labels of train, or so many quantile bins of its numbers; missing is group 0, and the last is
        of labels that train does not have."""

    def outlying(self, table: Table, column: Column, tail: float) -> Positions:
        """Rows beyond the tails of the numbers, of the rarest labels, or of the texts least like all others,
        a share ``tail``, ascending."""

    def univariate(self, train: Table, column: Column, method: MarginMethod) -> Univariate:
        """The distribution of a column in train."""

    def margin(self, column: Column, values: Floats, method: MarginMethod) -> Margin:
        """The distribution of numbers of a column on its numeric scale; what is drawn from it fits the
        column's declared bounds and storage.

        Args:
            values: shape (n,), NaN where missing.

        Raises:
            ValueError: no value is present.
        """

    def rank_scale(
        self, train: Table, column: Column, response: Floats | None, *, own_order: bool
    ) -> RankScale:
        """Labels in the order of the mean rank of a response, or by falling frequency without one.

        Args:
            response: shape (n,), NaN where missing.
            own_order: labels that have an order of their own keep it.
        """

    def response(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_classes: int, far: float
    ) -> tuple[list[Target], int]:
        """A target, missing nowhere, as classes 0 … k − 1 and k, or as numbers and 0.

        Args:
            most_classes: classes beyond, by falling frequency in train, are one together.
            far: standard deviations of train beyond which a number is no farther away.
        """

    def features(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_labels: int, far: float
    ) -> list[Floats]:
        """A predictor, shape (n, k) for each table, scaled by train; a constant of train is 0.

        Args:
            most_labels: indicators; the rarer labels are one together.
            far: standard deviations of train beyond which a number is no farther away.
        """

    def coding(self, train: Table, column: Column, start: int) -> Coding | None:
        """The numbers of a column in a design; None where nothing in it varies."""

    def secret(
        self, tables: Sequence[Table], column: Column, tolerance: float
    ) -> tuple[list[Floats], GuessRule]:
        """A secret in each table, train first, as numbers, NaN where missing, and when a guess is right.

        Args:
            tolerance: relative error at which a guessed number is right, in [0, 1).
        """

    def novelties(
        self, column: Column, train: pa.ChunkedArray, values: pa.ChunkedArray, entities: Codes | None
    ) -> tuple[Novelty, ...]:
        """What is new about values of a release, aspect by aspect; whether they are missing is none of it.

        Args:
            train, values: the column in train, shape (n,), and in the release, shape (m,).
            entities: whose each training row is, shape (n,); None where each is somebody's only one.
        """


def facets(column: Column) -> Facets:
    """The answers of a column's kind."""
    return cast("Facets", column.kind)
