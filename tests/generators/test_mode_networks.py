"""TVAE and CTGAN: what they learn, and what they refuse."""

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit import registry
from synth_audit.generators._deep.gan import Conditions
from synth_audit.generators._deep.networks import as_arrays
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import ModeTransform, RowLayout
from synth_audit.generators.ctgan import Ctgan, CtganTraining
from synth_audit.generators.tvae import Tvae
from synth_audit.plugins.generator import FitContext

QUICK = {"epochs": 40, "hidden": 48, "batch": 100, "learning_rate": 2e-3}


@pytest.fixture(scope="module")
def rows():
    """Two groups: low numbers and mostly `a`, high numbers and mostly `b`; a twentieth has neither."""
    rng = np.random.default_rng(0)
    high = rng.random(600) < 0.5
    x = np.where(high, 6.0, -6.0) + rng.normal(size=600)
    label = np.where(rng.random(600) < 0.95, np.where(high, "b", "a"), "rare")
    return table_of({"x": pa.array(x, mask=rng.random(600) < 0.2), "label": label})


def fitted(name, table, **settings):
    context = FitContext(rng=np.random.default_rng(0))
    return registry.build("generator", name, QUICK | settings).fit(table, context), context


@pytest.mark.parametrize("name", ["tvae", pytest.param("ctgan", marks=pytest.mark.slow)])
def test_modes_labels_and_gaps_hang_together_as_in_train(name, rows):
    model, context = fitted(name, rows)
    drawn = model.sample(2000, np.random.default_rng(1))
    x, label = drawn.numbers("x"), drawn.labels("label")
    assert np.mean(np.abs(np.abs(x[~np.isnan(x)]) - 6) < 3) > 0.7, "two modes, little between them"
    assert np.nanmean(x[label == "b"]) - np.nanmean(x[label == "a"]) > 4
    assert np.mean(np.isnan(x)) == pytest.approx(0.2, abs=0.15)
    assert np.mean(label == "rare") == pytest.approx(0.05, abs=0.06)
    assert context.accountant.guarantee() is None
    assert "without clipping and noise" in context.accountant.why_none


def test_who_watches_a_training_may_end_it_and_moves_nothing():
    layout = RowLayout(numbers=(0,), slices=((1, 3),), width=3)
    rows = np.eye(3, dtype=np.float32)
    settings, seen = Tvae(latent=2, hidden=4), []

    def weights(steps, watch=None):
        rng = np.random.default_rng(0)
        training = Training(rows, layout, steps, lambda: np.arange(3), lambda done, loss: None, rng)
        return training.run(lambda training: settings.learn(training, watch))

    ended = weights(9, lambda step, network: seen.append(step) or step == 4)
    assert seen == [1, 2, 3, 4]
    alone = weights(4)
    assert all(np.array_equal(ended[name], alone[name]) for name in alone)


def test_rows_asked_for_follow_the_counts_and_while_learning_their_logarithms():
    layout = RowLayout(numbers=(), slices=((0, 2),), width=2, choices=(0,))
    rows = np.zeros((1001, 2), dtype=np.float32)
    rows[:1000, 0], rows[1000:, 1] = 1, 1
    conditions, rng = Conditions.of(rows, layout), np.random.default_rng(0)
    _, by_count = conditions.chosen(20_000, rng, logs=False)
    _, by_log = conditions.chosen(20_000, rng, logs=True)
    assert np.mean(by_count) == pytest.approx(1 / 1001, abs=2e-3)
    assert np.mean(by_log) == pytest.approx(np.log(2) / (np.log(2) + np.log(1001)), abs=0.02)


def test_modes_are_found_and_chosen_by_their_density():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(-50, 1, 600), rng.normal(50, 2, 200)])
    table = table_of({"x": values})
    modes = ModeTransform.of("x", values, (-60.0, 60.0), rng)
    assert set(np.round(modes.means / 50).tolist()) == {-1.0, 1.0}
    assert modes.weights[modes.means < 0].sum() == pytest.approx(0.75, abs=0.02)
    chosen = modes.encode(table, rng)[:, 1:].argmax(axis=1)
    assert np.array_equal(modes.means[chosen] < 0, values < 0)


@pytest.mark.parametrize(("settings", "steps"), [({}, 16), ({"batch": 60}, 20), ({"batch": 1}, 1200)])
def test_small_tables_have_small_batches(settings, steps, rows, monkeypatch):
    """600 rows in batches of 500 would be one step in each epoch."""
    told = []

    def learn(generator, training):
        told.append(training.steps)
        return {}

    monkeypatch.setattr(Tvae, "learn", learn)
    context = FitContext(rng=np.random.default_rng(0))
    registry.build("generator", "tvae", {"epochs": 2} | settings).fit(rows, context)
    assert told == [steps]


def test_rows_are_drawn_with_the_running_mean_of_the_weights():
    layout = RowLayout(numbers=(0,), slices=((1, 3),), width=3, choices=(0,))
    rows = np.tile(np.eye(3, dtype=np.float32)[1:], (4, 1))
    settings, seen = Ctgan(noise=2, hidden=4, learning_rate=1e-2, averaging=0.3), []

    def told(done, loss):
        seen.append(as_arrays(run.generator))

    run = CtganTraining(
        Training(rows, layout, 8, lambda: np.arange(8), told, np.random.default_rng(0)), settings
    )
    told(0, 0.0)
    drawn = run.run()
    mean = seen[0]["out.weight"]
    for step, now in enumerate(seen[1:]):
        decay = min(0.3, (1 + step) / (10 + step))
        mean = decay * mean + (1 - decay) * now["out.weight"]
    assert drawn["out.weight"] == pytest.approx(mean, abs=1e-6)
    assert np.abs(drawn["out.weight"] - seen[-1]["out.weight"]).max() > 1e-4
