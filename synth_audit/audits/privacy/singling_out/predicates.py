"""Predicates on mixed tables that an adversary would guess from a release, and how many rows each matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes32, Counts32, Floats, Integers, Positions
from synth_audit.audits._shared import drawn
from synth_audit.encode.codes import distinct_numbers, numbered_values, split_rows
from synth_audit.neighbours.coordinates import stable_order
from synth_audit.table.kind import Domain
from synth_audit.table.label_forms import standard_form
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

ABSENT = 0
"""Code of a missing value."""

_FIRST = 64
"""Rows looked at for each predicate before it is asked whether they are enough; then eight times as many."""

_PAIRS = 2**20
"""Pairs of a predicate and a row looked at at a time."""

_LONG = 2**12
"""Rows for each predicate, on average, from which they are met one by one, which reads a third as much."""

_BATCH = 4096
"""Most predicates drawn at a time."""

_ROUNDS = 8
"""How often each outlier is described, every time by other columns."""

Ranges = tuple[Codes32, Codes32]
"""Least and largest codes of ranges; of bins, into which each code of a column falls, shape (last + 1,)."""


@dataclass(frozen=True, eq=False)
class ColumnCodebook:
    """What the codes of each column stand for.

    Attributes:
        names: of the columns, in the order in which predicates number them.
        numeric: whether each holds numbers.
        domains: what may occur in each.
        lasts: the largest code of each column, 0 where all its values are missing; shape (d,).
        values: the distinct values of column j over all tables: numbers ascending, which are read again
            each time, since there may be millions, or labels in any order. The code of ``values(j)[i]`` is
            i + 1.
    """

    names: tuple[str, ...]
    numeric: tuple[bool, ...]
    domains: tuple[Domain, ...]
    lasts: Codes32
    values: Callable[[int], npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class CodedRows:
    """A table prepared for conjunctions of ranges: for each column also its rows in the order of their codes.

    Attributes:
        lexicon: what the codes stand for. codes: shape (d, n).
        order: row positions by ascending code, shape (d, n).
        starts: how many rows have a code below 0, 1, … last + 1, one column after the other; a column may
            have as many codes as there are rows.
        firsts: where each column begins in ``starts``, and their end, shape (d + 1,).
    """

    lexicon: ColumnCodebook
    codes: Codes32
    order: Codes32
    starts: Counts32
    firsts: Positions

    @classmethod
    def of(cls, codes: Codes32, lexicon: ColumnCodebook) -> CodedRows:
        """Sort each column once."""
        firsts = np.cumsum([0, *(lexicon.lasts + 2)])
        order, starts = np.empty_like(codes), np.zeros(firsts[-1], np.int32)
        for j, (column, last) in enumerate(zip(codes, lexicon.lasts, strict=True)):
            order[j] = stable_order(column)
            counts = np.bincount(column, minlength=last + 1)
            np.cumsum(counts, out=starts[firsts[j] + 1 : firsts[j + 1]])
        return cls(lexicon, codes, order, starts, firsts)

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def below(self, columns: Codes32, codes: Codes32) -> Counts32:
        """How many rows have a code of a column below these, shape of both."""
        found: Counts32 = self.starts[self.firsts[columns] + codes]
        return found

    def counts(self, j: int) -> Counts32:
        """How many rows have each code of column j, shape (last + 1,)."""
        return np.diff(self.starts[self.firsts[j] : self.firsts[j + 1]])


@dataclass(frozen=True, eq=False)
class Predicates:
    """Conjunctions of k conditions ``low <= code <= high``, shape (p, k) each.

    A conjunction of fewer conditions repeats one of its own. One with an empty range matches nothing.
    """

    columns: Codes32
    low: Codes32
    high: Codes32

    @classmethod
    def none(cls, k: int) -> Predicates:
        """No predicate of k conditions."""
        return cls(*np.empty((3, 0, k), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def widths(self) -> Integers:
        """How many columns each one asks about, shape (p,)."""
        ordered = np.sort(self.columns, axis=1)
        return np.asarray(1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1), dtype=np.int64)

    def take(self, which: Positions | Bools) -> Predicates:
        """The predicates at these positions, or where the mask is true."""
        return Predicates(self.columns[which], self.low[which], self.high[which])

    def joined(self, other: Predicates) -> Predicates:
        """These, then the others."""
        return Predicates(
            np.concatenate([self.columns, other.columns]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )

    def ordered(self) -> Predicates:
        """The same with the conditions of each sorted, so that equal predicates look alike."""
        place = np.lexsort((self.high, self.low, self.columns), axis=1)
        return Predicates(
            *(np.take_along_axis(x, place, axis=1) for x in (self.columns, self.low, self.high))
        )

    def keys(self) -> list[bytes]:
        """One key each, equal exactly for equal predicates; call on :meth:`ordered` ones."""
        joint = np.ascontiguousarray(np.hstack([self.columns, self.low, self.high]))
        rows: list[bytes] = joint.view(f"V{joint.itemsize * joint.shape[1]}").ravel().tolist()
        return rows


@dataclass(frozen=True, eq=False)
class Matches:
    """What predicates match in one table, shape (p,) each.

    Attributes:
        counts: rows matched; where counting stopped early, at least the limit.
        rows: position of one matching row, -1 where there is none.
    """

    counts: Integers
    rows: Positions

    @property
    def single(self) -> Bools:
        """True where exactly one row is matched."""
        return np.equal(self.counts, 1)


def match(rows: CodedRows, predicates: Predicates, limit: int = 2) -> Matches:
    """Count the rows that each predicate matches, up to ``limit``.

    Only the rows that meet the most selective condition are looked at, a slice of the sorted column: of all
    predicates at once its first rows, then more of it for those that have not matched enough.

    Args:
        limit: counting may stop there; exact below it.
    """
    upto, least = (rows.below(predicates.columns, x) for x in (predicates.high + 1, predicates.low))
    reach = np.maximum(upto - least, 0).astype(np.int64)
    by_reach = np.argsort(reach, axis=1, kind="stable")
    columns, low, high = (
        np.take_along_axis(x, by_reach, axis=1) for x in (predicates.columns, predicates.low, predicates.high)
    )
    begin = rows.below(columns[:, 0], low[:, 0]).astype(np.int64)
    end = begin + reach.min(axis=1, initial=len(rows))
    counts, found = np.zeros(len(reach), dtype=np.int64), np.full(len(reach), -1, dtype=np.intp)
    if reach.shape[1] == 1:  # the slice itself is the answer
        some = np.flatnonzero(end > begin)
        counts, found[some] = end - begin, rows.order[columns[some, 0], begin[some]]
        return Matches(counts, found)
    alive, most = np.flatnonzero(end > begin), _FIRST
    while len(alive):
        for some in np.array_split(alive, -(-len(alive) * min(most, len(rows)) // _PAIRS)):
            stop = np.minimum(end[some], begin[some] + most)
            which, hits = _hits(rows, (columns[some], low[some], high[some]), begin[some], stop)
            counts[some] += np.bincount(which, minlength=len(some))
            first = np.flatnonzero(np.diff(which, prepend=-1))
            unfound = first[found[some[which[first]]] < 0]
            found[some[which[unfound]]] = hits[unfound]
            begin[some] = stop
        alive, most = alive[(counts[alive] < limit) & (begin[alive] < end[alive])], most * 8
    return Matches(counts, found)


def fresh(predicates: Predicates, seen: set[bytes]) -> Predicates:
    """Those not seen before, each once, in their order; they are added to ``seen``."""
    alike = predicates.ordered()
    keep = np.zeros(len(alike), dtype=bool)
    for i, key in enumerate(alike.keys()):
        if key not in seen:
            seen.add(key)
            keep[i] = True
    return alike.take(keep)


def _hits(
    rows: CodedRows, conditions: tuple[Codes32, Codes32, Codes32], begin: Integers, end: Integers
) -> tuple[Positions, Codes32]:
    """Which predicate is met by which row, of those that stand at ``begin`` … ``end`` − 1 in the order of its
    first column and so meet its first condition; ascending by predicate, then in that order."""
    columns, low, high = conditions
    length = end - begin
    if 0 < _LONG * len(length) <= length.sum():
        each = [_met(rows, *(x[i] for x in (*conditions, begin, end))) for i in range(len(length))]
        return np.repeat(np.arange(len(each)), [*map(len, each)]), np.concatenate(each)
    which = np.repeat(np.arange(len(length)), length)
    place = np.arange(len(which)) + np.repeat(begin - (np.cumsum(length) - length), length)
    hits = rows.order[columns[which, 0], place]
    for i in range(1, columns.shape[1]):
        codes = rows.codes[columns[which, i], hits]
        inside = (codes >= low[which, i]) & (codes <= high[which, i])
        which, hits = which[inside], hits[inside]
    return which, hits


def _met(
    rows: CodedRows, columns: Codes32, low: Codes32, high: Codes32, begin: np.int64, end: np.int64
) -> Codes32:
    """The rows that meet one predicate, of those that stand there in the order of its first column."""
    hits: Codes32 = rows.order[columns[0], begin:end]
    for column, least, most in zip(columns[1:], low[1:], high[1:], strict=True):
        codes = rows.codes[column][hits]
        hits = hits[(codes >= least) & (codes <= most)]
    return hits


def univariate(synthetic: CodedRows, n: int, rng: np.random.Generator) -> Predicates:
    """Every predicate on one column that matches exactly one synthetic row, or a random n of them.

    Values that occur once (``==``), extremes (``<= min``, ``>= max``) and "is missing", where only one row
    is. They are a finite set: when fewer than n exist, all are guessed.
    """
    # Of millions of values only those that are drawn become predicates.
    ends = np.cumsum([len(_single_values(synthetic, j)[0]) for j in range(len(synthetic.lexicon))])
    chosen = drawn(np.arange(ends[-1]), n, rng)
    columns = np.searchsorted(ends, chosen, side="right").astype(np.int32)
    low, high = np.empty((2, len(chosen), 1), np.int32)
    for j in np.unique(columns):
        here = columns == j
        for out, singles in zip((low, high), _single_values(synthetic, j), strict=True):
            out[here, 0] = singles[chosen[here] - (ends[j] - len(singles))]
    return Predicates(columns[:, None], low, high)


def multivariate(
    synthetic: CodedRows, k: int, n: int, max_trials: int, rng: np.random.Generator
) -> Predicates:
    """Conjunctions over k random columns of a random synthetic row that match no other synthetic row.

    ``==`` for labels and booleans; for numbers and datetimes ``>=`` where the value is above the synthetic
    median, else ``<=``; "is missing" where it is. Drawn until n distinct ones match exactly one row, or
    ``max_trials`` were tried. Source: Giomi et al. 2022, section 4.1.

    Args:
        k: conditions, from 1 to the number of columns.
    """
    lexicon = synthetic.lexicon
    medians = np.array([_median_code(synthetic, j) for j in range(len(lexicon))])
    numeric = np.array(lexicon.numeric)

    def draw(size: int) -> Predicates:
        columns = _subsets(len(lexicon), k, size, rng)
        codes = synthetic.codes[columns, rng.integers(0, len(synthetic), size)[:, None]]
        ranged = numeric[columns] & (codes != ABSENT)
        above = codes > medians[columns]
        low = np.where(ranged & ~above, 1, codes)
        high = np.where(ranged & above, lexicon.lasts[columns], codes)
        return Predicates(columns, low.astype(np.int32), high.astype(np.int32))

    return _searched(synthetic, draw, k, n, max_trials)


def guided(
    synthetic: CodedRows, outliers: Positions, n: int, n_bins: int, rng: np.random.Generator
) -> Predicates:
    """Conjunctions of the bins of outlying synthetic rows, each grown until it matches that row alone.

    Columns are added in random order. A number is read as its quantile bin in the release, the outer bins
    open outwards; a label as itself. In each round every outlier is described once, the most outlying
    first. Source: contrastive privacy metrics, section 4.2.

    Args:
        outliers: positions of synthetic rows, the most outlying first.
    """
    d, seen = len(synthetic.lexicon), set[bytes]()
    bins = [_bins(synthetic, j, n_bins) for j in range(d)]
    found = Predicates.none(d)
    for _ in range(_ROUNDS):
        grown = [_grown(synthetic, row, rng.permutation(d).tolist(), bins) for row in outliers]
        if unique := [g for g in grown if g is not None]:
            found = found.joined(fresh(Predicates(*np.stack(unique, axis=1)), seen))
        if len(found) >= n:
            break
    return found.take(np.arange(min(n, len(found))))


def outlying(
    synthetic: CodedRows,
    outliers: Positions,
    k: int,
    n: int,
    n_bins: int,
    max_trials: int,
    rng: np.random.Generator,
) -> Predicates:
    """Conjunctions over k random columns of outlying synthetic rows that match no other row, as published.

    A number is read as its bin when the column's range in the release is cut into equally wide ones, the
    outer two open outwards; a label as itself. Outliers take turns, the most outlying first, until n distinct
    predicates match exactly one row, or ``max_trials`` were tried. Source: contrastive privacy metrics,
    sections 4.2 and 5.2.

    Args:
        outliers: positions of synthetic rows, the most outlying first; at least one.
        k: conditions, from 1 to the number of columns.
    """
    d, turns = len(synthetic.lexicon), count()
    bins = [_range_bins(synthetic, j, n_bins) for j in range(d)]

    def draw(size: int) -> Predicates:
        rows = outliers[[next(turns) % len(outliers) for _ in range(size)]]
        columns = _subsets(d, k, size, rng)
        codes = synthetic.codes[columns, rows[:, None]]
        low, high = np.empty((2, size, k), dtype=np.int32)
        for j, (least, most) in enumerate(bins):
            here = columns == j
            low[here], high[here] = least[codes[here]], most[codes[here]]
        return Predicates(columns, low, high)

    return _searched(synthetic, draw, k, n, max_trials)


@dataclass(frozen=True, eq=False)
class NaiveDraws:
    """Draws from which predicates are made without the release, shape (n, k) each.

    Drawn independently, some perhaps twice: what counts is the chance of one such guess.

    Attributes:
        columns: k random ones. uniform: where in the domain the value lies, in [0, 1). upwards: whether
            numbers are asked for from there up.
    """

    columns: Codes32
    uniform: Floats
    upwards: Bools

    @classmethod
    def of(cls, d: int, k: int, n: int, rng: np.random.Generator) -> NaiveDraws:
        """Draw n guesses at k of d columns."""
        columns = _subsets(d, k, n, rng)
        return cls(columns, rng.random(columns.shape), rng.random(columns.shape) < 0.5)


def naive(lexicon: ColumnCodebook, draws: Sequence[NaiveDraws]) -> list[Predicates]:
    """Predicates made without the release: random columns, values uniform in each column's domain.

    A label or boolean is drawn from the column's categories, with ``==``; a number from its bounds, with
    ``>=`` or ``<=`` at even odds. A column without a domain, as it is wholly missing, asks for that.
    The values of each column are read once for all draws.
    """
    made = [Predicates(d.columns, *np.zeros((2, *d.columns.shape), dtype=np.int32)) for d in draws]
    for j in range(len(lexicon)):
        values = lexicon.values(j)
        for draw, guess in zip(draws, made, strict=True):
            here = draw.columns == j
            ranges = _from_domain(lexicon, j, values, draw.uniform[here], draw.upwards[here])
            guess.low[here], guess.high[here] = ranges
    return made


def _searched(
    synthetic: CodedRows, draw: Callable[[int], Predicates], k: int, n: int, max_trials: int
) -> Predicates:
    """Draw until n distinct predicates match exactly one synthetic row, or trials run out."""
    found, trials, seen = Predicates.none(k), 0, set[bytes]()
    while len(found) < n and trials < max_trials:
        size = min(_BATCH, max(256, 2 * n), max_trials - trials)
        trials += size
        new = fresh(draw(size), seen)
        if not len(new):
            break  # as good as all that can be drawn have been
        found = found.joined(new.take(match(synthetic, new).single))
    return found.take(np.arange(min(n, len(found))))


def _single_values(synthetic: CodedRows, j: int) -> Ranges:
    """Ranges of codes of column j that hold exactly one synthetic row: one value, or up to an extreme."""
    counts, last = synthetic.counts(j), synthetic.lexicon.lasts[j]
    single = np.flatnonzero(counts == 1).astype(np.int32)
    missing, n = int(counts[0]), len(synthetic)
    if not synthetic.lexicon.numeric[j] or missing == n:
        return single, single
    least, most = synthetic.codes[j, synthetic.order[j, [missing, n - 1]]].tolist()
    ends = [(1, least)] * bool(counts[least] == 1) + [(most, last)] * bool(counts[most] == 1)
    low, high = (np.append(single, np.array([e[i] for e in ends], dtype=np.int32)) for i in (0, 1))
    return low, high


def _median_code(rows: CodedRows, j: int) -> int:
    """Code of the lower of the two middle values: a value is above the median when its code is larger."""
    missing, total = int(rows.counts(j)[0]), len(rows)
    if missing == total:
        return ABSENT
    middle = missing + (total - missing - 1) // 2
    return int(rows.codes[j, rows.order[j, middle]])


def _subsets(d: int, k: int, size: int, rng: np.random.Generator) -> Codes32:
    """``size`` random sets of k of d columns, shape (size, k), ascending."""
    return np.sort(np.argsort(rng.random((size, d)), axis=1)[:, :k], axis=1).astype(np.int32)


def _bins(rows: CodedRows, j: int, n_bins: int) -> Ranges:
    """Bins of column j that hold about as many synthetic rows each."""
    missing, last = int(rows.counts(j)[0]), rows.lexicon.lasts[j]
    if not rows.lexicon.numeric[j] or missing == len(rows):
        return _each_its_own(last)
    ranks = missing + (np.arange(1, n_bins) * (len(rows) - missing)) // n_bins
    return _between(rows.codes[j, rows.order[j, ranks]], last)


def _range_bins(rows: CodedRows, j: int, n_bins: int) -> Ranges:
    """Bins of column j that are equally wide in the range of its synthetic values."""
    present, last = np.flatnonzero(rows.counts(j)[1:]), rows.lexicon.lasts[j]
    if not rows.lexicon.numeric[j] or not len(present):
        return _each_its_own(last)
    values, part = rows.lexicon.values(j), np.arange(1, n_bins) / n_bins
    edges = values[present[0]] * (1 - part) + values[present[-1]] * part  # a difference could overflow
    return _between(np.searchsorted(values, edges) + 1, last)


def _each_its_own(last: int) -> Ranges:
    code = np.arange(last + 1, dtype=np.int32)
    return code, code


def _between(firsts: npt.NDArray[np.integer], last: int) -> Ranges:
    """Bins that begin at these codes, the lowest from 1 on and the highest up to the last."""
    edges = np.unique(np.concatenate([[1], firsts, [last + 1]]))
    place = np.searchsorted(edges, np.arange(1, last + 1), side="right")
    low = np.concatenate([[ABSENT], edges[place - 1]]).astype(np.int32)
    high = np.concatenate([[ABSENT], edges[place] - 1]).astype(np.int32)
    return low, high


def _grown(rows: CodedRows, row: int, columns: list[int], bins: list[Ranges]) -> Codes32 | None:
    """Conditions on this row until no other row meets them, the first repeated to fill up; shape (3, d)."""
    conditions: list[tuple[int, int, int]] = []
    matched: Codes32 | None = None
    for j in columns:
        code = rows.codes[j, row]
        low, high = int(bins[j][0][code]), int(bins[j][1][code])
        conditions.append((j, low, high))
        if matched is None:
            first = rows.firsts[j]
            matched = rows.order[j, rows.starts[first + low] : rows.starts[first + high + 1]]
        else:
            codes = rows.codes[j][matched]
            matched = matched[(codes >= low) & (codes <= high)]
        if len(matched) == 1:
            return np.array(conditions + [conditions[0]] * (len(columns) - len(conditions)), np.int32).T
    return None


def _from_domain(
    lexicon: ColumnCodebook, j: int, values: npt.NDArray[Any], uniform: Floats, upwards: Bools
) -> Ranges:
    """Ranges of codes for uniform draws from the domain of column j with these values, shape (n,) each."""
    domain, last = lexicon.domains[j], lexicon.lasts[j]
    if lexicon.numeric[j] and domain.bounds is not None:
        least, most = domain.bounds
        drawn = least * (1 - uniform) + most * uniform  # a difference of the two could overflow
        below, upto = np.searchsorted(values, drawn, "left"), np.searchsorted(values, drawn, "right")
        low, high = np.where(upwards, below + 1, 1), np.where(upwards, last, upto)
    elif domain.categories and not lexicon.numeric[j]:
        code_of = {label: i + 1 for i, label in enumerate(values.tolist())}
        # A label that no row has gets an empty range of its own, so that it is still a guess.
        known = [code_of.get(c, 0) for c in domain.categories]
        low = np.array(known)[np.minimum((uniform * len(known)).astype(np.intp), len(known) - 1)]
        high = np.where(low == 0, -1, low)
    else:
        low = high = np.full(len(uniform), ABSENT)
    return low.astype(np.int32), high.astype(np.int32)


def codebook(tables: Sequence[Table], columns: Sequence[Column]) -> tuple[ColumnCodebook, list[Codes32]]:
    """Number the values of several tables alike: what the codes mean, and those of each table, shape (d, n).

    Numbers are compared as float64, datetimes in microseconds; NaN and null are missing.

    Raises:
        ValueError: no column.
    """
    if not columns:
        raise ValueError("predicates need a column")
    labels, lasts = dict[int, npt.NDArray[Any]](), np.zeros(len(columns), np.int32)
    codes = [np.empty((len(columns), t.n_rows), dtype=np.int32) for t in tables]
    for j, column in enumerate(columns):  # one at a time beside the codes, which are all that stays
        distinct, numbered = numbered_values(tables, column)
        lasts[j] = len(distinct)
        if distinct.dtype == object:
            labels[j] = distinct
        for rows, part in zip(codes, split_rows(numbered, tables), strict=True):
            rows[j] = part

    def values(j: int) -> npt.NDArray[Any]:
        return labels[j] if j in labels else distinct_numbers(tables, columns[j])

    lexicon = ColumnCodebook(
        names=tuple(c.name for c in columns),
        numeric=tuple(j not in labels for j in range(len(columns))),
        domains=tuple(map(_domain, columns)),
        lasts=lasts,
        values=values,
    )
    return lexicon, codes


def _domain(column: Column) -> Domain:
    """What may occur, labels in standard form."""
    forms = dict.fromkeys(map(standard_form, column.domain.categories or ()))
    return replace(column.domain, categories=tuple(forms))
