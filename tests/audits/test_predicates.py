"""Matching and drawing of predicates against slow twins that read the values themselves."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.audits.privacy.singling_out import predicates as predicate_guesses
from synth_audit.audits.privacy.singling_out.predicates import (
    CodedRows,
    ColumnCodebook,
    Predicates,
    codebook,
    fresh,
    match,
)

NOON = datetime.datetime(2024, 1, 1, 12)


def mixed(n, seed, gaps=0.15):
    """Every kind of column, few distinct values, gaps."""
    rng = np.random.default_rng(seed)

    def gapped(values):
        return [None if rng.random() < gaps else v for v in values]

    return {
        "whole": gapped(rng.integers(-3, 4, n).tolist()),
        "real": gapped(np.round(rng.normal(size=n), 1).tolist()),
        "label": gapped(rng.choice(list("abcde"), n).tolist()),
        "flag": gapped((rng.random(n) < 0.3).tolist()),
        "when": gapped([NOON + datetime.timedelta(hours=int(h)) for h in rng.integers(0, 30, n)]),
    }


@pytest.fixture
def prepared(tables_of):
    def make(*frames):
        tables = tables_of(*frames)
        lexicon, codes = codebook(tables, tables[0].schema.features)
        return [CodedRows.of(rows, lexicon) for rows in codes]

    return make


def numbers_up_to(*lasts):
    """What codes of columns stand for that hold numbers."""
    n = len(lasts)
    return ColumnCodebook(
        tuple(map(str, lasts)), (True,) * n, (), np.array(lasts), lambda j: np.arange(lasts[j])
    )


def naive(rows, k, n):
    """Guesses without the release."""
    draws = predicate_guesses.NaiveDraws.of(len(rows.lexicon), k, n, np.random.default_rng(0))
    [found] = predicate_guesses.naive(rows.lexicon, [draws])
    return found


def random_ranges(lexicon, n, k, rng):
    columns = rng.integers(0, len(lexicon), (n, k))
    lasts = lexicon.lasts[columns]
    low = np.floor(rng.random((n, k)) * (lasts + 1)).astype(np.int32)
    high = np.minimum(low + rng.integers(-1, 8, (n, k)), lasts).astype(np.int32)
    return Predicates(columns.astype(np.int32), low, high)


def matched_slowly(rows, predicates):
    found = []
    for columns, low, high in zip(predicates.columns, predicates.low, predicates.high, strict=True):
        inside = [
            all(a <= rows.codes[j, r] <= b for j, a, b in zip(columns, low, high, strict=True))
            for r in range(len(rows))
        ]
        found.append(np.flatnonzero(inside))
    return found


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("long", [1, 2**12])
def test_counts_are_those_of_a_loop_over_rows(k, long, prepared, monkeypatch):
    monkeypatch.setattr(predicate_guesses, "_LONG", long)
    monkeypatch.setattr(predicate_guesses, "_PAIRS", 2 * long)
    [rows, _] = prepared(mixed(60, 1), mixed(40, 2))
    predicates = random_ranges(rows.lexicon, 300, k, np.random.default_rng(k))
    slow = matched_slowly(rows, predicates)
    found = match(rows, predicates, limit=1000)
    assert found.counts.tolist() == [len(m) for m in slow]
    assert all(r == -1 if not len(m) else r in m for r, m in zip(found.rows.tolist(), slow, strict=True))
    assert {0, 1}.issubset(found.counts.tolist())
    early = match(rows, predicates)
    assert np.array_equal(early.single, found.single)
    assert np.array_equal(early.rows[early.single], found.rows[found.single])


def test_counting_goes_on_over_many_chunks():
    codes = np.vstack([np.ones(30_000), np.zeros(30_000)]).astype(np.int32)
    codes[1, [5, 29_999]] = 1
    rows = CodedRows.of(codes, numbers_up_to(1, 1))
    both = Predicates(*np.array([[[0, 1]], [[1, 1]], [[1, 1]]], dtype=np.int32))
    either = Predicates(*np.array([[[0, 1]], [[1, 0]], [[1, 0]]], dtype=np.int32))
    assert match(rows, both).counts.tolist() == [2]
    assert match(rows, either, limit=10**6).counts.tolist() == [29_998]


def held(value, operator, threshold):
    if operator == "missing" or value is None:
        return operator == "missing" and value is None
    return {"==": value == threshold, ">=": value >= threshold, "<=": value <= threshold}[operator]


def described(lexicon, synthetic, j, row, frame):
    """The published condition on one column of a synthetic row, read off the values."""
    name, numeric = lexicon.names[j], lexicon.numeric[j]
    value = frame[name][row]
    if value is None:
        return name, "missing", None
    if not numeric:
        return name, "==", value
    known = sorted(v for v in frame[name] if v is not None)
    numbers = [v.timestamp() if isinstance(v, datetime.datetime) else v for v in known]
    here = value.timestamp() if isinstance(value, datetime.datetime) else value
    return name, ">=" if here > np.median(numbers) else "<=", value


def columns_and_rows(frame, lexicon, predicates):
    """All conjunctions over sets of columns that the frame's rows could have given, with their matches."""
    from itertools import combinations

    n, d = len(next(iter(frame.values()))), len(lexicon)
    k = predicates.columns.shape[1]
    told = {(j, r): described(lexicon, None, j, r, frame) for j in range(d) for r in range(n)}
    unique = {}
    for r in range(n):
        for chosen in combinations(range(d), k):
            conditions = tuple(told[j, r] for j in chosen)
            matches = [i for i in range(n) if all(held(frame[c][i], o, v) for c, o, v in conditions)]
            if len(matches) == 1:
                unique[conditions] = matches[0]
    return unique


