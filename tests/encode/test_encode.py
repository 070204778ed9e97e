"""Rows as group numbers and coordinates."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_tables import table_of  # made importable by conftest.py

from synth_audit.audits.fidelity._shared_cells import shared_cells
from synth_audit.audits.fidelity.novel_content import FinestDigits
from synth_audit.audits.privacy._attribute_secrets import column_coding
from synth_audit.encode.cells import anchored_cells, column_grouping
from synth_audit.encode.codes import Vocabulary, by_frequency, codes
from synth_audit.encode.encoded import Encoded, centre_and_scale
from synth_audit.encode.scales import order_by_response
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.table.resolution import ValueGrid, decimal_grids, resolution_of
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

ROW = st.fixed_dictionaries(
    {
        "n": st.none() | st.sampled_from([0, 1, 2, -(2**40)]),
        "f": st.none() | st.sampled_from([0.0, -0.0, 0.1, 1e300]),
        "s": st.none() | st.sampled_from(["", "a", "1", "None", "nan"]),
        "b": st.none() | st.booleans(),
    }
)
TYPES = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_())])
SPECS = {"n": ColumnSpec(kind="integer"), "f": ColumnSpec(kind="continuous")}


def distance(*tables):
    a, b = Encoded(tables, tables[0].schema.features).coordinates()
    unlike = (a.labels[:, None] != b.labels[None]).sum(axis=2)
    return np.sqrt(((a.numbers[:, None] - b.numbers[None]) ** 2).sum(axis=2) + 2 * unlike)


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.lists(ROW, min_size=1, max_size=6), min_size=1, max_size=3))
def test_row_groups_agree_with_a_dictionary_of_tuples(parts):
    data = [pa.Table.from_pylist(rows, TYPES) for rows in parts]
    schema = infer_schema(data[0], SPECS)
    groups = np.concatenate(
        Encoded([read_table(d, schema, where="t") for d in data], schema.features).groups()
    )
    seen: dict[tuple, int] = {}
    expected = [
        seen.setdefault(tuple(row[k] for k in TYPES.names), len(seen)) for rows in parts for row in rows
    ]
    assert len(groups) == len(expected)
    assert np.array_equal(groups[:, None] == groups[None], np.equal.outer(expected, expected))


def test_codes_do_not_tell_which_table_a_value_came_from():
    """Of values that each table holds once, half the smaller codes must be the first table's."""
    names = np.random.default_rng(0).permutation([f"note {i:04}" for i in range(800)])
    data = pa.table({"text": names, "x": np.random.default_rng(1).normal(size=800)})
    schema = infer_schema(data, {"text": ColumnSpec(kind="categorical")})
    both = read_table(data, schema, where="t")
    one, other = both.take(np.arange(400)), both.take(np.arange(400, 800))
    for name in ("text", "x"):
        mine, _ = codes([one, other], schema[name])
        assert 150 < (mine < 400).sum() < 250
        swapped = codes([other, one], schema[name])
        assert np.array_equal(swapped[1], mine)
        shuffled = np.random.default_rng(2).permutation(400)
        assert np.array_equal(codes([one.take(shuffled), other], schema[name])[0], mine[shuffled])


def test_a_vocabulary_gives_labels_the_same_places_in_any_table():
    data = [
        pa.table({"s": s}) for s in (["b", "a", None, "c", "c"], ["a"] * 9 + ["d", "d", None], ["e", " B"])
    ]
    schema = infer_schema(data[0], {})
    train, one, other = (read_table(t, schema, where="t") for t in data)
    expected = codes([train], schema["s"])[0].tolist()
    assert expected == [2, 1, MISSING, 0, 0]
    known = Vocabulary.of("s", train).by_frequency(train)
    assert known.labels == ("c", "a", "b")
    assert known.places(train).tolist() == expected
    assert known.places(one).tolist() == [1] * 9 + [3, 3, MISSING]
    assert known.places(other).tolist() == [3, 2]
    assert Vocabulary.of("s", train, exact=True).places(other).tolist() == [3, 3]
    assert known.counts(one).tolist() == [0, 9, 0]


