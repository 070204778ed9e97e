"""Closest records: hand-made neighbours, a real null, and the traps that other tools fell into."""

import math

import numpy as np
import pytest

from synth_audit.audits.published.closest_record import ClosestRecord, privacy_score
from synth_audit.encode.embedding import EmbeddingSettings

AUDIT = ClosestRecord(n_bootstrap=200)


def people(n, rng):
    """Few distinct values in all columns but one."""
    z = rng.normal(size=n)
    return {
        "age": np.clip(np.rint(45 + 15 * z), 18, 90),
        "visits": rng.poisson(2, n),
        "sex": rng.choice(["f", "m"], n),
        "region": rng.choice(list("abcdef"), n),
        "income": np.exp(10 + 0.5 * z + 0.6 * rng.normal(size=n)),
    }


def changed(rng, n=400, n_control=100, columns=people, change=lambda train, rng: train):
    train, control = columns(n, rng), columns(n_control, rng)
    return train, control, change(train, rng)


def shuffled(train, rng):
    order = rng.permutation(len(train["age"]))
    return {name: values[order] for name, values in train.items()}


LEAKS = {
    "copy": lambda train, rng: train,
    "shuffled copy": shuffled,
    "income × 1.01": lambda train, rng: train | {"income": train["income"] * 1.01},
    "noise": lambda train, rng: (
        train | {"income": train["income"] * np.exp(rng.normal(0, 0.01, len(train["age"])))}
    ),
    "repeated": lambda train, rng: {name: np.tile(values, 3) for name, values in train.items()},
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_copy_scores_one_and_is_nearest_to_train(name, subject_of, measure):
    subject = subject_of(*changed(np.random.default_rng(0), change=LEAKS[name]))
    found, _ = measure(AUDIT, subject)
    assert found["privacy_score"].value > 0.95
    assert found["privacy_score"].interval.low > 0.9
    assert found["share"].value > 0.95
    assert found["share_excess"].interval.low > 0.15
    assert found["share_p_value"].value < 1e-6


def test_income_times_1_01_is_no_exact_copy_yet_near(subject_of, measure):
    subject = subject_of(*changed(np.random.default_rng(0), change=LEAKS["income × 1.01"]))
    found, _ = measure(AUDIT, subject)
    assert 0 < found["median_dcr"].value < 0.3 * found["median_dcr"].reference.value


@pytest.mark.parametrize(
    ("n", "n_control"), [(400, 100), pytest.param(200, 200, marks=pytest.mark.slow), (100, 400)]
)
def test_a_fresh_sample_is_near_the_null_whatever_the_split(n, n_control, subject_of, measure):
    scores, excesses = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        subject = subject_of(*changed(rng, n, n_control, change=lambda train, rng, n=n: people(n, rng)))
        found, _ = measure(ClosestRecord(n_bootstrap=100), subject)
        assert found["share"].reference.value == n / (n + n_control)
        scores.append(found["privacy_score"].value)
        excesses.append(found["share_excess"].value)
    assert abs(np.mean(scores)) < 0.025
    assert abs(np.mean(excesses)) < 0.03


def test_half_a_leak_scores_half(subject_of, measure):
    def half(train, rng):
        return {k: np.concatenate([train[k][:200], v[200:]]) for k, v in people(400, rng).items()}

    found, _ = measure(AUDIT, subject_of(*changed(np.random.default_rng(1), change=half)))
    assert found["privacy_score"].value == pytest.approx(0.5, abs=0.06)
    assert found["share"].value == pytest.approx(0.5 + 0.5 * 0.8, abs=0.05)


def test_a_copy_of_a_table_with_many_duplicates_does_not_pass_as_ties(subject_of, measure):
    def crowded(n, rng):
        return {"a": rng.integers(0, 5, n), "b": rng.integers(0, 4, n), "c": rng.integers(0, 60, n)}

    found, _ = measure(AUDIT, subject_of(*changed(np.random.default_rng(2), columns=crowded)))
    assert found["privacy_score"].value == pytest.approx(1)
    assert found["share_excess"].value > 0.03


def test_where_every_control_row_is_a_duplicate_the_score_is_not_a_number(subject_of, measure):
    train = {"a": ["x", "y"] * 50, "b": ["u", "u", "v", "v"] * 25}
    found, findings = measure(AUDIT, subject_of(train, {k: v[:40] for k, v in train.items()}, train))
    assert math.isnan(found["privacy_score"].value)
    assert not found["privacy_score"].finite
    assert "median_dcr" not in found
    assert findings.notes
    assert found["share_excess"].value == pytest.approx(0, abs=1e-9)


def test_hand_made_neighbours(subject_of, measure):
    train = {"x": [0.0, 10.0, 20.0, 30.0]}
    subject = subject_of(train, {"x": [1.0, 12.0]}, {"x": [0.0, 11.0, 12.0, 19.0]})
    found, _ = measure(ClosestRecord(alpha=0.5, n_bootstrap=100), subject)
    spread = np.std(train["x"])
    assert found["share"].value == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert found["nndr"].value == pytest.approx(np.median([0, 1 / 9, 2 / 8, 1 / 9]), abs=1e-6)
    assert found["median_dcr"].value == pytest.approx(np.median([0, 1, 2, 1]) / 10, abs=1e-6)
    synthetic, control = (np.array(d) / spread for d in ([0, 1, 2, 1], [1, 2]))
    assert found["privacy_score"].value == pytest.approx(privacy_score(synthetic, control, 0.5), abs=1e-6)


def test_a_table_larger_than_the_sample_is_still_searched_whole(subject_of, measure):
    few = ClosestRecord(max_queries=50, max_within=20, n_bootstrap=100)
    found, _ = measure(few, subject_of(*changed(np.random.default_rng(3), change=shuffled)))
    assert found["privacy_score"].value == pytest.approx(1)
    assert found["share"].value == pytest.approx(1, abs=0.01)
    assert found["share"].n_achieved == 50


def test_a_column_that_is_constant_in_train_cannot_hide_a_copy(subject_of, measure):
    def moved(train, rng):
        return train | {"site": 1e6 * rng.normal(size=400)}

    def columns(n, rng):
        return people(n, rng) | {"site": np.full(n, 0.1)}

    found, _ = measure(AUDIT, subject_of(*changed(np.random.default_rng(4), columns=columns, change=moved)))
    assert found["privacy_score"].value == pytest.approx(1)


def test_the_curve_holds_no_small_count(subject_of, measure):
    subject = subject_of(*changed(np.random.default_rng(5), change=LEAKS["noise"]), suppression=25)
    _, findings = measure(AUDIT, subject)
    [curve] = findings.series
    for label, n in (("synthetic rows", 400), ("control rows", 100)):
        counts = np.array(curve.lines[label]) * n
        assert ((counts == 0) | (counts >= 25 - 1e-9)).all()
        assert (np.diff(counts) >= 0).all()


@pytest.mark.parametrize("name", LEAKS)
def test_gowers_distance_sees_a_copy_under_its_own_scope(name, subject_of, measure):
    subject = subject_of(*changed(np.random.default_rng(0), change=LEAKS[name]))
    found, _ = measure(AUDIT, subject)
    assert found["privacy_score", "gower"].interval.low > 0.9
    assert {key for key in found if isinstance(key, tuple)} == {("privacy_score", "gower")}


def test_only_the_distances_named_are_measured(subject_of, measure):
    subject = subject_of(*changed(np.random.default_rng(0), change=shuffled))
    found, findings = measure(ClosestRecord(distances=("gower",), n_bootstrap=100), subject)
    assert ("privacy_score", "gower") in found
    assert not {"privacy_score", "share", "nndr"} & set(found)
    assert not findings.series
    assert found["nnaa"].value < 0.05


def test_the_embedding_sees_a_copy_and_no_leak_in_strangers(subject_of, measure):
    pytest.importorskip("torch")
    small = EmbeddingSettings(width=32, max_epochs=5)
    audit = ClosestRecord(distances=("embedding",), embedding_settings=small, n_bootstrap=100)
    for change, low, high in (
        (shuffled, 0.9, 1.0),
        (lambda train, rng: people(400, rng), -0.1, 0.1),
    ):
        found, _ = measure(audit, subject_of(*changed(np.random.default_rng(0), change=change)))
        assert low <= found["privacy_score", "embedding"].value <= high


def test_what_is_no_line_in_the_copied_share_is_marked():
    curved = {q.name for q in ClosestRecord.info.quantities if not q.proportional}
    medians, bent = {"nndr", "median_dcr"}, {"epsilon_identifiability", "epsilon_identifiability_loss"}
    assert curved == medians | bent | {"share", "share_excess", "nnaa", "hitting_rate"}
