"""What kinds of labels have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Floats, Labels
from synth_audit.core.arrow_values import labels_of
from synth_audit.core.kind import Disturbance, Domain, DomainTerm, Order, Scale
from synth_audit.encoding.kinds._label_views import LabelViews

if TYPE_CHECKING:
    import pandas as pd


class TextLabels(LabelViews):
    """Labels: two values are equal or not."""

    numeric = False
    whole = False
    instants = False
    most_labels = 10_000
    scale = Scale.NOMINAL
    order: Order | None = None
    domain_terms: frozenset[DomainTerm] = frozenset({"categories"})
    fixed_domain: Domain | None = None

    @property
    def name(self) -> str:
        """The file's name."""
        return type(self).__module__.rpartition(".")[2]

    def __str__(self) -> str:
        return self.name

    def labels(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Values as text."""
        return labels_of(values)

    def numbers(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Labels are no numbers."""
        raise TypeError(f"a {self.name} column has no numbers")

    def plain(self, values: pa.ChunkedArray) -> Floats | Labels:
        """Labels, None where missing."""
        return np.asarray(self.labels(values).to_numpy(), dtype=object)

    def finite(self, values: pa.ChunkedArray) -> bool:
        """A label is no number."""
        return True

    def label_meant(self, text: str) -> str:
        """The text itself."""
        return text

    def reads(self, text: str) -> bool:
        """Any text is a label."""
        return True

    def bound_text(self, bound: float) -> str:
        """Labels have no bounds."""
        raise TypeError(f"a {self.name} column has no bounds")

    def domain(self, values: pa.ChunkedArray) -> Domain:
        """The labels, sorted."""
        found = self.labels(values).unique().to_pylist()
        return Domain(categories=tuple(sorted(x for x in found if x is not None)))

    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """Labels in the type that they were read from."""
        if pa.types.is_null(storage):
            return pa.nulls(len(values))
        text = pa.array(values, type=pa.string())
        if pa.types.is_dictionary(storage):
            return text.cast(storage.value_type).dictionary_encode().cast(storage)
        if pa.types.is_decimal(storage):
            return text.cast(pa.float64()).cast(storage, safe=False)
        return text.cast(storage)

    def disturbed(
        self, values: Floats | Labels, domain: Domain, how: Disturbance, rng: np.random.Generator
    ) -> Floats | Labels:
        """Redrawn with probability ``flip``, evenly from the other labels of the column."""
        known = np.array(domain.categories or (), dtype=object)
        if len(known) < 2:
            return values
        position = {label: i for i, label in enumerate(known)}
        old = np.array([position.get(x, 0) for x in values], dtype=np.int64)
        moved = (old + rng.integers(1, len(known), len(values))) % len(known)
        flips = (rng.random(len(values)) < how.flip) & (values != None)  # noqa: E711 (elementwise)
        return np.where(flips, known[moved], values)

    def framed(self, values: pa.ChunkedArray) -> pd.Series[Any]:
        """As text."""
        import pandas as pd

        return pd.Series(np.asarray(self.labels(values).to_numpy(), dtype=object), dtype=object)

    def framed_bound(self, bound: float) -> float | str:
        """Labels have no bounds."""
        raise TypeError(f"a {self.name} column has no bounds")

    def too_many_labels(self, distinct: int) -> str:
        """Beyond ``most_labels``."""
        return f"at most {self.most_labels:,} categories" if distinct > self.most_labels else ""

    def like_identifier(self, distinct: int, present: int, rows: int) -> str:
        """Few labels name no row."""
        return ""
