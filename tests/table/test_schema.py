"""What a table is taken to be, from its declarations and from its values."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_audit.column_kinds._bases import TextLabels
from synth_audit.errors import DataError, PlanError
from synth_audit.table.arrow import labels_of
from synth_audit.table.kind import kind_named
from synth_audit.table.label_forms import column_forms, standard_forms
from synth_audit.table.schema import Role
from synth_audit.table.schema_inference import ColumnSpec, infer_schema

NAN = float("nan")


def column(values, **spec):
    specs = {"x": ColumnSpec(**spec)} if spec else {}
    return infer_schema(
        pa.table({"x": values, "other": pa.array([1, 2, 3] * (len(values) // 3 + 1))[: len(values)]}), specs
    )["x"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([True, False, None]), kind_named("boolean")),
        (pa.array(["a", "b", None]), kind_named("categorical")),
        (pa.array(["a", "b", "a"], pa.large_string()), kind_named("categorical")),
        (pa.array(["a", "b", "a"]).dictionary_encode(), kind_named("categorical")),
        (pa.array([1, 2, 3]), kind_named("integer")),
        (pa.array([1, 2, 3], pa.uint8()), kind_named("integer")),
        (pa.array([1, 2, 1]), kind_named("categorical")),
        (pa.array([1, 1, 1]), kind_named("integer")),
        (pa.array([1.5, 2.5, 1.5]), kind_named("categorical")),
        (pa.array([1.5, 2.5, 3.5]), kind_named("continuous")),
        (pa.array([1.5, 2.5, 3.5], pa.float32()), kind_named("continuous")),
        (pa.array([1.0, 2.0, 1.0]).cast(pa.decimal128(9, 2)), kind_named("continuous")),
        (pa.array([datetime.date(2020, 1, 1)] * 3), kind_named("datetime")),
        (pa.array([1, 2, 3], pa.timestamp("ns", "UTC")), kind_named("datetime")),
        (pa.nulls(3), kind_named("categorical")),
    ],
)
def test_kind_is_inferred_from_storage_and_values(values, kind):
    found = column(values)
    assert found.kind is kind
    assert found.storage == values.type
    assert not found.kind_declared


def test_declared_kind_wins_over_inference():
    found = column(pa.array([1, 2, 1]), kind="integer")
    assert found.kind is kind_named("integer")
    assert found.kind_declared
    assert found.inferred_bounds == (1.0, 2.0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array(["1", "2", "3"]), "continuous"),
        (pa.array(["1", "2", "3"]), "integer"),
        (pa.array(["1", "2", "3"]), "boolean"),
        (pa.array([1, 2, 3]), "datetime"),
        (pa.array([datetime.date(2020, 1, 1)] * 3), "integer"),
    ],
)
def test_declared_kind_that_storage_cannot_hold_is_refused(values, kind):
    with pytest.raises(DataError, match="'x' is declared"):
        column(values, kind=kind)


@pytest.mark.parametrize("values", [pa.array([[1], [2], [3]]), pa.array([b"a"] * 3)])
def test_unusable_types_are_refused(values):
    with pytest.raises(DataError, match="cannot be audited"):
        column(values)


def test_nan_is_missing_and_no_category():
    found = column(pa.array([1.0, NAN, 2.0], from_pandas=False))
    assert found.kind is kind_named("categorical")
    assert found.categories == ("1", "2")
    assert column(pa.array([NAN, 1.0, 3.0], from_pandas=False), categories=[1, 3]).categories == ("1", "3")
    assert column(pa.array([NAN] * 3, from_pandas=False)).bounds is None


def test_inferred_domain_is_kept_apart_from_the_declared_one():
    number = column(pa.array([3, 5, 7]), bounds=(0, 10))
    assert (number.declared_bounds, number.inferred_bounds, number.bounds) == ((0, 10), (3, 7), (0, 10))
    label = column(pa.array(["b", "a", None]), categories=["c", "b", "a"])
    assert label.declared_categories == ("c", "b", "a")
    assert label.inferred_categories == ("a", "b")
    assert column(pa.array(["b", "a", None])).declared_categories is None


@pytest.mark.parametrize("bounds", [(0, 6), (4, 10)])
def test_values_outside_declared_bounds_are_refused(bounds):
    with pytest.raises(DataError, match="outside its declared bounds"):
        column(pa.array([3, 5, 7]), bounds=bounds)


def test_values_outside_declared_categories_are_refused():
    with pytest.raises(DataError, match="outside its declared categories"):
        column(pa.array(["a", "b", "c"]), categories=["a", "b"])


def test_bounds_keep_a_two_valued_number_a_number():
    found = column(pa.array([0, 1, 1]), bounds=(0, 120))
    assert found.kind is kind_named("integer")
    assert found.declared_bounds == (0, 120)


@pytest.mark.parametrize("values", [pa.array(["a", "b", "c"]), pa.array([True, False, True])])
def test_bounds_on_labels_are_refused_and_not_forgotten(values):
    with pytest.raises(DataError, match="declared with bounds"):
        column(values, bounds=(0, 1))


@pytest.mark.parametrize(
    "values",
    [pa.array([1, 2, 3]), pa.array([1.0, 2.0, 3.0]), pa.array([1.0, 2.0, 3.0]).cast(pa.decimal128(9, 2))],
)
def test_categories_make_a_number_categorical(values):
    found = column(values, categories=[1, 2.0, "3", 4])
    assert found.kind is kind_named("categorical")
    assert found.inferred_categories == ("1", "2", "3")


def test_datetime_bounds_are_microseconds_since_1970():
    day = datetime.date(1970, 1, 2)
    found = column(
        pa.array([day, day, day]), bounds=(datetime.date(1970, 1, 1), datetime.datetime(1970, 1, 3))
    )
    assert found.declared_bounds == (0.0, 2 * 86_400e6)
    assert found.inferred_bounds == (86_400e6, 86_400e6)
    with pytest.raises(DataError, match="outside its declared bounds"):
        column(pa.array([day] * 3), bounds=(datetime.date(1970, 1, 3), datetime.date(1971, 1, 1)))


def test_a_column_of_too_many_categories_is_refused_unless_it_is_an_identifier():
    values = pa.array([f"person {i}" for i in range(100_000)])
    assert len(values) > TextLabels.most_labels
    with pytest.raises(DataError, match="100,000 categories"):
        column(values)
    found = column(values, role="identifier")
    assert found.inferred_categories is None
    assert not found.released


def test_names_must_be_distinct_and_not_empty():
    with pytest.raises(DataError, match="'a' occurs more than once"):
        infer_schema(pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(DataError, match="empty name"):
        infer_schema(pa.table([[1], [2]], names=["a", ""]))


def test_declaring_a_column_that_is_not_there_is_refused():
    with pytest.raises(PlanError, match="describes column 'b'"):
        infer_schema(pa.table({"a": [1]}), {"b": ColumnSpec(kind="integer")})


def test_roles():
    data = pa.table({"key": [1, 2, 3], "group": ["a", "b", "a"], "y": [1, 0, 1], "x": [1.0, 2.0, 3.0]})
    specs = {
        "key": ColumnSpec(role="identifier"),
        "group": ColumnSpec(role="split_key"),
        "y": ColumnSpec(role=["target", "sensitive"]),
    }
    schema = infer_schema(data, specs)
    assert [c.name for c in schema.features] == ["y", "x"]
    assert schema.target is schema["y"]
    assert [c.name for c in schema.with_role(Role.SENSITIVE)] == ["y"]
    assert schema.released_only().names == ("y", "x")
    assert infer_schema(data).target is None


def test_two_targets_or_nothing_to_release_are_refused():
    data = pa.table({"a": [1, 2, 3], "b": [1, 2, 3]})
    with pytest.raises(PlanError, match="2 columns have the role target"):
        infer_schema(data, {name: ColumnSpec(role="target") for name in "ab"})
    with pytest.raises(PlanError, match="no column is left"):
        infer_schema(data, {name: ColumnSpec(role="identifier") for name in "ab"})


@pytest.mark.parametrize("wanted", ["target", "sensitive"])
@pytest.mark.parametrize("withheld", ["identifier", "split_key"])
def test_what_never_leaves_cannot_be_target_or_sensitive(wanted, withheld):
    data = pa.table({"key": ["a", "b", "c"], "x": [1, 2, 3]})
    with pytest.raises(PlanError, match=f"'key' has the roles {wanted} and {withheld}") as caught:
        infer_schema(data, {"key": ColumnSpec(role=[withheld, wanted])})
    assert caught.value.where == "columns.key"
    assert caught.value.fix


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, None], pa.int8()),
        pa.array([1.0, 2.0, None]),
        pa.array([1.0, 2.0, NAN], from_pandas=False),
        pa.array([1.0, 2.0, None], pa.float32()),
        pa.array([1.0, 2.0, None], pa.float16()),
        pa.array([1.0, 2.0, None]).cast(pa.decimal128(9, 2)),
        pa.array(["1", "2", None]),
        pa.array(["1", "2", None]).dictionary_encode(),
    ],
)
def test_a_label_does_not_depend_on_its_storage(values):
    assert labels_of(pa.chunked_array([values])).to_pylist() == ["1", "2", None]


def test_a_label_does_not_depend_on_its_neighbours():
    whole, mixed = ([1e10, 3.0, last] for last in (2.0, 2.5))
    assert labels_of(pa.chunked_array([whole])).to_pylist() == ["10000000000", "3", "2"]
    assert labels_of(pa.chunked_array([mixed])).to_pylist() == ["10000000000", "3", "2.5"]


@pytest.mark.parametrize("huge", [1e300, float("inf"), -float("inf"), 2.0**63])
def test_huge_labels_do_not_fail(huge):
    assert len(set(labels_of(pa.chunked_array([[1.0, huge]])).to_pylist())) == 2


def test_booleans_stored_as_numbers_read_as_booleans():
    for values in (pa.array([1, 0, None]), pa.array([1.0, 0.0, None]), pa.array([True, False, None])):
        found = column(values, kind="boolean", categories=[0, 1])
        assert found.inferred_categories == ("false", "true")
        assert set(found.categories) == {"false", "true"}


def test_inference_does_not_depend_on_row_order():
    rng = np.random.default_rng(0)
    data = pa.table({"a": rng.integers(0, 5, 50), "b": rng.choice(list("xyz"), 50), "c": rng.normal(size=50)})
    assert infer_schema(data) == infer_schema(data.take(rng.permutation(50)))


ASCII = [chr(i) for i in range(128)]


@pytest.mark.parametrize("others", [[], ["Ａb", "ß ", "\u00a0x", "ﬁ", "É"]])
def test_a_column_has_the_forms_of_its_texts(others):
    texts = [None, "", *ASCII, *(f"{c}Xy{c}" for c in ASCII), *others, None]
    column = pa.chunked_array([texts[:5], [], texts[5:]], pa.string())
    assert column_forms(column).to_pylist() == standard_forms(texts)


@given(texts=st.lists(st.none() | st.text(max_size=6), max_size=20))
def test_whatever_the_texts_are(texts):
    column = pa.chunked_array([pa.array(texts, pa.string())])
    assert column_forms(column).to_pylist() == standard_forms(texts)


@pytest.mark.parametrize(("kind", "width"), [(pa.string(), 4), (pa.large_string(), 8)])
def test_a_part_of_a_longer_array_has_the_forms_of_its_own_texts(kind, width):
    """Where the texts do not start at the first byte of their buffer, as in what Arrow cuts off a file."""
    _, offsets, letters = pa.array(["what stands before", " Bachelors ", "MALE"], kind).buffers()
    part = pa.Array.from_buffers(kind, 2, [None, offsets.slice(width), letters])
    assert column_forms(pa.chunked_array([part])).to_pylist() == ["bachelors", "male"]