def test_a_vocabulary_of_no_rows_no_labels_and_labels_of_one_form():
    table = table_of({"s": ["Ä", "ａ", "A", None], "none": pa.nulls(4)})
    nobody = table.take(np.empty(0, dtype=np.intp))
    known = Vocabulary.of("s", table)
    assert known.labels == ("a", "ä")
    assert known.places(table).tolist() == [1, 0, 0, MISSING]
    assert known.places(nobody).tolist() == []
    assert known.counts(nobody).tolist() == [0, 0]
    assert Vocabulary.of("s", nobody).places(table).tolist() == [0, 0, 0, MISSING]
    assert Vocabulary.of("none", table).places(table).tolist() == [MISSING] * 4
    assert Vocabulary("s", ("a", "ä", "a")).places(table).tolist() == [1, 0, 0, MISSING]


def test_labels_are_numbered_by_how_often_they_occur_and_then_by_their_text():
    tables = [pa.table({"s": s}) for s in (["b", "a", None, "c"], ["c", "d", "c"])]
    schema = infer_schema(tables[0], {})
    found = codes([read_table(t, schema, where="t") for t in tables], schema["s"])
    assert [part.tolist() for part in found] == [[2, 1, MISSING, 0], [0, 3, 0]]


def sizes_of_several(groups):
    return sorted(int(n) for n in np.unique(groups, return_counts=True)[1] if n > 1)


def test_rows_of_several_tables_that_agree_but_in_one_column_share_a_number():
    """Also where most rows are alone, so that the others are coded by themselves."""
    rng = np.random.default_rng(0)
    data = pa.table({"x": rng.random(400), "k": rng.integers(0, 400, 400), "c": rng.choice(list("ab"), 400)})
    spoilt = data.slice(0, 20).set_column(0, "x", pa.array(rng.random(20)))
    train, made = (
        read_table(t, infer_schema(data), where="t")
        for t in (data, pa.concat_tables([spoilt, data.slice(390)]))
    )
    columns = train.schema.features
    copied = {
        c.name: (int(np.isin(of_made, of_train).sum()), len(of_train) < 400)
        for c, (of_train, of_made) in Encoded([train, made], columns).groups_but_one()
    }
    assert copied == {"x": (30, True), "k": (10, True), "c": (10, True)}


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=8))
def test_leaving_one_column_out_is_grouping_by_the_others(rows):
    """But for rows that are alone, which may be left out."""
    data = pa.Table.from_pylist(rows, TYPES)
    table = table_of(data, SPECS)
    columns = table.schema.features
    left_out = []
    for column, [groups] in Encoded([table], columns).groups_but_one():
        [expected] = Encoded([table], [c for c in columns if c is not column]).groups()
        assert sizes_of_several(groups) == sizes_of_several(expected)
        left_out.append(column)
    assert tuple(left_out) == columns


def test_codes_are_shared_between_tables_and_missing_is_apart(tables_of):
    one, other = tables_of({"k": ["a", None, "b"]}, {"k": ["b", "c", None]})
    first, second = codes([one, other], one.schema["k"])
    assert first[1] == second[2] == MISSING
    assert first[2] == second[0]
    assert len({*first, *second}) == 4


def test_numbers_are_standardised_on_the_first_table_alone(tables_of):
    train, far = tables_of({"x": [0.0, 2.0, 4.0]}, {"x": [1e6, 2.0]})
    spread = np.std([0, 2, 4])
    near, other = Encoded([train, far], train.schema.features).coordinates()
    assert near.numbers[:, 0] == pytest.approx([-2 / spread, 0, 2 / spread])
    assert other.numbers[:, 0] == pytest.approx([(1e6 - 2) / spread, 0])


def test_distances_of_mixed_rows(tables_of):
    train, other = tables_of(
        {"x": [0.0, 1.0, 2.0, None], "k": ["a", "b", "a", "b"]},
        {"x": [0.0, None, 1.0], "k": ["a", None, "unseen"]},
    )
    found = distance(train, other) ** 2
    away, gap, unlike = 1.5, 1.0, 2.0  # one unit of x in variances; a missing value; two labels
    expected = [
        [0, away + gap + unlike, away + unlike],
        [away + unlike, gap + unlike, unlike],
        [4 * away, away + gap + unlike, away + unlike],
        [away + gap + unlike, unlike, gap + unlike],
    ]
    assert found == pytest.approx(np.array(expected))


@pytest.mark.parametrize("width", [3, 255, 300])
def test_many_categories_give_the_same_distances(width, tables_of):
    names = [f"c{i}" for i in range(width)]
    train, other = tables_of({"k": names}, {"k": [names[0], names[-1], None, "unseen"]})
    found = distance(train, other)
    assert np.count_nonzero(found == 0) == 2
    assert np.unique(found[found > 0]) == pytest.approx([np.sqrt(2)])


