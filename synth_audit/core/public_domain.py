"""What the plan declares of the columns: known to everybody, without a look at the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synth_audit.core.kind import Bounds, Kind
from synth_audit.core.schema import Column, Schema


@dataclass(frozen=True)
class PublicColumn:
    """What is declared of one column.

    Attributes:
        kind: None where it was inferred from the rows.
        bounds: lowest and highest value that may occur; datetimes in microseconds.
        categories: every label that may occur.
    """

    kind: Kind | None
    bounds: Bounds | None
    categories: tuple[str, ...] | None
    nullable: bool

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Every label that may occur, declared or the kind's own; None where neither says."""
        fixed = None if self.kind is None else self.kind.fixed_domain
        return self.categories or (fixed.categories if fixed else None)

    @property
    def known(self) -> bool:
        """True when nothing of its domain need be read off the rows."""
        fixed = self.kind is not None and self.kind.fixed_domain is not None
        return fixed or self.bounds is not None or self.categories is not None


@dataclass(frozen=True)
class PublicDomain:
    """What is declared of every column that may be released, by name."""

    columns: Mapping[str, PublicColumn] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema) -> PublicDomain:
        """The declared part of a schema; what was inferred from train stays out."""
        return cls(
            {
                c.name: PublicColumn(
                    c.kind if c.kind_declared else None, _bounds_of(c), c.declared_categories, c.nullable
                )
                for c in schema.features
            }
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns whose bounds or categories the plan leaves out."""
        return tuple(name for name, column in self.columns.items() if not column.known)


def _bounds_of(column: Column) -> Bounds | None:
    """Those that are declared, or that every column of a declared kind has."""
    fixed = column.kind.fixed_domain if column.kind_declared else None
    return column.declared_bounds or (fixed.bounds if fixed else None)
