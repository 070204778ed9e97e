"""The contract of a view: one way to score how likely a person is in the training set.

A view is one file in ``views/`` with one frozen dataclass that has a class variable ``info``. It sees the
release and the pooled people, and never who is in the training set: any such score is a valid attack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.audits.recognition.people import PooledPeople


@dataclass(frozen=True, kw_only=True)
class ViewInfo:
    """What the catalogue and the report say of a view.

    Attributes:
        title: what it compares, for a reader.
        finds: how a recognised person is recognised, after "by".
        random: whether it draws at random, so that several draws say more than one.
        source: where the method comes from.
    """

    title: str
    finds: str
    random: bool = False
    source: str = ""


@dataclass(frozen=True, eq=False)
class Score:
    """One score of every record.

    Attributes:
        name: unique within the view.
        values: higher for records that are more likely in the training set, -inf where nothing is said,
            shape (records,).
        columns: names of the columns that it compares; empty for all.
    """

    name: str
    values: Floats = field(repr=False)
    columns: tuple[str, ...] = ()


class View(Protocol):
    """Scores people by what a release holds."""

    info: ClassVar[ViewInfo]

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score every record; nothing where the view has nothing to compare."""
        ...
