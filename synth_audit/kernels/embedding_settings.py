"""How the network behind the embedding is built and trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

FEWEST_ROWS = 8
"""With fewer training rows there is nothing to tell a row from, once some are kept for validation."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingSettings:
    """How the network is built and trained, in a plan the ``embedding_settings`` of an audit.

    Audits of one run whose settings are equal share one network.

    Fields:
        dimension: of the sphere; left out, ``10·max(1, ⌊(n − 5)/10⌋)`` for n columns that vary in train,
            which gives the published 10, 20 and 30 for 15, 28 and 37 columns.
        width, depth: neurons per hidden layer, and hidden layers. The published width is 1024; on Adult 256
            tells copies from strangers nearly as well at a seventh of the cost, 128 does not
            (``benchmarks/embedding.py``).
        dropout: share of neurons silenced while training, in [0, 1).
        learning_rate: of Adam.
        temperature: cosines are divided by it before the cross-entropy. The publication names none; with 1
            the loss can hardly fall, since no cosine exceeds 1, and copies stand out less.
        batch: rows told apart at a time.
        max_epochs, max_steps: most passes over the training rows, and most batches in all.
        window, patience: stop when the mean validation loss of the last ``window`` epochs has not fallen for
            ``patience`` epochs.
        validation_share: share of rows kept for that, in (0, 0.5].
        max_rows: at most this many rows of train are learnt from, drawn at random.

    Raises:
        ValueError: a field is outside its range.
    """

    dimension: int | None = None
    width: int = 256
    depth: int = 3
    dropout: float = 0.1
    learning_rate: float = 1e-3
    temperature: float = 0.1
    batch: int = 1024
    max_epochs: int = 300
    max_steps: int = 1000
    window: int = 20
    patience: int = 10
    validation_share: float = 0.1
    max_rows: int = 50_000

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}
    """A plan's misspelt setting is refused, not ignored."""

    def __post_init__(self) -> None:
        least = dict.fromkeys(("width", "depth", "max_epochs", "max_steps", "window", "patience"), 1)
        least |= {"dimension": 2, "batch": FEWEST_ROWS, "max_rows": FEWEST_ROWS}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ValueError(f"{name} must be at least {bound}, got {value}")
        for name in ("learning_rate", "temperature"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout}")
        if not 0 < self.validation_share <= 0.5:
            raise ValueError(f"validation_share must lie in (0, 0.5], got {self.validation_share}")

    def dimension_for(self, n_columns: int) -> int:
        """Dimension of the sphere for ``n_columns`` columns that vary in train."""
        return self.dimension or 10 * max(1, (n_columns - 5) // 10)
