"""Gower's distance and near copies, against loops that anyone can check."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.encode.encoded import Encoded
from synth_audit.neighbours import gower, leaves, memory, search
from synth_audit.neighbours.gower import NOWHERE, Mixed, nearest_without
from synth_audit.neighbours.search import Pairs, nearest, nearest_but, nearest_k, nearest_other
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

pytestmark = pytest.mark.usefixtures("two_threads")


def distance_by_hand(a, b, spans, weights):
    """Gower's distance of two records given as dicts with None for missing; a span of None is a label."""
    total = 0.0
    for name, span in spans.items():
        if a[name] is None or b[name] is None:
            apart = float(a[name] is not b[name])
        elif span is None:
            apart = float(a[name] != b[name])
        else:
            apart = min(1.0, abs(a[name] - b[name]) / span)
        total += weights[name] * apart
    return round(total / sum(weights.values()), 9)


def records(table):
    return table.to_pylist()


def prepared(*tables, weights=None):
    schema = infer_schema(tables[0])
    read = [read_table(t, schema, where="table") for t in tables]
    return [*Encoded(read, schema.columns).mixed_by_range(weights=weights)]


def mixed(numbers, labels=None, weights=None):
    numbers = np.asarray(numbers, dtype=np.float64)
    if labels is None:
        labels = np.empty((len(numbers), 0), dtype=np.int64)
    width = numbers.shape[1] + labels.shape[1]
    if weights is None:
        weights = np.full(width, 1 / max(1, width))
    return Mixed(numbers, np.asarray(labels, dtype=np.int64), np.asarray(weights))


def exact_distances(queries, reference):
    """Shape (n, m), without any grid."""
    total = np.zeros((len(queries), len(reference)))
    p = queries.numbers.shape[1]
    for j, weight in enumerate(queries.weights):
        if j < p:
            apart = np.abs(queries.numbers[:, j, None] - reference.numbers[None, :, j])
            total += weight * np.minimum(apart, 1.0)
        else:
            total += weight * (queries.labels[:, j - p, None] != reference.labels[None, :, j - p])
    return np.round(total, 9)


def check(queries, reference, k=3, own=None):
    """Every answer of the searches against sorting all distances."""
    distances = exact_distances(queries, reference)
    if own is not None:
        distances[np.arange(len(queries)), own] = np.inf
        found = nearest_other(reference, own)
    else:
        found = nearest(queries, reference)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        assert np.array_equal(nearest_k(queries, reference, k), order)
    ordered = np.sort(np.column_stack([distances, np.full(len(queries), np.inf)]), axis=1)
    assert np.array_equal(found.first, ordered[:, 0])
    assert np.array_equal(found.second, ordered[:, 1])
    some = np.isfinite(found.first)
    assert np.array_equal(found.ties[some], (distances == ordered[:, :1]).sum(axis=1)[some])
    assert np.array_equal(distances[np.arange(len(queries)), found.index], found.first)


@pytest.fixture
def people():
    def make(n, seed):
        rng = np.random.default_rng(seed)
        return pa.table(
            {
                "x": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.2),
                "k": pa.array(rng.choice(["a", "b", "c"], n), mask=rng.random(n) < 0.2),
                "d": pa.array(
                    [datetime.date(2020, 1, 1) + datetime.timedelta(int(i)) for i in rng.integers(0, 99, n)]
                ),
                "b": pa.array(rng.random(n) < 0.5),
            }
        )

    return make


@pytest.mark.parametrize("weights", [None, (1.0, 2.0, 0.5, 3.0)])
def test_distances_are_those_of_the_definition(people, weights):
    tables = people(40, 0), people(25, 1)
    train, other = prepared(*tables, weights=weights)
    rows, others = records(tables[0]), records(tables[1])
    known = [r["x"] for r in rows if r["x"] is not None]
    days = [r["d"] for r in rows]
    spans = {"x": max(known) - min(known), "k": None, "d": max(days) - min(days), "b": None}
    weighted = dict(zip(("x", "k", "d", "b"), weights or (1, 1, 1, 1), strict=True))
    found = nearest(other, train)
    for i, record in enumerate(others):
        all_distances = [distance_by_hand(record, row, spans, weighted) for row in rows]
        assert found.first[i] == pytest.approx(min(all_distances), abs=2e-9)
        assert all_distances[found.index[i]] == pytest.approx(min(all_distances), abs=2e-9)


