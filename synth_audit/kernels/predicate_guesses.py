"""Predicates that an adversary would guess from a release: each matches exactly one of its rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.kernels.predicates import (
    ABSENT,
    CodedRows,
    ColumnCodebook,
    Predicates,
    crowded,
    fresh,
    match,
)

_BATCH = 4096
"""Most predicates drawn at a time."""

_SIEVES = (512, 2**13)
"""Synthetic rows among which predicates that are not unique mostly show it, before all rows are asked."""

_ROUNDS = 8
"""How often each outlier is described, every time by other columns."""


def univariate(synthetic: CodedRows, lexicon: ColumnCodebook, n: int, rng: np.random.Generator) -> Predicates:
    """Every predicate on one column that matches exactly one synthetic row, or a random n of them.

    Values that occur once (``==``), extremes (``<= min``, ``>= max``) and "is missing", where only one row
    is. They are a finite set: when fewer than n exist, all are guessed.
    """
    found = [_single_values(synthetic, lexicon, j) for j in range(len(lexicon))]
    ends = np.cumsum([len(low) for low, _ in found])
    if (total := int(ends[-1])) > n:
        chosen = np.sort(rng.choice(total, n, replace=False))
    else:
        chosen = np.arange(total)
    columns = np.searchsorted(ends, chosen, side="right").astype(np.int32)
    # Of millions of values only those that are drawn become predicates.
    parts = [chosen[columns == j] - (ends[j] - len(low)) for j, (low, _) in enumerate(found)]
    low, high = (
        np.concatenate([pair[i][part] for pair, part in zip(found, parts, strict=True)]) for i in (0, 1)
    )
    return Predicates(columns[:, None], low[:, None], high[:, None])


def multivariate(
    synthetic: CodedRows, lexicon: ColumnCodebook, k: int, n: int, max_trials: int, rng: np.random.Generator
) -> Predicates:
    """Conjunctions over k random columns of a random synthetic row that match no other synthetic row.

    ``==`` for labels and booleans; for numbers and datetimes ``>=`` where the value is above the synthetic
    median, else ``<=``; "is missing" where it is. Drawn until n distinct ones match exactly one row, or
    ``max_trials`` were tried. Source: Giomi et al. 2022, section 4.1.

    Args:
        k: conditions, from 1 to the number of columns.
    """
    medians = np.array([_median_code(synthetic, j) for j in range(len(lexicon))])
    lasts = np.array(lexicon.lasts)
    numeric = np.array(lexicon.numeric)

    def draw(size: int) -> Predicates:
        columns = _subsets(len(lexicon), k, size, rng)
        codes = synthetic.codes[columns, rng.integers(0, len(synthetic), size)[:, None]]
        ranged = numeric[columns] & (codes != ABSENT)
        above = codes > medians[columns]
        low = np.where(ranged & ~above, 1, codes)
        high = np.where(ranged & above, lasts[columns], codes)
        return Predicates(columns, low.astype(np.int32), high.astype(np.int32))

    return _searched(synthetic, draw, k, n, max_trials)


def guided(
    synthetic: CodedRows,
    lexicon: ColumnCodebook,
    outliers: Positions,
    n: int,
    n_bins: int,
    rng: np.random.Generator,
) -> Predicates:
    """Conjunctions of the bins of outlying synthetic rows, each grown until it matches that row alone.

    Columns are added in random order. A number is read as its quantile bin in the release, the outer bins
    open outwards; a label as itself. In each round every outlier is described once, the most outlying
    first. Source: contrastive privacy metrics, section 4.2.

    Args:
        outliers: positions of synthetic rows, the most outlying first.
    """
    d = len(lexicon)
    bins = [_bins(synthetic, lexicon, j, n_bins) for j in range(d)]
    seen: set[bytes] = set()
    found = Predicates.none(d)
    for _ in range(_ROUNDS):
        grown = [_grown(synthetic, row, rng.permutation(d).tolist(), bins) for row in outliers]
        unique = [g for g in grown if g is not None]
        if unique:
            stacked = Predicates(*np.array(unique, dtype=np.int32).transpose(1, 0, 2))
            found = found.joined(fresh(stacked, seen))
        if len(found) >= n:
            break
    return found.take(np.arange(min(n, len(found))))


def outlying(
    synthetic: CodedRows,
    lexicon: ColumnCodebook,
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
    d, turns = len(lexicon), count()
    bins = [_range_bins(synthetic, lexicon, j, n_bins) for j in range(d)]

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


def naive(lexicon: ColumnCodebook, k: int, n: int, rng: np.random.Generator) -> Predicates:
    """n predicates made without the release: k random columns, values uniform in each column's domain.

    A label or boolean is drawn from the column's categories, with ``==``; a number from its bounds, with
    ``>=`` or ``<=`` at even odds. A column without a domain, as it is wholly missing, asks for that.
    Drawn independently, some perhaps twice: what counts is the chance of one such guess.
    """
    columns = _subsets(len(lexicon), k, n, rng)
    uniform, upwards = rng.random(columns.shape), rng.random(columns.shape) < 0.5
    low, high = np.zeros((2, *columns.shape), dtype=np.int32)
    for j in range(len(lexicon)):
        here = columns == j
        low[here], high[here] = _from_domain(lexicon, j, uniform[here], upwards[here])
    return Predicates(columns, low, high)


def _searched(
    synthetic: CodedRows, draw: Callable[[int], Predicates], k: int, n: int, max_trials: int
) -> Predicates:
    """Draw until n distinct predicates match exactly one synthetic row, or trials run out."""
    seen: set[bytes] = set()
    found, trials = Predicates.none(k), 0
    sieves = [np.linspace(0, len(synthetic) - 1, m).astype(np.intp) for m in _SIEVES if m < len(synthetic)]
    while len(found) < n and trials < max_trials:
        size = min(_BATCH, max(256, 2 * n), max_trials - trials)
        trials += size
        new = fresh(draw(size), seen)
        if not len(new):
            break  # as good as all that can be drawn have been
        for some in sieves:
            new = new.take(~crowded(synthetic, some, new))
        found = found.joined(new.take(match(synthetic, new).single))
    return found.take(np.arange(min(n, len(found))))


def _single_values(
    synthetic: CodedRows, lexicon: ColumnCodebook, j: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Ranges of codes of column j that hold exactly one synthetic row: one value, or up to an extreme."""
    counts, last = np.diff(synthetic.starts[j]), lexicon.last(j)
    single = np.flatnonzero(counts == 1).astype(np.int32)
    present = np.flatnonzero(counts[1:]) + 1
    if not lexicon.numeric[j] or not len(present):
        return single, single
    least, most = int(present[0]), int(present[-1])
    ends = [(1, least)] * bool(counts[least] == 1) + [(most, last)] * bool(counts[most] == 1)
    low, high = (np.append(single, np.array([e[i] for e in ends], dtype=np.int32)) for i in (0, 1))
    return low, high