@pytest.mark.parametrize("k", [1, 2, 3])
def test_multivariate_finds_exactly_the_published_predicates(k, prepared):
    frame = mixed(25, 3)
    [rows] = prepared(frame)
    found = predicate_guesses.multivariate(rows, k, 10_000, 60_000, np.random.default_rng(0))
    slow = columns_and_rows(frame, rows.lexicon, found)
    assert len(found) == len(slow) > 2
    assert sorted(match(rows, found).rows.tolist()) == sorted(slow.values())


def test_no_predicate_is_guessed_twice_and_the_request_is_kept(prepared):
    [rows] = prepared(mixed(200, 4))
    found = predicate_guesses.multivariate(rows, 3, 150, 10_000, np.random.default_rng(0))
    assert len(found) == 150
    assert len(set(found.ordered().keys())) == 150
    assert match(rows, found).single.all()


def test_trials_are_bounded(prepared):
    [rows] = prepared({"a": ["x", "y"] * 50, "b": ["u", "u", "v", "v"] * 25})
    found = predicate_guesses.multivariate(rows, 2, 100, 5_000, np.random.default_rng(0))
    assert len(found) == 0


def test_univariate_by_hand(prepared):
    frame = {
        "x": [1.0, 2.0, 2.0, 5.0, None],
        "y": [7, 7, 8, 9, 9],
        "k": ["a", "b", "b", "c", "c"],
        "m": [None, 1, None, 1, 1],
    }
    [rows] = prepared(frame)
    found = predicate_guesses.univariate(rows, 100, np.random.default_rng(0))
    # x: missing, == 1, == 5, <= 1, >= 5; y: == 8 (its extremes are shared); k: == a; m: nothing.
    # As no table holds a smaller value, "<= 1" and "== 1" have one range; to the adversary they differ.
    expected = [(0, 0, 0), (0, 1, 1), (0, 1, 1), (0, 3, 3), (0, 3, 3), (1, 2, 2), (2, 1, 1)]
    ranges = [tuple(int(x[0]) for x in p) for p in zip(found.columns, found.low, found.high, strict=True)]
    assert sorted(ranges) == expected
    assert match(rows, found).single.all()


def test_extremes_reach_beyond_the_release(prepared):
    [synthetic, real] = prepared({"x": [2.0, 3.0, 4.0]}, {"x": [-1e200, 9.0, 8.0]})
    found = predicate_guesses.univariate(synthetic, 100, np.random.default_rng(0))
    assert len(found) == 5  # three values, <= 2, >= 4
    assert match(real, found, limit=9).counts.tolist() == [0, 0, 0, 1, 2]


def test_a_random_subset_of_many_univariate_predicates(prepared):
    [rows] = prepared({"x": np.arange(500.0)})
    one, other = (predicate_guesses.univariate(rows, 40, np.random.default_rng(s)) for s in (0, 1))
    assert len(one) == len(other) == 40
    assert set(one.ordered().keys()) != set(other.ordered().keys())


def test_guided_guesses_single_out_the_outliers(prepared):
    [rows] = prepared(mixed(80, 5))
    outliers = np.array([7, 3, 50])
    found = predicate_guesses.guided(rows, outliers, 12, 4, np.random.default_rng(0))
    matches = match(rows, found)
    assert matches.single.all()
    assert set(matches.rows.tolist()) <= set(outliers.tolist())
    assert 3 <= len(found) <= 12
    assert found.widths.min() >= 1
    assert found.widths.max() <= 5


