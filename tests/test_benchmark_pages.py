"""What the pages of benchmarks say of several seeds."""

import importlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def seed_of(page, ratios, values):
    rows = [
        {"ratio": r, "ours": dict.fromkeys(page.MEASURES.values(), (v, v, v))}
        for r, v in zip(ratios, values, strict=True)
    ]
    return page.Seed("adult", rows, {"releases": {}, "losses": []})


def test_seeds_are_averaged_at_the_ratios_that_all_have(module):
    page = module("_overfitting_page")
    seeds = [
        seed_of(page, (1, 1.1, 1.2, 1.3), (0.0, 0.4, 0.2, 0.9)),
        seed_of(page, (1, 1.1, 1.2, 1.4), (0.1, 0.0, 0.4, 0.9)),
        seed_of(page, (1,), (9.0,)),  # not measured to its end
    ]
    study = page.Study.of("adult", seeds)
    assert study.ratios == [1, 1.1, 1.2]
    assert study.found["linkability"].mean(axis=0) == pytest.approx([0.05, 0.2, 0.3])
    assert study.rises("linkability") == pytest.approx(1)


def runs(models, seeds):
    columns = ("pMSE", "MD", "αP", "βR", "AUPRC", "KS", "TV", "IPα", "IRβ")
    return [
        {
            "model": model,
            "epsilon": 1.0,
            "seed": seed,
            "fit_cpu_s": 1.0,
            **dict.fromkeys(columns, k + seed / 9),
        }
        for k, model in enumerate(models)
        for seed in range(seeds[k])
    ]


@pytest.mark.parametrize(
    ("seeds", "said"), [((5, 5, 5, 1), "over 3 models and 5 seeds"), ((4, 4, 4, 1), "need 5")]
)
def test_private_generators_are_tested_from_five_seeds_on(module, tmp_path, seeds, said):
    page = module("_table_diffusion_page")
    models = ("TableDiffusion", "DP-WGAN", "PATE-GAN", "MST")
    page.write(runs(models, seeds), tmp_path / "page.md", "command", models)
    text = (tmp_path / "page.md").read_text()
    assert said in text
    assert ("no p below 0.062" in text) == (seeds[0] == 5)
    assert "| TableDiffusion | 5 | 0 ± 0 (590) |" in text or seeds[0] == 4


def test_less_is_better_in_distances_and_more_in_recall(module):
    page = module("_table_diffusion_page")
    assert page._ordered({"DP-WGAN": 2.0, "TableDiffusion": 1.0}, "pMSE") == ["diffusion", "DP-WGAN"]
    assert page._ordered({"DP-WGAN": 2.0, "TableDiffusion": 1.0}, "βR") == ["DP-WGAN", "diffusion"]


def test_of_several_budgets_is_told_whether_more_buys_more(module):
    page = module("_table_diffusion_page")
    own = runs(["TableDiffusion"], [2])
    frame = pd.DataFrame([{**run, "epsilon": e, "βR": e, "pMSE": e} for e in (1, 10, 100) for run in own])
    text = list(page._by_epsilon(frame))
    assert "* βR: 1.000, 10.000, 100.000: better at each." in text
    assert "* pMSE: 1, 10, 100: better at 0 of 2 steps." in text
    assert not list(page._by_epsilon(frame[frame["epsilon"] < 100]))


def test_right_margins_do_not_bound_how_near_rows_are_to_the_mean(module):
    """αP above .6 at a pMSE of 0: a page once said that such pairs cannot be."""
    script, curves = module("thesis_diffusion"), module("thesis_scores")
    rng = np.random.default_rng(0)
    labels = rng.choice(4, p=(0.7, 0.1, 0.1, 0.1), size=(1000, 8))
    vectors = (labels[:, :, None] == np.arange(4)).reshape(1000, 32).astype(float)
    groups = [range(i, i + 4) for i in range(0, 32, 4)]
    arranged = script.near_the_mean(vectors, groups, rounds=50, seed=0)
    assert arranged.sum(axis=0) == pytest.approx(vectors.sum(axis=0))
    assert curves.precision_curve(vectors, vectors).mean() < 0.53
    assert curves.precision_curve(vectors, arranged).mean() > 0.6
    both, made = np.concatenate([vectors, arranged]), np.arange(2000) >= 1000
    assert curves.propensity_ratio(both, made, 8) == pytest.approx(0, abs=0.01)


SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("_"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_says_what_it_measures(script, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))  # as it is where a script is given by its path
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 0
    assert "usage: " + script.name in capsys.readouterr().out


def test_the_folder_tells_of_every_one():
    told = (FOLDER / "README.md").read_text()
    assert [path.name for path in SCRIPTS if path.name not in told] == []
