"""Which sets of known columns are tried: pairs, larger sets, differences, and columns drawn together."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import comb

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.audits.privacy._known_columns import KnownColumn, grown, strongest_pairs
from synth_audit.audits.privacy._secrets import AskedPeople, Knowledge, by_halves
from synth_audit.audits.privacy.partial_knowledge.weak_blocks import Columns, weak_sets
from synth_audit.encode.encoded import Encoded, ScaledNumbers
from synth_audit.encode.scales import RobustScale
from synth_audit.table.kind import TIME
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

LARGEST = 5
"""Columns that the adversary knows at most."""

_NARROW = 4
"""Columns up to which single ones are tried too."""

Look = Callable[[int], Floats]
"""How much each pair of columns stands out on one half of the people; (d, d)."""

Parents = Sequence[tuple[int, ...]]
"""Of each column, the two whose difference it is; empty for a column of the table."""

_SIZES = {2: "pairs", 3: "triples", 4: "quadruples", 5: "quintuples"}

_FEWEST_EQUAL = 3
"""Columns drawn together from which on claims are made of all equal rows too."""

MOST_DIFFERENCES, MOST_NUMBERS = 12, 4
"""Differences that are taken at most, and such of other numbers than dates and times among them."""

_OVERLAP = 0.5
"""Part of the narrower central range that must lie in the other for numbers to be of one sort."""


def sets_to_try(
    columns: Sequence[KnownColumn],
    derived: Sequence[KnownColumn],
    groups: Sequence[Sequence[int]],
    people: AskedPeople,
    budget: int,
    stream: Callable[[str], np.random.Generator],
) -> tuple[list[Knowledge], list[Columns], str]:
    """Sets of known columns, each once for each half that may choose it.

    Args:
        columns: rows of the release first, then those of the people. derived: differences of them.
        groups: positions of columns that the generator drew together.
        stream: draws of each sort of sets.

    Returns:
        Also blocks of columns that tell little each, and how many sets there are, for a reader.
    """
    d = len(columns)
    drawn, guided = column_sets(d, budget, lambda half: people.looked_at(columns, half), stream("sets"))
    blocks, weak = weak_sets(columns, len(columns[0].labels) - len(people.member), stream("weak"))
    together = together_sets(groups, budget, stream("together"))
    # The only interval there is may be told to the minute, and give away what else was copied.
    alone = len(derived) == 1 and derived[0].unit == TIME
    of_derived = [column.parents for column in derived]
    with_derived = derived_sets(d, of_derived, budget // 4, stream("derived"), alone=alone)
    sets = by_halves(drawn, guided)
    found = [Knowledge(s, halves) for s, halves in sets.items()]
    found += [Knowledge(s) for s in with_derived]
    found += [Knowledge(s, together=True) for s in together if s not in sets]
    found += [Knowledge(s, equal=True) for s in weak]
    # Of labels that tell little each many strangers share all but one too: a claim need not be rare.
    equal = [s for s in together if len(s) >= _FEWEST_EQUAL and s not in weak]
    found += [Knowledge(s, equal=True, together=True) for s in equal]
    tried, there = Counter(map(len, sets)), {k: comb(d, k) for k in _SIZES}
    told = [f"{tried[k]:,} of {n:,} {_SIZES[k]}" for k, n in there.items() if n]
    if with_derived:
        told.append(f"{len(with_derived)} sets with differences of columns")
    if together:
        told.append(f"{len(together)} sets of columns that the generator drew together")
    if sizes := [len(s) for s in weak]:
        told.append(f"{len(sizes)} sets of {min(sizes)} to {max(sizes)} that tell little each")
    return found, blocks, f"known columns tried: {', '.join(told) or 'the only one'}"


def column_sets(
    d: int, budget: int, look: Look, rng: np.random.Generator
) -> tuple[tuple[Columns, ...], tuple[tuple[Columns, ...], ...]]:
    """Choose sets of d columns: such as both halves of the people may choose, and those that each half found.

    Where three fifths of the budget hold all pairs these are tried, and with the rest triples, quadruples and
    quintuples at random, in equal parts. Otherwise a fifth each goes to random pairs, to random larger sets
    and, on each half of the people, to the pairs that stand out most and (half as many) what these grow to.
    In a narrow table single columns are tried too: who knows two of three may know all that was copied
    together.
    """
    every = comb(d, 2) <= budget * 3 // 5
    drawn = drawn_of(d, 2, budget * 3 // 5 if every else budget // 5, rng)
    if d <= _NARROW:
        drawn += [(i,) for i in range(d)]
    left = budget - len(drawn) if every else budget // 5
    for k in range(3, LARGEST + 1):
        found = drawn_of(d, k, left // (LARGEST + 1 - k), rng)
        drawn += found
        left -= len(found)
    guided: list[tuple[Columns, ...]] = [(), ()]
    for half in () if every else (0, 1):
        apart, most, sizes = look(half), budget // 5, range(3, LARGEST + 1)
        pairs = strongest_pairs(apart, most)
        larger = [grown(apart, pair, k) for pair in pairs[: most // (2 * len(sizes))] for k in sizes]
        guided[half] = tuple(dict.fromkeys([*pairs, *larger]))
    return tuple(drawn), tuple(guided)


def drawn_of(d: int, k: int, most: int, rng: np.random.Generator) -> list[Columns]:
    """All sets of k of d columns, or so many of them at random, each once."""
    if comb(d, k) <= most:
        return list(combinations(range(d), k))
    found: dict[Columns, None] = {}
    while len(found) < most:
        found[tuple(sorted(rng.choice(d, k, replace=False).tolist()))] = None
    return list(found)


def derived_sets(
    d: int, parents: Parents, budget: int, rng: np.random.Generator, *, alone: bool = False
) -> tuple[Columns, ...]:
    """About ``budget`` sets: half pairs of differences; a quarter each triples, and one beside a column.

    None holds a column that follows from its others.

    Args:
        d: columns of the table; the differences, whose parents are given, stand behind them.
        alone: whether each is also tried alone.
    """
    of = [*([()] * d), *parents]
    made = range(d, len(of))
    families: list[tuple[list[Columns], int]] = [
        (list(combinations(made, 2)), budget // 2),
        (list(combinations(made, 3)), budget // 4),
        ([(column, one) for one, column in product(made, range(d))], budget // 4),
    ]
    if alone:
        families.append(([(i,) for i in made], len(parents)))
    found: list[Columns] = []
    for family, most in families:
        able = [s for s in family if not any(i in following([j for j in s if j != i], of) for i in s)]
        found += [able[i] for i in np.sort(rng.permutation(len(able))[:most])]
    return tuple(found)


def following(known: Sequence[int], parents: Parents) -> set[int]:
    """All columns that are known where these are: themselves, and what differences tell of others.

    Of a difference that is known, both columns are told not to be missing, but not their values.
    """
    group = list(range(len(parents)))
    for column in known:
        if parents[column]:
            first, second = (group[i] for i in parents[column])
            group = [first if g == second else g for g in group]
    told = {group[i] for i in known if not parents[i]}
    return {
        i
        for i, of in enumerate(parents)
        if (all(group[j] in told for j in of) or len({group[j] for j in of}) == 1 if of else group[i] in told)
    }


def together_sets(
    groups: Sequence[Sequence[int]], budget: int, rng: np.random.Generator
) -> tuple[Columns, ...]:
    """About ``budget`` sets, none of which crosses groups, in equal parts for each group.

    Of a group all pairs are tried, or three fifths of its budget at random; then all its columns but one, so
    far as a fifth allows; then triples to quintuples. In a group of two, each column alone. A generator keeps
    what it copies within a group, and who knows some of that needs nothing of the others.

    Args:
        groups: positions of columns; each column in one group at most.
    """
    able = [sorted(group) for group in groups if len(group) > 1]
    found: dict[Columns, None] = {}
    for group in able:
        n, own = len(group), max(budget // len(able), LARGEST)
        places: list[Columns] = [(0,), (1,)]
        if n > 2:
            places = drawn_of(n, 2, min(comb(n, 2), own * 3 // 5), rng)
            most = list(combinations(range(n), n - 1))
            places += [most[i] for i in np.sort(rng.permutation(n)[: max(own // 5, LARGEST)])]
            for k in range(3, min(LARGEST, n - 2) + 1):
                places += drawn_of(n, k, max(0, own - len(places)) // (LARGEST + 1 - k), rng)
        found |= dict.fromkeys(tuple(group[i] for i in chosen) for chosen in places)
    return tuple(found)


def differences(
    known: Sequence[KnownColumn],
    tables: Sequence[Table],
    features: Sequence[Column],
    reference: Sequence[Table],
) -> list[KnownColumn]:
    """What pairs of columns differ by, of those whose differences have a meaning.

    These are dates and times with one another; and numbers of the same unit, as far as there is one, that
    are given equally finely and lie in one range: those that overlap most.

    Args:
        known: columns that vary, whose rows are those of the tables. features: all columns.
        reference: train first, and control.
    """
    place = {column.name: i for i, column in enumerate(known)}
    varying = [column for column in features if column.name in place]
    numbers = [p for p in Encoded(tables, varying, reference).parts if isinstance(p, ScaledNumbers)]
    pairs = [(a, b) for a, b in combinations(numbers, 2) if a.part.unit == b.part.unit is not None]
    times = [pair for pair in pairs if pair[0].part.unit == TIME]
    others = sorted(
        (pair for pair in pairs if pair[0].part.unit != TIME and _overlap(*pair) >= _OVERLAP),
        key=lambda pair: -_overlap(*pair),
    )
    found = []
    for a, b in (times + others[:MOST_NUMBERS])[:MOST_DIFFERENCES]:
        scale, name = RobustScale.of(_apart(a, b, reference)), f"{b.column.name} less {a.column.name}"
        column = KnownColumn.of_numbers(name, *scale.read(_apart(a, b, tables)))
        parents = place[a.column.name], place[b.column.name]
        found.append(replace(column, parents=parents, unit=a.part.unit))
    return found


def _apart(first: ScaledNumbers, second: ScaledNumbers, tables: Sequence[Table]) -> Floats:
    """Second less first, NaN where either is missing; rows of all tables one below the other."""
    a, b = (
        np.concatenate([side.part.read(table.column(side.column.name)) for table in tables])
        for side in (first, second)
    )
    with np.errstate(over="ignore"):
        found = b - a
    return np.where(np.isfinite(found), found, np.nan)


def _overlap(first: ScaledNumbers, second: ScaledNumbers) -> float:
    """Part of the narrower central range that lies in the other; 0 where they are not given as finely."""
    a, b = first.scale, second.scale
    if first.column.resolution != second.column.resolution or not np.isfinite([a.span, b.span]).all():
        return 0.0
    high = min(a.centre + a.span / 2, b.centre + b.span / 2)
    low = max(a.centre - a.span / 2, b.centre - b.span / 2)
    return max(0.0, high - low) / min(a.span, b.span)
