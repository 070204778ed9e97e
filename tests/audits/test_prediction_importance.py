"""Importances of columns: against a slow twin, on rows of their own, and how far they agree."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import r2_score

from synth_audit.audits.utility._prediction_task import PredictionTask, fit, prepare, r_squared
from synth_audit.audits.utility.prediction import Prediction, Resampled
from synth_audit.audits.utility.prediction import groups as weighing
from synth_audit.audits.utility.prediction.groups import cosine, importances

TARGET = {"y": {"role": "target"}}


def rows(n, seed, slopes=(3.0, 1.0)):
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, n))
    return {"a": a, "b": b, "k": rng.choice(["u", "v"], n), "y": slopes[0] * a + slopes[1] * b + noise}


@pytest.fixture
def task(subject_of):
    subject = subject_of(rows(400, 0), rows(200, 1), rows(400, 2), **TARGET)
    return prepare(subject, 5000, 2, np.random.default_rng(0))


def weigh(task, repeats=2):
    return importances(task, "logistic", r_squared, repeats, 100, np.random.default_rng(1))


def test_a_columns_importance_is_what_shuffling_it_costs(task):
    order = np.random.default_rng(2).permutation(200)
    model = fit("logistic", task.features["train"], task.target["train"], 0, 0)
    counts = np.ones((1, 200), dtype=np.uint8)
    [found] = weighing._lost(task, model, r_squared, np.arange(200), order, counts)
    expected = []
    for block in task.blocks.values():
        x = task.x_test.copy()
        x[:, block] = x[order, block]
        expected.append(
            r2_score(task.y_test, model.predict(task.x_test)) - r2_score(task.y_test, model.predict(x))
        )
    assert found == pytest.approx(expected)
    assert found[0] > 3 * found[1] > 30 * abs(found[2])


def test_columns_may_be_asked_about_in_any_portions(task, monkeypatch):
    whole = weigh(task)
    monkeypatch.setattr(weighing, "_MOST_NUMBERS", 1)
    apart = weigh(task)
    assert whole.columns == apart.columns == ("a", "b", "k")
    assert whole.synthetic == pytest.approx(apart.synthetic)


def test_the_halves_share_no_row_and_all_are_of_one_size(task, monkeypatch):
    fitted = []
    whole = PredictionTask.fit

    def noted(self, name, arm, rows, seed):
        fitted.append((arm, set(rows.tolist())))
        return whole(self, name, arm, rows, seed)

    monkeypatch.setattr(PredictionTask, "fit", noted)
    weigh(task)
    assert [arm for arm, _ in fitted] == ["synthetic", "train", "train"] * 2
    assert all(len(taken) == 200 for _, taken in fitted)
    for i in (0, 3):
        assert not fitted[i + 1][1] & fitted[i + 2][1]
    assert fitted[1] != fitted[4]


def test_wide_tables_are_asked_about_on_fewer_rows(task, monkeypatch):
    assert weigh(task).n_tested == 200
    monkeypatch.setattr(weighing, "MOST_PREDICTIONS", 450)
    assert weigh(task).n_tested == 150
    monkeypatch.setattr(weighing, "MOST_PREDICTIONS", 3)
    assert weigh(task).n_tested == 100


def test_too_few_rows_to_halve_or_to_ask_about_have_no_importances(task):
    few = {arm: task.target[arm][:3] for arm in ("train", "synthetic")}
    assert weigh(replace(task, target=few)) is None
    assert weigh(replace(task, y_test=np.ones(200))) is None


def test_cosine_is_one_for_the_same_proportions_and_none_without_any():
    a = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    b = np.array([[6.0, 8.0], [0.0, 2.0], [1.0, 2.0], [-1.0, -1.0]])
    assert cosine(a, b) == pytest.approx([1, 0, 0, -1])
    assert np.isnan(cosine(np.array([np.nan, 1.0]), b[0]))
    assert (np.abs(cosine(*np.random.default_rng(0).normal(size=(2, 1000, 1)))) <= 1).all()


def agreement(found):
    return found["importance_agreement"]


def test_a_fresh_sample_agrees_as_well_as_real_rows_do(subject_of, measure):
    audit = Prediction(models=("logistic",), n_bootstrap=100)
    found, _ = measure(audit, subject_of(rows(400, 0), rows(200, 1), rows(400, 2), **TARGET))
    assert agreement(found).value > 0.98
    assert agreement(found).value == pytest.approx(agreement(found).reference.value, abs=0.02)
    assert agreement(found).reference.interval.low <= 1


def test_a_release_that_leans_on_another_column_disagrees(subject_of, measure):
    audit = Prediction(models=("logistic",), repeats=2, n_bootstrap=100)
    other = rows(400, 2, slopes=(0.0, 3.0))
    found, findings = measure(audit, subject_of(rows(400, 0), rows(200, 1), other, **TARGET))
    assert agreement(found).interval.high < agreement(found).reference.interval.low
    bars = findings.series[1]
    assert bars.x[0] == "a"
    assert bars.lines["trained on real"][0] > 0.5 > bars.lines["trained on synthetic"][0]


def test_a_release_without_any_association_agrees_with_nothing(subject_of, measure):
    audit = Prediction(models=("logistic",), repeats=2, n_bootstrap=100)
    train = rows(400, 0)
    for y in (np.random.default_rng(3).permutation(train["y"]), np.ones(400)):
        found, _ = measure(audit, subject_of(train, rows(200, 1), train | {"y": y}, **TARGET))
        assert agreement(found).interval.low < 0.9 < agreement(found).reference.value
    assert agreement(found).value == 0


def test_picked_repeats_vary_as_the_mean_of_all_of_them_does():
    rng = np.random.default_rng(0)
    for repeats in (2, 3, 8):
        values = np.repeat(rng.normal(size=(repeats, 1)), 20_001, axis=1)
        drawn = Resampled.of(5, repeats, 20_000, 0.95, rng).draws(values)
        assert drawn.std() == pytest.approx(values[:, 0].std(ddof=1) / np.sqrt(repeats), rel=0.05)
    alone = Resampled.of(5, 1, 100, 0.95, rng)
    assert set(alone.draws(np.full((1, 101), 0.3))) == {0.3}


def test_an_interval_holds_its_value():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.full((2, 1), 9.0), rng.normal(size=(2, 100))], axis=1)
    assert Resampled.of(5, 2, 100, 0.95, rng).interval(values).high == 9.0
    assert Resampled.of(5, 2, 100, 0.95, rng).interval(np.full((2, 101), np.nan)) is None
