"""The thesis' figures, against its own way of computing them and what is wrong with them."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def published(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("thesis_scores")


@pytest.fixture
def scored(published):
    def score(train, made):
        schema = infer_schema(pa.table(train), {})
        tables = [
            read_table(pa.table(train), schema, where="train"),
            read_table(pa.table(made), schema, where="synthetic", partial=True),
        ]
        return published.scores(tables, schema.columns, np.random.default_rng(0))

    return score


def people(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(list("abc"), n, p=[0.6 - 0.2 * shift, 0.3, 0.1 + 0.2 * shift])
    return {"x": rng.normal(shift, 1, n), "y": rng.normal(size=n), "k": labels}


def test_shares_handed_to_a_chi_square_test_find_nothing_whatever_they_are(published):
    real, made = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.1, 0.8])
    assert published.proportion_chi_square(real, made) == pytest.approx(
        1 - stats.chisquare(made, real).pvalue
    )
    assert published.proportion_chi_square(real, np.array([0.6, 0.25, 0.15])) < 0.05
    assert published.proportion_chi_square(np.array([1.0]), np.array([1.0])) == 0


def test_fresh_rows_have_half_and_rows_at_the_mean_have_more(scored):
    train, fresh = people(400, 0), people(400, 1)
    found = scored(train, fresh)
    assert found["αP"] == pytest.approx(0.5, abs=0.05)
    assert scored(train, fresh | {name: 0.2 * fresh[name] for name in "xy"})["αP"] > 0.6
    assert found["AUPRC"] == pytest.approx(found["αP"] * found["βR"])


def test_a_shifted_table_has_a_larger_ratio_and_distance(scored):
    train = people(400, 0)
    fresh = scored(train, people(400, 1))
    moved = scored(train, people(400, 1, shift=1.0))
    assert moved["pMSE"] > 5 * fresh["pMSE"]
    ks = stats.ks_2samp(train["x"], people(400, 1, shift=1.0)["x"]).statistic
    assert moved["MD"] > ks / 3
    assert fresh["MD"] < 0.1


def test_the_curves_are_those_of_a_slow_twin(published):
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


def test_the_expected_ratio_counts_columns(published):
    rng = np.random.default_rng(0)
    vectors, made = rng.random((300, 4)), np.arange(300) >= 200
    one, two = (published.propensity_ratio(vectors, made, k) for k in (1, 2))
    assert one == pytest.approx(2 * two)


def test_the_script_prints_the_release_and_control(published, tmp_path, capsys):
    files = []
    for seed, name in enumerate(("train", "control", "synthetic")):
        files.append(str(tmp_path / f"{name}.csv"))
        pd.DataFrame(people(60, seed)).to_csv(files[-1], index=False)
    assert published.main(files) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["synthetic", "control"]
    assert all(name in shown[0] for name in ("pMSE", "MD", "αP", "βR", "AUPRC"))
