"""Noise on records: as strong as asked, of the kind of the column, and never on missing values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.studies.calibration import disturbed as noisy
from synth_audit.table.kind import Disturbance
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

N = 4000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    data = pa.table(
        {
            "x": pa.array(rng.normal(50, 20, N), mask=rng.random(N) < 0.1),
            "k": pa.array(rng.integers(0, 9, N)),
            "c": pa.array(rng.choice(["a", "b", "c"], N), mask=rng.random(N) < 0.1),
            "one": ["only"] * N,
            "gone": pa.nulls(N, pa.float64()),
        }
    )
    return read_table(data, infer_schema(data, {}), where="train")


def disturbed(table, **noise):
    return noisy(table, Disturbance(**noise), np.random.default_rng(1))


def test_none_changes_nothing(table):
    assert disturbed(table) is table
    assert Disturbance().none
    assert not Disturbance(flip=0.1).none


def test_continuous_noise_is_in_standard_deviations(table):
    moved = disturbed(table, sigma=0.05).numbers("x") - table.numbers("x")
    assert np.nanstd(moved) == pytest.approx(0.05 * np.nanstd(table.numbers("x")), rel=0.05)


def test_integers_stay_integers_and_gain_a_poisson_number(table):
    moved = disturbed(table, rate=0.05).numbers("k") - table.numbers("k")
    assert set(np.unique(moved)) <= {0.0, 1.0, 2.0, 3.0}
    assert moved.mean() == pytest.approx(0.05, abs=0.015)


def test_labels_are_replaced_by_others(table):
    before, after = table.labels("c"), disturbed(table, flip=0.2).labels("c")
    known = before != None  # noqa: E711
    assert np.mean(before[known] != after[known]) == pytest.approx(0.2, abs=0.02)
    assert set(after[known]) == {"a", "b", "c"}
    assert set(disturbed(table, flip=1.0).labels("one")) == {"only"}


def test_missing_stays_missing_and_other_kinds_stay_put(table):
    loud = disturbed(table, sigma=1.0, rate=1.0, flip=1.0)
    for name in table.names:
        assert np.array_equal(table.missing(name), loud.missing(name))
    assert np.array_equal(disturbed(table, flip=1.0).numbers("k"), table.numbers("k"))


def test_no_rows_are_no_trouble(table):
    none = table.take(np.empty(0, dtype=np.intp))
    assert disturbed(none, sigma=0.05, rate=0.05, flip=0.05).n_rows == 0


@pytest.mark.parametrize("wrong", [{"sigma": -1.0}, {"flip": 1.5}])
def test_impossible_noise_is_refused(wrong):
    with pytest.raises(ValueError, match="noise"):
        Disturbance(**wrong)
