"""What people leave who were treated by disclosure control, or whose rows a model begins to repeat.

The rows are real people's, with some values exchanged, averaged, redrawn or continued.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors
from tables import Dealt
from values import Rng, Rows, as_points, number_columns, rounded_like, spread_of


def rank_swapped(people: Rows, dealt: Dealt, rng: Rng, reach: float = 0.05) -> Rows:
    """Every number replaced by that of a person in train who is at most ``reach`` of all away in rank."""
    made, train = people.copy(), dealt.train
    most = max(1, int(reach * len(train)))
    for c in number_columns(train):
        ordered = np.sort(train[c].to_numpy())
        low, high = (np.searchsorted(ordered, people[c], side) for side in ("left", "right"))
        place = rng.integers(low, np.maximum(high, low + 1)) + rng.integers(-most, most + 1, len(people))
        made[c] = ordered[np.clip(place, 0, len(ordered) - 1)]
    return made


def microaggregated(people: Rows, dealt: Dealt, rng: Rng, others: int = 1) -> Rows:
    """Every number replaced by the mean of the person's and those of the nearest other people by numbers."""
    made, train = people.copy(), dealt.train
    numbers = number_columns(train)
    width = np.array([spread_of(train[c]) for c in numbers])
    search = NearestNeighbors(n_neighbors=1 + others).fit(train[numbers].to_numpy() / width)
    nearest = search.kneighbors(people[numbers].to_numpy() / width)[1][:, 1:]
    for c in numbers:
        total = people[c].to_numpy() + train[c].to_numpy()[nearest].sum(axis=1)
        made[c] = rounded_like(total / (1 + others), train[c])
    return made


def partly_synthetic(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Half of the columns as they are, the two with most values among them; the others of the fresh person
    who is nearest in these."""
    most = sorted(map(str, people.columns), key=lambda c: -dealt.train[c].nunique())
    return completed(people, [*most[:2], *map(str, rng.permutation(most[2:])[: len(most) // 2 - 2])], dealt)


def completed(people: Rows, kept: list[str], dealt: Dealt) -> Rows:
    """The people's values of some columns, beside the others of the fresh person who is nearest in these."""
    real = pd.concat([dealt.train[kept], people[kept], dealt.fresh[kept]])
    points = as_points(real, dealt.train[kept])[len(dealt.train) :]
    search = NearestNeighbors(n_neighbors=1).fit(points[len(people) :])
    made = dealt.fresh.iloc[search.kneighbors(points[: len(people)])[1][:, 0]].reset_index(drop=True)
    return made.assign(**{c: people[c] for c in kept}).astype(people.dtypes)


def continued(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """The first half of the columns, continued by that of another of these people who has the same last value
    there, if there is one: a model of rows as text that remembers how they begin."""
    half, following = people.shape[1] // 2, np.arange(len(people))
    for group in people.groupby(people.columns[half - 1], dropna=False).indices.values():
        chain = rng.permutation(group)
        following[chain] = np.roll(chain, 1)
    rest = people.iloc[following, half:].reset_index(drop=True)
    return pd.concat([people.iloc[:, :half], rest], axis=1)
