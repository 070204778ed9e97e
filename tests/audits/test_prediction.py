"""Train on synthetic, test on real: every kind of target, and targets that cannot be predicted."""

from dataclasses import replace

import numpy as np
import pytest

from synth_audit.audits.utility.prediction import Prediction
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext

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
    scores = {"r2"} if target == "number" else {"auroc", "auroc_labels", "accuracy", "f1"}
    whole = {name for name in found if isinstance(name, str)}
    assert found["loss"].value == found["r2_loss" if target == "number" else "auroc_loss"].value
    assert whole == {f"{s}_{arm}" for s in scores for arm in ("tstr", "trtr", "loss")} | {
        "loss",
        "worst_subgroup_loss",
        "importance_agreement",
    }
    for s in scores:
        assert found[f"{s}_loss"].value == pytest.approx(0, abs=1e-12)
        assert found[f"{s}_loss"].interval.low == pytest.approx(0, abs=1e-12)
        real, beside = found[f"{s}_trtr"], found[f"{s}_tstr"].reference
        assert (beside.value, beside.interval) == (real.value, real.interval)
        assert beside.value > 0.6
        assert found[f"{s}_loss"].reference.value == 0
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
        FAST.run(subject_of(*parts, y={"role": "target"}), RunContext(draws=np.random.default_rng(0)))


def test_a_single_value_or_nothing_to_predict_from_is_not_applicable(subject_of):
    train, control, made = three("two classes")
    with pytest.raises(NotApplicable, match="single value"):
        FAST.run(
            subject_of(train, control | {"y": ["ill"] * 200}, made, y={"role": "target"}),
            RunContext(draws=np.random.default_rng(0)),
        )
    alone = [{"y": t["y"]} for t in (train, control, made)]
    with pytest.raises(NotApplicable, match="no column beside"):
        FAST.run(subject_of(*alone, y={"role": "target"}), RunContext(draws=np.random.default_rng(0)))


def test_several_models_are_scored_apart_and_averaged(subject_of, measure):
    audit = Prediction(models=("logistic", "random_forest"), repeats=1, n_bootstrap=100)
    found, _ = measure(audit, subject_of(*three("two classes"), y={"role": "target"}))
    each = [found["auroc_tstr", name].value for name in audit.models]
    assert found["auroc_tstr"].value == pytest.approx(np.mean(each))


def test_a_forest_gives_the_same_numbers_every_time(subject_of):
    # Three classes and rounded features make many equal scores, where the order of adding votes would show.
    rng = np.random.default_rng(0)

    def rows(n):
        x = np.round(rng.normal(size=(3, n)), 1)
        return {"a": x[0], "b": x[1], "c": x[2], "y": rng.choice(["u", "v", "w"], n)}

    subject = subject_of(rows(300), rows(120), rows(300), y={"role": "target"})
    audit = Prediction(repeats=1, n_bootstrap=100, models=("random_forest", "gradient_boosting"))
    first, other = (audit.run(subject, RunContext(draws=np.random.default_rng(1))) for _ in range(2))
    assert other == first


@pytest.mark.parametrize("target", ["two classes", "three classes", "number"])
def test_independent_columns_score_at_the_floor(target, subject_of, measure):
    train, control, _ = three(target, n=600)
    rng = np.random.default_rng(1)
    shuffled = {k: rng.permutation(v) for k, v in train.items()}
    audit = Prediction(models=("logistic", "knn"), n_bootstrap=100)
    found, _ = measure(audit, subject_of(train, control, shuffled, y={"role": "target"}))
    if target == "number":
        assert -0.5 < found["r2_tstr"].value < 0.05
        assert found["r2_loss"].interval.low > 0.3
    else:
        assert found["auroc_tstr"].value == pytest.approx(0.5, abs=0.15)
        assert found["auroc_loss"].interval.low > 0.1
    assert found["importance_agreement"].reference.value > 0.9


def test_a_few_control_rows_are_insufficient_evidence(subject_of, measure):
    train, control, made = three("two classes")
    few = {k: v[:29] for k, v in control.items()}
    found, _ = measure(FAST, subject_of(train, few, made, y={"role": "target"}))
    assert all(m.short for m in found.values())
    found, _ = measure(FAST, subject_of(train, control, made, y={"role": "target"}))
    assert not any(m.short for m in found.values())


