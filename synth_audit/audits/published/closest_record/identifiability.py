"""Whose nearest neighbour is it? Identifiability, adversarial accuracy and near hits, each beside control."""

import math

import numpy as np

from synth_audit.arrays import Bools, Floats, Integers, Positions
from synth_audit.audits._shared import drawn, excess_over_control, merit
from synth_audit.encode.codes import column_entropy
from synth_audit.encode.encoded import Encoded
from synth_audit.findings.measurement import Interval, Measurement, Quantity, Reference, SampleCounts
from synth_audit.neighbours.gower import Mixed, nearly_copied
from synth_audit.neighbours.search import Nearest, nearest, nearest_but, nearest_other
from synth_audit.plugins.audit import Subject
from synth_audit.stats.proportions import Proportion
from synth_audit.table.people import key_columns, persons
from synth_audit.table.table import Table

FEWEST_ROWS = 100
"""Fewer rows than this on either side decide nothing: the interval of a share is then wider than ±0.1."""

EPSILON = Quantity(
    "epsilon_identifiability",
    "Training rows nearer to the release than to one another",
    proportional=False,  # copies of others stand nearer to a record that was not copied, too
    help="About half for a faithful release of the same size; its reference is the same for control rows.",
)

EPSILON_LOSS = excess_over_control(
    "epsilon_identifiability_loss",
    "Identifiability beyond that of control people",
    proportional=False,  # f / (2 − f) at a share f of copies
    help="0: training rows are no nearer to the release than control people are; 1: every one of them is.",
)

NNAA = merit(
    "nnaa",
    "Nearest-neighbour adversarial accuracy",
    unit="share",
    proportional=False,  # what a poor generator adds hides what copies take away
    help="0.5: release and train mix like two samples; below: copies; above: easily told apart.",
)

NNAA_LOSS = excess_over_control(
    "nnaa_loss",
    "Adversarial accuracy lost on train beside control",
    help="0: the release mixes with train no more closely than with control.",
)

HITTING_RATE = Quantity(
    "hitting_rate",
    "Training rows with a near copy in the release",
    proportional=False,  # natural near copies are the more frequent the larger the table
    help="Within 1/30 of the range in every number and equal in every label.",
)

HITTING_EXCESS = excess_over_control(
    "hitting_excess",
    "Near copies of training rows beyond those of control people",
    help="Share of training rows with a near copy, less the same share of control rows.",
)

QUANTITIES = (EPSILON, EPSILON_LOSS, NNAA, NNAA_LOSS, HITTING_RATE, HITTING_EXCESS)

_INDEPENDENT = "a release that is independent of the training rows"


def worth(parts: Bools | Floats, n_effective: float) -> Proportion:
    """A mean of zeros and ones (ties in part), and how many independent draws it is worth."""
    # Rounding must not pass the whole.
    return Proportion(min(float(np.mean(parts)) * n_effective, n_effective), n_effective)


def part_nearer(one: Nearest, other: Nearest) -> Floats:
    """Chance that the nearest of both reference sets' rows is one of the first, shape (n,).

    0 or 1, and among tied rows the part that is of the first set. Its expectation is the first set's part of
    all rows if both are drawn alike, exactly and whatever the ties.
    """
    tied = one.first == other.first
    return np.where(tied, one.ties / (one.ties + other.ties), one.first < other.first)


def independent_number(nearest_row: Positions, own: Positions | None = None) -> float:
    """How many independent draws queries are worth when they share nearest rows or are each other's.

    Whether the nearest row is of a certain kind has one answer for all queries that share it, and one for two
    queries that are each other's nearest: such a group of w is worth one draw, so all of them are worth
    ``n² / Σ w²``. Source: Henze 1988, for the role of such pairs in the variance.

    Args:
        nearest_row: position of the row nearest to each of n queries.
        own: positions of the queries themselves in the same count, each once; None when no query can be the
            nearest row of another.
    """
    group = nearest_row
    if own is not None:
        where = np.full(max(int(own.max()), int(nearest_row.max())) + 1, -1, dtype=np.intp)
        where[own] = np.arange(len(own))
        partner = where[nearest_row]
        mutual = (partner >= 0) & (nearest_row[partner] == own)
        group = np.where(mutual, np.minimum(own, nearest_row), nearest_row)
    weights = np.bincount(group).astype(np.float64)
    return len(group) ** 2 / float(np.sum(weights**2))


def persons_of(table: Table) -> Integers | None:
    """The number of the person of each row, shape (n,); None where every row is a person.

    Somebody's other rows are not looked at: who comes three times resembles nobody as much as oneself, and a
    copy of one visit would seem far beside the other two.
    """
    return persons(table) if key_columns(table.schema) else None


