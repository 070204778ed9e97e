from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from synth_audit.encode import contrastive, embedding
from synth_audit.encode.embedding import EmbeddingSettings

QUICK = EmbeddingSettings(width=32, depth=2, max_epochs=15, batch=128)


def inputs_of(table):
    return embedding._CellReader.anchored_on(table, table.schema.features).read(table)


@pytest.fixture(scope="module")
def training(tables_of):
    rng = np.random.default_rng(1)
    numbers = {name: rng.normal(size=200) for name in "abc"}
    gaps = pa.array(rng.choice(list("uvw"), 200), mask=rng.random(200) < 0.1)
    [table] = tables_of({**numbers, "d": rng.choice(list("xyz"), 200), "e": gaps})
    inputs = inputs_of(table)
    return contrastive._Training(inputs, QUICK, "cpu", np.random.SeedSequence(1)), inputs


def test_masks_leave_one_to_all_but_one_column():
    masks = contrastive._masks(20_000, 5, torch.Generator().manual_seed(0))
    shown = masks.sum(dim=1).numpy()
    assert set(shown) == {1, 2, 3, 4}
    assert np.bincount(shown)[1:] == pytest.approx(5000, rel=0.06)  # every number as often
    assert masks.double().mean(dim=0).numpy() == pytest.approx(0.5, abs=0.02)  # and every column


def test_a_masked_value_has_no_effect(training):
    model, inputs = training
    changed = inputs.take(np.arange(len(inputs)))
    changed.numbers[:, 0] = np.where(np.isnan(changed.numbers[:, 0]), 3.0, np.nan)
    changed.labels[:, 1] = changed.masked[1] + embedding.UNSEEN
    seen = torch.ones((len(inputs), 5), dtype=torch.bool)
    seen[:, [0, 4]] = False

    def at(rows, seen):
        batch = contrastive._Batch.of(rows, "cpu", torch.float32)
        return contrastive._forward(model.weights, batch, seen, 2)

    assert torch.equal(at(inputs, seen), at(changed, seen))
    assert not torch.allclose(at(inputs, seen | True), at(changed, seen | True))


def test_the_loss_is_that_of_a_slow_twin_and_training_takes_it_below_chance(tables_of):
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    [train] = tables_of({f"c{i}": z + 0.1 * rng.normal(size=300) for i in range(6)})
    inputs = inputs_of(train)
    settings = replace(QUICK, max_epochs=100, validation_share=0.3)
    model = contrastive._Training(inputs, settings, "cpu", np.random.SeedSequence(1))
    n = len(model.held_out.numbers)
    with torch.no_grad():
        one, other = (
            contrastive._forward(model.weights, model.held_out, m, 2).double().numpy()
            for m in model.fixed_masks
        )
    total = 0.0
    for i in range(n):
        cosines = [float(one[i] @ other[j]) / QUICK.temperature for j in range(n)]
        total += math.log(sum(math.exp(c) for c in cosines)) - cosines[i]
    assert model.validation_loss() == pytest.approx(total / n, rel=1e-4)
    with contrastive.one_thread():
        model.run()
    assert model.validation_loss() < math.log(n) - 0.5  # chance: every other row as likely


def test_training_stops_when_the_validation_loss_no_longer_falls(training, monkeypatch):
    _, inputs = training
    patient = replace(QUICK, max_epochs=200, window=5, patience=3)
    model = contrastive._Training(inputs, patient, "cpu", np.random.SeedSequence(1))
    losses = iter([5.0, 4, 3, 2, *[4.0] * 100])
    monkeypatch.setattr(model, "_epoch", lambda: model.weights["out.bias"].data.add_(1))
    monkeypatch.setattr(model, "validation_loss", lambda: next(losses))
    assert model.run()["out.bias"][0] == 4  # the weights of the fourth epoch
    # Means of up to five: 5, 4.5, 4, 3.5, 3.6, 3.4, and then 3.4, 3.6, 4: nothing new after the sixth.
    assert model.weights["out.bias"].detach()[0] == 9


def test_no_more_batches_than_allowed(training):
    _, inputs = training
    model = contrastive._Training(inputs, replace(QUICK, max_steps=5), "cpu", np.random.SeedSequence(1))
    model.run()
    assert model.steps == 5
