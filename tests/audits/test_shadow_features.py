"""Features of whole synthetic sets against slow twins, and classifiers on what is plain to see."""

import datetime
import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.audits.privacy.membership_game import shadow_game
from synth_audit.audits.privacy.membership_game.shadow_game import (
    CLASSIFIERS,
    FEATURE_SETS,
    MOST_LABELS,
    PARTS,
    ReferenceScaler,
    gathered,
    guesses,
    parts_of,
)
from synth_audit.encode.codes import coded, label_counts
from synth_audit.table.kind import kind_named
from synth_audit.table.schema import Column
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


def number(name):
    return Column(name, kind_named("continuous"), pa.float64())


def label(name, k):
    return Column(
        name, kind_named("categorical"), pa.string(), inferred_categories=tuple(f"c{i:03}" for i in range(k))
    )


COLUMNS = (number("a"), label("l", 4), number("b"), number("flat"))


def rows(n, seed, gaps=0.1):
    rng = np.random.default_rng(seed)
    made = np.column_stack(
        [
            np.rint(3 * rng.normal(size=n)),
            rng.integers(0, 5, n),  # 4 stands for a label that is none of the categories
            np.exp(rng.normal(size=n)),
            np.full(n, 7.0),
        ]
    )
    return np.where(rng.random(made.shape) < gaps, np.nan, made)


@st.composite
def samples(draw):
    seed, n, s = draw(st.integers(0, 10_000)), draw(st.integers(1, 15)), draw(st.integers(1, 3))
    gaps = draw(st.sampled_from([0.0, 0.3, 0.9]))
    sets = np.stack([rows(n, seed + i, gaps) for i in range(s)])
    return ReferenceScaler.of(rows(40, seed + 99), label_counts(COLUMNS)), sets, rows(1, seed + 77, gaps)[0]


def known(values):
    return [v for v in values if v == v]


def slow_summaries(one, scaler, aim):
    found = [np.mean([v != v for v in one[:, j]]) for j in range(4)]
    for summary in (np.mean, np.median, np.var):
        found += [summary(known(one[:, j])) if known(one[:, j]) else 0.0 for j in (0, 2, 3)]
    counts = [sum(v == code for v in one[:, 1]) for code in range(5)]
    present = [c for c in counts if c]
    return [*found, len(present), counts.index(max(counts)), counts.index(min(present)) if present else 0]


def slow_bins(one, scaler, aim):
    found = []
    for j in range(4):
        if j == 1:
            found += [
                np.mean([v == v and scaler.ranked[1][int(v)] == b for v in one[:, 1]]) for b in range(5)
            ]
            continue
        bins = [0] * 12
        for v in known(one[:, j]):
            low, high = scaler.low[j], scaler.high[j]
            if v < low:
                bins[0] += 1
            elif v > high:
                bins[11] += 1
            else:
                place = 9 if v == high else math.floor((v - low) / (high - low) * 10)
                bins[1 + min(9, place)] += 1
        found += [b / len(one) for b in bins]
    return found


def slow_correlations(one, scaler, aim):
    filled = one.copy()
    for j in range(4):
        filled[np.isnan(one[:, j]), j] = np.mean(known(one[:, j])) if known(one[:, j]) else 0.0
    found = []
    for i, j in itertools.combinations(range(4), 2):
        flat = min(np.ptp(filled[:, i]), np.ptp(filled[:, j])) < 1e-12
        found.append(0.0 if flat else np.corrcoef(filled[:, i], filled[:, j])[0, 1])
    return found


def slow_distances(one, scaler, aim):
    squares, agreements = [], []
    for row in one:
        square, agreeing = 0.0, 0
        for j, (x, t) in enumerate(zip(row, aim, strict=True)):
            if x == t or (x != x and t != t):
                agreeing += 1
            elif x != x or t != t:
                square += 1.0
            else:
                square += (x - t) ** 2 if j in (0, 2) else 2.0
        squares.append(square)
        agreements.append(agreeing)
    ordered = sorted(squares)
    nearest = [ordered[min(k, len(ordered)) - 1] ** 0.5 for k in (1, 2, 5, 10)]
    return [*nearest, max(agreements), np.mean([a == 4 for a in agreements])]


@pytest.mark.parametrize(
    ("part", "slow"),
    [*zip(PARTS, (slow_summaries, slow_bins, slow_correlations, slow_distances), strict=True)],
)
@settings(max_examples=60, deadline=None)
@given(samples())
def test_features_agree_with_a_slow_twin(part, slow, sample):
    scaler, sets, target = sample
    aim = scaler.measured(target)
    found = parts_of(sets, scaler, target[None], [part])[part][0]
    for one, got in zip(scaler.measured(sets), found, strict=True):
        assert got == pytest.approx(slow(one, scaler, aim), abs=1e-7)


def test_a_value_beyond_the_reference_has_a_bin_of_its_own():
    reference = np.arange(11.0)[:, None]
    scaler = ReferenceScaler.of(reference, label_counts((number("a"),)))
    sets = scaler.measured(np.array([[[0.0], [10.0], [11.0], [-1.0], [np.nan]]]))
    shares = np.zeros(12)
    shares[[0, 1, 10, 11]] = 0.2
    assert shadow_game.histogram(sets, scaler)[0].tolist() == shares.tolist()


