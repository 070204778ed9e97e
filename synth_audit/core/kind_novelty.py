"""What is asked of a column kind about values that no training row could have had."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import pyarrow as pa

from synth_audit.core.arrays import Bools, Codes
from synth_audit.core.resolution import Resolution

if TYPE_CHECKING:
    from synth_audit.core.schema import Column

TimeUnit: TypeAlias = Literal["year", "month", "day", "hour", "minute", "second", "millisecond"]
Precision: TypeAlias = float | TimeUnit
"""What a plan declares of how finely a column is given: a step of numbers, or a unit of time."""


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


class Familiar(Protocol):
    """Facets of a kind by which new values are told from those that train has."""

    @property
    def as_it_is(self) -> bool:
        """True for values that say more about a person than a label does: they leave only if the plan says
        so."""

    def resolution(self, values: pa.ChunkedArray) -> Resolution | None:
        """How finely values are given; None where nothing finer could be told, and for labels."""

    def declared_resolution(self, precision: Precision) -> Resolution:
        """What a plan means by a precision.

        Raises:
            TypeError: this kind has none of the sort.
        """

    def novelties(
        self, column: Column, train: pa.ChunkedArray, values: pa.ChunkedArray, entities: Codes | None
    ) -> tuple[Novelty, ...]:
        """What is new about values of a release, aspect by aspect; whether they are missing is none of it.

        Args:
            train, values: the column in train, shape (n,), and in the release, shape (m,).
            entities: whose each training row is, shape (n,); None where each is somebody's only one.
        """