@pytest.mark.parametrize("values", [[0.1] * 7, ["a"] * 7, [True] * 7, [None] * 7])
def test_a_constant_column_cannot_hide_a_copy(values, tables_of):
    other = {0.1: 1e6, "a": "b", True: False, None: "b"}[values[0]]
    x = np.arange(7.0)
    kind = None if values[0] is not None else pa.string()
    train, moved = tables_of({"x": x, "c": pa.array(values, kind)}, {"x": x, "c": pa.array([other] * 7)})
    found = distance(train, moved)
    assert np.diag(found).tolist() == [0.0] * 7


def test_a_constant_column_with_gaps_counts_only_its_gaps(tables_of):
    train, moved = tables_of({"c": [0.1, 0.1, None]}, {"c": [1e6, None]})
    found = distance(train, moved)
    assert found == pytest.approx(np.array([[0, 1], [0, 1], [1, 0]]))


def test_huge_values_keep_a_finite_scale(tables_of):
    [train] = tables_of({"x": [1.5e308, 1.5e308, 0.0, 1.0]})
    assert np.isfinite(centre_and_scale(train.numbers("x"))).all()
    assert np.isfinite(Encoded([train], train.schema.features).coordinates()[0].numbers).all()


@pytest.mark.parametrize("values", [[5e-324, 1e-323, *[0.0] * 40], [-1.5e308, None, -1.5e308, None]])
def test_no_value_is_nowhere(values, tables_of):
    """A row without a place has no nearest row, and would look as far from its copy as from strangers."""
    train, far = tables_of({"x": values}, {"x": [1.5e308, -1.5e308, 5e-324, 0.0]})
    for placed in Encoded([train, far], train.schema.features).coordinates():
        assert not np.isnan(placed.numbers).any()


def test_coordinates_do_not_depend_on_how_tables_are_cut(tables_of):
    rng = np.random.default_rng(0)
    frame = {"x": rng.normal(size=20), "k": rng.choice([f"c{i}" for i in range(90)], 20)}
    [whole] = tables_of(frame)
    cut, columns = [whole.take(np.arange(8)), whole.take(np.arange(8, 20))], whole.schema.features
    halves, [uncut] = (Encoded(of, columns, [whole]).coordinates() for of in (cut, [whole]))
    assert np.array_equal(np.vstack([h.numbers for h in halves]), uncut.numbers)


SPELT = ["Ｍale", " male ", "MALE", "straße", "STRASSE", "ﬁn", "FIN", "é", "e"]
ALIKE = [0, 0, 0, 1, 1, 2, 2, 3, 4]


def test_labels_are_equal_in_any_case_width_and_with_spaces_around(tables_of):
    [table] = tables_of({"k": SPELT})
    [found] = codes([table], table.schema["k"])
    assert np.array_equal(np.equal.outer(found, found), np.equal.outer(ALIKE, ALIKE))
    assert table.labels("k").tolist() == SPELT  # the release's own text stays what it is


def test_rows_in_other_spelling_are_the_same_rows(tables_of):
    rng = np.random.default_rng(0)
    names = rng.choice(["Alfa", "Bravo", "Ürümqi"], 50).tolist()
    train, made = tables_of(
        {"k": names, "x": np.arange(50.0)},
        {"k": [name.upper() + " " for name in names], "x": np.arange(50.0)},
    )
    ours, theirs = Encoded([train, made], train.schema.features).groups()
    assert np.array_equal(ours, theirs)


def test_labels_are_made_once_and_not_row_by_row(tables_of, monkeypatch):
    from synth_audit.encode import codes as room

    asked, made = [], room.column_forms
    monkeypatch.setattr(room, "column_forms", lambda texts: asked.extend(texts.to_pylist()) or made(texts))
    [table] = tables_of({"k": ["a", "B"] * 1000})
    codes([table], table.schema["k"])
    assert sorted(asked) == ["B", "a"]


def test_labels_are_coded_once_for_all_views(tables_of, monkeypatch):
    from synth_audit.encode import encoded as room

    asked, made = [], room.codes
    monkeypatch.setattr(room, "codes", lambda tables, c: asked.append(c.name) or made(tables, c))
    tables = tables_of({"k": ["a", "b", "a"], "x": [0.5, 1.0, 3.0]}, {"k": ["b", "c"], "x": [1.0, 2.0]})
    table = Encoded(tables, tables[0].schema.features)
    for view in (table.mixed, table.mixed_by_range, table.coordinates, table.near, table.ranks, table.groups):
        assert [len(part) for part in view()] == [3, 2]
    assert asked.count("k") == 1


