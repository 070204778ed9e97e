"""The category that loses most: against losses computed category by category."""

from itertools import chain

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from synth_audit.audits.utility._prediction_task import prepare
from synth_audit.audits.utility.prediction import Prediction
from synth_audit.audits.utility.prediction.groups import MOST_COLUMNS, worst_losses

TARGET = {"y": {"role": "target"}}


def rows(n, seed, number=False):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, n))
    y = y + x
    groups = rng.choice(list("abc"), n, p=[0.5, 0.3, 0.2])
    return {"x": x, "k": groups, "y": y if number else np.where(y > 0, "ill", "well")}


def subject_and_guesses(subject_of, number=False, repeats=2, **more):
    subject = subject_of(rows(200, 0, number), rows(400, 1, number), rows(200, 2, number), **TARGET, **more)
    task = prepare(subject, 5000, repeats, np.random.default_rng(0))
    rng = np.random.default_rng(3)

    def guess(noise):
        made = task.y_test + noise * rng.normal(size=400)
        if number:
            return made
        share = 1 / (1 + np.exp(-made))
        return np.column_stack([1 - share, share])

    return (
        subject,
        task,
        {
            arm: [[guess(noise) for _ in range(repeats)] for _ in range(2)]
            for arm, noise in (("synthetic", 2.0), ("train", 1.0))
        },
    )


def mean_lost(score, predicted):
    """Mean over models and repeats of what the synthetic arm scores less."""
    pairs = zip(chain(*predicted["train"]), chain(*predicted["synthetic"]), strict=True)
    return np.mean([score(real) - score(made) for real, made in pairs])


def test_the_worst_loss_is_the_largest_of_the_categories(subject_of):
    subject, task, predicted = subject_and_guesses(subject_of)
    groups = subject.control.labels("k")
    lost = [
        mean_lost(lambda p, r=groups == k: roc_auc_score(task.y_test[r], p[r, 1]), predicted) for k in "abc"
    ]
    worst = worst_losses(task, predicted, subject)
    assert set(worst) == {"k", ""}
    assert worst["k"] == worst[""]
    assert worst["k"].value == pytest.approx(max(lost))
    assert worst["k"].interval.low < max(lost) < worst["k"].interval.high
    assert "over 3 categories" in worst["k"].interval.method


def test_of_a_number_the_categories_share_the_loss_of_r_squared(subject_of):
    subject, task, predicted = subject_and_guesses(subject_of, number=True)
    y, groups = task.y_test, subject.control.labels("k")

    def part(p, r):
        return -np.mean((y[r] - p[r]) ** 2) / np.var(y)

    lost = {k: mean_lost(lambda p, r=groups == k: part(p, r), predicted) for k in "abc"}
    assert worst_losses(task, predicted, subject)["k"].value == pytest.approx(max(lost.values()))
    whole = mean_lost(lambda p: 1 - np.mean((y - p) ** 2) / np.var(y), predicted)
    assert whole == pytest.approx(sum(lost[k] * np.mean(groups == k) for k in "abc"))


def test_more_categories_make_a_wider_interval(subject_of):
    subject, task, predicted = subject_and_guesses(subject_of)
    interval = worst_losses(task, predicted, subject)["k"].interval
    assert "over 3 categories" in interval.method
    many = subject_of(
        *(rows(n, i) | {"j": np.arange(n) % 2} for i, n in enumerate((200, 400, 200))),
        **TARGET,
        j={"kind": "categorical"},
    )
    task = prepare(many, 5000, 2, np.random.default_rng(0))
    overall = worst_losses(task, predicted, many)[""]
    assert "over 5 categories" in overall.interval.method
    assert overall.interval.high > interval.high


def test_repeats_that_differ_widen_the_interval(subject_of):
    subject, task, predicted = subject_and_guesses(subject_of, repeats=3)
    alike = {arm: [[r[0]] * 3 for r in of_arm] for arm, of_arm in predicted.items()}
    worse = dict(alike, synthetic=[[r[0], r[0], 1 - r[0]] for r in alike["synthetic"]])
    one, other = (worst_losses(task, p, subject)["k"].interval for p in (alike, worse))
    assert other.high - other.low > 1.5 * (one.high - one.low)


