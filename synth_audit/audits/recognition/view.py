"""The contract of a view, and every view's scores of the people."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from synth_audit import registry
from synth_audit.arrays import Floats, Floats32
from synth_audit.audits.recognition.engine import ViewScores, information
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


@dataclass(frozen=True)
class ScoreInfo:
    """Which view gave a score, and by which columns; none stands for all."""

    view: ViewInfo
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ScoredPeople:
    """The views in one draw, with what each score is."""

    views: ViewScores
    scores: tuple[ScoreInfo, ...]


def scored(
    pool: PooledPeople, draws: int, rng: Callable[[str, int], np.random.Generator]
) -> Iterator[ScoredPeople]:
    """Score people by all views; views without randomness are computed once.

    Plantings are scored in the first draw, so only that one is kept in the pool's memory.

    Args:
        rng: randomness of a view in a draw.
    """
    kept: dict[str, list[tuple[ScoreInfo, Floats32]]] = {}
    for draw in range(draws):
        pool = pool if draw == 0 else replace(pool, memory=None)
        for name in registry.catalogue("view"):
            view: View = registry.build("view", name, {})
            if view.info.random or name not in kept:
                kept[name] = [
                    (ScoreInfo(view.info, s.columns), information(pool.of_people(s.values)[None])[0])
                    for s in view.scores(pool, rng(name, draw))
                ]
        every = [pair for of_view in kept.values() for pair in of_view]
        bits = np.array([bits for _, bits in every], np.float32).reshape(len(every), pool.people)
        yield ScoredPeople(ViewScores(bits), tuple(info for info, _ in every))
