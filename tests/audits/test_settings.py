"""Settings that mean nothing are refused, by name; those of the embedding come from the plan."""

from dataclasses import asdict

import numpy as np
import pytest

from synth_audit import registry
from synth_audit.encode import embedding
from synth_audit.errors import PlanError
from synth_audit.examination.audit_runner import run_audits
from synth_audit.execution.context import RunContext
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.audit import Status
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


SETTINGS = {"width": 8, "depth": 1, "max_epochs": 2, "batch": 32}
ASKED = {
    "closest_record": {"distances": ["embedding"], "n_bootstrap": 100},
    "coverage": {"spaces": ["features", "embedding"], "n_bootstrap": 100},
    "singling_out": {
        "univariate": False,
        "multivariate": [],
        "embedding": True,
        "n_attacks": 20,
        "n_minimum": 1,
    },
}
"""Every audit that can take the embedding, asked to."""


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["x", "y", "z"], n)}


@pytest.fixture
def learnt(subject_of, monkeypatch):
    """Runs audits as a plan configures them; the settings of every network that was learnt."""
    contrastive = pytest.importorskip("synth_audit.encode.contrastive")
    fitted, networks = contrastive.fitted, []
    subject = subject_of(rows(60, 1), rows(40, 2), rows(60, 3))

    def counted(inputs, settings, *more):
        networks.append(settings)
        return fitted(inputs, settings, *more)

    def run(settings_of):
        plan = parse_plan(
            {"audits": [{n: {**config, **settings_of.get(n, {})}} for n, config in ASKED.items()]}
        )
        with RunContext(seed=plan.seed).keeping() as context:
            outcomes, _ = run_audits(plan.build_audits(), subject, context)
        assert {o.status for o in outcomes} == {Status.MEASURED}
        return networks

    monkeypatch.setattr(contrastive, "fitted", counted)
    return run


def test_every_audit_that_takes_the_embedding_is_known_here():
    able = {
        name
        for name, ref in registry.catalogue("audit").items()
        if "embedding_settings" in registry.field_names(ref.load())
    }
    assert able == set(ASKED)


def test_equal_settings_share_one_network(learnt):
    networks = learnt({name: {"embedding_settings": SETTINGS} for name in ASKED})
    assert [asdict(s) for s in networks] == [asdict(embedding.EmbeddingSettings(**SETTINGS))]


def test_each_audit_may_have_its_own(learnt):
    own = {name: {"embedding_settings": {**SETTINGS, "width": 4 + i}} for i, name in enumerate(ASKED)}
    assert sorted(s.width for s in learnt(own)) == [4, 5, 6]


@pytest.mark.parametrize("name", sorted(ASKED))
@pytest.mark.parametrize(
    ("wrong", "words"), [({"widht": 8}, "widht"), ({"width": 0}, "width must be at least 1")]
)
def test_what_cannot_be_is_refused_before_anything_runs(name, wrong, words):
    with pytest.raises(PlanError, match=words):
        parse_plan({"audits": [{name: {"embedding_settings": wrong}}]}).build_audits()
