"""The contract of a column kind: all that the house asks of the values of a column, in one place.

A kind is one file in ``synth_audit/encoding/kinds/``, holding one frozen dataclass with a class variable
``info``; its name is the file's. What kinds of numbers and kinds of labels have in common is in ``_numbers``
and ``_labels`` there, to be inherited. Facets that only statistics ask for are declared beside this file, by
subject: ``kind_cells``, ``kind_distribution``, ``kind_novelty`` and ``kind_prediction``.

No code outside these files asks which kind a column is of: it asks for a facet, or selects columns by their
scale of measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa

from synth_audit.core import registry
from synth_audit.core.arrays import Codes, Floats, Labels
from synth_audit.core.kind_cells import Countable
from synth_audit.core.kind_distribution import Distributed
from synth_audit.core.kind_novelty import Familiar
from synth_audit.core.kind_prediction import Predictable
from synth_audit.core.parts import LabelPart, NumberPart, Part

if TYPE_CHECKING:
    import pandas as pd

Bounds = tuple[float, float]

DomainTerm: TypeAlias = Literal["bounds", "categories"]
"""By what a plan declares which values may occur."""


class Scale(StrEnum):
    """Scale of measurement (Stevens 1946), by which statistics are chosen."""

    NOMINAL = "nominal"
    """Values are equal or not: shares, modes, χ², Cramér's V."""

    QUANTITATIVE = "quantitative"
    """Differences have a meaning: quantiles, means, correlations."""


class Order(StrEnum):
    """As what values are put in order, by a rule or a plan's bounds."""

    NUMBERS = "numbers"
    DATES = "dates"


@dataclass(frozen=True, kw_only=True)
class KindInfo:
    """What is said of a kind.

    Attributes:
        title, summary: for people.
        precedence: the kinds are asked in this order, highest first, whether values are theirs.
        frame_types: what the type of a released column may be called in a pandas frame.
    """

    title: str
    summary: str
    precedence: int = 0
    frame_types: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Clues:
    """What a plan says of a column whose kind it does not declare.

    Attributes:
        categories, bounds: whether it declares them.
        ranked: whether a rule asks for an order of its values.
        released: false for identifiers and split keys.
    """

    categories: bool = False
    bounds: bool = False
    ranked: bool = False
    released: bool = True


@dataclass(frozen=True)
class Domain:
    """The values of a column: the ends of numbers (None where all are missing), or the sorted labels."""

    bounds: Bounds | None = None
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Disturbance:
    """How strongly values are disturbed; see :class:`synth_audit.encoding.leak_noise.LeakNoise`."""

    sigma: float
    rate: float
    flip: float


class Kind(Countable, Distributed, Familiar, Predictable, Protocol):
    """How the values of a column are read, compared, disturbed and given back."""

    info: ClassVar[KindInfo]

    @property
    def name(self) -> str:
        """As a plan and evidence name it."""

    @property
    def scale(self) -> Scale:
        """Scale of measurement; whoever selects columns by it asks :func:`.schema.quantitative` or
        :func:`.schema.nominal`."""

    @property
    def order(self) -> Order | None:
        """As what rules and bounds compare values; None where they compare for equality alone."""

    @property
    def domain_terms(self) -> frozenset[DomainTerm]:
        """By what a plan may declare the domain."""

    @property
    def fixed_domain(self) -> Domain | None:
        """The domain of every column of this kind; None where it differs by column."""

    def allows(self, storage: pa.DataType) -> bool:
        """True when values stored so can be read as this kind; of a column without a type always."""

    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """True when values whose kind nobody declared are of this one."""

    def labels(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values as text labels, missing as null, the same for every storage of a value."""

    def numbers(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values as float64, missing as null.

        Raises:
            TypeError: for a kind of labels.
        """

    def plain(self, values: pa.ChunkedArray) -> Floats | Labels:
        """Values as this kind computes with them, shape (n,): float64 with NaN, or labels with None."""

    def plain_meant(self, texts: Sequence[str]) -> tuple[float | str, ...]:
        """The plain values that a plan or a rule means by texts; what it cannot mean is left out."""

    @property
    def part(self) -> NumberPart | LabelPart:
        """The one part that values have by themselves, in which published quantities compare them."""

    def parts(self, reference: Sequence[pa.ChunkedArray]) -> tuple[Part, ...]:
        """All parts in which values are compared, as the column of one or more real tables has them; their
        weights sum to 1."""

    def codes(self, values: Sequence[pa.ChunkedArray]) -> list[Codes]:
        """One column of several tables as shared codes 0 … k−1 and −1 for missing, equal for equal values.

        Neither the order of rows nor that of tables moves a code.
        """

    def groups(self, values: pa.ChunkedArray) -> bool:
        """True where equal values may stand for a group of rows: labels and whole numbers."""

    def finite(self, values: pa.ChunkedArray) -> bool:
        """True where no value is an infinite number."""

    def label_meant(self, text: str) -> str:
        """The label that a plan or a rule means by a text."""

    def reads(self, text: str) -> bool:
        """True where a text in a rule can be one of the values."""

    def bound_text(self, bound: float) -> str:
        """A declared bound as a rule states it."""

    def domain(self, values: pa.ChunkedArray) -> Domain:
        """The values that occur."""

    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """Plain values, shape (n,), in a storage type: float64 with NaN for numbers (whole ones are
        rounded), or labels with None."""

    def disturbed(
        self,
        values: Floats | Labels,
        domain: Domain,
        how: Disturbance,
        rng: np.random.Generator,
    ) -> Floats | Labels:
        """Plain values a little changed, as they may look in a leak; missing ones stay missing."""

    def framed(self, values: pa.ChunkedArray) -> pd.Series:
        """A released column as expectations see it, of one of ``info.frame_types`` if it holds its kind."""

    def framed_bound(self, bound: float) -> float | str:
        """A declared bound as expectations compare it with :meth:`framed`."""

    def too_many_labels(self, distinct: int) -> str:
        """What is expected where so many different labels are no category, empty where they may be."""

    def like_identifier(self, distinct: int, present: int, rows: int) -> str:
        """A warning's end where so many different values look like names of rows, empty where they do not."""


def kinds() -> tuple[Kind, ...]:
    """Every kind, in the order in which they are asked."""
    found = [kind_named(name) for name in registry.catalogue("kind")]
    return tuple(sorted(found, key=lambda kind: -kind.info.precedence))


@cache
def kind_named(name: str) -> Kind:
    """The kind of that name.

    Raises:
        PlanError: there is none.
    """
    return cast("Kind", registry.find("kind", name).load()())