def test_missing_agrees_with_missing_and_with_nothing_else():
    train = pa.table({"x": [0.0, 10.0, None, 10.0 / 3], "k": ["a", "b", None, "a"]})
    rows, *_ = prepared(train)
    distances = exact_distances(rows, rows)
    assert distances[2].tolist() == [1.0, 1.0, 0.0, 1.0]


def test_train_sets_the_range_and_far_is_no_further_than_one():
    train = pa.table({"x": [0.0, 10.0, 4.0]})
    rows, far = prepared(train, pa.table({"x": [5.0, 1000.0]}))
    assert exact_distances(rows, far)[0].tolist() == [0.5, 1.0]


@pytest.mark.parametrize(("same", "other"), [([0.1, 0.1], [5.0, -1e9]), (["a", "a"], ["b", "c"])])
def test_a_column_that_is_constant_in_train_hides_no_copy(same, other):
    train = pa.table({"site": same, "x": [0.0, 1.0]})
    rows, copy = prepared(train, pa.table({"site": other, "x": [0.0, 1.0]}))
    assert nearest(copy, rows).first.tolist() == [0, 0]
    assert nearest(copy, rows).index.tolist() == [0, 1]


def test_one_value_beside_missing_ones_still_tells_rows_apart():
    rows, *_ = prepared(pa.table({"x": [3.0, None, 3.0]}))
    assert exact_distances(rows, rows)[0].tolist() == [0.0, 1.0, 0.0]


def test_a_table_of_constants_has_no_distances():
    rows, *_ = prepared(pa.table({"x": [1.0, 1.0], "k": ["a", "a"]}))
    found = nearest(rows, rows)
    assert found.first.tolist() == [0, 0]
    assert found.ties.tolist() == [2, 2]
    assert nearest_k(rows, rows, 5).tolist() == [[0, 1], [0, 1]]


def test_a_weight_of_nothing_leaves_a_column_out():
    train = pa.table({"x": [0.0, 1.0], "k": ["a", "b"]})
    rows, *_ = prepared(train, weights=(0.0, 1.0))
    assert rows.numbers.shape == (2, 0)
    assert exact_distances(rows, rows)[0].tolist() == [0.0, 1.0]


def test_leaving_a_column_out_is_as_never_having_had_it(people):
    table = people(30, 3)
    schema = infer_schema(table)
    encoded = Encoded([read_table(table, schema, where="train")], schema.columns)
    [rows] = encoded.mixed_by_range()
    for place, name in enumerate(encoded.order):
        alone, *_ = prepared(table.drop_columns([name]))
        shorter = rows.without(place)
        assert np.allclose(exact_distances(shorter, shorter), exact_distances(alone, alone), atol=1e-9)


def test_huge_numbers_and_ranges_stay_finite():
    train = pa.table(
        {"x": [-1.7e308, 1.7e308, 0.0], "y": [0.0, 5e-324, 1e-323], "z": [1e15, 1e15 + 1, 1e15 + 2]}
    )
    rows, *_ = prepared(train)
    assert np.isfinite(rows.numbers).all()
    distances = exact_distances(rows, rows)
    assert np.isfinite(distances).all()
    assert not distances.diagonal().any()
    assert rows.numbers[:, 2].tolist() == [0, 0.5, 1]
    check(rows, rows)


@st.composite
def clouds(draw):
    """Queries and references on a coarse grid, so that ties abound; some missing, some far away."""
    p, q = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    value = st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0, 1.5, -2.0, 9.0, -1e9, 1e100, NOWHERE])
    weights = np.array([draw(st.sampled_from([0.1, 1.0, 1.0, 3.7])) for _ in range(p + q)])

    def cloud():
        n = draw(st.integers(1, 14))
        numbers = np.array([[draw(value) for _ in range(p)] for _ in range(n)]).reshape(n, p)
        labels = np.array([[draw(st.integers(-1, 2)) for _ in range(q)] for _ in range(n)]).reshape(n, q)
        return mixed(numbers, labels, weights / max(weights.sum(), 1e-300))

    return cloud(), cloud()


@settings(max_examples=30, deadline=None)
@given(
    pair=clouds(),
    block=st.sampled_from([(1, 1), (5, 3), (2, 400), (16, 2**14)]),
    k=st.integers(1, 16),
    leaf=st.sampled_from([None, 0.3, 1.0]),
)
def test_searches_agree_with_sorting_all_distances(pair, block, k, leaf):
    queries, reference = pair
    with pytest.MonkeyPatch.context() as patch:
        if leaf:
            patch.setattr(search, "_MANY", 1)
            patch.setattr(search, "_LARGE", 1)
            patch.setattr(search, "_MOST", 2.0)
            patch.setattr(memory, "QUERIES", 5)
            patch.setattr(leaves, "LEAF", leaf)
        patch.setattr(memory, "SCORES", block[0] * block[1])
        patch.setattr(memory, "TILE", block[1])
        check(queries, reference, k)
        check(reference, reference, k, own=np.arange(len(reference)))


