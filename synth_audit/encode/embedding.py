"""Rows of mixed tables as points on a sphere, placed by a network, and how that network is trained."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from synth_audit.encode.codes import Vocabulary, split_rows
from synth_audit.encode.encoded import Encoded, centre_and_scale, varies
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext, torch_device
from synth_audit.execution.seeds import child_sequence
from synth_audit.neighbours.coordinates import Coordinates, drawn_in
from synth_audit.table.kind import NumberPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.encode.contrastive import Inputs, Weights


FEWEST_ROWS = 8
"""With fewer training rows there is nothing to tell a row from, once some are kept for validation."""

DECIMALS = 6
"""Coordinates are rounded to this, far above the rounding of products in double precision."""

MASKED, MISSING, UNSEEN, FIRST_LABEL = range(4)
"""Codes that every discrete column has before those of its labels."""


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


def embed(
    train: Table,
    tables: Sequence[Table],
    columns: Sequence[Column],
    *,
    settings: EmbeddingSettings,
    context: RunContext,
) -> list[Coordinates]:
    """Place the rows of several tables on one sphere by a network fitted on train alone.

    Rows that agree in every column that varies in train get the same point, whichever table and place they
    stand in. Neither the order of rows and columns nor the number of threads moves a point.

    Args:
        train: what the network learns from. tables: what it places. columns: those compared.
        context: its seed decides the network's start, masks and batches, its cache keeps the network, and its
            device computes it; the same bits are promised on ``cpu`` only.

    Returns:
        For each table unit vectors (to six decimals) as ``dense``, shape (n, m); ``labels`` is empty, (n, 0).
        Euclidean distances lie in [0, 2].

    Raises:
        NotApplicable: fewer than two columns vary in train, or it has fewer than eight rows.
        PluginError: torch is not installed, or there is no such device.

    Source: contrastive privacy metrics, sections 4.1 and 5.2.
    """
    told_apart = _informative(train, columns)
    device = torch_device(context.device, "the embedding")
    from synth_audit.encode import contrastive

    reader = _CellReader.anchored_on(train, told_apart)
    weights = _weights(train, reader, settings, device, context)
    groups = Encoded(tables, told_apart).groups()
    _, first, position = np.unique(np.concatenate(groups), return_index=True, return_inverse=True)
    inputs = _joined([reader.read(t) for t in tables]).take(first)
    points = np.round(contrastive.placed(inputs, weights, settings.depth, device), DECIMALS)
    return [Coordinates.of(part) for part in split_rows(points[position], tables)]


def _informative(train: Table, columns: Sequence[Column]) -> list[Column]:
    """The columns that vary in train, by name: what is the same everywhere tells no row from another."""
    varying = sorted((c for c in columns if varies(train, c)), key=lambda c: c.name)
    if len(varying) < 2:
        raise NotApplicable("the embedding learns from parts of rows: two columns or more must vary in train")
    if train.n_rows < FEWEST_ROWS:
        raise NotApplicable(f"the embedding needs at least {FEWEST_ROWS} training rows")
    return varying


def _weights(
    train: Table, reader: _CellReader, settings: EmbeddingSettings, device: str, context: RunContext
) -> Weights:
    """The network's weights, from the cache if it was made from the same inputs before."""
    from torch import __version__ as torch_version

    from synth_audit.encode.contrastive import fitted

    def make() -> bytes:
        rows, network = child_sequence(context.seed, "contrastive embedding").spawn(2)
        inputs = _in_order(reader.read(train))
        if len(inputs) > settings.max_rows:
            drawn = np.random.default_rng(rows).choice(len(inputs), settings.max_rows, replace=False)
            inputs = inputs.take(np.sort(drawn))
        stored = io.BytesIO()
        np.savez(stored, allow_pickle=False, **fitted(inputs, settings, device, network))
        return stored.getvalue()

    columns = [[c.name, c.kind.name] for c in reader.columns]
    asked = json.dumps([columns, asdict(settings), context.seed, torch_version, device], sort_keys=True)
    made = context.cache.get("contrastive embedding", train.fingerprint, asked, make=make)
    with np.load(io.BytesIO(made)) as kept:
        return dict(kept)


@dataclass(frozen=True, eq=False)
class _CellReader:
    """How a table becomes numbers and codes; all of it read off train."""

    columns: tuple[Column, ...]
    scales: dict[str, tuple[float, float]]
    known: dict[str, Vocabulary]

    @classmethod
    def anchored_on(cls, train: Table, columns: Sequence[Column]) -> _CellReader:
        """Labels are numbered by how often they occur, so that renaming them moves nothing (but ties).

        Means are taken over sorted rows: their rounding must not depend on the order of train, to which
        the cache is blind.
        """
        known, numbers = {}, {}
        for column in columns:
            part = column.kind.part
            if isinstance(part, NumberPart):
                numbers[column.name] = part.read(train.column(column.name))
                continue
            known[column.name] = Vocabulary.of(column.name, train, exact=True).by_frequency(train)
        order = np.lexsort([*numbers.values()]) if numbers else None
        scales = {name: centre_and_scale(values[order]) for name, values in numbers.items()}
        return cls(tuple(columns), scales, known)

    def read(self, table: Table) -> Inputs:
        """The rows as the network reads them."""
        from synth_audit.encode.contrastive import Inputs

        numbers = [np.empty((table.n_rows, 0))]
        labels = [np.empty((table.n_rows, 0), dtype=np.int64)]
        masked, start = [], 0
        for column in self.columns:
            part = column.kind.part
            if isinstance(part, NumberPart):
                values, (centre, scale) = part.read(table.column(column.name)), self.scales[column.name]
                # A difference may be infinite, and so may the scale.
                with np.errstate(over="ignore", invalid="ignore"):
                    z = (values - centre) / scale
                # Beyond ten by logarithm, so that no outlier drowns the other columns.
                placed = np.where(np.isnan(values), np.nan, drawn_in(np.nan_to_num(z)))
                numbers.append(placed[:, None])
                continue
            known = self.known[column.name]
            last = FIRST_LABEL + len(known.labels)
            codes = np.array([*range(FIRST_LABEL, last), UNSEEN, MISSING])[known.places(table)]
            labels.append(start + codes[:, None])
            masked.append(start + MASKED)
            start += last
        return Inputs(np.hstack(numbers), np.hstack(labels), np.array(masked, dtype=np.int64), start)


def _in_order(inputs: Inputs) -> Inputs:
    """The rows in an order that depends on nothing but what they hold."""
    keys = [*inputs.numbers.T, *inputs.labels.T]
    return inputs.take(np.lexsort(keys))


def _joined(parts: Sequence[Inputs]) -> Inputs:
    """The rows of several tables below one another."""
    numbers, labels = (np.concatenate([getattr(p, name) for p in parts]) for name in ("numbers", "labels"))
    return replace(parts[0], numbers=numbers, labels=labels)
