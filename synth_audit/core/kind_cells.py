"""What is asked of a column kind where rows are counted: by cell, by group, or beyond the tails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from synth_audit.core.arrays import Codes, Positions

if TYPE_CHECKING:
    from synth_audit.core.schema import Column
    from synth_audit.core.table import Table


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


class Countable(Protocol):
    """Facets of a kind by which rows are counted."""

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
