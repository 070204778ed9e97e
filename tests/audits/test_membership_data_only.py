"""Membership from the data alone: nulls at any split, copies however disguised, and honest small tables."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy._target_pool import TargetPool
from synth_audit.audits.privacy.membership_data_only import MembershipDataOnly
from synth_audit.core.errors import NotApplicable

AUDIT = MembershipDataOnly(n_trees=30)
SCORES = ("distance", "density_ratio", "gen_lra", "classifier")
RANKING = ("dpi", "neighbourhood")


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
    for score in (*SCORES, *RANKING):
        assert np.mean([f["auc", score].value for f in found]) == pytest.approx(0.5, abs=0.04)
    for score in SCORES:
        assert np.mean([f["precision", score].value for f in found]) == pytest.approx(0.5, abs=0.05)
        assert np.mean([f["advantage", score].value for f in found]) == pytest.approx(0, abs=0.07)


def test_everybody_is_tested_and_named_once(subject_of, measure):
    rng = np.random.default_rng(1)
    subject = subject_of(people(200, rng), people(200, rng), people(200, rng))
    _, findings = measure(AUDIT, subject)
    for exposure in findings.exposures:
        assert len(exposure.control_tried) == 200
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


def test_the_tested_stand_first_in_the_pool(subject_of):
    rng = np.random.default_rng(11)
    subject = subject_of(people(60, rng), people(50, rng), people(40, rng))
    chosen = TargetPool.of(subject, 20, 30, 25, rng)
    train, control = (t.numbers("income") for t in (subject.train, subject.control))
    of_train, of_control = chosen.rows
    pool = np.concatenate([train[of_train], control[of_control]])[chosen.order]
    assert len(pool) == len(np.unique(pool)) == 75
    parts = (
        (train, chosen.members),
        (control, chosen.others),
        (train, chosen.train),
        (control, chosen.control),
    )
    assert np.array_equal(pool, np.concatenate([values[rows] for values, rows in parts]))


def test_no_score_knows_on_which_side_anybody_is(subject_of, measure):
    """People exchanged between train and control keep their scores, so that areas are mirrored."""
    rng = np.random.default_rng(8)
    one, other, release = people(150, rng), people(150, rng), people(200, rng)
    near, _ = measure(AUDIT, subject_of(one, other, release))
    mirrored, _ = measure(AUDIT, subject_of(other, one, release))
    for score in ("distance", "density_ratio", "gen_lra", "dpi", "neighbourhood"):
        assert near["auc", score].value + mirrored["auc", score].value == pytest.approx(1.0)


def test_rows_that_lie_near_their_people_are_told_by_the_likelihood_they_lend(subject_of, measure):
    """Every number moved by a third of its deviation: no nearest row is unusual, but whose it is."""
    rng = np.random.default_rng(9)

    def numbers(n):
        return {f"x{i}": rng.normal(size=n) for i in range(8)}

    train, control = numbers(600), numbers(300)
    moved = {k: v + 0.6 * rng.normal(size=600) for k, v in train.items()}
    found, _ = measure(AUDIT, subject_of(train, control, moved))
    old = max(found["auc", s].value for s in ("distance", "density_ratio", "classifier"))
    assert found["auc", "gen_lra"].value > old + 0.05


def test_copies_of_the_most_exposed_people_are_found_among_the_most_exposed(subject_of, measure):
    rng = np.random.default_rng(10)
    train, control, fresh = people(800, rng), people(400, rng), people(800, rng)
    odd = np.argsort(-np.abs(np.log(train["income"]) - 10), kind="stable")[:40]
    leak = {k: np.concatenate([v[odd], fresh[k][40:]]) for k, v in train.items()}
    found, findings = measure(AUDIT, subject_of(train, control, leak))
    exposed, everybody = found["exposed_found", "one_in_4"], found["exposed_found", "one_in_1"]
    assert exposed.value > 1.5 * everybody.value > 0.06
    assert found["exposed_found"].interval.high == exposed.interval.high
    assert exposed.n_achieved == pytest.approx(200, abs=40)
    assert ("exposed_found", "one_in_8") not in found  # fewer than 99 strangers
    assert sum("most exposed people" in note for note in findings.notes) == 3


def test_of_an_independent_release_the_most_exposed_are_found_no_more_often_than_strangers(
    subject_of, measure
):
    shares = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        found, _ = measure(AUDIT, subject_of(people(400, rng), people(400, rng), people(400, rng)))
        shares.append(found["exposed_found", "one_in_2"])
    assert np.mean([m.value for m in shares]) < 0.035  # of six scores the largest
    assert all(m.interval.low <= 0.01 < m.interval.high for m in shares)


def test_too_few_strangers_for_a_rate_are_said_and_not_filled_in(subject_of, measure):
    rng = np.random.default_rng(4)
    found, findings = measure(AUDIT, subject_of(people(100, rng), people(40, rng), people(100, rng)))
    assert not any("tpr" in str(key) for key in found)
    assert len(findings.notes) == 2
    assert not any("exposed_found" in str(key) for key in found)
    assert not findings.exposures
    assert found["worst_auc"].short  # forty strangers


def test_a_tiny_control_is_not_applicable(subject_of, measure):
    rng = np.random.default_rng(5)
    with pytest.raises(NotApplicable, match="control"):
        measure(AUDIT, subject_of(people(100, rng), people(19, rng), people(100, rng)))


def test_samples_are_of_the_size_asked_for(subject_of, measure):
    rng = np.random.default_rng(6)
    few = MembershipDataOnly(max_members=70, max_others=60, max_reference=40, max_learnt=50, n_trees=5)
    found, findings = measure(few, subject_of(people(300, rng), people(300, rng), people(300, rng)))
    assert found["worst_auc"].n_achieved == 60
    [curve] = findings.series
    counts = np.array(list(curve.lines.values())) * 70
    assert ((np.abs(counts % 10) < 1e-6) | (np.abs(counts % 10 - 10) < 1e-6)).all()


@pytest.mark.parametrize("bad", ["max_members", "max_others", "max_reference", "max_learnt", "n_trees"])
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


def test_people_with_several_rows_are_tested_once(subject_of, measure):
    """Each row counted for itself would make the interval narrower than so few people allow."""
    rng = np.random.default_rng(3)
    train, control, made = (visits(n, rng, first) for n, first in ((300, 0), (240, 10**4), (300, 10**5)))
    found, _ = measure(AUDIT, subject_of(train, control, made, who={"role": "split_key"}))
    assert found["worst_auc"].interval.low < 0.5
    assert found["worst_auc"].interval.high < 0.7
    assert found["worst_auc"].n_achieved == 240, "one row of each stranger"
