"""Every view's scores, once for each draw of the views' own randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from synth_audit import registry
from synth_audit.arrays import Floats32
from synth_audit.audits.recognition.engine import ViewScores, information
from synth_audit.audits.recognition.people import PooledPeople
from synth_audit.audits.recognition.view import View, ViewInfo


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

    Args:
        rng: randomness of a view in a draw.
    """
    kept: dict[str, list[tuple[ScoreInfo, Floats32]]] = {}
    for draw in range(draws):
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
