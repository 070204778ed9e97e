"""The leaky evaluation: lines through planted leaks, noise beside them, audits that say nothing."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import synth_audit
from synth_audit.errors import DataError, PlanError
from synth_audit.report.study_pages import render_calibration
from synth_audit.store.workspace import Workspace
from synth_audit.studies import calibration
from synth_audit.studies.calibration import LOUD


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
