"""The membership attack of disjoint generative models: guessing, copies, honest small tables."""

import numpy as np
import pytest

from synth_audit.audits.published.membership_data_only import MembershipDataOnly, _pool
from synth_audit.errors import NotApplicable

from .test_closest_record import shuffled
from .test_identifiability import people

AUDIT = MembershipDataOnly(n_trees=30)
AUC, RECALL, PRECISION = "auc", "recall", "precision"


LEAKS = {
    "shuffled copy": shuffled,
    "income × 1.01": lambda train, rng: train | {"income": train["income"] * 1.01},
    "region relabelled": lambda train, rng: train | {"region": np.char.upper(train["region"])},
    "repeated": lambda train, rng: {name: np.tile(values, 3) for name, values in train.items()},
}


@pytest.mark.parametrize("name", LEAKS)
def test_copies_are_ranked_above_control(name, subject_of, measure):
    rng = np.random.default_rng(0)
    train, control = people(500, rng), people(400, rng)
    found, _ = measure(AUDIT, subject_of(train, control, LEAKS[name](train, rng)))
    assert found[AUC].interval.low > (0.6 if name == "region relabelled" else 0.8)


def test_training_rows_of_a_copy_are_named_more_often_than_control_rows(subject_of, measure):
    rng = np.random.default_rng(0)
    train, control = people(500, rng), people(400, rng)
    found, _ = measure(AUDIT, subject_of(train, control, shuffled(train, rng)))
    assert set(found) == {AUC, RECALL, PRECISION}
    assert found[RECALL].value > 0.95
    assert found[RECALL].reference.value < 0.6
    assert found[PRECISION].interval.low > 0.6


@pytest.mark.parametrize(("n", "n_control", "n_synthetic"), [(300, 100, 300), (100, 300, 500)])
def test_an_independent_release_is_guessing_whatever_the_sizes(
    n, n_control, n_synthetic, subject_of, measure
):
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        subject = subject_of(people(n, rng), people(n_control, rng), people(n_synthetic, rng))
        found.append(measure(AUDIT, subject)[0])
    for quantity in (AUC, PRECISION):
        assert np.mean([f[quantity].value for f in found]) == pytest.approx(0.5, abs=0.05)


def test_nobody_named_has_no_precision(subject_of, measure):
    """Release rows beyond all real ones: no tree takes a real row for one of them."""
    real = {"x": np.arange(60.0) % 3}
    found, _ = measure(AUDIT, subject_of(real, real, {"x": 9 + np.arange(60.0)}))
    assert set(found) == {AUC, RECALL}
    assert found[RECALL].value == 0


def test_the_rows_of_the_pool_are_drawn_once(subject_of):
    rng = np.random.default_rng(11)
    subject = subject_of(people(60, rng), people(50, rng), people(40, rng))
    tested, others = _pool(subject, 20, 30, 25, rng)
    assert [len(x) for x in tested] == [20, 30]
    for asked, beside in zip(tested, others, strict=True):
        assert len(np.unique(np.concatenate([asked, beside]))) == len(asked) + len(beside)
    assert sum(map(len, others)) == 25


def test_a_tiny_control_is_not_applicable(subject_of, measure):
    rng = np.random.default_rng(5)
    with pytest.raises(NotApplicable, match="control"):
        measure(AUDIT, subject_of(people(100, rng), people(19, rng), people(100, rng)))


def test_samples_are_of_the_size_asked_for(subject_of, measure):
    rng = np.random.default_rng(6)
    few = MembershipDataOnly(max_members=70, max_others=60, max_reference=40, max_learnt=50, n_trees=5)
    found, _ = measure(few, subject_of(people(300, rng), people(300, rng), people(300, rng)))
    assert found[AUC].n_achieved == 60
    assert found[RECALL].value * 70 == pytest.approx(round(found[RECALL].value * 70))


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
    assert found[AUC].interval.low < 0.5 < found[AUC].interval.high
    assert found[AUC].n_achieved == 240, "one row of each control person"