def _of_strangers(
    queries: Mixed, table: Mixed, whose: Integers | None, one: int | None, rng: np.random.Generator
) -> Nearest:
    """The nearest row of each query, of as many as a row of the table has beside its own person's.

    Args:
        whose: of :func:`persons_of`.
        one: position of a row that nobody looks at where every row is a person. Elsewhere each query does
            without the rows of a person of its own, drawn by a row of theirs.
    """
    if whose is None:
        return nearest(queries, table, but=one)
    without = whose[rng.integers(len(table), size=len(queries))]
    return nearest_but(queries, table, without, whose)


def most_independent(table: Table, rows: Positions) -> float:
    """How many draws some rows are worth at most: rows of one person may all say the same."""
    return float(len(np.unique(persons(table.take(rows))))) if key_columns(table.schema) else np.inf


def identifiability(subject: Subject, max_rows: int, rng: np.random.Generator) -> list[Measurement]:
    """``ε = share of train rows t with d(t, synthetic) < d(t, train \\ t)``, and the loss beside control.

    Gower's distance with columns weighted by one over the entropy of their values in train, as published; a
    column without entropy tells nobody apart and is left out.

    The loss compares with ``share of control rows c with d(c, synthetic) < d(c, train \\ r)``, r a random
    row of train. Published is ``d(c, control \\ c)``, which has another number of rows to find a near one
    among and so is not 0 for an independent release of an unequal split. Here t and c each face the
    same release and n_train − 1 other rows of train: the expectation is exactly 0, and 1 is reached by a copy
    in which all rows differ. A row in the release is never taken for the record itself.
    Source: Yoon et al. 2020; the comparison is ours.
    """
    tables = [*subject.real, subject.synthetic]
    encoded = Encoded(tables, subject.features)
    told = [column_entropy(subject.train, column) for column in subject.features]
    rows, strangers = (drawn(np.arange(t.n_rows), max_rows, rng) for t in tables[:2])
    each = encoded.mixed_by_range([None, strangers, None], [1 / h if h else 0.0 for h in told])
    train, queries, n_train = next(each), next(each), subject.train.n_rows
    whose = persons_of(subject.train)
    among, asked = nearest_other(train, rows, whose), train.take(rows)
    known_found = _of_strangers(queries, train, whose, _one(n_train, rng), rng)
    del train  # two tables need not be held
    synthetic = next(each)
    to_release, found = nearest(asked, synthetic), nearest(queries, synthetic)
    exposed = to_release.first < among.first
    n = independent_number(_nearest_row(among, to_release, n_train), rows)
    known = worth(exposed, min(n, most_independent(subject.train, rows)))
    n = independent_number(_nearest_row(known_found, found, n_train))
    base = worth(found.first < known_found.first, min(n, most_independent(tables[1], strangers)))
    sizes = len(rows), len(strangers)
    return _beside_control((EPSILON, EPSILON_LOSS), known, base, sizes, subject.level)


def adversarial_accuracy(subject: Subject, max_rows: int, rng: np.random.Generator) -> list[Measurement]:
    """``NNAA = ½ [P(d_TS > d_TT) + P(d_ST > d_SS)]`` under Gower's distance, and the loss beside control.

    Train and release are cut to the same number m of rows, and every query has m − 1 rows of either to
    choose from. Of tied rows each is as likely to be the nearest, so that ½ is exact for equal distributions
    and a copy of a table with many duplicates does not pass as a tie.

    ``nnaa_loss = NNAA(control) − NNAA(train)``. First terms: control rows against the same rows of train and
    release as train rows. Second terms: release rows against as many rows of train as control has. So the
    expectation is 0 for an independent release, and the most, for a copy, ``¼ + ¼ · n_control / n_train``.
    Source: Yale et al. 2020; sizes and ties are ours.
    """
    encoded = Encoded([*subject.real, subject.synthetic], subject.features)
    shares, m = _accuracy(encoded, max_rows, rng)
    of_train, of_release, of_control = shares
    level, value = subject.level, (of_train.share + of_release.share) / 2
    ends = [share.interval(level) for share in (of_train, of_release)]
    below = math.hypot(of_train.share - ends[0].low, of_release.share - ends[1].low) / 2
    above = math.hypot(ends[0].high - of_train.share, ends[1].high - of_release.share) / 2
    (near_train, near_control), k = _release_side(encoded, max_rows, rng)
    apart = of_control.less(of_train, level), near_control.less(near_train, level)
    loss = (apart[0].value + apart[1].value) / 2
    low, high = (
        math.hypot(*(getattr(x.interval, end) - x.value for x in apart)) / 2 for end in ("low", "high")
    )
    method = f"{ends[0].method} on the effective number of rows"
    return [
        NNAA.at(
            value,
            interval=Interval(value - below, value + above, level, method),
            reference=Reference(0.5, "two samples of the same people"),
            **_counted(m),
        ),
        NNAA_LOSS.at(
            loss,
            interval=Interval(loss - low, loss + high, level, apart[0].interval.method),
            reference=Reference(0.0, _INDEPENDENT),
            **_counted(m, min(max_rows, encoded.tables[1].n_rows), k),
        ),
    ]