def _median_code(rows: CodedRows, j: int) -> int:
    """Code of the lower of the two middle values: a value is above the median when its code is larger."""
    starts = rows.starts[j]
    missing, total = int(starts[1]), len(rows)
    if missing == total:
        return ABSENT
    middle = missing + (total - missing - 1) // 2
    return int(rows.codes[j, rows.order[j, middle]])


def _subsets(d: int, k: int, size: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """``size`` random sets of k of d columns, shape (size, k), ascending."""
    return np.sort(np.argsort(rng.random((size, d)), axis=1)[:, :k], axis=1).astype(np.int32)


Bins = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
"""Ends of the range of codes into which each code of a column falls, shape (last + 1,) each."""


def _bins(rows: CodedRows, lexicon: ColumnCodebook, j: int, n_bins: int) -> Bins:
    """Bins of column j that hold about as many synthetic rows each."""
    missing = int(rows.starts[j][1])
    if not lexicon.numeric[j] or missing == len(rows):
        return _each_its_own(lexicon.last(j))
    ranks = missing + (np.arange(1, n_bins) * (len(rows) - missing)) // n_bins
    return _between(rows.codes[j, rows.order[j, ranks]], lexicon.last(j))


def _range_bins(rows: CodedRows, lexicon: ColumnCodebook, j: int, n_bins: int) -> Bins:
    """Bins of column j that are equally wide in the range of its synthetic values."""
    present = np.flatnonzero(np.diff(rows.starts[j])[1:])
    if not lexicon.numeric[j] or not len(present):
        return _each_its_own(lexicon.last(j))
    values, part = lexicon.values[j], np.arange(1, n_bins) / n_bins
    edges = values[present[0]] * (1 - part) + values[present[-1]] * part  # a difference could overflow
    return _between(np.searchsorted(values, edges) + 1, lexicon.last(j))


def _each_its_own(last: int) -> Bins:
    code = np.arange(last + 1, dtype=np.int32)
    return code, code


def _between(firsts: npt.NDArray[np.integer], last: int) -> Bins:
    """Bins that begin at these codes, the lowest from 1 on and the highest up to the last."""
    edges = np.unique(np.concatenate([[1], firsts, [last + 1]]))
    place = np.searchsorted(edges, np.arange(1, last + 1), side="right")
    low = np.concatenate([[ABSENT], edges[place - 1]]).astype(np.int32)
    high = np.concatenate([[ABSENT], edges[place] - 1]).astype(np.int32)
    return low, high


def _grown(
    rows: CodedRows, row: int, columns: list[int], bins: list[Bins]
) -> tuple[list[int], list[int], list[int]] | None:
    """Conditions on this row, added until no other row meets them, and the first repeated to fill up."""
    conditions: list[tuple[int, int, int]] = []
    matched: npt.NDArray[np.int32] | None = None
    for j in columns:
        code = rows.codes[j, row]
        low, high = int(bins[j][0][code]), int(bins[j][1][code])
        conditions.append((j, low, high))
        if matched is None:
            matched = rows.order[j, rows.starts[j][low] : rows.starts[j][high + 1]]
        else:
            codes = rows.codes[j][matched]
            matched = matched[(codes >= low) & (codes <= high)]
        if len(matched) == 1:
            filled = conditions + [conditions[0]] * (len(columns) - len(conditions))
            j_s, lows, highs = zip(*filled, strict=True)
            return list(j_s), list(lows), list(highs)
    return None


def _from_domain(
    lexicon: ColumnCodebook, j: int, uniform: Floats, upwards: Bools
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Ranges of codes for uniform draws from the domain of column j, shape (n,) each."""
    domain, values, last = lexicon.domains[j], lexicon.values[j], lexicon.last(j)
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
