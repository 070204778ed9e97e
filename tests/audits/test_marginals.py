"""Distributions of single columns, from counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.fidelity.marginals import Marginals


def of_labels(counts):
    return {
        "k": [label for label, n in counts.items() for _ in range(n)],
        "x": np.arange(float(sum(counts.values()))),
    }


def test_categories_by_hand(subject_of, measure):
    subject = subject_of(
        of_labels({"a": 60, "b": 40}), of_labels({"a": 50, "b": 50}), of_labels({"a": 30, "b": 50, None: 20})
    )
    found, _ = measure(Marginals(), subject)
    tv = found["total_variation", "k"]
    assert tv.value == pytest.approx(0.3)
    assert tv.reference.value == pytest.approx(0.1)
    expected = np.sqrt(0.5 * ((np.sqrt(0.6) - np.sqrt(0.3)) ** 2 + (np.sqrt(0.4) - np.sqrt(0.5)) ** 2 + 0.2))
    assert found["hellinger", "k"].value == pytest.approx(expected)
    assert ("ks", "k") not in found
    assert found["total_variation"].value == pytest.approx(
        np.mean([0.3, found["total_variation", "x"].value])
    )
    assert tv.interval.low < 0.3 < tv.interval.high


def test_a_category_that_train_never_had_counts_in_full(subject_of, measure):
    subject = subject_of(of_labels({"a": 50, "b": 50}), None, of_labels({"c": 100}))
    found, _ = measure(Marginals(), subject)
    assert found["total_variation", "k"].value == 1
    assert found["hellinger", "k"].value == pytest.approx(1)
    assert found["total_variation", "k"].reference is None


def test_a_copy_is_at_distance_zero_and_numbers_far_away_at_one(subject_of, measure):
    x = np.random.default_rng(0).normal(size=200)
    found, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": x[::-1]}))
    assert found["total_variation"].value == found["hellinger"].value == found["ks"].value == 0
    found, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": x + 100}))
    assert found["ks"].value == 1
    assert found["total_variation"].value == pytest.approx(0.9, abs=0.01)


def test_missing_is_a_cell_and_no_part_of_ks(subject_of, measure):
    x = np.arange(100.0)
    gaps = np.where(np.arange(100) % 2, x, np.nan)
    found, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": gaps}))
    assert found["total_variation"].value == pytest.approx(0.5)
    assert found["ks"].value == pytest.approx(0.01)
    found, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": np.full(100, np.nan)}))
    assert found["total_variation"].value == 1
    assert "ks" not in found


def test_a_spike_is_seen(subject_of, measure):
    rng = np.random.default_rng(0)
    spiky = np.where(rng.random(1000) < 0.5, 0.0, rng.exponential(size=1000))
    found, _ = measure(Marginals(), subject_of({"x": spiky}, None, {"x": np.where(spiky == 0, 0.001, spiky)}))
    assert found["total_variation"].value > 0.45


def bars(subject_of, measure, counts, release=None, **more):
    _, findings = measure(
        Marginals(), subject_of(of_labels(counts), None, release or of_labels(counts), **more)
    )
    [series] = [s for s in findings.series if s.scope == "k"]
    real = dict(zip(series.x, np.array(series.lines["real"]) * sum(counts.values()), strict=True))
    return {label: round(n) for label, n in real.items()}


def test_small_categories_are_drawn_together(subject_of, measure):
    shown = bars(subject_of, measure, {"a": 60, "b": 22, "rare": 9, "rarer": 8, "rarest": 1})
    assert shown == {"a": 60, "b": 22, "all others": 18}


def test_one_small_category_is_not_given_away_by_the_rest(subject_of, measure):
    shown = bars(subject_of, measure, {"a": 60, "b": 25, "c": 12, "rare": 3})
    assert shown == {"a": 60, "b": 25, "all others": 15}
    assert bars(subject_of, measure, {"a": 97, "rare": 3}) == {"all others": 100}
    assert bars(subject_of, measure, {"a": 60, "b": 40}) == {"a": 60, "b": 40}


def test_labels_that_only_the_release_has_are_not_drawn(subject_of, measure):
    release = of_labels({"a": 40, "made up": 60})
    assert "made up" not in bars(subject_of, measure, {"a": 60, "b": 40}, release)


def test_the_suppression_limit_is_the_subjects(subject_of, measure):
    counts = {"a": 60, "b": 30, "c": 6, "d": 4}
    assert bars(subject_of, measure, counts, suppression=5) == {"a": 60, "b": 30, "all others": 10}
    assert bars(subject_of, measure, counts, suppression=3) == counts


def test_many_categories_are_drawn_as_twenty(subject_of, measure):
    shown = bars(subject_of, measure, {f"c{i}": 20 + i for i in range(30)})
    assert len(shown) == 21
    assert "c29" in shown
    assert "c0" not in shown


def test_numeric_pictures_hold_no_value(subject_of, measure):
    rng = np.random.default_rng(0)
    _, findings = measure(
        Marginals(), subject_of({"x": rng.normal(size=300)}, None, {"x": rng.normal(size=300)})
    )
    [series] = findings.series
    assert all(label.startswith("cell ") for label in series.x[:-1])


@pytest.mark.parametrize("bad", [{"cells": 1}, {"n_bootstrap": 10}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError, match="at least"):
        Marginals(**bad)
