"""The contract of a view, and every view's scores of the people."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeAlias, get_args

import numpy as np

from synth_audit import registry
from synth_audit.arrays import Floats, Floats32
from synth_audit.audits.recognition.engine import ViewScores, information
from synth_audit.audits.recognition.people import PooledPeople, ReleaseMemory
from synth_audit.execution.executor import single_threaded_algebra
from synth_audit.execution.seeds import child_rng
from synth_audit.plugins.audit import Cost


@dataclass(frozen=True, kw_only=True)
class ViewInfo:
    """What the catalogue and the report say of a view.

    Attributes:
        title: what it compares, for a reader.
        finds: how a recognised person is recognised, after "by".
        random: whether it draws at random, so that several draws say more than one.
        cost: rough order of its running time beside other views; what takes longest starts first.
        source: where the method comes from.
    """

    title: str
    finds: str
    random: bool = False
    cost: Cost = "seconds"
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
    """The views in one draw, with what each score is.

    Attributes:
        found: by comparisons with the release, for its memory: all of them in the first draw, none where the
            pool has no memory.
    """

    views: ViewScores
    scores: tuple[ScoreInfo, ...]
    found: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class ViewDraw:
    """One view in one draw of its own randomness, in a form that another process can score.

    Attributes:
        seed: of the randomness of all views and draws.
    """

    pool: PooledPeople = field(repr=False)
    name: str
    draw: int
    seed: int


@dataclass(frozen=True, eq=False)
class DrawnScores:
    """What a view says of each person in one draw.

    Attributes:
        bits: information of each score, shape (people,) each.
        found: by its comparisons with the release, for the memory.
    """

    scores: tuple[ScoreInfo, ...]
    bits: tuple[Floats32, ...] = field(repr=False)
    found: dict[str, Any] = field(repr=False)


Spread: TypeAlias = Callable[[Callable[[ViewDraw], DrawnScores], Sequence[ViewDraw]], Iterable[DrawnScores]]
"""Does equal pieces of work, here or elsewhere, with results in order."""


def scored(pool: PooledPeople, draws: int, seed: int, spread: Spread = map) -> list[ScoredPeople]:
    """Score people by all views; views without randomness are computed once.

    A view draws alike for the release and for every planted leak. Planted leaks are scored in the first draw,
    so only that one is remembered.

    Args:
        seed: of all draws. spread: who scores.
    """
    bare = pool if pool.memory is None else replace(pool, memory=None)
    infos: dict[str, ViewInfo] = {n: registry.build("view", n, {}).info for n in registry.catalogue("view")}
    names, costs = [*infos], get_args(Cost)
    asked = [ViewDraw(pool, name, 0, seed) for name in names]
    asked += [ViewDraw(bare, n, draw, seed) for draw in range(1, draws) for n in names if infos[n].random]
    asked.sort(key=lambda x: -costs.index(infos[x.name].cost))
    of_each = {(x.name, x.draw): made for x, made in zip(asked, spread(view_scores, asked), strict=True)}
    drawn = []
    for draw in range(draws):
        of_views = [of_each.get((name, draw)) or of_each[name, 0] for name in names]
        bits = [row for made in of_views for row in made.bits]
        views = ViewScores(np.array(bits, np.float32).reshape(len(bits), pool.people))
        found = {name: pairs for made in of_views for name, pairs in made.found.items()}
        drawn.append(ScoredPeople(views, tuple(info for made in of_views for info in made.scores), found))
    return drawn


def view_scores(asked: ViewDraw) -> DrawnScores:
    """Score people by one view in one draw."""
    view: View = registry.build("view", asked.name, {})
    pool, found = asked.pool, dict[str, Any]()
    if pool.memory is not None and pool.memory.keeps:
        pool = replace(pool, memory=ReleaseMemory(found))  # what is shared is not changed
    rng = child_rng(asked.seed, "view", asked.name, str(asked.draw))
    with single_threaded_algebra():  # so that the bits are the same, whoever scores
        made = [
            (ScoreInfo(view.info, s.columns), information(pool.of_people(s.values)[None])[0])
            for s in view.scores(pool, rng)
        ]
    scores, bits = zip(*made, strict=True) if made else ((), ())
    return DrawnScores(scores, bits, found)