def hits(subject: Subject, max_rows: int, rng: np.random.Generator) -> list[Measurement]:
    """Share of train rows with a near copy in the release, and its excess over the same for control rows.

    Near is within 1/30 of train's range in every number and equal in every label; columns that are constant
    in train are left out. Real rows are asked, not synthetic ones: then a release that is independent of the
    split hits train and control alike, however faithful or poor it is.
    """
    tables = [*subject.real, subject.synthetic]
    asked = [drawn(np.arange(t.n_rows), max_rows, rng) for t in tables[:2]]
    *real, synthetic = Encoded(tables, subject.features).near([*asked, None])
    known, base = (Proportion.of(nearly_copied(rows, synthetic)) for rows in real)
    sizes = len(asked[0]), len(asked[1])
    return _beside_control((HITTING_RATE, HITTING_EXCESS), known, base, sizes, subject.level)


def _accuracy(
    encoded: Encoded, max_rows: int, rng: np.random.Generator
) -> tuple[tuple[Proportion, Proportion, Proportion], int]:
    """Chance that the nearest row is of the own kind, for train and release; of train, for control.

    Returns:
        These, and how many rows of train, and of the release, were asked.
    """
    n_train, n_control, n_made = (t.n_rows for t in encoded.tables)
    m = min(n_train, n_made)
    cut = [drawn(np.arange(n), m, rng) for n in (n_train, n_made)]
    rows = drawn(np.arange(m), max_rows, rng)
    one_of_train, one_of_release = _one(m, rng), _one(m, rng)
    strangers = drawn(np.arange(n_control), max_rows, rng)
    nobody = np.empty(0, dtype=np.intp)
    *_, of_release = encoded.mixed_by_range([nobody, nobody, cut[1][rows]])
    each = encoded.mixed_by_range([_unless_all(cut[0], n_train), strangers, _unless_all(cut[1], n_made)])
    whose = persons_of(encoded.train)
    whose = None if whose is None else whose[cut[0]]
    train, queries = next(each), next(each)
    of_train = train.take(rows)
    among_train = nearest_other(train, rows, whose)
    release_to_train = nearest(of_release, train, but=one_of_train)
    to_train = _of_strangers(queries, train, whose, one_of_train, rng)
    del train  # two tables need not be held
    release = next(each)
    among_release = nearest_other(release, rows)
    train_to_release = nearest(of_train, release, but=one_of_release)
    to_release = nearest(queries, release, but=one_of_release)
    shares = (
        _nearer(among_train, train_to_release, m, rows),
        _nearer(among_release, release_to_train, m, rows),
        _nearer(to_train, to_release, m),
    )
    return shares, len(rows)


def _release_side(encoded: Encoded, max_rows: int, rng: np.random.Generator) -> tuple[list[Proportion], int]:
    """Chance that a release row is nearer to its own than to train, and than to control, of equal sizes.

    Returns:
        These, and how many rows of the release were asked.
    """
    n_train, n_control, n_made = (t.n_rows for t in encoded.tables)
    k = min(n_train, n_control, n_made)
    of_release, rows = drawn(np.arange(n_made), k, rng), drawn(np.arange(k), max_rows, rng)
    of_real = [drawn(np.arange(n), k, rng) for n in (n_train, n_control)]
    *real, s = encoded.mixed_by_range([*of_real, of_release])
    among, queries = nearest_other(s, rows), s.take(rows)
    return [_nearer(among, nearest(queries, other), k, rows) for other in real], len(rows)


def _nearer(one: Nearest, other: Nearest, n_one: int, own: Positions | None = None) -> Proportion:
    """Share of queries whose nearest row is of the first set."""
    return worth(part_nearer(one, other), independent_number(_nearest_row(one, other, n_one), own))


def _beside_control(
    quantities: tuple[Quantity, Quantity],
    known: Proportion,
    base: Proportion,
    sizes: tuple[int, int],
    level: float,
) -> list[Measurement]:
    """The share of train rows, with that of control rows as reference, and its excess over that."""
    reference = Reference(base.share, "control rows", base.interval(level))
    apart, counts = known.less(base, level), _counted(*sizes)
    return [
        quantities[0].at(known.estimate(level), reference=reference, **counts),
        quantities[1].at(apart, reference=Reference(0.0, _INDEPENDENT), **counts),
    ]


def _counted(*sizes: int) -> SampleCounts:
    return {"n_requested": min(sizes), "n_achieved": min(sizes), "n_minimum": FEWEST_ROWS}


def _nearest_row(among: Nearest, across: Nearest, n_own: int) -> Positions:
    """Position of the nearest row of either set, those of the second counted from ``n_own``."""
    return np.where(across.first < among.first, n_own + across.index, among.index)


def _one(n: int, rng: np.random.Generator) -> int | None:
    """A row to leave out of n, so that a query from outside has as many to choose from as one of them."""
    return int(rng.integers(n)) if n > 1 else None


def _unless_all(rows: Positions, n: int) -> Positions | None:
    """None where the rows drawn are all n of them."""
    return None if len(rows) == n else rows
