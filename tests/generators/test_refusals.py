"""What generators refuse, and what ends the claim of those that buy privacy."""

from dataclasses import fields, replace

import numpy as np
import pytest

from synth_audit import registry
from synth_audit.errors import BudgetSpent, DataError, PlanError, PluginError

from .conftest import context, make_table

MARGINAL = ("mst", "aim", "priv_pgd", "priv_bayes")
PRIVATE = (
    *("table_diffusion", "table_diffusion_denoiser"),
    *("dp_wgan", "dpgan", "dp_ctgan", "dp_auto_gan", "pate_gan"),
)
PURE = ("priv_bayes", "pate_gan")
"""Their noise needs no delta."""

OPEN = ("ctgan", "tvae", "tab_ddpm", "attention_ae", "attention_vae", "attention_gan")
ATTENTION = [{"steps": 0}, {"heads": 3}, {"mixtures": 0}, {"labels_weight": 0}, {"learning_rate": -1}]
GANS = [{"epochs": 0}, {"batch": 0}, {"learning_rate": 0}, {"hidden": -1}]
ODD = {
    "dp_wgan": [
        *({setting: 0} for setting in ("steps", "critic_steps", "batch", "sampling_rate", "clip")),
        *({"sampling_rate": 1.5}, {"dropout": 1.0}, {"penalty": -1.0}),
    ],
    "dpgan": [{"weight_clip": 0.0}],
    "dp_ctgan": [{"share": 1.0}],
    "dp_auto_gan": [{"share": 0.0}, {"latent": 0}],
    "table_diffusion": [
        *({"levels": 0}, {"steps": 0}, {"sampling_rate": 0}, {"sampling_rate": 1.5}, {"clip": 0}),
        *({"averaging": 1.0}, {"temperature": 0.0}),
    ],
    "pate_gan": [{"teachers": 0}, {"votes": 0}, {"dropout": 1.0}, {"learning_rate": 0.0}],
    "tab_ddpm": [{"steps": 0}, {"levels": 0}, {"learning_rate": -1}, {"layers": 0}],
    **dict.fromkeys(("tvae", "ctgan"), GANS),
    **dict.fromkeys(("attention_ae", "attention_vae", "attention_gan"), ATTENTION),
    "mst": [{"share": 1.0}, {"score": "columns"}, {"iterations": 0}, {"margins": 1.0}, {"bins": 0}],
    "aim": [{"rounds": 0}, {"iterations": 0}, {"margins": 1.0}, {"bins": 0}, {"most_cells": 0}],
    "priv_pgd": [{"sweeps": 0}, {"bins": 0}, {"most_cells": 0}],
    "priv_bayes": [{"degree": 0}, {"bins": 0}, {"share": 0}, {"share": 1}, {"most_cells": 0}, {"margins": 1}],
    "bayesian_network": [{"minimum_people": 0}, {"degree": 0}, {"bins": 0}, {"share": 1}, {"margins": 1}],
    "cart": [{"minimum_leaf": 0}, {"order": ["x", "x"]}],
    "arf": [{"trees": 0}, {"minimum_leaf": 0}, {"rounds": 0}, {"tolerance": 0.6}],
    "vine": [
        *({"truncation": 0}, {"threshold": 1.5}, {"families": "all"}, {"margins": "normal"}, {"x": 1}),
        *({"root": "both"}, {"topology": "d_vine"}, {"order": "random"}, {"order": ["a", "a"]}),
        {"criterion": "x"},
    ],
}


def quick(name):
    """Of the size that it is tried at, with all rows in every batch, whose cost is quick to add up."""
    kind = registry.find("generator", name).load()
    whole = {"sampling_rate": 1.0} if "sampling_rate" in {field.name for field in fields(kind)} else {}
    return kind(**kind.info.trial | whole)


@pytest.mark.parametrize(("name", "odd"), [(name, odd) for name, all_odd in ODD.items() for odd in all_odd])
def test_settings_that_make_no_sense_are_refused(name, odd):
    with pytest.raises(PlanError):
        registry.build("generator", name, odd)


@pytest.mark.parametrize("name", [*OPEN, *PRIVATE, *MARGINAL])
def test_free_text_is_refused_by_name(name):
    notes = [f"patient {i} came in on day {i} with pain" for i in range(60)]
    with pytest.raises(DataError, match="'notes'"):
        quick(name).fit(make_table({"notes": notes, "x": np.arange(60.0)}), context())


def declared(n=60):
    """Of its columns one is declared, and one is not."""
    bounds = {"kind": "continuous", "bounds": (0, 60), "nullable": False}
    return make_table(
        {"x": np.arange(float(n)), "label": ["low", "high"] * (n // 2) + ["low"] * (n % 2)}, x=bounds
    )


@pytest.mark.parametrize("name", [*PRIVATE, *MARGINAL])
def test_a_domain_that_is_read_off_the_rows_ends_every_claim(name):
    handed = context(declared(), 2.0)
    quick(name).fit(declared(), handed)
    assert handed.accountant.guarantee() is None
    assert "inferred bounds" in handed.accountant.why_none


@pytest.mark.parametrize("name", [name for name in (*PRIVATE, *MARGINAL) if name not in PURE])
def test_a_budget_without_delta_is_refused_before_anything_is_bought(name):
    handed = context(declared(), 2.0, delta=0.0)
    with pytest.raises(BudgetSpent, match="delta above 0"):
        replace(quick(name), **({} if name in MARGINAL else {"margins": 0.0})).fit(declared(), handed)
    assert not handed.accountant.mechanisms


@pytest.mark.parametrize("name", [*OPEN, "table_diffusion", "table_diffusion_denoiser"])
@pytest.mark.parametrize("n", [1, 3])
def test_few_rows_and_a_draw_of_one_row(name, n):
    assert quick(name).fit(declared(n), context()).sample(1, np.random.default_rng(1)).n_rows == 1


@pytest.mark.parametrize(
    ("name", "epsilon"), [*((name, None) for name in (*OPEN, *PRIVATE)), *((name, 2.0) for name in PRIVATE)]
)
def test_training_that_diverges_leaves_no_model(name, epsilon):
    unclipped = {"weight_clip": 1e30} if name == "dpgan" else {}
    with pytest.raises(PluginError, match="diverged"):
        replace(quick(name), learning_rate=1e30, **unclipped).fit(declared(), context(declared(), epsilon))
