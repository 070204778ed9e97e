"""What is asked of a column kind by models and attackers who predict columns from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from synth_audit.core.arrays import Bools, Codes, Floats, Target

if TYPE_CHECKING:
    from synth_audit.core.schema import Column
    from synth_audit.core.table import Table


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


class Predictable(Protocol):
    """Facets of a kind by which columns are predicted, and predicted from."""

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
