"""Train, control and what is asked of the release in one space, whichever distance it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from synth_audit.core.arrays import Integers, Positions
from synth_audit.core.context import RunContext
from synth_audit.core.subject import Subject
from synth_audit.encoding.embedding import embed
from synth_audit.encoding.euclidean import EuclideanEncoder, RobustEuclideanEncoder
from synth_audit.encoding.gower import GowerEncoder
from synth_audit.encoding.ranks import RankEncoder
from synth_audit.kernels import euclidean, gower
from synth_audit.kernels.coordinates import Coordinates
from synth_audit.kernels.embedding_settings import EmbeddingSettings
from synth_audit.kernels.neighbours import Nearest

Distance = Literal["euclidean", "robust", "gower", "ranks", "mirrored_ranks", "embedding"]
Part = Literal["train", "control", "synthetic"]
Rows = TypeVar("Rows", Coordinates, gower.Mixed)

DISTANCES: tuple[Distance, ...] = ("euclidean", "robust", "gower", "ranks", "mirrored_ranks", "embedding")


@dataclass(frozen=True, eq=False)
class Space(Generic[Rows]):
    """Rows of train and control, some of the release, and the search that belongs to their distance."""

    tables: dict[Part, Rows]
    search: Callable[[Rows, Rows], Nearest]
    search_other: Callable[[Rows, Positions, Integers | None], Nearest]

    def size(self, part: Part) -> int:
        """Number of rows."""
        return len(self.tables[part])

    def nearest(self, part: Part, rows: Positions, reference: Part) -> Nearest:
        """For the rows at these positions of one table, the nearest rows of another."""
        return self.search(self.tables[part].take(rows), self.tables[reference])

    def nearest_other(self, part: Part, rows: Positions, persons: Integers | None = None) -> Nearest:
        """For the rows at these positions of a table, the nearest of its other rows.

        Args:
            persons: number of the person of each row of the table; rows of the same one are not looked at.
        """
        return self.search_other(self.tables[part], rows, persons)


def space_of(
    subject: Subject, distance: Distance, asked: Positions, settings: EmbeddingSettings, context: RunContext
) -> Space[Coordinates] | Space[gower.Mixed]:
    """The space of a distance, in which all rows of train and control are searched.

    Args:
        asked: positions of the rows of the release that are looked up: no others are in the space.
        settings: of the embedding.

    Raises:
        NotApplicable: the embedding is asked for and has too little to learn from.
        PluginError: the embedding is asked for and torch is not installed.
    """
    assert subject.control is not None
    parts: tuple[Part, ...] = ("train", "control", "synthetic")
    tables, columns = [subject.train, subject.control, subject.synthetic], subject.features
    real, few = [subject.control], (None, None, asked)
    if distance == "gower":
        mixed = GowerEncoder.anchored_on(subject.train, columns, beside=real).encode(tables, few)
        return Space(dict(zip(parts, mixed, strict=True)), gower.nearest, gower.nearest_other)
    match distance:
        case "embedding":
            some = [subject.train, subject.control, subject.synthetic.take(asked)]
            placed = embed(subject.train, some, columns, settings=settings, context=context)
        case "ranks" | "mirrored_ranks":
            # Control is in train's units for certain, the release perhaps in its own.
            scales = [subject.train, subject.train, subject.synthetic]
            placed = RankEncoder(columns).encode(scales, tables, few)
            if distance == "mirrored_ranks":
                placed = [rows.folded() for rows in placed]
        case "robust":
            robust = RobustEuclideanEncoder.anchored_on(subject.train, columns, beside=real)
            placed = robust.encode(tables, few)
        case "euclidean":
            placed = EuclideanEncoder.anchored_on(subject.train, columns).encode(tables, few)
    return Space(dict(zip(parts, placed, strict=True)), euclidean.nearest, euclidean.nearest_other)