def test_bins_cover_every_code_once_and_hold_like_many_rows(prepared):
    [rows] = prepared({"x": [*np.arange(100.0), None, None]})
    low, high = predicate_guesses._bins(rows, 0, 5)
    assert (low[0], high[0]) == (0, 0)
    ranges = sorted(set(zip(low[1:].tolist(), high[1:].tolist(), strict=True)))
    assert ranges == [(1, 20), (21, 40), (41, 60), (61, 80), (81, 100)]
    assert all(low[c] <= c <= high[c] for c in range(101))


@pytest.mark.parametrize("k", [1, 3, 5])
def test_naive_guesses_come_from_the_domain_alone(k, prepared):
    frame = mixed(100, 6, gaps=0)
    [rows] = prepared(frame)
    found = naive(rows, k, 300)
    assert len(found) == 300
    assert (found.widths == k).all()
    assert match(rows, found, limit=1000).counts.max() > 1


def test_a_naive_threshold_is_uniform_within_the_bounds(prepared):
    [rows] = prepared({"x": np.r_[0.0, 1.0, np.random.default_rng(0).beta(1, 20, 2000)]})
    found = naive(rows, 1, 4000)
    counts = match(rows, found, limit=10**6).counts
    upwards = found.low[:, 0] > 1
    median = np.median(rows.lexicon.values(0))
    # With a uniform threshold "x >= v" holds more than half of the rows with chance v < median, not one half.
    assert np.mean(counts[upwards] > 1000) == pytest.approx(median, abs=0.1)


def test_naive_guesses_cope_with_wholly_missing_and_huge_columns(prepared):
    [rows] = prepared({"none": [None, None], "huge": [-1.7e308, 1.7e308], "k": ["a", "b"]})
    found = naive(rows, 2, 50)
    assert set(match(rows, found).counts.tolist()) == {0, 1}


def test_equal_predicates_are_known_in_any_order_of_their_conditions():
    one = Predicates(*np.array([[[2, 0]], [[5, 1]], [[6, 1]]], dtype=np.int32))
    other = Predicates(*np.array([[[0, 2]], [[1, 5]], [[1, 6]]], dtype=np.int32))
    seen = set()
    assert len(fresh(one, seen)) == 1
    assert len(fresh(other, seen)) == 0


def test_missing_is_nan_and_null_alike_and_no_column_is_an_error(prepared, tables_of):
    [one, other] = prepared({"x": [1.0, None, 2.0]}, {"x": [math.nan, 1.0, 3.0]})
    assert one.codes.tolist() == [[1, 0, 2]]
    assert other.codes.tolist() == [[0, 1, 3]]
    with pytest.raises(ValueError, match="column"):
        codebook(tables_of({"x": [1]}), [])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=1, max_size=30), st.integers(0, 9)
)
def test_any_small_table(cells, seed):
    rows = CodedRows.of(np.array(cells, dtype=np.int32).T.copy(), numbers_up_to(3, 3))
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 4, (20, 2)).astype(np.int32)
    high = np.minimum(low + rng.integers(-1, 3, (20, 2)), 3).astype(np.int32)
    predicates = Predicates(rng.integers(0, 2, (20, 2)).astype(np.int32), low, high)
    expected = [len(m) for m in matched_slowly(rows, predicates)]
    assert match(rows, predicates, limit=100).counts.tolist() == expected


@pytest.mark.parametrize("last", [2**16 - 1, 2**16, 2**17])
def test_rows_are_ordered_by_their_codes_however_many_there_are(last):
    codes = np.append(np.random.default_rng(0).integers(0, last + 1, 500), [last, 0, last, 0]).astype(
        np.int32
    )
    rows = CodedRows.of(codes[None], numbers_up_to(last))
    assert np.array_equal(rows.order[0], np.argsort(codes, kind="stable"))


def test_range_bins_are_equally_wide_and_open_outwards(prepared):
    [release, _] = prepared({"x": [0.0, 1.0, 2.0, 8.0, None]}, {"x": [-5.0, 3.9, 4.0, 99.0]})
    low, high = predicate_guesses._range_bins(release, 0, 2)
    values = dict(zip([None, *release.lexicon.values(0).tolist()], zip(low, high, strict=True), strict=True))
    assert values[None] == (0, 0)
    assert {values[v] for v in (-5.0, 0.0, 3.9)} == {(1, 5)}
    assert {values[v] for v in (4.0, 8.0, 99.0)} == {(6, 8)}


def test_described_outliers_match_themselves_alone_by_so_many_columns(prepared):
    [rows] = prepared(mixed(80, 5))
    outliers = np.array([7, 3, 50])
    rng = np.random.default_rng(0)
    found = predicate_guesses.outlying(rows, outliers, 3, 9, 4, 300, rng)
    matches = match(rows, found)
    assert 3 <= len(found) <= 9
    assert matches.single.all()
    assert set(matches.rows.tolist()) <= set(outliers.tolist())
    assert set(found.widths.tolist()) == {3}
