"""Exact nearest rows, against loops that anyone can check."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from synth_audit.neighbours import leaves, memory, search
from synth_audit.neighbours.coordinates import Coordinates, add_unlike
from synth_audit.neighbours.gower import Mixed
from synth_audit.neighbours.search import (
    Pairs,
    first_k,
    most_queries,
    nearest,
    nearest_other,
    nearest_others,
    rounded_down,
    smallest,
)

pytestmark = pytest.mark.usefixtures("two_threads")


def points(dense, labels=None):
    dense = np.asarray(dense, dtype=np.float64)
    return Coordinates.of(dense, None if labels is None else np.asarray(labels))


def by_hand(query, query_labels, reference, reference_labels, skip=None):
    """Distances of one query to every reference row, then the two least and the ties."""
    all_distances = [
        (
            np.sqrt(
                sum((a - b) ** 2 for a, b in zip(query, row, strict=True))
                + 2 * sum(a != b for a, b in zip(query_labels, row_labels, strict=True))
            ),
            i,
        )
        for i, (row, row_labels) in enumerate(zip(reference, reference_labels, strict=True))
        if i != skip
    ]
    ordered = sorted(all_distances) + [(np.inf, -1)] * 2
    first = ordered[0][0]
    tied = {i for d, i in all_distances if abs(d - first) < 1e-9}
    return first, ordered[1][0], tied


@st.composite
def grids(draw):
    """Queries and references on a coarse grid, so that ties and duplicates abound."""
    width, n_labels = draw(st.integers(0, 3)), draw(st.integers(0, 2))

    def cloud():
        n = draw(st.integers(1, 12))
        dense = draw(hnp.arrays(np.int64, (n, width), elements=st.integers(-2, 2)))
        return dense / 3.0, draw(hnp.arrays(np.int64, (n, n_labels), elements=st.integers(-1, 2)))

    return cloud(), cloud()


BLOCKS = st.sampled_from([(1, 1), (5, 3), (2, 400), (256, 2**14)])


def in_leaves(patch, leaf):
    """Have leaves of so many rows over the root of all, few queries in one go; None searches all rows."""
    if leaf:
        patch.setattr(search, "_MANY", 1)
        patch.setattr(search, "_LARGE", 1)
        patch.setattr(search, "_MOST", 2.0)
        patch.setattr(memory, "QUERIES", 5)
        patch.setattr(memory, "SCORES", 6)
        patch.setattr(memory, "EXACT", 6)
        patch.setattr(leaves, "LEAF", leaf)
        patch.setattr(leaves, "_BLOCK", 3)
        patch.setattr(leaves, "_CHOOSING", 4 if leaf < 1 else 100)


LEAVES = st.sampled_from([None, 0.3, 0.8, 2.0])


@settings(max_examples=60, deadline=None)
@given(clouds=grids(), block=BLOCKS, leaf=LEAVES)
def test_nearest_agrees_with_brute_loops(clouds, block, leaf):
    (queries, query_labels), (reference, reference_labels) = clouds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "SCORES", block[0] * block[1])
        patch.setattr(memory, "TILE", block[1])
        in_leaves(patch, leaf)
        found = nearest(points(queries, query_labels), points(reference, reference_labels))
    for i in range(len(queries)):
        first, second, tied = by_hand(queries[i], query_labels[i], reference, reference_labels)
        assert found.first[i] == pytest.approx(first, abs=1e-9)
        assert found.second[i] == pytest.approx(second, abs=1e-9)
        assert found.ties[i] == len(tied)
        assert found.index[i] in tied


@settings(max_examples=60, deadline=None)
@given(clouds=grids(), block=BLOCKS, leaf=LEAVES)
def test_nearest_other_leaves_out_the_row_itself_and_nothing_else(clouds, block, leaf):
    (rows, labels), _ = clouds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "SCORES", block[0] * block[1])
        patch.setattr(memory, "TILE", block[1])
        in_leaves(patch, leaf)
        found = nearest_other(points(rows, labels), np.arange(len(rows)))
        several = nearest_others(points(rows, labels), np.arange(len(rows)), 3) if len(rows) > 1 else None
    for i in range(len(rows)):
        first, second, tied = by_hand(rows[i], labels[i], rows, labels, skip=i)
        if several is not None:
            both = [first, second][: several.shape[1]]
            assert several[i, :2] == pytest.approx(both, abs=1e-9)
            assert (np.diff(several[i]) >= 0).all()
        assert found.first[i] == pytest.approx(first, abs=1e-9)
        if np.isfinite(first):
            assert found.ties[i] == len(tied)


def test_an_equal_row_is_at_exactly_zero_in_any_order():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 30)) * 10 ** rng.uniform(-3, 3, 30)
    for order in (np.arange(400), rng.permutation(400)):
        found = nearest(points(rows[order]), points(rows))
        assert not found.first.any()
        assert np.array_equal(found.index, order)
        assert (found.ties == 1).all()
        assert (found.second > 0).all()


def test_a_duplicate_is_a_neighbour_of_its_twin():
    found = nearest_other(points([[0.0], [0.0], [5.0]]), np.arange(3))
    assert found.first.tolist() == [0, 0, 5]


@pytest.mark.parametrize("far", [1e6, 1e9])
def test_an_outlier_in_the_reference_ties_nobody(far):
    reference = points([[0.0, 0.0], [0.0, 0.0], [0.3, 0.4], [far, 0.0]])
    found = nearest(points([[0.0, 0.0], [0.3, 0.4]]), reference)
    assert found.ties.tolist() == [2, 1]
    assert found.first.tolist() == [0, 0]


def test_nearest_agrees_with_a_tree_on_smooth_data():
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(1)
    queries, reference = rng.normal(size=(300, 4)), rng.normal(size=(500, 4))
    distances, index = cKDTree(reference).query(queries, k=2)
    found = nearest(points(queries), points(reference))
    assert found.first == pytest.approx(distances[:, 0], abs=1e-8)
    assert found.second == pytest.approx(distances[:, 1], abs=1e-8)
    assert np.array_equal(found.index, index[:, 0])


def test_a_single_reference_row_has_no_second():
    found = nearest(points([[1.0], [2.0]]), points([[0.0]]))
    assert found.first.tolist() == [1, 2]
    assert np.isinf(found.second).all()


@pytest.mark.parametrize(("apart", "ties"), [(1e-3, 1), (1e-7, 1), (1e-8, 1), (1e-10, 2)])
@pytest.mark.parametrize("place", [0.0, 1.0, 30.0])
def test_only_rounding_makes_a_tie(apart, ties, place):
    reference = points([[place, 0.0], [place, apart], [5.0, 5.0]])
    assert nearest(points([[place, 0.0]]), reference).ties.tolist() == [ties]


def twins(reference, rng):
    """Rows that lie as near to another as products in single precision cannot tell."""
    return reference + rng.normal(size=reference.shape) * 1e-7


@pytest.mark.parametrize("scale", [1e-6, 1.0, 100.0, 1e5, 1e12, 1e100])
@pytest.mark.parametrize("width", [1, 7, 130])
def test_every_scale_gives_the_exact_answer(scale, width):
    """In single precision, in double, and where squares in single precision overflow; over several tiles."""
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(width)
    reference = rng.normal(size=(20_000, width)) * scale
    reference[1::2] = twins(reference[::2], rng)
    queries = np.vstack([reference[7:9], rng.normal(size=(8, width)) * scale])
    found = nearest(points(queries), points(reference))
    apart = cdist(queries, reference)
    least = apart.min(axis=1)
    assert np.allclose(found.first, least, rtol=1e-9, atol=1e-9)
    assert np.allclose(apart[np.arange(10), found.index], least, rtol=1e-9, atol=1e-9)
    assert np.allclose(found.second, np.partition(apart, 1, axis=1)[:, 1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3, 1e12, 1e100])
@pytest.mark.parametrize("kept", [0.0, 2.0])
def test_leaves_give_the_exact_answer_on_every_scale(scale, kept, monkeypatch):
    """Clusters, labels and twins; with leaves ruled out, and where that is found not to be worth it."""
    from scipy.spatial.distance import cdist

    monkeypatch.setattr(search, "_MOST", kept)
    rng = np.random.default_rng(4)
    reference = (rng.integers(0, 4, (6000, 3)) + rng.normal(size=(6000, 3)) / 50) * scale
    reference[1::2] = twins(reference[::2], rng)
    labels = rng.integers(0, 3, (6000, 2))
    rows = rng.permutation(6000)[:600]
    moved = reference[rows] + rng.normal(size=(600, 3)) * scale / 100
    apart = cdist(moved, reference) ** 2 + 2.0 * (labels[rows][:, None] != labels[None]).sum(axis=2)
    apart = np.sqrt(apart)
    found = nearest(points(moved, labels[rows]), points(reference, labels))
    ordered = np.partition(apart, 1, axis=1)
    assert np.allclose(found.first, ordered[:, 0], rtol=1e-9, atol=1e-9)
    assert np.allclose(found.second, ordered[:, 1], rtol=1e-9, atol=1e-9)
    assert np.allclose(apart[np.arange(600), found.index], ordered[:, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kept", [0.0, 2.0])
def test_a_row_is_left_out_where_leaves_hold_it_too(kept, monkeypatch):
    monkeypatch.setattr(search, "_MOST", kept)
    rng = np.random.default_rng(8)
    rows = points(rng.random((5000, 3)))
    asked = np.sort(rng.choice(5000, 700, replace=False))
    expected = nearest_other(rows, asked)
    monkeypatch.setattr(search, "_LARGE", 10**9)
    found = nearest_other(rows, asked)
    for field in ("first", "second", "index", "ties"):
        assert np.array_equal(getattr(found, field), getattr(expected, field))
    assert (found.first > 0).all()


def test_leaves_that_cannot_hold_the_nearest_row_are_not_scored(monkeypatch):
    scored = []
    keep = search.Candidates._keep

    def counted(self, rows, scores, start):
        scored.append(scores.size)
        keep(self, rows, scores, start)

    monkeypatch.setattr(search.Candidates, "_keep", counted)
    rng = np.random.default_rng(6)
    reference = rng.random((8000, 3))
    found = nearest(points(reference[:1000] + 1e-4), points(reference))
    assert np.array_equal(found.index, np.arange(1000))
    assert 0 < sum(scored) < 0.15 * 1000 * 8000


def test_leaves_of_a_large_table_stay_small_enough_to_rule_some_out(monkeypatch):
    monkeypatch.setattr(leaves, "_LARGEST", 8)
    rows = points(np.random.default_rng(7).random((5000, 2)))
    assert rows.leaves.sizes.max() <= 8


@pytest.mark.parametrize(
    ("wanted", "n_reference", "most"),
    [
        (10_000, 400_000, 10_000),
        (10_000, 1_600_000, 2_500),
        (10_000, 10**9, 1_000),
        (500, 10**9, 500),
        (9, 0, 9),
    ],
)
def test_fewer_rows_are_looked_up_in_a_large_reference(wanted, n_reference, most):
    assert most_queries(wanted, n_reference) == most


def test_what_two_unlike_labels_add_is_told_with_them():
    labels = np.array([[0, 0], [0, 1], [1, 0]])
    rows = Coordinates.of(np.zeros((3, 1)), labels, np.array([2.0, 0.5]))
    found = nearest_other(rows, np.arange(3))
    assert found.first == pytest.approx(np.sqrt([0.5, 0.5, 2.0]), abs=1e-9)
    assert found.second == pytest.approx(np.sqrt([2.0, 2.5, 2.5]), abs=1e-9)


def test_thousands_of_ties_are_counted_where_few_rows_repeat():
    angle = np.arange(3000.0)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    found = nearest(points([[0.0, 0.0]]), points(around))
    assert found.ties.tolist() == [3000]
    assert found.second.tolist() == found.first.tolist() == [1.0]


def test_rows_that_repeat_are_counted_all():
    rng = np.random.default_rng(5)
    reference = rng.integers(0, 3, (4000, 2)).astype(float)
    found = nearest(points(reference[:50]), points(reference))
    same = (reference[:50, None] == reference[None]).all(axis=2)
    assert found.ties.tolist() == same.sum(axis=1).tolist()
    assert found.index.tolist() == same.argmax(axis=1).tolist()


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_bit(threads, monkeypatch):
    rng = np.random.default_rng(3)
    queries, reference = points(rng.normal(size=(300, 40))), points(rng.normal(size=(500, 40)))
    monkeypatch.setattr(memory, "QUERIES", 20)
    found = []
    for cores in (1, threads):
        monkeypatch.setenv("OMP_NUM_THREADS", str(cores))
        found.append(nearest(queries, reference))
    for field in ("first", "second", "index", "ties"):
        assert getattr(found[0], field).tobytes() == getattr(found[1], field).tobytes()


@pytest.mark.parametrize("steps", [(3,), (3, 3, 3), (1, 2, 4), (5, 2, 5, 2)])
def test_what_unlike_labels_weigh_is_added_to_each_pair(steps):
    rng = np.random.default_rng(len(steps))
    mine, others = (rng.integers(0, 3, (len(steps), n)).astype(np.uint8) for n in (11, 17))
    out = np.full((11, 17), 7, np.int16)
    add_unlike(out, steps, mine, others)
    unlike = mine[:, :, None] != others[:, None, :]
    assert out.tolist() == (7 + np.tensordot(np.array(steps), unlike, 1)).tolist()


def test_labels_of_a_reference_in_leaves_lie_column_by_column():
    """Scattered through memory they take four times as long to compare."""
    rng = np.random.default_rng(0)
    rows = Mixed.of(rng.random((5000, 2)), rng.integers(0, 5, (5000, 3)), np.ones(5))
    space = Pairs(rows, rows)
    assert space.leaves is not None
    assert space.theirs.flags.c_contiguous
    assert np.array_equal(space.theirs.T, rows.labels[space.leaves.order] + 1)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float32, np.float64])
def test_the_smallest_are_those_of_sorted_rows_and_nothing_is_changed(k, dtype):
    values = np.random.default_rng(0).integers(0, 9, (50, 7)).astype(dtype)
    values[3] = np.iinfo(dtype).max if np.dtype(dtype).kind == "i" else np.inf
    before = values.copy()
    found = smallest(values, k)
    assert found.dtype == dtype
    assert np.sort(found, axis=1).tolist() == np.sort(before, axis=1)[:, :k].tolist()
    assert np.array_equal(values, before)
    few = values[:, :k]
    assert np.sort(smallest(few, k), axis=1).tolist() == np.sort(few, axis=1).tolist()


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float32, np.float64])
def test_a_limit_of_the_same_type_tells_the_same(dtype):
    rng = np.random.default_rng(1)
    scores = rng.integers(-50, 50, 400).astype(dtype) if np.dtype(dtype).kind == "i" else rng.random(400)
    scores = scores.astype(dtype)
    near = np.nextafter(scores.astype(np.float64), np.inf), np.nextafter(scores.astype(np.float64), -np.inf)
    limit = np.concatenate([rng.uniform(-60, 60, 100), rng.random(100), *near, [np.inf, 1e9, -1e9]])
    found = rounded_down(limit, np.dtype(dtype))
    assert found.dtype == dtype
    assert np.array_equal(scores[:, None] <= found, scores[:, None] <= limit)


@pytest.mark.parametrize("k", [1, 3, 40, 60])
def test_the_first_k_are_those_of_sorted_rows_however_many_are_tied(k):
    rng = np.random.default_rng(k)
    distance, place = rng.integers(0, 4, 60) / 3, rng.permutation(60)
    assert np.array_equal(first_k(distance, place, k), np.lexsort((place, distance))[:k])
