"""Settings of the embedding come from the plan; audits whose settings are equal share one network."""

from __future__ import annotations

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
