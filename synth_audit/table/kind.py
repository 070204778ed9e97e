"""The contract of a column kind: all that is asked of the values of a column."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa

from synth_audit import registry
from synth_audit.arrays import Codes, Floats, Floats32, Labels
from synth_audit.table.arrow import labels_of
from synth_audit.table.resolution import Resolution

if TYPE_CHECKING:
    import pandas as pd


TimeUnit: TypeAlias = Literal["year", "month", "day", "hour", "minute", "second", "millisecond"]

Precision: TypeAlias = float | TimeUnit
"""What a plan declares of how finely a column is given: a step of numbers, or a unit of time."""

TIME = "time"
"""Unit of dates and times."""

Bounds = tuple[float, float]

DomainTerm: TypeAlias = Literal["bounds", "categories"]
"""By what a plan declares which values may occur."""


@dataclass(frozen=True, eq=False)
class NumberPart:
    """Values whose differences have a meaning.

    Attributes:
        read: values of a column as float64, NaN where there is no number, shape (n,).
        weight: how much of the column this part is; the parts of one column weigh 1 together.
        unit: of columns with the same one differences may be taken, "" for plain numbers; None where a
            difference to another column means nothing.
    """

    read: Callable[[pa.ChunkedArray], Floats]
    weight: float = 1.0
    unit: str | None = None


@dataclass(frozen=True, eq=False)
class LabelPart:
    """Values that are equal or not.

    Attributes:
        read: the column of several tables as codes that these share, :data:`MISSING` where there is no
            value, one array of shape (n,) per table.
        weight: as of a number.
    """

    read: Callable[[Sequence[pa.ChunkedArray]], list[Codes]]
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class VectorPart:
    """Values that are alike by the distance of vectors.

    Attributes:
        read: values of a column as vectors of length 1, NaN where there is no value, shape (n, width).
        width: numbers of a vector.
        weight: as of a number.
    """

    read: Callable[[pa.ChunkedArray], Floats32]
    width: int
    weight: float = 1.0


Part = NumberPart | LabelPart | VectorPart


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
    """How strongly values are disturbed.

    Attributes:
        sigma: continuous and datetime columns get N(0, σ²) in units of their standard deviation.
        rate: integer columns get a Poisson(λ) added, in their own unit.
        flip: labels are redrawn with this probability, evenly from the other labels of the column.

    Raises:
        ValueError: one of them is negative, or flip is above 1.

    Source: contrastive privacy metrics, section 4.2, where each is 0 or 0.05. The unit of σ is ours, for a
    noise of 0.05 in a column's own unit would be everything to one column and nothing to another.
    """

    sigma: float = 0.0
    rate: float = 0.0
    flip: float = 0.0

    def __post_init__(self) -> None:
        if min(self.sigma, self.rate, self.flip) < 0 or self.flip > 1:
            raise ValueError("noise must not be negative, and flip at most 1")

    @property
    def none(self) -> bool:
        """True when values stay as they are."""
        return not (self.sigma or self.rate or self.flip)


class Kind(ABC):
    """How the values of a column are read, compared, disturbed and given back.

    A new kind derives from a kind of numbers or of labels in :mod:`synth_audit.column_kinds`, which answer
    what statistics, models and attackers ask of it besides, and says what differs.

    Attributes:
        scale: of measurement; whoever selects columns by it asks :func:`.schema.quantitative` or
            :func:`.schema.nominal`.
        order: as what rules and bounds compare values; None where they compare for equality alone.
        domain_terms: by what a plan may declare the domain.
        fixed_domain: the domain of every column of this kind; None where it differs by column.
        as_it_is: True for values that say more about a person than a label does: they leave only if the
            plan says so.
        most_labels: more different labels than this are no category.
    """

    info: ClassVar[KindInfo]
    scale: ClassVar[Scale]
    order: ClassVar[Order | None] = None
    domain_terms: ClassVar[frozenset[DomainTerm]] = frozenset()
    fixed_domain: ClassVar[Domain | None] = None
    as_it_is: ClassVar[bool] = False
    most_labels: ClassVar[int | None] = None

    @cached_property
    def name(self) -> str:
        """As a plan and evidence name it: the name of its file, or of the entry point that it is found by."""
        return type(self).__module__.rpartition(".")[2]

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def allows(self, storage: pa.DataType) -> bool:
        """True when values stored so can be read as this kind; of a column without a type always."""

    @abstractmethod
    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """True when values whose kind nobody declared are of this one."""

    def labels(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values as text labels, missing as null, the same for every storage of a value."""
        return labels_of(values)

    def numbers(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values as float64, missing as null.

        Raises:
            TypeError: for a kind of labels.
        """
        raise TypeError(f"a {self.name} column has no numbers")

    @abstractmethod
    def plain(self, values: pa.ChunkedArray) -> Floats | Labels:
        """Values as this kind computes with them, shape (n,): float64 with NaN, or labels with None."""

    @property
    @abstractmethod
    def part(self) -> NumberPart | LabelPart:
        """The one part that values have by themselves, in which published quantities compare them."""

    def parts(self, reference: Sequence[pa.ChunkedArray]) -> tuple[Part, ...]:
        """All parts in which values are compared, as the column of one or more real tables has them; their
        weights sum to 1."""
        return (self.part,)

    @abstractmethod
    def codes(self, values: Sequence[pa.ChunkedArray]) -> list[Codes]:
        """One column of several tables as shared codes 0 … k−1 and −1 for missing, equal for equal values.

        Neither the order of rows nor that of tables moves a code.
        """

    def groups(self, values: pa.ChunkedArray) -> bool:
        """True where equal values may stand for a group of rows: labels and whole numbers."""
        return True

    def finite(self, values: pa.ChunkedArray) -> bool:
        """True where no value is an infinite number."""
        return True

    def label_meant(self, text: str) -> str:
        """The label that a plan or a rule means by a text."""
        return text

    def meant(self, text: str) -> float | str | None:
        """The plain value that a rule means by a text; None where it cannot be one of this kind."""
        return self.label_meant(text)

    def bound_text(self, bound: float) -> str:
        """A declared bound as a rule states it: in digits, without a fraction where there is none."""
        return str(int(bound)) if bound == int(bound) and abs(bound) < 1e15 else repr(bound)

    @abstractmethod
    def domain(self, values: pa.ChunkedArray) -> Domain:
        """The values that occur."""

    def resolution(self, values: pa.ChunkedArray) -> Resolution | None:
        """How finely values are given; None where nothing finer could be told, and for labels."""
        return None

    def declared_resolution(self, precision: Precision) -> Resolution:
        """What a plan means by a precision.

        Raises:
            TypeError: this kind has none of the sort.
        """
        raise TypeError(f"a {self.name} column has no precision")

    @abstractmethod
    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """Plain values, shape (n,), in a storage type: float64 with NaN for numbers (whole ones are
        rounded), or labels with None."""

    @abstractmethod
    def disturbed(
        self, values: Floats | Labels, domain: Domain, how: Disturbance, rng: np.random.Generator
    ) -> Floats | Labels:
        """Plain values a little changed, as they may look in a leak; missing ones stay missing."""

    def framed(self, values: pa.ChunkedArray) -> "pd.Series":
        """A released column as expectations see it, of one of ``info.frame_types`` if it holds its kind."""
        import pandas as pd

        plain = self.plain(values)
        return pd.Series(plain, dtype=plain.dtype)

    def framed_bound(self, bound: float) -> float | str:
        """A declared bound as expectations compare it with :meth:`framed`."""
        return bound

    def too_many_labels(self, distinct: int) -> str:
        """What is expected where so many different labels are no category, empty where they may be."""
        if self.most_labels is None or distinct <= self.most_labels:
            return ""
        return f"at most {self.most_labels:,} categories"

    def like_identifier(self, distinct: int, present: int, rows: int) -> str:
        """A warning's end where so many different values look like names of rows, empty where they do not."""
        return ""


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
    kind = cast("Kind", registry.find("kind", name).load()())
    vars(kind)["name"] = name
    return kind