@pytest.mark.parametrize("n_labels", [127, 128, 253, 254, 255, 256, 70_000])
def test_labels_at_the_ends_of_small_types_are_told_apart(n_labels):
    """In leaves too, where a label is looked up by a remainder that its type may not hold."""
    rng = np.random.default_rng(n_labels)
    labels = rng.integers(-1, n_labels, (5000, 1))
    labels[:2, 0] = -1, n_labels - 1
    rows = Mixed.of(rng.random((5000, 1)), labels, np.ones(2))
    own = np.arange(600)
    distances = exact_distances(rows.take(own), rows)
    distances[own, own] = np.inf
    assert np.array_equal(nearest_other(rows, own).first, distances.min(axis=1))
    assert not nearest(rows.take(own), rows).first.any()


def test_codes_take_as_little_room_as_they_can():
    sizes = [
        Mixed.of(np.empty((1, 0)), np.array([[k]]), np.ones(1)).labels.itemsize for k in (127, 128, 2**15)
    ]
    assert sizes == [1, 2, 4]


@pytest.mark.parametrize("labels", [2, 50])
def test_one_row_may_be_left_out_for_all_queries(labels):
    """Of a table in which rows abound that repeat, and of one in which they do not."""
    rng = np.random.default_rng(labels)
    rows = mixed(rng.integers(0, labels, (60, 2)), rng.integers(0, labels, (60, 2)))
    queries = mixed(rng.integers(0, labels, (40, 2)) + 0.5, rng.integers(0, labels, (40, 2)))
    for but in range(60):
        left = np.delete(np.arange(60), but)
        found, expected = nearest(queries, rows, but=but), nearest(queries, rows.take(left))
        for name in ("first", "second", "ties"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))
        assert np.array_equal(found.index, left[expected.index])


@pytest.mark.parametrize("labels", [2, 50])
def test_a_place_for_each_row_breaks_ties_as_shuffled_rows_would(labels):
    rng = np.random.default_rng(labels)
    rows = mixed(rng.integers(0, labels, (60, 1)), rng.integers(0, 3, (60, 1)))
    shuffled = rng.permutation(60)
    place = np.argsort(shuffled)
    queries, other = rows.take(np.arange(30)), rows.take(shuffled)
    assert np.array_equal(nearest(queries, rows, place=place).index, shuffled[nearest(queries, other).index])
    assert np.array_equal(nearest_k(queries, rows, 7, place), shuffled[nearest_k(queries, other, 7)])


def test_far_beyond_whole_numbers_a_difference_is_still_seen():
    """Where 1e100 − 1 is 1e100, drawing a number to within 1 of another would make the two equal."""
    queries = mixed([[0.0, 1e100]], np.array([[0, 0]]))
    reference = mixed([[0.0, 1e100], [0.0, 0.0]], np.array([[0, 1], [0, 0]]))
    assert nearest_k(queries, reference, 1).tolist() == [[0]]
    check(queries, reference, k=2)


