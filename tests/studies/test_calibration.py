"""The leaky evaluation: lines through planted leaks, noise beside them, audits that say nothing."""

import json

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

import synth_audit
from synth_audit.errors import DataError, PlanError
from synth_audit.report.study_pages import render_calibration
from synth_audit.store.workspace import Workspace
from synth_audit.studies import calibration
from synth_audit.studies.calibration import LOUD
from synth_audit.studies.calibration import disturbed as noisy
from synth_audit.table.kind import Disturbance


def people(n, seed):
    rng = np.random.default_rng(seed)
    return pa.table({"x": rng.normal(size=n), "k": rng.integers(0, 50, n), "c": rng.choice(["a", "b"], n)})


@pytest.fixture(scope="module")
def found():
    return synth_audit.calibrate(people(400, 1), people(100, 2), steps=4, only=("exact_match",))


def test_every_measurement_under_every_noise(found):
    assert {c.noise for c in found.curves} == set(LOUD)
    assert {c.id.name for c in found.curves} == {
        f"exact_match.{name}"
        for name in ("share", "excess", "unique_excess", "record_excess", "all_but_one_excess")
    }
    assert all([p.share for p in c.points] == [0, 0.25, 0.5, 0.75, 1] for c in found.curves)


def test_copies_are_counted_one_for_one(found):
    [share] = [c for c in found.curves if str(c.id) == "exact_match.share" and c.noise.none]
    assert [p.value for p in share.points] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert (share.slope, share.intercept, share.r_squared) == pytest.approx((1, 0, 1))


def test_noise_hides_exact_copies(found):
    blurred = [c for c in found.curves if str(c.id) == "exact_match.share" and c.noise.sigma]
    assert [c.points[-1].value for c in blurred] == [0.0] * 4


def test_the_page_shows_every_measurement(found):
    html = render_calibration(found)
    assert html.count("<figure>") == 5
    assert "R² of a straight line" in html
    assert "<script" not in html


def test_files_are_written_where_asked(tmp_path):
    out = tmp_path / "out"
    synth_audit.calibrate(people(100, 1), people(50, 2), steps=2, noise=False, only=("exact_match",), out=out)
    assert {p.name for p in (out / "review").iterdir()} == {"calibration.html", "calibration.json"}
    assert json.loads((out / "review" / "calibration.json").read_text())["planting"]["release_rows"] == 50


def test_temporary_files_lie_in_the_workspace_that_is_named(tmp_path, monkeypatch):
    seen = []

    def noted(audits, subject, context, **others):
        seen.append(context.scratch)
        raise DataError("seen enough", where="here")

    monkeypatch.setattr(calibration, "calibrate", noted)
    with pytest.raises(DataError, match="seen enough"):
        synth_audit.calibrate(people(100, 1), people(50, 2), only=("exact_match",), out=tmp_path / "new")
    assert seen == [Workspace(tmp_path / "new").scratch]


def test_too_few_rows_are_refused():
    with pytest.raises(DataError, match="no leak can be planted") as caught:
        synth_audit.calibrate(people(30, 1), people(30, 2), only=("exact_match",))
    assert caught.value.fix


def test_what_cannot_be_calibrated_is_refused():
    with pytest.raises(PlanError, match="nothing to calibrate"):
        synth_audit.calibrate(people(100, 1), people(50, 2), {"audits": ["marginals"]})
    with pytest.raises(PlanError, match="more than one size"):
        synth_audit.calibrate(people(100, 1), people(50, 2), only=("exact_match",), steps=0)


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
    return table_of(data)


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
