"""Mixed rows as coordinates to which every column adds the same variance."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from synth_audit.audits.fidelity import projection as pca
from synth_audit.audits.fidelity.projection import CoordinateRows, StandardisedCoordinates
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(0, 2**32))


def rows_of(values):
    """Numbers as they are, without indicators."""
    return CoordinateRows(values, np.empty((len(values), 0), dtype=np.int32), np.zeros(values.shape[1] + 1))


def spectrum(*variances):
    return pca.Spectrum.of(np.diag(np.array(variances, dtype=float)))


def turned(angle):
    """The first axis of the plane turned by an angle in radians, with the spectrum 3 : 1."""
    u = np.array([[np.cos(angle)], [np.sin(angle)]])
    return pca.Spectrum.of(np.eye(2) + 2 * u @ u.T)


@given(SHAPES)
def test_covariance_is_that_of_the_rows(shape):
    n, d, seed = shape
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 5
    moments = pca.Moments.of(rows_of(values), rng)
    np.testing.assert_allclose(moments.whole, np.cov(values.T, bias=True).reshape(d, d), atol=1e-9)


def test_weights_repeat_groups():
    values = np.random.default_rng(0).normal(size=(6, 2))
    moments = pca.Moments.of(rows_of(values), np.random.default_rng(1))
    order = np.random.default_rng(1).permutation(6)
    repeated = np.repeat(values[order], [0, 3, 1, 0, 2, 0], axis=0)
    found = moments.covariance(np.array([0, 3, 1, 0, 2, 0.0]))
    np.testing.assert_allclose(found, np.cov(repeated.T, bias=True), atol=1e-12)


def test_groups_are_few_where_coordinates_are_many():
    wide = pca.Moments.of(rows_of(np.ones((500, 400))), np.random.default_rng(0))
    assert len(wide.rows) == 30
    assert wide.rows.sum() == 500
    assert len(pca.Moments.of(rows_of(np.ones((500, 3))), np.random.default_rng(0)).rows) == 200


def test_what_does_not_vary_has_no_variance_left_by_rounding():
    values = np.column_stack([np.full(1000, 0.1 + 1e5), np.random.default_rng(0).normal(size=1000)])
    whole = pca.Moments.of(rows_of(values), np.random.default_rng(0)).whole
    assert (whole[0] == 0).all()
    found = pca.correlation(whole)
    np.testing.assert_allclose(found, [[0, 0], [0, 1]])


def test_components_are_those_of_a_peer():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5))
    peer = PCA().fit(values)
    found = pca.Spectrum.of(np.cov(values.T))
    np.testing.assert_allclose(found.shares, peer.explained_variance_ratio_, atol=1e-12)
    assert abs(found.first[:, 0] @ peer.components_[0]) == pytest.approx(1)


def test_eigenvalue_difference_in_closed_form():
    assert pca.eigenvalue_difference(spectrum(2, 1, 1), spectrum(1, 4, 2)) == pytest.approx(
        3 / 4 * (abs(2 / 4 - 4 / 7) + abs(1 / 4 - 2 / 7) + abs(1 / 4 - 1 / 7))
    )
    assert pca.eigenvalue_difference(spectrum(3, 2, 1), spectrum(1, 3, 2)) == pytest.approx(0)
    assert pca.eigenvalue_difference(spectrum(1, 0, 0, 0), spectrum(5, 5, 5, 5)) == pytest.approx(1)
    assert pca.eigenvalue_difference(spectrum(1, 2), spectrum(0, 0)) == 1


@pytest.mark.parametrize("angle", [0, 1e-12, 1e-6, 0.3, 1.0, np.pi / 2, 2.5, np.pi])
def test_the_angle_is_that_of_the_turn_whatever_the_sign(angle):
    acute = min(angle, np.pi - angle)
    assert pca.first_angle(turned(0), turned(angle)) == pytest.approx(2 / np.pi * acute, rel=1e-3, abs=1e-14)
    assert pca.first_angle(turned(angle), turned(0)) == pytest.approx(2 / np.pi * acute, rel=1e-3, abs=1e-14)


def test_components_that_tie_have_no_order():
    tied, first, third = spectrum(2, 2, 1), spectrum(2, 1, 1), spectrum(1, 1, 2)
    assert pca.first_angle(tied, first) == pytest.approx(0, abs=1e-12)
    assert pca.first_angle(tied, third) == pytest.approx(1)
    assert pca.first_angle(tied, pca.Spectrum.of(np.zeros((3, 3)))) == 1


def test_resamples_are_the_same_for_the_same_seed_and_spread_around_the_whole():
    values = np.random.default_rng(0).normal(size=(2000, 3)) * [3, 2, 1]
    moments = pca.Moments.of(rows_of(values), np.random.default_rng(0))
    views = (lambda c: c, pca.correlation)
    draws = [pca.resampled(moments, views, 60, np.random.default_rng(5)) for _ in range(2)]
    shares = [np.array([d[0].shares for d in drawn]) for drawn in draws]
    np.testing.assert_array_equal(shares[0], shares[1])
    whole, standardised = pca.components(moments, views)
    np.testing.assert_allclose(shares[0].mean(axis=0), whole.shares, atol=0.01)
    assert standardised.shares[0] == pytest.approx(1 / 3, abs=0.02)


def test_axes_point_to_their_largest_loading():
    values = np.random.default_rng(0).normal(size=(500, 3)) @ np.diag([-3.0, 1.0, 0.1])
    axes, shares = pca.plane(pca.Moments.of(rows_of(values), np.random.default_rng(0)))
    np.testing.assert_allclose(np.abs(axes), [[1, 0], [0, 1], [0, 0]], atol=0.1)
    assert axes[0, 0] > 0
    assert axes[1, 1] > 0
    assert shares == pytest.approx([0.9, 0.1], abs=0.02)
    np.testing.assert_allclose(
        pca.positions(rows_of(values), axes, np.ones(3)), (values - 1) @ axes, atol=1e-8
    )


def test_counts_are_those_of_a_histogram():
    where = np.random.default_rng(0).normal(size=(5000, 2)) * [2, 1]
    across, up = (pca.edges(where[:, i], 7, 0.01) for i in range(2))
    expected, _, _ = np.histogram2d(where[:, 1], where[:, 0], bins=[up, across])
    np.testing.assert_array_equal(pca.cell_counts(where, across, up), expected)
    assert ((where[:, 0] < across[0]) | (where[:, 0] > across[-1])).mean() == pytest.approx(0.02, abs=2e-3)


def test_there_are_no_cells_where_most_rows_agree():
    assert pca.edges(np.array([0.0] * 99 + [5.0]), 10, 0.05) is None


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.integers(1, 15))
def test_what_is_withheld_cannot_be_worked_out(counts, fewest):
    counts = np.array(counts).reshape(1, -1)
    shown = pca.cells_shown(counts, fewest)
    assert (counts[shown] >= fewest).all()
    hidden = counts[~shown].sum()
    assert hidden == 0 or hidden >= fewest or not shown.any()
    assert (~shown & (counts >= fewest)).sum() <= 1


def test_mixed_rows_are_spread_out_in_parts_that_add_up(tables_of):
    rng = np.random.default_rng(0)
    [train] = tables_of({"x": rng.normal(size=9000), "k": rng.choice(["a", "b"], 9000).tolist()})
    frame = StandardisedCoordinates.of([train], train.schema.features, 50)
    rows = frame.read(train)
    whole = rows.dense(slice(0, 9000))
    moments = pca.Moments.of(rows, rng)
    np.testing.assert_allclose(moments.whole, np.cov(whole.T, bias=True), atol=1e-12)
    axes, _ = pca.plane(moments)
    np.testing.assert_allclose(
        pca.positions(rows, axes, moments.mean), (whole - whole.mean(axis=0)) @ axes, atol=1e-8
    )


NUMERIC = ("x", "y", "gaps")


def mixed(n, seed):
    rng = np.random.default_rng(seed)
    hours = rng.integers(0, 10_000, n)
    return {
        "x": rng.normal(5, 3, n),
        "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        "label": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]).tolist(),
        "maybe": [None if i % 4 == 0 else "u" if i % 2 else "v" for i in range(n)],
        "flag": (rng.random(n) < 0.2).tolist(),
        "when": [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(h)) for h in hours],
        "same": ["s"] * n,
        "nothing": [None] * n,
    }


def frame_of(*frames, most=300):
    """A frame and the tables it was made for, of which the first is train."""
    data = [pa.table(f) for f in frames]
    specs = {n: ColumnSpec(kind="continuous") for n in NUMERIC if n in data[0].column_names}
    schema = infer_schema(data[0], specs)
    tables = [read_table(d, schema, where="table") for d in data]
    return StandardisedCoordinates.of(tables, schema.features, most), tables


def dense(frame, table):
    rows = frame.read(table)
    return rows.dense(slice(0, len(rows)))


def test_every_column_that_varies_has_variance_one_in_train():
    frame, [train] = frame_of(mixed(500, 1))
    found = dense(frame, train)
    by_column = {}
    for owner, variance in zip(frame.owners, found.var(axis=0), strict=True):
        by_column[owner] = by_column.get(owner, 0.0) + variance
    assert by_column == pytest.approx(dict.fromkeys(["x", "gaps", "label", "maybe", "flag", "when"], 1.0))
    assert len(frame.owners) == 1 + 2 + 3 + 3 + 2 + 1
    assert len(frame.numbers) == 3


def test_coordinates_by_hand():
    train = {"x": [0.0, 0.0, 4.0, 4.0], "k": ["a", "b", "a", None]}
    other = {"x": [2.0, np.nan, 8.0], "k": ["b", "never seen", None]}
    frame, [_, table] = frame_of(train, other)
    assert frame.owners == ("x", "x", "k", "k", "k", "k")  # number, missing; a, b, others, missing
    weight = 1 / np.sqrt(1 - 0.25 - 0.0625 - 0.0625)
    expected = [
        [0.0, 0, 0, weight, 0, 0],
        [0.0, 1, 0, 0, weight, 0],
        [3.0, 0, 0, 0, 0, weight],
    ]
    np.testing.assert_allclose(dense(frame, table), expected, atol=1e-12)


def test_a_share_of_missing_numbers_counts_as_derived():
    frame, [train] = frame_of({"x": [1.0, 3.0, np.nan, np.nan], "y": [0.0, 1.0, 2.0, 3.0]})
    root = np.sqrt(1 - 0.5**2)
    np.testing.assert_allclose(
        dense(frame, train)[:, [0, 2]], np.array([[-1, 0], [1, 0], [0, 1], [0, 1]]) / root
    )


def test_rarer_labels_are_counted_together():
    labels = ["a"] * 50 + ["b"] * 30 + ["c"] * 10 + ["d"] * 6 + ["e"] * 4
    frame, [train] = frame_of({"k": labels, "x": np.arange(100.0)}, most=4)
    assert frame.owners.count("k") == 4  # a, b, c and the others
    indicators = dense(frame, train)[:, 1:]
    assert (indicators[90:] == indicators[90]).all()
    assert len(np.unique(indicators, axis=0)) == 4


def test_equally_frequent_labels_are_kept_all_or_none():
    labels = ["a"] * 40 + ["b"] * 20 + ["c"] * 20 + ["d"] * 20
    frame, _ = frame_of({"k": labels, "x": np.arange(100.0)}, most=3)
    assert frame.owners.count("k") == 2
    frame, _ = frame_of({"k": [f"k{i % 50}" for i in range(100)], "x": np.arange(100.0)}, most=10)
    assert "k" not in frame.owners


def test_codes_do_not_depend_on_the_table_beside_train():
    frame, [train, other] = frame_of(mixed(50, 1), mixed(80, 2))
    positions = np.arange(79, 9, -3)
    np.testing.assert_array_equal(dense(frame, other.take(positions)), dense(frame, other)[positions])
    np.testing.assert_array_equal(
        frame.read(train).dense(np.array([3, 3, 0])), dense(frame, train)[[3, 3, 0]]
    )


def test_values_without_measure_stay_finite():
    x = np.random.default_rng(0).normal(size=20)
    frame, [_, wild] = frame_of({"x": x, "y": x**2}, {"x": [1.7e308, -1.7e308], "y": [1e200, np.nan]})
    found = dense(frame, wild)
    assert np.isfinite(found).all()
    assert found[0, 0] == 1e6
    assert found[1, 0] == -1e6


def test_missing_in_another_table_only_takes_a_coordinate():
    whole, holed = {"x": [1.0, 2.0], "k": ["a", "b"]}, {"x": [1.0, np.nan], "k": ["a", None]}
    assert len(frame_of(whole, whole)[0].owners) == 3
    assert len(frame_of(whole, holed)[0].owners) == 5


def test_a_column_missing_or_one_value_tells_by_being_missing():
    frame, [train] = frame_of({"x": [7.0, np.nan, 7.0, np.nan], "k": ["a", "b", "a", "a"]})
    assert len(frame.numbers) == 0
    np.testing.assert_allclose(dense(frame, train)[:, 0], [0, 2, 0, 2])
