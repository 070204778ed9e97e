"""What statistics, models and attackers ask of a column, each kind in its own way.

Kinds of numbers and kinds of labels answer them, beside what :class:`synth_audit.table.kind.Kind` asks; here
they take tables and columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from synth_audit.arrays import Bools
from synth_audit.errors import PluginError
from synth_audit.table.schema import Column

if TYPE_CHECKING:
    from synth_audit.encode.kinds._labels import TextLabels
    from synth_audit.encode.kinds._numbers import Numbers

MarginMethod: TypeAlias = Literal["kde", "empirical"]
"""How a distribution of numbers is learnt: a kernel density, or the sample's own distribution."""


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


def facets(column: Column) -> Numbers | TextLabels:
    """Answer by a column's kind, which derives from a kind of numbers or of labels.

    Raises:
        PluginError: it is an outside plug-in that does not.
    """
    from synth_audit.encode.kinds._labels import TextLabels
    from synth_audit.encode.kinds._numbers import Numbers

    kind = column.kind
    if isinstance(kind, (Numbers, TextLabels)):
        return kind
    raise PluginError(
        f"the kind {kind.name!r} does not say how its columns are compared",
        where=f"column {column.name!r}",
        expected="a kind of numbers or of labels",
        fix="derive it from `kinds._numbers.Numbers` or `kinds._labels.TextLabels` of `synth_audit.encode`",
    )
