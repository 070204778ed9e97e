"""What is asked of a column kind by who learns distributions and draws from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from synth_audit.core.arrays import Floats, Labels

if TYPE_CHECKING:
    from synth_audit.core.schema import Column
    from synth_audit.core.table import Table

MarginMethod: TypeAlias = Literal["kde", "empirical"]
"""How a distribution of numbers is learnt: a kernel density, or the sample's own distribution."""


class DistributionFunction(Protocol):
    """A distribution function and its inverse; see :class:`synth_audit.kernels.margins.Margin`."""

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
        """As JSON values; see :func:`synth_audit.encoding.univariate.from_plain`."""


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
