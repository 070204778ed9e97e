"""The thesis' figures, against its own way of computing them and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from synth_audit.audits.fidelity import thesis_scores as published
from synth_audit.audits.fidelity.thesis_scores import ThesisScores
from synth_audit.errors import NotApplicable

AUDIT = ThesisScores()


def people(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(list("abc"), n, p=[0.6 - 0.2 * shift, 0.3, 0.1 + 0.2 * shift])
    return {"x": rng.normal(shift, 1, n), "y": rng.normal(size=n), "k": labels}


def test_shares_handed_to_a_chi_square_test_find_nothing_whatever_they_are():
    real, made = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.1, 0.8])
    assert published.proportion_chi_square(real, made) == pytest.approx(
        1 - stats.chisquare(made, real).pvalue
    )
    assert published.proportion_chi_square(real, np.array([0.6, 0.25, 0.15])) < 0.05
    assert published.proportion_chi_square(np.array([1.0]), np.array([1.0])) == 0


def test_fresh_rows_have_half_and_rows_at_the_mean_have_more(subject_of, measure):
    train, fresh = people(400, 0), people(400, 1)
    found, _ = measure(AUDIT, subject_of(train, people(200, 2), fresh))
    assert found["alpha_precision_published"].value == pytest.approx(0.5, abs=0.05)
    assert found["alpha_precision_published"].reference.value == pytest.approx(0.5, abs=0.05)
    near = fresh | {name: 0.2 * fresh[name] for name in "xy"}
    shrunk, _ = measure(AUDIT, subject_of(train, None, near))
    assert shrunk["alpha_precision_published"].value > 0.6
    product = found["alpha_precision_published"].value * found["beta_recall_published"].value
    assert found["auprc_published"].value == pytest.approx(product)


def test_a_shifted_table_has_a_larger_ratio_and_distance(subject_of, measure):
    train = people(400, 0)
    fresh, _ = measure(AUDIT, subject_of(train, None, people(400, 1)))
    moved, _ = measure(AUDIT, subject_of(train, None, people(400, 1, shift=1.0)))
    assert moved["pmse_ratio_published"].value > 5 * fresh["pmse_ratio_published"].value
    ks = stats.ks_2samp(train["x"], people(400, 1, shift=1.0)["x"]).statistic
    assert moved["marginal_distance_published"].value > ks / 3
    assert fresh["marginal_distance_published"].value < 0.1


def test_the_curves_are_those_of_a_slow_twin():
    rng = np.random.default_rng(0)
    real, made = rng.normal(size=(40, 2)), rng.normal(size=(30, 2))
    radii = [np.quantile([np.linalg.norm(r - real.mean(0)) for r in real], a) for a in np.linspace(0, 1, 30)]
    inside = [np.mean([np.linalg.norm(m - real.mean(0)) <= r for m in made]) for r in radii]
    assert published.precision_curve(real, made) == pytest.approx(inside)
    covered = 0
    for i, row in enumerate(real):
        others = np.linalg.norm(np.delete(real, i, axis=0) - row, axis=1).min()
        covered += np.linalg.norm(made - row, axis=1).min() <= others
    recall = published.recall_curve(real, made)
    assert recall[-1] == pytest.approx(covered / 40)
    assert (np.diff(recall) >= 0).all()
    assert recall[0] < recall[-1]


def test_the_expected_ratio_counts_columns():
    rng = np.random.default_rng(0)
    vectors, made = rng.random((300, 4)), np.arange(300) >= 200
    one, two = (published.propensity_ratio(vectors, made, k) for k in (1, 2))
    assert one == pytest.approx(2 * two)


def test_too_few_rows_are_refused(subject_of, measure):
    with pytest.raises(NotApplicable):
        measure(AUDIT, subject_of(people(9, 0), None, people(40, 1)))
    with pytest.raises(ValueError, match="most_rows"):
        ThesisScores(most_rows=5)
