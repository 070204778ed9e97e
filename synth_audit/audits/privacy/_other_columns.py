"""How far one row stands out to people by some numbers near theirs or in the place of others, and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from synth_audit.audits.privacy._lag_views import NumbersBeside
from synth_audit.core.arrays import Floats, Positions
from synth_audit.kernels.lag_spikes import MISSING, LagColumn
from synth_audit.kernels.learnt_linkage import LinkageWeights
from synth_audit.kernels.linked_columns import Blocks, LinkedColumn
from synth_audit.kernels.rank_links import RankPlace, correspondences, spread_ranks

_MOST_NUMBERS = 14
"""Numbers of which each may stand in the place of any other."""

_OF_FEW, _MOST_ROWS = 8, 10_000
"""Numbers and rows of which so many at most are also laid beside one another by label."""

_MOST_LABELS, _FEW_LABELS = 24, 16
"""Columns of labels that are compared where none are named, and labels of one by which rows are told apart at
first."""

_KEPT = 3
"""Correspondences that are followed."""


class _Ranks(NamedTuple):
    """Ranks of one column."""

    people: Floats
    release: Floats


class RankedColumns:
    """Numbers of people and of a release by their ranks in train, beside labels.

    Args:
        numbers: of the release, train and control, one below the other. n_train: people of train.
        asked: people who are looked up.
    """

    def __init__(
        self,
        numbers: Sequence[NumbersBeside],
        labels: Sequence[LagColumn],
        n_train: int,
        asked: Positions,
        rng: np.random.Generator,
    ) -> None:
        self._labels, self._asked = labels, asked
        self._n_release = numbers[0].n_release if numbers else 0
        n = self._n_release
        found = [spread_ranks(x.known, x.known[n : n + n_train], rng) for x in numbers]
        self._ranks = [_Ranks(x[n:], x[:n]) for x in found]
        self._different = [len(np.unique(x.people)) for x in numbers]

    def told_in_others(self) -> Iterator[Floats]:
        """For each correspondence of numbers by how much one row stands out to the people asked."""
        able = np.argsort([-n for n in self._different], kind="stable")[:_MOST_NUMBERS].tolist()
        rows = self._n_release + (len(self._ranks[0].people) if able else 0)
        beside = self._labels[:_MOST_LABELS] if len(able) <= _OF_FEW and rows <= _MOST_ROWS else []
        labels = [(x.people, x.release) for x in beside]
        few = [x for x in labels if max(int(of.max(initial=0)) for of in x) < _FEW_LABELS]
        people, release = ([self._ranks[k][side] for k in able] for side in (0, 1))
        for places in correspondences(people, release, few, _KEPT):
            yield from self.told([RankPlace(able[x.people], able[x.release], x.turned) for x in places])

    def told(self, places: Sequence[RankPlace], labels: Sequence[int] | None = None) -> Iterator[Floats]:
        """By how much one row stands out to the people asked, with weights before and after learning.

        Args:
            labels: which are compared; the first ones if left out.
        """
        columns = []
        for x in places:
            release = self._ranks[x.release].release
            values = np.concatenate(
                [1 - release if x.turned else release, self._ranks[x.people].people[self._asked]]
            )
            columns.append(LinkedColumn.of(np.nan_to_num(values, nan=-1.0), len(release), numeric=True))
        for label in self._labels[:_MOST_LABELS] if labels is None else [self._labels[k] for k in labels]:
            codes = np.concatenate([label.release, label.people[self._asked]]).astype(np.float64)
            columns.append(
                LinkedColumn.of(np.where(codes == MISSING, -1.0, codes), len(label.release), numeric=False)
            )
        weights = LinkageWeights.before(columns, Blocks.of(columns), labels_known=True)
        repeats = max(1, round(len(columns[0].release) / max(1, len(self._ranks[0].people))))
        at_once, learnt = weights.standing_out_and_learnt(repeats)
        yield at_once
        yield learnt.standing_out(repeats)