def test_no_view_of_labels_is_blinded_by_their_spelling(tables_of):
    rng = np.random.default_rng(0)
    names = rng.choice(["Alfa", "Bravo", "Ürümqi"], 60, p=[0.6, 0.3, 0.1]).tolist()
    train, made = tables_of({"k": names}, {"k": [f" {name.upper()}" for name in names]})
    column = train.schema["k"]
    coding = column_coding(train, column, 0)
    assert np.array_equal(coding.numbers(made), coding.numbers(train))
    assert coding.present(made).all()
    for view in (
        column_grouping(train, column, bins=4),
        anchored_cells(train, column, most_cells=4, most_labels=2),
    ):
        assert np.array_equal(view.of(made), view.of(train))
    names_shown = shared_cells([train, made], [train], column, most=4, fewest=1).names
    assert set(names_shown) == {"Alfa", "Bravo", "Ürümqi", "missing"}


@pytest.mark.parametrize("far", [1e300, 1.7e308])
def test_no_number_is_infinitely_far(far, tables_of):
    train, other = tables_of({"x": [0.0, 1.0, 2.0]}, {"x": [far, -far, None]})
    found = distance(train, other)
    assert np.isfinite(found).all()
    assert (found[:, :2] > 1e99).all()


def test_categories_follow_the_mean_rank_of_the_response():
    codes = np.array([0, 0, 1, 1, 2, 2, -1])
    response = np.array([5.0, 6, 900, 1000, 1, 2, 3])
    assert order_by_response(codes, 3, response).tolist() == [2, 0, 1]


def test_a_category_seen_once_does_not_end_up_at_an_end():
    codes = np.array([0] * 20 + [1] * 20 + [2])
    response = np.concatenate([np.arange(20.0), np.arange(20.0) + 20, [100.0]])
    assert order_by_response(codes, 3, response).tolist() == [0, 2, 1]


def test_categories_without_a_response_follow_their_frequency():
    counted = np.array([2, 2, 2, 0, 0, 1, -1])
    ranked, _ = by_frequency([np.arange(-1, 3), counted], counted)
    assert ranked.tolist() == [2, 1, 3, 0]
    assert by_frequency([np.array([-1])] * 2, np.array([-1]))[0].tolist() == [0]


WHOLE = np.rint(np.random.default_rng(0).normal(50, 10, 400))


def finest_of(values):
    return FinestDigits.of(values, resolution_of(values, decimal_grids()))


def with_one(value):
    return np.append(WHOLE, [np.nan, value])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (WHOLE, ValueGrid()),
        (WHOLE * 5, ValueGrid(5.0)),
        (WHOLE / 2, ValueGrid(1.0, 10.0)),
        (WHOLE / 4, ValueGrid(1.0, 100.0)),
        (with_one(51.5), ValueGrid(1.0, 10.0)),
        (with_one(51.25), ValueGrid(1.0, 100.0)),
        (with_one(51.125), None),
        (with_one(1 / 3), None),
        (np.append(WHOLE * 5, 12.0), ValueGrid()),
    ],
    ids=[
        "all whole",
        "fives",
        "halves",
        "quarters",
        "a half",
        "a quarter",
        "three digits more",
        "noise",
        "a whole among fives",
    ],
)
def test_it_is_the_grid_of_all_numbers_unless_that_is_far_finer(values, expected):
    found = finest_of(values)
    assert (found.finest if found else None) == expected


def test_it_holds_the_digits_that_train_has_and_none_beyond():
    finest = finest_of(with_one(51.5))
    assert finest.holds(np.array([40.3, 0.0, -7.9, np.nan])).all()
    assert not finest.holds(np.array([40.31, 40.3 + 1e-9])).any()


def test_large_numbers_get_two_digits_more_at_most():
    values = np.array([float(f"{x:.3g}") for x in np.exp(np.random.default_rng(1).normal(0, 1.5, 800))])
    finest = finest_of(values)
    assert finest.resolution.digits == 3
    step = finest.finest.step
    assert finest.holds(np.array([12345 * step, 999 * step])).all()
    assert not finest.holds(np.array([123456 * step, 12.3451, 45612.0])).any()