def smooth(n, width, rng, spread=1.0):
    return mixed(rng.random((n, width)) * spread, rng.integers(0, 4, (n, width // 2)))


@pytest.mark.parametrize(
    ("width", "spread", "dtype"),
    [(1, 1, np.int16), (6, 1, np.int16), (200, 1, np.float32), (3, 300, np.float32), (1, 1e6, np.float64)],
)
def test_every_type_of_scores_gives_the_exact_answer(width, spread, dtype):
    rng = np.random.default_rng(width)
    queries, reference = smooth(40, width, rng, spread), smooth(20_000, width, rng, spread)
    assert Pairs(queries, reference).dtype == dtype
    check(queries, reference, k=10)
    check(reference.take(np.arange(40)), reference, own=np.arange(40))


@pytest.mark.parametrize("width", [1, 4, 60, 200])
@pytest.mark.parametrize("spread", [5.0, 4e3, 4e5])
def test_scores_are_within_the_stated_error(width, spread):
    """Also where some columns are far longer than others."""
    rng = np.random.default_rng(0)
    queries, reference = smooth(50, width, rng, 5.0), smooth(500, width, rng)
    queries.numbers[:, : width // 4 + 1] *= spread
    queries.numbers[rng.random(queries.numbers.shape) < 0.1] = NOWHERE
    pairs = Pairs(queries, reference)
    scores = np.empty((50, 500), pairs.dtype)
    pairs.scores(slice(0, 50), slice(0, 500), scores)
    off = np.abs(scores - exact_distances(queries, reference) * pairs.numbers.steps)
    assert off.max() <= pairs.numbers.error + 1e-9 * pairs.numbers.steps
    check(queries, reference, k=5)


def without(rows, columns):
    for column in sorted(columns, reverse=True):
        rows = rows.without(int(column))
    return rows


@settings(max_examples=20, deadline=None)
@given(pair=clouds(), data=st.data(), twice=st.booleans())
def test_one_search_leaves_out_columns_as_a_search_for_each_does(pair, data, twice):
    """Ties and repeated rows included; also where many rows of the reference have a twin."""
    queries, reference = pair
    width = len(queries.weights)
    if width < 2:
        return
    if twice:
        reference = reference.take(np.tile(np.arange(len(reference)), 2))
    some = st.lists(st.integers(0, width - 1), max_size=width - 1, unique=True)
    chosen = [np.array(data.draw(some), dtype=np.intp) for _ in range(3)]
    places = np.random.default_rng(len(reference)).permutation(len(reference))
    for place in (None, places, [places, places[::-1], np.roll(places, 1)]):
        found = nearest_without(queries, reference, chosen, place=place)
        own = place if isinstance(place, list) else [place] * 3
        for columns, of_choice, answer in zip(chosen, own, found, strict=True):
            alone = nearest(without(queries, columns), without(reference, columns), place=of_choice)
            assert answer.tolist() == alone.index.tolist()


def test_few_candidates_are_left_to_compare_exactly(monkeypatch):
    rng = np.random.default_rng(0)
    queries, reference = smooth(100, 6, rng), smooth(5000, 6, rng)
    compared = []
    exact = Pairs.distances
    monkeypatch.setattr(Pairs, "distances", lambda self, r, c: compared.append(len(r)) or exact(self, r, c))
    nearest_k(queries, reference, 10)
    assert 1000 <= sum(compared) < 3000


def test_duplicates_are_counted_and_ordered_by_position():
    rng = np.random.default_rng(1)
    reference = mixed(np.empty((3000, 0)), rng.integers(0, 3, (3000, 2)))
    queries = mixed(np.empty((20, 0)), rng.integers(0, 4, (20, 2)))
    check(queries, reference, k=25)
    check(reference.take(np.arange(20)), reference, own=np.arange(20))


def test_few_ties_are_held_at_a_time(monkeypatch):
    rows = mixed(np.empty((3000, 0)), np.random.default_rng(1).integers(0, 2, (3000, 3)))
    held = []
    found = search.Candidates.pairs
    monkeypatch.setattr(search.Candidates, "pairs", lambda self: held.append(found(self)) or held[-1])
    monkeypatch.setattr(memory, "EXACT", 2000)
    ties = nearest_other(rows, np.arange(600)).ties
    assert sum(len(row) for row, _ in held) >= ties.sum() > 600 * 300
    assert max(len(row) for row, _ in held) <= 2000


def test_an_equal_row_is_at_exactly_zero_in_any_order(people):
    rows, *_ = prepared(people(500, 5))
    for order in (np.arange(500), np.random.default_rng(0).permutation(500)):
        found = nearest(rows.take(order), rows)
        assert not found.first.any()
        assert not exact_distances(rows.take(order), rows)[np.arange(500), found.index].any()


def test_a_single_row_has_no_second_and_no_other():
    rows, *_ = prepared(pa.table({"x": [0.0, 1.0]}))
    assert np.isinf(nearest(rows, rows.take(np.array([0]))).second).all()
    assert np.isinf(nearest_other(rows.take(np.array([0])), np.array([0])).first).all()


def test_no_queries_give_no_answers():
    rows, *_ = prepared(pa.table({"x": [0.0, 1.0]}))
    none = rows.take(np.empty(0, dtype=np.intp))
    assert len(nearest(none, rows).first) == 0
    assert nearest_k(none, rows, 2).shape == (0, 2)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_nothing(people, threads, monkeypatch):
    rows, other = prepared(people(900, 6), people(300, 7))
    before = nearest(other, rows), nearest_k(other, rows, 7)
    spread = search.over_blocks
    monkeypatch.setattr(memory, "TILE", 200)
    monkeypatch.setattr(search, "over_blocks", lambda n, size, work: spread(n, size, work, threads))
    after = nearest(other, rows), nearest_k(other, rows, 7)
    for name in ("first", "second", "index", "ties"):
        assert np.array_equal(getattr(before[0], name), getattr(after[0], name))
    assert np.array_equal(before[1], after[1])


def test_more_labels_than_a_byte_holds_and_more_columns_than_it_counts():
    rng = np.random.default_rng(2)
    many = mixed(np.empty((400, 0)), rng.integers(-1, 70_000, (400, 2)))
    check(many, many)
    wide = mixed(np.empty((30, 0)), rng.integers(0, 3, (30, 600)))
    far = mixed(np.empty((5, 0)), np.full((5, 600), 9))
    check(far, wide)
    assert nearest(far, wide).first.tolist() == [1.0] * 5


@pytest.mark.parametrize("large", [False, True])
def test_rows_of_one_person_are_out_of_sight(large, people, monkeypatch):
    if large:
        monkeypatch.setattr(search, "_MANY", 1)
        monkeypatch.setattr(search, "_LARGE", 1)
    (rows,) = prepared(people(300, 3))[:1]
    persons, asked = np.random.default_rng(0).integers(0, 40, 300), np.arange(0, 300, 2)
    distances = exact_distances(rows.take(asked), rows)
    left = np.where(persons[asked][:, None] == persons, np.inf, distances)
    found = nearest_other(rows, asked, persons)
    assert np.array_equal(found.first, left.min(axis=1))
    assert np.array_equal(nearest_but(rows.take(asked), rows, persons[asked], persons).index, found.index)
    assert np.isinf(nearest_other(rows, asked, np.zeros(300, np.int64)).first).all()


TYPES = pa.schema([("n", pa.int64()), ("s", pa.string())])
SPECS = {"n": ColumnSpec(kind="integer")}
ROW = st.fixed_dictionaries(
    {"n": st.none() | st.integers(-70, 70), "s": st.none() | st.sampled_from(["a", "b", "c"])}
)


@settings(max_examples=60, deadline=None)
@given(
    train=st.lists(ROW, min_size=1, max_size=8).map(
        lambda rows: [*rows, {"n": 0, "s": "a"}, {"n": 60, "s": "b"}]
    ),
    made=st.lists(ROW, min_size=1, max_size=8),
)
@pytest.mark.parametrize("block", [2**17, 3])
def test_near_copies_against_loops(block, train, made):
    known = [row["n"] for row in train if row["n"] is not None]
    unit = (max(known) - min(known)) / gower.NEAR
    data = [pa.Table.from_pylist(rows, TYPES) for rows in (train, made)]
    schema = infer_schema(data[0], SPECS)
    reference, queries = Encoded([read_table(d, schema, where="t") for d in data], schema.features).near()

    def near(one, other):
        if one["s"] != other["s"] or (one["n"] is None) != (other["n"] is None):
            return False
        return one["n"] is None or abs(one["n"] - other["n"]) <= unit * (1 + 1e-6)

    expected = [any(near(row, other) for other in train) for row in made]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "TREE", block)
        assert gower.nearly_copied(queries, reference).tolist() == expected


def test_labels_alone_and_many_twins_are_near_exactly_when_equal():
    rng = np.random.default_rng(0)
    data = pa.table({name: rng.choice(["a", "b", "c"], 3000) for name in "kl"})
    table = read_table(data, infer_schema(data), where="t")
    [rows] = Encoded([table], table.schema.features).near()
    labels = [f"{k}{m}" for k, m in zip(data["k"].to_pylist(), data["l"].to_pylist(), strict=True)]
    some = np.flatnonzero(np.array(labels) != "cc")
    found = gower.nearly_copied(rows, rows.take(some))
    assert found.tolist() == [label != "cc" for label in labels]


def test_wild_and_missing_values_are_near_to_nothing_else():
    data = pa.table({"x": [0.0, 1.0, 0.5], "y": [0.0, 1.0, 0.2]})
    wild = pa.table({"x": [1e308, None, -1e308], "y": [0.0, 1.0, 0.2]})
    schema = infer_schema(data, {"x": ColumnSpec(kind="continuous"), "y": ColumnSpec(kind="continuous")})
    reference, queries = Encoded(
        [read_table(d, schema, where="t") for d in (data, wild)], schema.features
    ).near()
    assert not gower.nearly_copied(queries, reference).any()
    assert gower.nearly_copied(queries, queries).all()
