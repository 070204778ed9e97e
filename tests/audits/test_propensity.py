"""Telling real from synthetic: what it sees, what it leaves alone, and what it survives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from synth_audit.audits.fidelity.propensity import FEWEST_ROWS, Propensity
from synth_audit.errors import NotApplicable

QUICK = Propensity(trees=20, folds=3)


@pytest.fixture(scope="module")
def cells():
    """Columns of several kinds that depend on each other."""
    frame = load_breast_cancer(as_frame=True).frame.sample(frac=1, random_state=0)
    columns = {name: frame[name].to_numpy() for name in ("mean radius", "mean texture", "mean area")}
    columns["grade"] = np.array(["low", "mid", "high"])[np.digitize(frame["mean concavity"], [0.05, 0.12])]
    columns["ill"] = frame["target"].to_numpy() == 0
    gaps = frame["mean smoothness"].to_numpy()
    return columns | {"smooth": np.where(gaps > 0.11, np.nan, gaps)}


def part(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


@pytest.fixture(scope="module")
def real(cells):
    return part(cells, slice(0, 250)), part(cells, slice(250, 400))


def shuffled(columns, rng):
    return {name: rng.permutation(values) for name, values in columns.items()}


def covers(m, value):
    return m.interval.low <= value <= m.interval.high


def test_fresh_real_rows_are_at_the_null(cells, real, subject_of, measure):
    found, _ = measure(QUICK, subject_of(*real, part(cells, slice(400, None))))
    assert covers(found["c2st_auroc"], 0.5)
    assert covers(found["pmse_ratio"], 1)
    assert found["pmse_ratio_resampled"].value > found["pmse_ratio"].value
    assert all(("giveaway", name) in found for name in cells)


def test_control_as_the_candidate_comes_out_at_its_reference(real, subject_of, measure):
    train, control = real
    found, findings = measure(QUICK, subject_of(train, control, control))
    for m in found.values():
        assert m.reference.value == m.value
        assert m.reference.interval == m.interval
    [roc] = findings.series
    assert set(roc.lines) == {"the release", "control rows"}


def test_a_copy_in_any_order_is_not_told_apart_by_the_logistic_model(real, subject_of, measure):
    train, _ = real
    order = np.random.default_rng(0).permutation(250)
    found, _ = measure(QUICK, subject_of(train, None, part(train, order)))
    assert found["pmse"].value == pytest.approx(0, abs=1e-12)
    assert found["pmse_ratio"].value == pytest.approx(0, abs=1e-9)
    assert found["c2st_auroc"].value < 0.5
    assert found["pmse"].interval.low < 0 < found["pmse"].interval.high


def test_shuffled_columns_are_told_apart_by_the_trees_alone(real, subject_of, measure):
    train, control = real
    found, _ = measure(QUICK, subject_of(train, control, shuffled(train, np.random.default_rng(0))))
    assert found["c2st_auroc"].interval.low > found["c2st_auroc"].reference.interval.high
    assert found["c2st_auroc"].value > 0.8
    assert found["pmse_ratio"].value < 1


def test_the_column_that_differs_is_named(real, subject_of, measure):
    train, control = real
    moved = {**control, "smooth": control["smooth"] + 0.05}
    found, _ = measure(QUICK, subject_of(train, None, moved))
    gives = {name: found["giveaway", name].value for name in moved}
    assert max(gives, key=gives.get) == "smooth"
    assert found["giveaway", "smooth"].interval.low > 0
    assert found["pmse_ratio"].interval.low > 1


def test_a_label_of_the_release_only_and_a_gap_of_it_only_are_seen(real, subject_of, measure):
    train, control = real
    for change in ({"grade": np.full(150, "none")}, {"mean area": np.full(150, np.nan)}):
        found, _ = measure(QUICK, subject_of(train, None, {**control, **change}))
        assert found["c2st_auroc"].value > 0.99
        assert found["pmse"].value > 0.2
        assert found["c2st_auroc"].interval.low < found["c2st_auroc"].interval.high


def test_a_column_that_only_the_release_varies_or_holds_constant(real, subject_of, measure):
    train, control = real
    varied, _ = measure(
        QUICK, subject_of({**train, "site": np.ones(250)}, None, {**control, "site": control["mean area"]})
    )
    assert varied["c2st_auroc"].value > 0.99
    constant, _ = measure(QUICK, subject_of(train, None, {**control, "mean area": np.full(150, 5e200)}))
    assert constant["c2st_auroc"].value > 0.99


def test_no_column_that_varies_is_nothing_to_tell(subject_of, measure):
    same = {"x": np.ones(50), "k": ["a"] * 50, "no": [None] * 50}
    with pytest.raises(NotApplicable, match="no column has two"):
        measure(QUICK, subject_of(same, same, same, no={"kind": "continuous"}))


def test_few_rows(real, subject_of, measure):
    train, control = real
    ten, nine = part(train, slice(0, FEWEST_ROWS)), part(train, slice(0, FEWEST_ROWS - 1))
    found, _ = measure(QUICK, subject_of(ten, nine, ten))
    assert found["c2st_auroc"].reference is None
    assert all(np.isfinite([m.value, m.interval.low, m.interval.high]).all() for m in found.values())
    for few in ((nine, control, ten), (train, control, nine)):
        with pytest.raises(NotApplicable, match="at least 10 rows"):
            measure(QUICK, subject_of(*few))


def test_no_more_rows_are_taken_than_asked_for(real, subject_of, measure):
    train, _ = real
    many = {name: np.concatenate([values] * 4) for name, values in train.items()}
    found, _ = measure(Propensity(trees=5, folds=2, most_rows=100), subject_of(many, None, many))
    # Two samples of 100 out of 250 rows: the expectation of pMSE gives away how many there were.
    assert found["pmse"].value / found["pmse_ratio"].value == pytest.approx(0.25 * 8 / 200, rel=0.01)
    assert (found["c2st_auroc"].n_requested, found["c2st_auroc"].n_achieved) == (1000, 100)


def test_the_picture_counts_real_rows_in_steps(real, subject_of, measure):
    train, control = real
    _, findings = measure(QUICK, subject_of(train, control, control, suppression=20))
    [roc] = findings.series
    assert len(roc.x) == 250 // 20 + 1
    told = np.array(roc.lines["control rows"][:-1]) * 150
    assert told == pytest.approx(np.rint(told / 20) * 20)
    for line in roc.lines.values():
        assert line[-1] == 1
        assert (np.diff(line) >= 0).all()