def test_a_copy_is_at_distance_nought_also_among_missing_values_and_new_labels():
    target = np.array([np.nan, 4.0, 2.5, 7.0])
    scaler = ReferenceScaler.of(rows(30, 1), label_counts(COLUMNS))
    sets = np.stack([np.vstack([rows(9, 2), target]), rows(10, 3)])
    parts = parts_of(sets, scaler, target[None], ["target_distance"])
    copied, other = parts["target_distance"][0]
    assert (copied[0], copied[4], copied[5]) == (0.0, 4.0, 0.1)
    assert other[0] > 0
    assert other[5] == 0


@pytest.mark.parametrize("name", FEATURE_SETS)
def test_neither_the_order_of_rows_nor_units_matter(name):
    sets, reference, targets = rows(60, 1).reshape(3, 20, 4), rows(50, 2), rows(2, 3)
    moved = np.array([1e6, 1.0, 0.01, 3.0]), np.array([5.0, 0.0, -3.0, 1.0])
    found = []
    for scale, shift in ((np.ones(4), np.zeros(4)), moved):
        scaler = ReferenceScaler.of(reference * scale + shift, label_counts(COLUMNS))
        turned = sets[:, ::-1] * scale + shift
        parts = parts_of(turned, scaler, targets * scale + shift, [name])
        found.append(gathered(parts, name))
    assert found[0].shape[:2] == (2, 3)
    assert np.mean(np.abs(found[0] - found[1]) > 1e-6) < 0.02  # but for values on the edge of a bin


def test_all_is_the_other_sets_side_by_side():
    scaler = ReferenceScaler.of(rows(30, 1), label_counts(COLUMNS))
    sets, target = rows(40, 2).reshape(2, 20, 4), rows(1, 3)
    every = gathered(parts_of(sets, scaler, target, ["all"]), "all")
    each = [gathered(parts_of(sets, scaler, target, [name]), name) for name in FEATURE_SETS[:-1]]
    assert np.array_equal(every, np.concatenate(each, axis=-1))


@pytest.mark.parametrize("wild", [1e200, -1e308, np.inf])
def test_wild_numbers_overflow_nowhere(wild):
    reference, sets = rows(30, 1), rows(40, 2).reshape(2, 20, 4)
    reference[0, 0], sets[0, 0, 2], sets[1, :, 3] = 1e200, wild, wild
    parts = parts_of(sets, ReferenceScaler.of(reference, label_counts(COLUMNS)), rows(1, 3), ["all"])
    assert np.isfinite(gathered(parts, "all")).all()


def test_columns_without_a_value_in_the_reference_do_no_harm():
    reference = np.full((20, 4), np.nan)
    parts = parts_of(
        rows(40, 2).reshape(2, 20, 4),
        ReferenceScaler.of(reference, label_counts(COLUMNS)),
        rows(1, 3),
        ["all"],
    )
    assert np.isfinite(gathered(parts, "all")).all()


def test_rare_labels_share_a_bin():
    column = label("l", 500)
    reference = np.repeat(np.arange(500.0), np.arange(500, 0, -1) // 50 + 1)[:, None]
    scaler = ReferenceScaler.of(reference, label_counts((column,)))
    shares = shadow_game.histogram(reference[None], scaler)[0]
    assert len(shares) == MOST_LABELS
    assert shares.sum() == pytest.approx(1.0)


def test_a_table_is_coded_by_its_categories_and_numbers():
    noon = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    data = pa.table(
        {
            "k": ["b", "a", None, "b"],
            "t": [True, None, False, True],
            "n": [1, 2, None, 4],
            "d": pa.array([noon, None, noon, noon], pa.timestamp("us", "UTC")),
            "e": pa.nulls(4),
        }
    )
    schema = infer_schema(data, {})
    columns = tuple(schema)
    found = coded(read_table(data, schema, where="train"), columns)
    gap, micro = np.nan, noon.timestamp() * 1e6
    np.testing.assert_array_equal(
        found[:, :4], [[1, 1, 1, micro], [0, gap, 2, gap], [gap, 0, gap, micro], [1, 1, 4, micro]]
    )
    assert np.isnan(found[:, 4]).all()
    stranger = data.set_column(0, "k", pa.array(["z", "a", None, "b"]))
    new = coded(read_table(stranger, schema, where="synthetic"), columns)
    assert new[0, 0] == 2


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_classifiers_tell_apart_what_differs_and_say_the_same_again(classifier):
    rng = np.random.default_rng(0)
    learnt = np.arange(60) % 2 == 1
    features = rng.normal(size=(60, 8)) + 5 * learnt[:, None] * np.isin(np.arange(8), (1, 3, 4))
    features[:, 5] = 1.0
    found = guesses(classifier, features[:40], learnt[:40], features[40:], seed=3)
    assert np.array_equal(found, guesses(classifier, features[:40], learnt[:40], features[40:], seed=3))
    assert ((found >= 0) & (found <= 1)).all()
    assert np.mean((found > 0.5) == learnt[40:]) > 0.9


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_features_that_say_nothing_give_even_guesses(classifier):
    found = guesses(classifier, np.ones((20, 3)), np.arange(20) % 2 == 1, np.ones((5, 3)), seed=0)
    assert len(np.unique(found)) == 1