@pytest.mark.parametrize(("limit", "told"), [(10, True), (70, False)])
def test_categories_below_the_suppression_limit_do_not_count(limit, told, subject_of):
    # Of a, b and c about 200, 120 and 80 rows, half of them ill.
    subject, task, predicted = subject_and_guesses(subject_of, suppression=limit)
    assert bool(worst_losses(task, predicted, subject)) is told


def test_a_category_of_one_class_has_no_loss(subject_of):
    def parts(n, seed):
        made = rows(n, seed)
        return made | {"y": np.where(made["k"] == "c", "ill", made["y"])}

    subject = subject_of(parts(200, 0), parts(400, 1), parts(200, 2), **TARGET)
    task = prepare(subject, 5000, 1, np.random.default_rng(0))
    guesses = np.random.default_rng(0).random((400, 2))
    worst = worst_losses(task, {"synthetic": [[guesses]], "train": [[guesses]]}, subject)
    assert "over 2 categories" in worst["k"].interval.method
    assert worst["k"].value == 0


def test_sensitive_columns_come_first_and_the_number_is_bounded(subject_of):
    def wide(n, seed):
        groups = np.random.default_rng(seed).choice(list("ab"), (MOST_COLUMNS + 3, n))
        return rows(n, seed) | {f"g{i}": g for i, g in enumerate(groups)}

    last = f"g{MOST_COLUMNS + 2}"
    subject = subject_of(wide(200, 0), wide(300, 1), wide(200, 2), **TARGET, **{last: {"role": "sensitive"}})
    task = prepare(subject, 5000, 1, np.random.default_rng(0))
    guesses = np.random.default_rng(0).random((300, 2))
    worst = worst_losses(task, {"synthetic": [[guesses]], "train": [[guesses]]}, subject)
    assert list(worst) == [last, "k", *(f"g{i}" for i in range(MOST_COLUMNS - 2)), ""]


def test_a_release_that_fails_one_group_shows_there(subject_of, measure):
    train, control, made = (rows(n, i) for i, n in enumerate((600, 400, 600)))
    turned = made | {"x": np.where(made["k"] == "c", -made["x"], made["x"])}
    audit = Prediction(models=("gradient_boosting",), repeats=1, n_bootstrap=100)
    found, findings = measure(audit, subject_of(train, control, turned, **TARGET))
    worst = found["worst_subgroup_loss", "k"]
    assert worst.interval.low > worst.reference.value == found["auroc_loss"].value
    assert worst.value > 0.4
    assert {m.id.column for m in findings.measurements} == {"", "k"}


@pytest.mark.slow
def test_the_interval_covers_the_worst_of_the_true_losses(subject_of):
    """Five groups of equal true loss, the hardest case for a largest value."""
    rng = np.random.default_rng(0)

    def worst(n):
        y = rng.integers(0, 2, n)
        clear = y + rng.normal(size=n)
        table = {"x": clear, "k": rng.choice(list("abcde"), n), "y": y.astype(bool)}
        subject = subject_of(table, table, table, **TARGET)
        task = prepare(subject, 10**6, 1, rng)
        towards = np.where(np.array_equal(task.y_test, y), 1, -1)
        guesses = {"train": clear * towards, "synthetic": (clear + rng.normal(size=n)) * towards}
        predicted = {arm: [[np.column_stack([-g, g])]] for arm, g in guesses.items()}
        return worst_losses(task, predicted, subject)["k"]

    truth = worst(200_000).value
    found = [worst(400).interval for _ in range(400)]
    assert sum(i.low <= truth <= i.high for i in found) >= 0.95 * 400 - 14  # three standard errors


def test_no_number_tells_how_large_small_categories_are(subject_of, measure):
    tables = [rows(n, i) for i, n in enumerate((300, 200, 300))]
    tables = [t | {"k": np.where(np.arange(len(t["k"])) < 7, "rare", t["k"])} for t in tables]
    found, _ = measure(
        Prediction(models=("logistic",), repeats=1, n_bootstrap=100), subject_of(*tables, **TARGET)
    )
    for key in ("worst_subgroup_loss", ("worst_subgroup_loss", "k")):
        assert found[key].n_requested == found[key].n_achieved == 200
