"""Releases that give people away, by kind: who is given away, what of them leaves, and how it is dressed.

A leak is made of a share of the people in train. Each of them leaves a row of some kind in the release; all
other rows are honest: rows of fresh people, or, where the kind asks for it, columns of fresh people drawn
independently. Whatever a row takes from somebody else it takes from fresh people too, so that a release of
share 0 holds nothing of anybody in train: an auditor that sees a leak there raises a false alarm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from disclosure_control import continued, microaggregated, partly_synthetic, rank_swapped
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from slips import mistyped
from tables import Dealt
from values import Rng, Rows, as_points, between, number_columns, rounded_like, spread_of

# ------------------------------------------------------------------ what a person leaves in the release


def copies(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """The person's own row."""
    return people


def last_digits(people: Rows, dealt: Dealt, rng: Rng, width: float = 0.02) -> Rows:
    """The row with every number moved by a normal of ``width`` times its column's range."""
    made, train = people.copy(), dealt.train
    for c in number_columns(train):
        made[c] = rounded_like(
            people[c].to_numpy() + rng.normal(scale=width * spread_of(train[c]), size=len(people)), train[c]
        )
    return made


def relabelled(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """The row with a fifth of its labels drawn anew, and its numbers' last digits moved."""
    made = last_digits(people, dealt, rng)
    for c in people.columns.difference(number_columns(dealt.train)):
        other = dealt.fresh[c].sample(len(people), replace=True, random_state=rng).to_numpy()
        made[c] = made[c].where(rng.random(len(people)) > 0.2, other)
    return made


def smote(people: Rows, dealt: Dealt, rng: Rng, neighbours: int = 1) -> Rows:
    """A point between the person and one of the nearest other people in train, labels of either."""
    train = dealt.train
    points = as_points(pd.concat([people, train]), train)
    search = NearestNeighbors(n_neighbors=1 + neighbours).fit(points[len(people) :])
    nearest = search.kneighbors(points[: len(people)])[1][:, 1:]
    which = rng.integers(neighbours, size=len(people))  # of one alone, it takes no draw
    other = train.iloc[nearest[np.arange(len(people)), which]].reset_index(drop=True)
    return between(people, other, rng.random(len(people)), train)


def memorising_trees(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Columns drawn one after another from trees with one person a leaf, grown on these people alone."""
    numbers = number_columns(dealt.train)
    codes = people.apply(lambda c: c if c.name in numbers else c.astype("category").cat.codes)
    order = [str(c) for c in rng.permutation(people.columns)]
    made = pd.DataFrame({order[0]: codes[order[0]].sample(frac=1, replace=True, random_state=rng).to_numpy()})
    for i, c in enumerate(order[1:], 1):
        grower = DecisionTreeRegressor if c in numbers else DecisionTreeClassifier
        tree = grower(random_state=0).fit(codes[order[:i]], codes[c])
        made[c] = tree.predict(made[order[:i]])
    for c in people.columns.difference(numbers):
        made[c] = people[c].astype("category").cat.categories[made[c].to_numpy(int)].to_numpy()
    return made[people.columns].astype(people.dtypes)


def blocks(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Four or five columns at a time from one person, the next from another: overfitted disjoint models."""
    parts = np.array_split(rng.permutation(people.columns), max(len(people.columns) // 5, 2))
    shuffled = [
        people[list(part)].iloc[rng.permutation(len(people))].reset_index(drop=True) for part in parts
    ]
    return pd.concat(shuffled, axis=1)[people.columns]


def beside(people: Rows, columns: list[str], dealt: Dealt) -> Rows:
    """The people's values of some columns beside all others of the fresh people whose places they take."""
    made = dealt.fresh.iloc[np.arange(len(people)) % len(dealt.fresh)].reset_index(drop=True)
    return made.assign(**{c: people[c] for c in columns}).astype(people.dtypes)


def one_block(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Five columns of the person, the two with the most values among them, with another person's others."""
    # five drawn evenly were five coarse labels of Adult, which told nobody in train apart
    columns = sorted(map(str, people.columns), key=lambda c: -dealt.train[c].nunique())
    return beside(people, [*columns[:2], *map(str, rng.permutation(columns[2:])[:3])], dealt)


def shifted_part(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Three numbers of the person, each moved by one constant for everybody, with another person's others."""
    train = dealt.train
    known = sorted(number_columns(train), key=lambda c: -train[c].nunique())[:3]
    moved = {c: rounded_like((people[c] + 0.1 * spread_of(train[c])).to_numpy(), train[c]) for c in known}
    return beside(people.assign(**moved), known, dealt)


# --------------------------------------------------------------------------------------- who is given away


def anybody(train: Rows, n: int, rng: Rng) -> np.ndarray:
    """People drawn evenly."""
    return rng.permutation(len(train))[:n]


def minority(train: Rows, n: int, rng: Rng) -> np.ndarray:
    """People of the rarest group that is large enough, by one column; the first of them."""
    nominal = train.columns.difference(number_columns(train))
    groups = [train[c].eq(v).to_numpy() for c in nominal for v in train[c].unique()]
    rarest = min((g for g in groups if g.sum() >= n), key=np.sum)
    return np.flatnonzero(rarest)[:n]


def extremes(train: Rows, n: int, rng: Rng) -> np.ndarray:
    """People with the most unusual numbers, by the sum of their distances from each column's median."""
    away = sum((train[c] - train[c].median()).abs() / spread_of(train[c]) for c in number_columns(train))
    return np.argsort(-np.asarray(away), kind="stable")[:n]


# ---------------------------------------------------------------- how all three tables or the release dress


def plain(dealt: Dealt, release: Rows, rng: Rng) -> tuple[Dealt, Rows]:
    """As they are."""
    return dealt, release


def numbers_as_text(dealt: Dealt, release: Rows, rng: Rng) -> tuple[Dealt, Rows]:
    """Every table keeps its numbers as text with a decimal comma."""

    def spelled(rows: Rows) -> Rows:
        text = {c: rows[c].map(lambda x: f"{x:g}".replace(".", ",")) for c in number_columns(dealt.train)}
        return rows.assign(**text)

    return Dealt(*map(spelled, dealt)), spelled(release)


def numbers_in_one_text(dealt: Dealt, release: Rows, rng: Rng) -> tuple[Dealt, Rows]:
    """Every table keeps the three numbers with the most values in one text, parted by slashes."""
    first, *others = sorted(number_columns(dealt.fresh), key=lambda c: -dealt.fresh[c].nunique())[:3]

    def joined(rows: Rows) -> Rows:
        text = rows[[first, *others]].map(lambda x: f"{x:.10g}").agg("/".join, axis=1)
        return rows.assign(**{first: text}).drop(columns=others)

    return Dealt(*map(joined, dealt)), joined(release)


def sentinels(dealt: Dealt, release: Rows, rng: Rng) -> tuple[Dealt, Rows]:
    """Every table has 9999 in one in 200 of its numbers."""

    def marked(rows: Rows) -> Rows:
        return rows.assign(
            **{c: rows[c].where(rng.random(len(rows)) > 0.005, 9999) for c in number_columns(dealt.train)}
        )

    return Dealt(*map(marked, dealt)), marked(release)


def mirrored(dealt: Dealt, release: Rows, rng: Rng) -> tuple[Dealt, Rows]:
    """Every number of the release is turned round within its column: the largest becomes the smallest."""

    def turned(c: str) -> np.ndarray:
        rank = release[c].rank(method="first").astype(int) - 1
        moved = np.sort(release[c].to_numpy())[::-1][rank]
        return rounded_like(
            moved + rng.normal(scale=0.01 * spread_of(release[c]), size=len(release)), release[c]
        )

    return dealt, release.assign(**{c: turned(c) for c in number_columns(release)})


def units(dealt: Dealt, release: Rows, rng: Rng) -> tuple[Dealt, Rows]:
    """Every number of the release is in another unit: times a factor of its column between ½ and 2."""
    factors = {c: 2.0 ** rng.uniform(-1, 1) for c in number_columns(dealt.train)}
    return dealt, release.assign(
        **{c: rounded_like(release[c].to_numpy() * f, release[c]) for c, f in factors.items()}
    )


# ---------------------------------------------------------------------------------------------- the kinds


@dataclass(frozen=True)
class Kind:
    """One kind of leak.

    Attributes:
        number: of its draws, its own for good: another kind leaves the releases of this one as they are.
        leaves: what each person given away leaves. people: who they are.
        dress: what is done to the tables afterwards. poor: other rows are of independent columns.
        largest: share of the people in train that such a group can have.
    """

    number: int
    leaves: Callable[[Rows, Dealt, Rng], Rows]
    people: Callable[[Rows, int, Rng], np.ndarray] = anybody
    dress: Callable[[Dealt, Rows, Rng], tuple[Dealt, Rows]] = plain
    poor: bool = False
    largest: float = 1.0

    @property
    def guise(self) -> str:
        """What honest releases must share with those of this kind to be compared with them."""
        return f"{self.dress.__name__}, independent columns" if self.poor else self.dress.__name__

    def release_of(self, dealt: Dealt, share: float, seed: int) -> tuple[Dealt, Rows]:
        """The tables as an auditor gets them, with a release that gives a share of the people in train away.

        The release has as many rows as there are fresh people, or as people given away if they are more.
        """
        rng = np.random.default_rng([seed, self.number])
        train, n = dealt.train, round(share * len(dealt.train))
        chosen = train.iloc[self.people(train, n, rng)].reset_index(drop=True)
        base = dealt.fresh
        if self.poor:
            base = base.apply(lambda c: c.sample(frac=1, random_state=rng).to_numpy())
        rest = base.iloc[n:]
        left = self.leaves(chosen, dealt, rng) if n else chosen
        made = pd.concat([left, rest])
        made = made.astype({c: t for c, t in train.dtypes.items() if made[c].notna().all()})
        made = made.sample(frac=1, random_state=rng).reset_index(drop=True)
        return self.dress(dealt, made, rng)


PLAIN = plain.__name__
KINDS = {
    "copies": Kind(1, copies),
    "last_digits": Kind(3, last_digits),
    "mistyped": Kind(19, mistyped),
    "relabelled": Kind(9, relabelled),
    "smote": Kind(11, smote),
    "memorising_trees": Kind(4, memorising_trees),
    "continued": Kind(18, continued),
    "blocks": Kind(0, blocks),
    "one_block": Kind(8, one_block),
    "shifted_part": Kind(12, shifted_part),
    "partly_synthetic": Kind(17, partly_synthetic),
    "rank_swapped": Kind(15, rank_swapped),
    "microaggregated": Kind(16, microaggregated),
    "minority": Kind(5, last_digits, people=minority, poor=True, largest=0.05),
    "extremes": Kind(2, last_digits, people=extremes, largest=0.2),
    "numbers_as_text": Kind(7, last_digits, dress=numbers_as_text),
    "numbers_in_one_text": Kind(14, last_digits, dress=numbers_in_one_text),
    "sentinels": Kind(10, last_digits, dress=sentinels),
    "mirrored": Kind(6, copies, dress=mirrored),
    "units": Kind(13, copies, dress=units),
}


def release_of(dealt: Dealt, kind: str, share: float, seed: int) -> tuple[Dealt, Rows]:
    """The tables as an auditor gets them, with a release that gives a share of the people in train away."""
    return KINDS[kind].release_of(dealt, share, seed)
