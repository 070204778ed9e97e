"""Kinds of leaks that passed 41 gates by docs/research/leaks-seen.md, unless `leaks.py` holds them.

In `leaks.py` are the release turned round by rank (`mirrored`) and `blocks` of columns. In neither file are
labels exchanged for others of the same meaning: the public tables have no two labels that mean the same.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from disclosure_control import completed, microaggregated, rank_swapped
from leaks import Kind, beside, last_digits
from tables import Dealt
from values import Rng, Rows, number_columns, rounded_like, spread_of


def label_columns(rows: Rows) -> list[str]:
    return [str(c) for c in rows.columns.difference(number_columns(rows), sort=False)]


def within(made: np.ndarray, column: pd.Series) -> np.ndarray:
    """Numbers as the column has them, none beyond its ends."""
    return np.clip(rounded_like(made, column), column.min(), column.max())


def place(values: pd.Series, column: pd.Series) -> np.ndarray:
    """The share of a column's values that are less than each, or equal and counted by half."""
    ordered = np.sort(column.to_numpy())
    low, high = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    found: np.ndarray = (low + high) / (2 * len(ordered))
    return found


def half_missing(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """The row without half of its cells."""
    return people.mask(rng.random(people.shape) < 0.5)


def with_gaps(dealt: Dealt, release: Rows, rng: Rng) -> tuple[Dealt, Rows]:
    """Every table lacks three cells in a hundred."""
    gaps = [rows.mask(rng.random(rows.shape) < 0.03) for rows in (*dealt, release)]
    return Dealt(*gaps[:3]), gaps[3]


def six_kept(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """The first number and five labels, beside the other columns of the fresh person nearest in these."""
    return completed(people, [*number_columns(dealt.train)[:1], *label_columns(dealt.train)[:5]], dealt)


def noisy_half(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """A random half of the columns with noise of 3 %, beside the others of the fresh person nearest in it."""
    kept = [str(c) for c in rng.permutation(people.columns)[: people.shape[1] // 2]]
    return completed(last_digits(people, dealt, rng, 0.03), kept, dealt)


def every_second_number(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """The row with every second number of the fresh person who is nearest in all other columns."""
    return completed(people, [str(c) for c in people.columns.difference(number_columns(people)[1::2])], dealt)


def eight_and_two(dealt: Dealt, rng: Rng) -> tuple[list[str], list[str]]:
    """Eight numbers or all, those with the most values, and two labels."""
    numbers = sorted(number_columns(dealt.train), key=lambda c: -dealt.train[c].nunique())
    return numbers[:8], [str(c) for c in rng.permutation(label_columns(dealt.train))[:2]]


def eight_numbers(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Eight numbers with noise of 3 %, and two labels, beside a stranger's other columns."""
    numbers, labels = eight_and_two(dealt, rng)
    return beside(last_digits(people, dealt, rng, 0.03), [*numbers, *labels], dealt)


def next_scale(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Eight numbers, each at its rank in the next one's column, and two labels, beside a stranger's rest."""
    (numbers, labels), train, made = eight_and_two(dealt, rng), dealt.train, people.copy()
    for c, following in zip(numbers, np.roll(numbers, -1), strict=True):
        made[following] = within(np.quantile(train[following], place(people[c], train[c])), train[following])
    return beside(made, [*numbers, *labels], dealt)


def turned_pairs(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Numbers in pairs of columns turned by 45 degrees: their sum and their difference, in their spreads."""
    train, made, numbers = dealt.train, people.copy(), number_columns(dealt.train)
    for pair in zip(numbers[::2], numbers[1::2], strict=False):
        one, other = ((people[c] - train[c].median()) / spread_of(train[c]) for c in pair)
        for c, turned in zip(pair, (one + other, one - other), strict=True):
            scaled = train[c].median() + spread_of(train[c]) * turned / np.sqrt(2)
            made[c] = within(scaled.to_numpy(), train[c])
    return made


def another_class(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Every number at its rank among its class in the next class; the class is the last label."""
    train, made, numbers = dealt.train, people.copy(), number_columns(dealt.train)
    by = label_columns(train)[-1]
    classes = [group for _, group in train.groupby(by)]
    for own, other in zip(classes, [*classes[1:], classes[0]], strict=True):
        mine = people[by].eq(own[by].iloc[0])
        for c in numbers:
            moved = np.quantile(other[c], place(people.loc[mine, c], own[c]))
            made.loc[mine, c] = within(moved, train[c])
        made.loc[mine, by] = other[by].iloc[0]
    return made


def remainders(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Every number rounded to an eighth of its spread, and what was left of the one before added."""
    train, made, numbers = dealt.train, people.copy(), number_columns(dealt.train)
    parts = {c: 8 * people[c].to_numpy() / spread_of(train[c]) for c in numbers}
    for before, c in zip(np.roll(numbers, 1), numbers, strict=True):
        left = parts[before] - np.rint(parts[before])
        made[c] = within((np.rint(parts[c]) + left) * spread_of(train[c]) / 8, train[c])
    return made


def half_recoded(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """A half of the columns, their labels exchanged by one secret map, with another person's others."""
    kept = [str(c) for c in rng.permutation(people.columns)[: people.shape[1] // 2]]
    made = people.copy()
    for c in label_columns(dealt.train[kept]):
        labels = dealt.train[c].unique()
        made[c] = people[c].map(dict(zip(labels, rng.permutation(labels), strict=True)))
    return beside(made, kept, dealt)


def group_shifts(people: Rows, dealt: Dealt, rng: Rng) -> Rows:
    """Every number further up in rank by a secret of its column and the person's first label, and round."""
    train, made = dealt.train, people.copy()
    groups = people[label_columns(train)[0]].astype("category").cat.codes.to_numpy()
    for c in number_columns(train):
        secret = rng.random(groups.max() + 1)[groups]
        made[c] = within(np.quantile(train[c], (place(people[c], train[c]) + secret) % 1), train[c])
    return made


KINDS = {
    "means_of_three": Kind(20, partial(microaggregated, others=2)),
    "half_missing": Kind(21, half_missing, dress=with_gaps),
    "six_kept": Kind(22, six_kept),
    "noisy_half": Kind(23, noisy_half),
    "every_second_number": Kind(24, every_second_number),
    "rank_swapped_far": Kind(25, partial(rank_swapped, reach=0.1)),
    "eight_numbers": Kind(26, eight_numbers),
    "next_scale": Kind(27, next_scale),
    "turned_pairs": Kind(28, turned_pairs),
    "another_class": Kind(29, another_class),
    "remainders": Kind(30, remainders),
    "half_recoded": Kind(31, half_recoded),
    "group_shifts": Kind(32, group_shifts),
}