def test_repeats_train_on_other_rows_and_widen_the_interval(subject_of, measure):
    train, control, made = three("two classes", n=2000)
    subject = subject_of(train, control, made, y={"role": "target"})
    # Of a hundred rows each, so that what a repeat is trained on matters.
    small = Prediction(models=("knn",), repeats=5, most_rows=100)
    found, findings = measure(small, subject)
    assert found["auroc_tstr"].n_achieved == 100
    assert findings.notes == ("Each model was trained on at most 100 rows, others in each repeat.",)
    whole, findings = measure(Prediction(models=("knn",), repeats=5), subject)
    assert findings.notes == ()
    widths = [m["auroc_loss"].interval.high - m["auroc_loss"].interval.low for m in (found, whole)]
    assert widths[0] > 2 * widths[1]


def test_a_level_that_asks_for_more_draws_gets_a_wider_interval(subject_of, measure):
    subject = subject_of(*three("two classes"), y={"role": "target"})
    # As many draws as the stricter level asks for, so that both have the same.
    audit = Prediction(models=("knn",), repeats=2, n_bootstrap=1000)
    usual, _ = measure(audit, subject)
    strict, _ = measure(audit, replace(subject, level=0.99))
    for name in ("auroc_tstr", "worst_subgroup_loss", "importance_agreement"):
        ends = [m[name].interval for m in (usual, strict)]
        assert ends[1].level == 0.99
        assert ends[1].high - ends[1].low > ends[0].high - ends[0].low


def test_pictures_show_models_and_columns(subject_of, measure):
    audit = Prediction(models=("logistic", "knn"), repeats=2, n_bootstrap=100)
    train, control, made = three("two classes")
    found, findings = measure(audit, subject_of(train, control, made, y={"role": "target"}))
    models, columns = findings.series
    assert models.x == ("logistic or linear", "nearest neighbours")
    assert models.lines["trained on real"][1] == found["auroc_trtr", "knn"].value
    assert models.lines["trained on synthetic"][0] == found["auroc_tstr", "logistic"].value
    assert columns.x == ("x", "k")
    for line in columns.lines.values():
        assert line[0] > 0.2 > abs(line[1])


WILD = {
    "a wild feature": lambda t: [t[0], t[1], t[2] | {"x": np.append(1e200, t[2]["x"][1:])}],
    "a wild target": lambda t: [t[0], t[1], t[2] | {"y": np.append(1e200, t[2]["y"][1:])}],
    "wild people": lambda t: [p | {"y": np.append(-1e200, p["y"][1:])} for p in t],
    "dates": lambda t: [p | {"y": p["y"].astype("datetime64[D]").astype("datetime64[us]")} for p in t],
    "flags": lambda t: [p | {"k": p["k"] == "u"} for p in t],
    "nothing known": lambda t: [p | {"k": np.full(len(p["x"]), np.nan)} for p in t],
    "constant in the release": lambda t: [t[0], t[1], t[2] | {"x": np.zeros(len(t[2]["x"]))}],
    "constant in train": lambda t: [t[0] | {"y": np.ones(len(t[0]["y"]))}, t[1], t[2]],
    "ten rows": lambda t: [{k: v[:10] for k, v in p.items()} for p in t],
    "one synthetic row": lambda t: [t[0], t[1], {k: v[:1] for k, v in t[2].items()}],
    "unequal sizes": lambda t: [{k: v[:150] for k, v in t[0].items()}, t[1], t[2]],
    "unseen labels": lambda t: [t[0], t[1] | {"k": np.full(200, "new")}, t[2] | {"k": np.full(400, "other")}],
}


@pytest.mark.parametrize("case", WILD)
def test_it_gives_finite_numbers_of(case, subject_of, measure):
    audit = Prediction(models=("gradient_boosting", "logistic", "knn"), repeats=1, n_bootstrap=100)
    found, _ = measure(audit, subject_of(*WILD[case](three("number")), y={"role": "target"}))
    assert {"r2_loss", ("r2_loss", "knn")} <= set(found)
    for m in found.values():
        assert m.finite
        assert m.interval.low <= m.value <= m.interval.high


