"""Train on synthetic, test on real: every kind of target, and targets that cannot be predicted."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.utility.prediction import Prediction
from synth_audit.core.errors import NotApplicable

FAST = Prediction(models=("logistic",), repeats=1, n_bootstrap=100)


def people(n, rng, target):
    x, noise = rng.normal(size=(2, n))
    y = {
        "two classes": np.where(x + noise > 0, "ill", "well"),
        "boolean": x + noise > 0,
        "three classes": np.array(["a", "b", "c"])[np.digitize(x + 0.3 * noise, [-0.5, 0.5])],
        "number": 3 * x + noise,
    }[target]
    return {"x": x, "k": rng.choice(["u", "v"], n), "y": y}


def three(target, seed=0, n=400):
    rng = np.random.default_rng(seed)
    return [people(m, rng, target) for m in (n, n // 2, n)]


@pytest.mark.parametrize("target", ["two classes", "boolean", "three classes", "number"])
def test_a_copy_loses_nothing_and_a_reversed_effect_everything(target, subject_of, measure):
    train, control, _ = three(target)
    found, _ = measure(FAST, subject_of(train, control, train, y={"role": "target"}))
    scores = {"r2"} if target == "number" else {"auroc", "accuracy", "f1"}
    assert set(found) == {f"{s}_{arm}" for s in scores for arm in ("tstr", "trtr", "loss")}
    for s in scores:
        assert found[f"{s}_loss"].value == pytest.approx(0, abs=1e-12)
        assert found[f"{s}_loss"].interval.low == pytest.approx(0, abs=1e-12)
        assert found[f"{s}_tstr"].reference.value == found[f"{s}_trtr"].value > 0.6
    broken = train | {"x": -train["x"]}
    found, _ = measure(FAST, subject_of(train, control, broken, y={"role": "target"}))
    main = "r2" if target == "number" else "auroc"
    assert found[f"{main}_loss"].interval.low > 0.1
    assert found[f"{main}_loss"].value == pytest.approx(
        found[f"{main}_trtr"].value - found[f"{main}_tstr"].value
    )


def test_a_fresh_sample_loses_about_nothing(subject_of, measure):
    found, _ = measure(FAST, subject_of(*three("two classes"), y={"role": "target"}))
    assert found["auroc_loss"].interval.low < 0 < found["auroc_loss"].interval.high
    assert abs(found["auroc_loss"].value) < 0.02
    assert found["auroc_loss"].n_achieved == 200


def test_a_release_of_one_class_predicts_like_a_coin(subject_of, measure):
    train, control, made = three("two classes")
    found, _ = measure(FAST, subject_of(train, control, made | {"y": ["ill"] * 400}, y={"role": "target"}))
    assert found["auroc_tstr"].value == 0.5
    assert found["accuracy_tstr"].value == pytest.approx(np.mean(control["y"] == "ill"))


def test_a_release_that_lacks_a_class_or_invents_one_is_scored(subject_of, measure):
    train, control, made = three("three classes")
    for labels in (np.where(made["y"] == "c", "b", made["y"]), np.where(made["y"] == "c", "new", made["y"])):
        found, _ = measure(FAST, subject_of(train, control, made | {"y": labels}, y={"role": "target"}))
        assert 0.1 < found["accuracy_loss"].value < 0.6
        assert found["auroc_tstr"].value < found["auroc_trtr"].value


def test_rows_without_a_target_are_left_out(subject_of, measure):
    train, control, made = three("number")
    gaps = control | {"y": np.where(np.arange(200) < 50, np.nan, control["y"])}
    found, _ = measure(FAST, subject_of(train, gaps, made, y={"role": "target"}))
    assert found["r2_tstr"].n_achieved == 150
    known = {k: v[50:] for k, v in control.items()}
    alone, _ = measure(FAST, subject_of(train, known, made, y={"role": "target"}))
    assert found["r2_trtr"].value == pytest.approx(alone["r2_trtr"].value)


def test_missing_features_are_no_obstacle(subject_of, measure):
    train, control, made = three("two classes")
    gaps = made | {"x": np.where(np.arange(400) % 3, made["x"], np.nan)}
    found, _ = measure(FAST, subject_of(train, control, gaps, y={"role": "target"}))
    assert found["auroc_tstr"].finite


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (0, "missing in every row of train"),
        (1, "missing in every row of control"),
        (2, "missing in every row of synthetic"),
    ],
)
def test_a_target_that_is_missing_is_not_applicable(part, why, subject_of):
    parts = three("number")
    parts[part] = parts[part] | {"y": np.full(len(parts[part]["y"]), np.nan)}
    with pytest.raises(NotApplicable, match=why):
        FAST.run(subject_of(*parts, y={"role": "target"}), np.random.default_rng(0))


def test_a_single_value_or_nothing_to_predict_from_is_not_applicable(subject_of):
    train, control, made = three("two classes")
    with pytest.raises(NotApplicable, match="single value"):
        FAST.run(
            subject_of(train, control | {"y": ["ill"] * 200}, made, y={"role": "target"}),
            np.random.default_rng(0),
        )
    alone = [{"y": t["y"]} for t in (train, control, made)]
    with pytest.raises(NotApplicable, match="no column beside"):
        FAST.run(subject_of(*alone, y={"role": "target"}), np.random.default_rng(0))


def test_several_models_are_scored_apart_and_averaged(subject_of, measure):
    audit = Prediction(models=("logistic", "random_forest"), repeats=1, n_bootstrap=100)
    found, _ = measure(audit, subject_of(*three("two classes"), y={"role": "target"}))
    each = [found["auroc_tstr", name].value for name in audit.models]
    assert found["auroc_tstr"].value == pytest.approx(np.mean(each))


@pytest.mark.parametrize(
    "bad", [{"models": ()}, {"models": ("logistic",) * 2}, {"repeats": 0}, {"n_bootstrap": 1}]
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError, match="must"):
        Prediction(**bad)


def test_a_forest_gives_the_same_numbers_every_time(subject_of):
    # Three classes and rounded features make many equal scores, where the order of adding votes would show.
    rng = np.random.default_rng(0)

    def rows(n):
        x = np.round(rng.normal(size=(3, n)), 1)
        return {"a": x[0], "b": x[1], "c": x[2], "y": rng.choice(["u", "v", "w"], n)}

    subject = subject_of(rows(300), rows(120), rows(300), y={"role": "target"})
    audit = Prediction(repeats=1, n_bootstrap=100)
    first, *others = (audit.run(subject, np.random.default_rng(1)) for _ in range(4))
    assert all(other == first for other in others)
