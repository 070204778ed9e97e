"""Densities by nearest neighbours and by trees: what a copy, a duplicate and a wild value look like."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy.one_run.people import log_density_ratio
from synth_audit.audits.published.membership_data_only import tree_share
from synth_audit.encode.encoded import Encoded
from synth_audit.neighbours.search import Nearest
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table


def neighbours(first, ties=1):
    first = np.array(first, dtype=float)
    return Nearest(first, first + 1, np.zeros(len(first), int), np.broadcast_to(ties, len(first)))


def test_the_ratio_is_that_of_the_two_densities():
    found = log_density_ratio(neighbours([0.1, 0.4], [2, 1]), neighbours([0.2, 0.1], [1, 3]), 3)
    by_hand = [np.log(2 / 0.1**3) - np.log(1 / 0.2**3), np.log(1 / 0.4**3) - np.log(3 / 0.1**3)]
    assert found == pytest.approx(by_hand, abs=1e-6)


def test_among_duplicates_the_counts_decide():
    found = log_density_ratio(neighbours([0, 0, 0], [8, 4, 1]), neighbours([0, 0, 0], [2, 4, 8]), 5)
    assert found == pytest.approx(np.log([4, 1, 1 / 8]))


def test_a_copy_is_beyond_every_near_row_and_finite():
    found = log_density_ratio(neighbours([0, 1e-6, 0.3]), neighbours([0.2, 0.9, 0.9]), 4)
    assert np.isfinite(found).all()
    assert found[0] > found[1] > found[2]


def test_ranks_keep_the_order_and_put_missing_apart():
    data = pa.table({"x": [3.0, None, -1e300, 1e300], "k": ["b", None, "a", "b"]})
    schema = infer_schema(data, {"x": ColumnSpec(kind="continuous")})
    one, two = Encoded(
        [read_table(d, schema, where="t") for d in (data, data.slice(1))], schema.features
    ).ranks()
    assert one[:, 0].tolist() == [1, 3, 0, 2]
    assert len(set(one[:, 1])) == 3
    assert np.array_equal(one[1:], two)
    assert one.dtype == np.float32


def test_trees_find_copies_and_do_not_find_strangers():
    rng = np.random.default_rng(0)
    train, control, fresh, reference = (
        rng.permutation(2000)[:300, None] + rng.random((300, 4)) for _ in "abcd"
    )
    queries = np.concatenate([train, control]).astype(np.float32)
    copied = tree_share(queries, train.astype(np.float32), reference.astype(np.float32), 50, seed=1)
    assert (copied[:300] == 1).all()
    assert copied[300:].mean() == pytest.approx(0.5, abs=0.06)
    honest = tree_share(queries, fresh.astype(np.float32), reference.astype(np.float32), 50, seed=1)
    assert honest[:300].mean() == pytest.approx(honest[300:].mean(), abs=0.1)


def test_trees_are_those_of_a_forest():
    from sklearn.ensemble import ExtraTreesClassifier

    rows, queries = np.random.default_rng(0).integers(0, 30, (2, 200, 3)).astype(np.float32)
    forest = ExtraTreesClassifier(20, random_state=5).fit(rows, np.repeat([1, 0], [120, 80]))
    expected = forest.predict_proba(queries)[:, 1]
    assert tree_share(queries, rows[:120], rows[120:], 20, 5) == pytest.approx(expected, abs=1e-9)


def test_ranks_of_some_rows_are_those_among_all():
    rng = np.random.default_rng(0)
    data = [pa.table({"x": rng.normal(size=n), "k": rng.choice(list("abc"), n)}) for n in (50, 30)]
    schema = infer_schema(data[0])
    tables = [read_table(d, schema, where="t") for d in data]
    rows = [np.array([3, 40]), np.array([29, 0, 7])]
    encoded = Encoded(tables, schema.features)
    found = encoded.ranks(rows)
    for ranks, whole, some in zip(found, encoded.ranks(), rows, strict=True):
        assert np.array_equal(ranks, whole[some])


def test_trees_give_the_same_bits_for_a_seed():
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(2, 200, 3)).astype(np.float32)
    one, two, other = (tree_share(queries, rows[:120], rows[80:], 20, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