def test_many_classes_and_labels_count_together(subject_of, measure):
    rng = np.random.default_rng(0)

    def rows(n):
        k = rng.integers(0, 300, n)
        return {"k": [f"k{i}" for i in k], "y": [f"y{i // 10}" for i in k]}

    subject = subject_of(rows(600), rows(900), rows(600), y={"role": "target"})
    found, findings = measure(FAST, subject)
    assert findings.notes == ("Classes beyond the 9 most frequent in train count as one.",)
    assert found["auroc_trtr"].finite
    assert found["accuracy_trtr"].value > 0.5


@pytest.mark.slow
def test_intervals_cover_the_score_of_all_people(subject_of, measure):
    """Two tables to learn from and many draws of control rows: the score on a very large one is the truth."""
    train, _, made = three("two classes", n=300)
    made["y"] = np.where(np.random.default_rng(0).random(300) < 0.2, "ill", made["y"])
    audit = Prediction(models=("knn",), repeats=3, n_bootstrap=200)
    crowd = people(5000, np.random.default_rng(1), "two classes")
    truth, _ = measure(audit, subject_of(train, crowd, made, y={"role": "target"}))
    hits = {"auroc_tstr": 0, "auroc_loss": 0, "accuracy_loss": 0, "f1_tstr": 0}
    for seed in range(200):
        control = people(200, np.random.default_rng(10 + seed), "two classes")
        found, _ = measure(audit, subject_of(train, control, made, y={"role": "target"}), seed)
        for name in hits:
            hits[name] += found[name].interval.low <= truth[name].value <= found[name].interval.high
    assert min(hits.values()) >= 180, hits


def test_it_says_where_there_was_little_to_lose(subject_of, measure):
    tables = three("two classes")
    noise = [{**t, "y": list(np.random.default_rng(i).permutation(t["y"]))} for i, t in enumerate(tables)]
    for data, said in ((noise, True), (tables, False)):
        found, findings = measure(FAST, subject_of(*data, y={"role": "target"}))
        assert any("hardly predict" in note for note in findings.notes) is said
        assert ("loss" not in found) is said
        assert found["auroc_loss"].finite


@pytest.mark.parametrize("target", ["two classes", "three classes", "number"])
def test_cross_validated_a_fresh_sample_loses_nothing_and_a_reversed_effect_much(target, subject_of, measure):
    train, control, fresh = three(target)
    audit = replace(FAST, folds=5)
    key = "r2_cross_validated_loss" if target == "number" else "accuracy_cross_validated_loss"
    found, _ = measure(audit, subject_of(train, control, fresh, y={"role": "target"}))
    assert found[key].interval.low < 0.02
    assert abs(found[key].value) < 0.03
    broken = fresh | {"x": -fresh["x"]}
    found, _ = measure(audit, subject_of(train, control, broken, y={"role": "target"}))
    assert found[key].interval.low > 0.1


def test_whoever_repeats_the_rows_tested_gains_by_cross_validation_alone(subject_of, measure):
    """A copy teaches the very rows that it is tested on, which no real row left out does."""
    rng = np.random.default_rng(3)
    train, control = ({"x": rng.normal(size=n), "y": rng.choice(["a", "b"], n)} for n in (300, 300))
    audit = Prediction(models=("random_forest",), repeats=1, n_bootstrap=100, folds=3)
    found, _ = measure(audit, subject_of(train, control, train, y={"role": "target"}))
    assert found["accuracy_cross_validated_loss"].interval.high < -0.1
    assert found["accuracy_loss"].value == 0


def test_rows_of_one_person_are_left_out_together(subject_of, measure):
    """Each person's rows are alike and their label is a coin: a fold that held one of them would know it."""
    rng = np.random.default_rng(4)

    def visits(n, first):
        x, y = rng.normal(size=n), rng.choice(["a", "b"], n)
        who = [f"p{first + i}" for i in range(n)]
        return {name: np.repeat(of, 3) for name, of in {"who": who, "x": x, "y": y}.items()}

    train, control = visits(150, 0), visits(100, 1000)
    made = {"x": rng.normal(size=450), "y": rng.choice(["a", "b"], 450)}
    audit = Prediction(models=("random_forest",), repeats=1, n_bootstrap=100, folds=5)
    roles = {"y": {"role": "target"}, "who": {"role": "split_key"}}
    found, _ = measure(audit, subject_of(train, control, made, **roles))
    assert abs(found["accuracy_cross_validated_loss"].value) < 0.12
