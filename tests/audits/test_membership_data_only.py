"""Membership from the data alone: nulls at any split, copies however disguised, and honest small tables."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy.membership_data_only import MembershipDataOnly
from synth_audit.core.errors import NotApplicable

AUDIT = MembershipDataOnly(n_trees=30)
SCORES = ("distance", "density_ratio", "classifier")


def people(n, rng):
    z = rng.normal(size=n)
    return {
        "age": np.clip(np.rint(45 + 15 * z), 18, 90),
        "sex": rng.choice(["f", "m"], n),
        "region": rng.choice(list("abcdef"), n),
        "income": np.exp(10 + 0.5 * z + 0.6 * rng.normal(size=n)),
    }


def shuffled(train, rng):
    order = rng.permutation(len(train["age"]))
    return {name: values[order] for name, values in train.items()}


LEAKS = {
    "copy": lambda train, rng: train,
    "shuffled copy": shuffled,
    "income × 1.01": lambda train, rng: train | {"income": train["income"] * 1.01},
    "income in another unit": lambda train, rng: train | {"income": train["income"] * 1000},
    "region relabelled": lambda train, rng: train | {"region": np.char.upper(train["region"])},
    "repeated": lambda train, rng: {name: np.tile(values, 3) for name, values in train.items()},
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_copy_however_disguised_is_found(name, subject_of, measure):
    rng = np.random.default_rng(0)
    train, control = people(500, rng), people(400, rng)
    found, _ = measure(AUDIT, subject_of(train, control, LEAKS[name](train, rng)))
    assert found["worst_auc"].interval.low > (0.6 if "another" in name or "relabelled" in name else 0.85)


def test_a_plain_copy_is_found_by_every_score_at_few_false_alarms(subject_of, measure):
    rng = np.random.default_rng(0)
    train, control = people(500, rng), people(400, rng)
    found, findings = measure(AUDIT, subject_of(train, control, shuffled(train, rng)))
    assert min(found["auc", s].value for s in SCORES) > 0.9
    assert found["tpr_at_fpr_1pct", "density_ratio"].value > 0.9
    assert found["recall", "density_ratio"].value == 1
    assert found["advantage", "density_ratio"].interval.low > 0.3
    [of_distance] = [e for e in findings.exposures if e.measurement.setting == "distance"]
    assert len(of_distance.train_hit) > 400
    assert len(of_distance.control_hit) <= 0.02 * len(of_distance.control_tried)


@pytest.mark.parametrize(("n", "n_control", "n_synthetic"), [(300, 100, 300), (100, 300, 500)])
def test_an_independent_release_is_guessing_whatever_the_sizes(
    n, n_control, n_synthetic, subject_of, measure
):
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        subject = subject_of(people(n, rng), people(n_control, rng), people(n_synthetic, rng))
        found.append(measure(AUDIT, subject)[0])
    for score in SCORES:
        assert np.mean([f["auc", score].value for f in found]) == pytest.approx(0.5, abs=0.04)
        assert np.mean([f["precision", score].value for f in found]) == pytest.approx(0.5, abs=0.05)
        assert np.mean([f["advantage", score].value for f in found]) == pytest.approx(0, abs=0.07)


def test_strangers_are_never_their_own_reference(subject_of, measure):
    """Each half of control holds other people; the tested half is what exposures name."""
    rng = np.random.default_rng(1)
    subject = subject_of(people(200, rng), people(200, rng), people(200, rng))
    _, findings = measure(AUDIT, subject)
    for exposure in findings.exposures:
        assert len(exposure.control_tried) == 100
        assert np.isin(exposure.control_hit, exposure.control_tried).all()
        assert np.isin(exposure.train_hit, exposure.train_tried).all()
        assert (np.diff(exposure.train_tried) > 0).all()
        assert exposure.columns == ()


def test_a_table_of_few_distinct_records_ties_everybody(subject_of, measure):
    """All records occur in all tables, so a copy betrays counts at most, and nothing becomes certain."""

    def labels(n, rng):
        return {"a": rng.choice(["u", "v"], n), "b": rng.choice(["x", "y", "z"], n)}

    rng = np.random.default_rng(2)
    train = labels(300, rng)
    found, _ = measure(AUDIT, subject_of(train, labels(300, rng), train))
    assert found["auc", "distance"].value == 0.5
    assert found["auc", "density_ratio"].value < 0.7
    assert found["tpr_at_fpr_1pct", "distance"].value == pytest.approx(0.01)


def test_partial_copies_move_the_area_in_proportion(subject_of, measure):
    rng = np.random.default_rng(3)
    train, control, fresh = people(600, rng), people(600, rng), people(600, rng)
    half = {k: np.concatenate([v[:300], fresh[k][300:]]) for k, v in train.items()}
    found, _ = measure(AUDIT, subject_of(train, control, half))
    assert found["auc", "distance"].value == pytest.approx(0.75, abs=0.04)
    assert found["tpr_at_fpr_1pct", "distance"].value == pytest.approx(0.5, abs=0.05)


def test_too_few_strangers_for_a_rate_are_said_and_not_filled_in(subject_of, measure):
    rng = np.random.default_rng(4)
    found, findings = measure(AUDIT, subject_of(people(100, rng), people(60, rng), people(100, rng)))
    assert not any("tpr" in str(key) for key in found)
    assert len(findings.notes) == 2
    assert not findings.exposures
    assert found["worst_auc"].short  # thirty strangers


def test_a_tiny_control_is_not_applicable(subject_of, measure):
    rng = np.random.default_rng(5)
    with pytest.raises(NotApplicable, match="control"):
        measure(AUDIT, subject_of(people(100, rng), people(19, rng), people(100, rng)))


def test_samples_are_of_the_size_asked_for(subject_of, measure):
    rng = np.random.default_rng(6)
    few = MembershipDataOnly(max_members=70, max_others=60, max_learnt=50, n_trees=5)
    found, findings = measure(few, subject_of(people(300, rng), people(300, rng), people(300, rng)))
    assert found["worst_auc"].n_achieved == 60
    [curve] = findings.series
    counts = np.array(list(curve.lines.values())) * 70
    assert ((np.abs(counts % 10) < 1e-6) | (np.abs(counts % 10 - 10) < 1e-6)).all()


@pytest.mark.parametrize("bad", ["max_members", "max_others", "max_learnt", "n_trees"])
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError, match="must be positive"):
        MembershipDataOnly(**{bad: 0})


def test_what_is_no_line_in_the_copied_share_is_marked():
    lines = {q.name for q in MembershipDataOnly.info.quantities if q.proportional}
    assert lines == {"auc", "worst_auc"}


def visits(n, rng, first):
    """Three rows of each person that are nearly the same."""
    rows = {name: np.repeat(values, 3) for name, values in people(n, rng).items()}
    return rows | {
        "income": rows["income"] * np.exp(rng.normal(0, 0.002, 3 * n)),
        "who": first + np.arange(3 * n) // 3,
    }


def test_people_with_several_rows_are_halved_whole(subject_of, measure):
    """Halved by rows, strangers have their own other visits in the reference, and train alone looks known."""
    rng = np.random.default_rng(3)
    train, control, made = (visits(n, rng, first) for n, first in ((300, 0), (240, 10**4), (300, 10**5)))
    found, _ = measure(AUDIT, subject_of(train, control, made, who={"role": "split_key"}))
    assert found["worst_auc"].interval.low < 0.5
    assert found["worst_auc"].interval.high < 0.7
    assert found["worst_auc"].n_achieved == 120, "one row of each stranger"
