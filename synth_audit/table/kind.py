"""The contract of a column kind: all that is asked of the values of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa

from synth_audit import registry
from synth_audit.arrays import Bools, Codes, Floats, Floats32, Labels, Positions, Target
from synth_audit.table.resolution import Resolution

if TYPE_CHECKING:
    import pandas as pd

    from synth_audit.table.schema import Column
    from synth_audit.table.table import Table


MarginMethod: TypeAlias = Literal["kde", "empirical"]
"""How a distribution of numbers is learnt: a kernel density, or the sample's own distribution."""

TimeUnit: TypeAlias = Literal["year", "month", "day", "hour", "minute", "second", "millisecond"]

Precision: TypeAlias = float | TimeUnit
"""What a plan declares of how finely a column is given: a step of numbers, or a unit of time."""

TIME = "time"
"""Unit of dates and times."""

Bounds = tuple[float, float]

DomainTerm: TypeAlias = Literal["bounds", "categories"]
"""By what a plan declares which values may occur."""


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


class DistributionFunction(Protocol):
    """A distribution function and its inverse; see :class:`synth_audit.stats.margins.Margin`."""

    @property
    def knots(self) -> Floats:
        """Values, shape (k,)."""

    @property
    def levels(self) -> Floats:
        """F at the knots, shape (k,)."""

    @property
    def step(self) -> float:
        """Spacing of the values that can occur; 0 when all can."""

    @property
    def limits(self) -> tuple[float, float]:
        """No value outside is ever returned."""

    def interval(self, values: Floats) -> tuple[Floats, Floats]:
        """F just below and F at each value, shapes (n,)."""

    def quantile(self, levels: Floats) -> Floats:
        """The value below which a share ``levels`` lies, shape (n,)."""


class Univariate(Protocol):
    """The distribution of one column, missing values included."""

    def sample(self, n: int, rng: np.random.Generator) -> Floats | Labels:
        """Plain values, shape (n,)."""

    def plain(self) -> dict[str, Any]:
        """As JSON values; see :func:`synth_audit.encode.univariate.from_plain`."""


class RankScale(Protocol):
    """How one column becomes numbers whose ranks carry its dependence on others."""

    @property
    def labels(self) -> Labels | None:
        """Labels in the order of their codes 0, 1, …; None where values are numbers already."""

    def of(self, table: Table) -> Floats:
        """Numbers, shape (n,), NaN where missing or a label that train lacks."""


class Distributed(Protocol):
    """Facets of a kind by which distributions are learnt."""

    def univariate(self, train: Table, column: Column, method: MarginMethod) -> Univariate:
        """The distribution of a column in train."""

    def margin(self, column: Column, values: Floats, method: MarginMethod) -> DistributionFunction:
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
    """How strongly values are disturbed; see :class:`synth_audit.studies.calibration.LeakNoise`."""

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
