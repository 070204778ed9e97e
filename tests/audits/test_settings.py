"""Settings that mean nothing are refused, by name."""

from __future__ import annotations

import pytest

from synth_audit.registry import find

REFUSED = {
    "associations": [{"cells": 1}, {"most_labels": 1}, {"most_rows": 99}],
    "attribute_game": [
        {"iterations": 1},
        {"reference": 49},
        {"rows": 10},
        {"sets": 0},
        {"tail": 0.0},
        {"tail": 1.0},
        {"columns": ("a", "a")},
    ],
    "closest_record": [
        {"distances": ()},
        {"distances": ("ranks",)},
        {"distances": ("gower", "gower")},
        {"alpha": 0},
        {"alpha": 0.6},
        {"max_queries": 0},
        {"n_bootstrap": 10},
        {"max_within": 0},
    ],
    "coverage": [
        {"spaces": ()},
        {"spaces": ("embedding",)},
        {"spaces": ("features", "gower")},
        {"spaces": ("features", "features")},
        {"max_queries": 0},
        {"max_resampled": 99},
        {"n_bootstrap": 99},
    ],
    "disclosure": [{"bins": 1}, {"key_size": 0}, {"keys": ("a",), "targets": ("a",)}],
    "each_column": [{"most_rows": 99}, {"n_bootstrap": 99}, {"most_columns": 0}],
    "inference": [
        {"secrets": ("x", "x")},
        {"known": ("x", "x")},
        {"n_attacks": 0},
        {"n_trees": -1},
        {"known_sets": -1},
        {"max_reconstructed": -1},
        {"max_secrets": 0},
        {"tolerance": -0.1},
        {"tolerance": 1.0},
        {"tolerance": float("nan")},
    ],
    "linkability": [
        {"columns_a": ("x",)},
        {"columns_b": ("x",)},
        {"columns_a": ("x", "y"), "columns_b": ("y",)},
        {"columns_a": ("x", "x"), "columns_b": ("y",)},
        {"n_neighbours": 0},
        {"n_attacks": 0},
        {"source_pairs": -1},
    ],
    "marginals": [{"cells": 1}, {"n_bootstrap": 10}],
    "membership_data_only": [
        {"max_members": 0},
        {"max_others": 0},
        {"max_reference": 0},
        {"max_learnt": 0},
        {"n_trees": 0},
    ],
    "membership_game": [
        {"iterations": 1},
        {"shadows": 0},
        {"set_rows": 1},
        {"attacker_rows": 3},
        {"outlying": -1},
        {"outlying": 0, "random": 0, "vulnerable": 0, "achilles": 0},
        {"tail": 0.0},
        {"features": ()},
        {"features": ("naive", "naive")},
        {"features": ("everything",)},
        {"columns": ("a", "a")},
        {"classifier": "oracle"},
    ],
    "one_run": [{"max_rows": 10}, {"subsets": -1}],
    "partial_knowledge": [{"max_sets": 0}, {"max_people": 0}, {"alpha": 0.0}, {"alpha": 0.6}],
    "prediction": [
        {"models": ()},
        {"models": ("logistic", "logistic")},
        {"repeats": 0},
        {"n_bootstrap": 1},
        {"most_rows": 99},
        {"folds": 1},
        {"folds": -2},
    ],
    "projection": [{"n_bootstrap": 10}, {"most_coordinates": 5}, {"most_rows": 999}],
    "propensity": [{"most_rows": 50}, {"folds": 1}, {"trees": 0}],
    "singling_out": [
        {"univariate": False, "multivariate": ()},
        {"multivariate": (1,)},
        {"multivariate": (3, 3)},
        {"embedding_columns": (1, 3)},
        {"embedding_columns": (4, 4)},
        {"n_attacks": 400},
        {"n_minimum": 0},
        {"max_trials": 0},
        {"n_bins": 1},
        {"max_outliers": 0},
    ],
}


@pytest.mark.parametrize(("audit", "settings"), [(name, x) for name, every in REFUSED.items() for x in every])
def test_settings_that_mean_nothing_are_refused_by_name(audit, settings):
    with pytest.raises(ValueError, match="|".join(settings)):
        find("audit", audit).load()(**settings)
