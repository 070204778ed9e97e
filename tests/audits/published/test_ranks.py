import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.published.closest_record.distances import RankEncoder
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


def tables(*data):
    schema = infer_schema(data[0], {})
    return [read_table(d, schema, where="table") for d in data]


def frame(n, seed):
    rng = np.random.default_rng(seed)
    value = rng.normal(size=n)
    value[rng.random(n) < 0.1] = np.nan
    return pa.table(
        {
            "x": pa.array(value, from_pandas=True),
            "k": pa.array(rng.integers(0, 9, n)),
            "c": pa.array(rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])),
            "one": pa.array(["same"] * n),
        }
    )


def encoded(scales, made):
    return RankEncoder(scales[0].schema.features).encode(scales, made)


def respelt(data):
    scaled = pa.array(np.exp(np.array(data["x"].to_numpy(), dtype=float)) * 2.205, from_pandas=True)
    labels = pa.array([{"a": "Z", "b": "Y", "c": "X"}[v] for v in data["c"].to_pylist()])
    return pa.table(
        {"x": scaled, "k": pa.array(np.array(data["k"]) * 7 - 3), "c": labels, "one": data["one"]}
    )


def test_a_copy_in_other_units_codes_and_spellings_lies_where_train_lies():
    data = frame(200, 0)
    train, copy = tables(data, respelt(data))
    here, there = encoded([train, copy], [train, copy])
    np.testing.assert_array_equal(here.dense, there.dense)
    np.testing.assert_array_equal(here.labels, there.labels)


def test_ranks_are_those_of_a_loop_over_rows():
    train, other = tables(frame(60, 1), frame(40, 2))
    _, placed = encoded([train, train], [train, other])
    known = [v for v in train.numbers("x") if not np.isnan(v)]
    for row, value in enumerate(other.numbers("x")):
        below = sum(v < value for v in known) + 0.5 * sum(v == value for v in known)
        wanted = 0.0 if np.isnan(value) else (below / len(known) - 0.5) * np.sqrt(12)
        assert placed.dense[row, 1] == pytest.approx(wanted)
        assert placed.dense[row, 2] == np.isnan(value)


def test_labels_the_scale_lacks_and_missing_ones_have_places_of_their_own():
    train, other = tables(
        pa.table({"c": ["a", "a", "a", "b", None]}), pa.table({"c": ["new", "newer", "a", "b", None]})
    )
    _, placed = encoded([train, train], [train, other])
    assert len(np.unique(placed.labels, axis=0)) == 5


def test_labels_that_hardly_anybody_shares_stand_for_nobody_elses():
    train, control, made = tables(
        *(pa.table({"name": [f"{w} {i}" for i in range(40)]}) for w in ("ann", "bob", "cyd"))
    )
    placed = encoded([train, train, made], [train, control, made])
    assert len(np.unique(np.concatenate([x.labels for x in placed]), axis=0)) == 120


def test_a_constant_column_has_no_coordinate():
    train, copy = tables(frame(50, 3), frame(50, 4))
    widths = {(c.dense.shape[1], c.labels.shape[1]) for c in encoded([train, copy], [train, copy])}
    assert widths == {(1 + 2 + 1, 1)}  # of two columns with numbers one has gaps


def test_labels_that_were_not_recoded_keep_their_place_however_frequent_they_are():
    train, other = tables(pa.table({"c": ["a"] * 6 + ["b"] * 4}), pa.table({"c": ["a"] * 4 + ["b"] * 6}))
    here, there = encoded([train, other], [train, other])
    np.testing.assert_array_equal(here.labels[0], there.labels[0])
    np.testing.assert_array_equal(here.labels[-1], there.labels[-1])
