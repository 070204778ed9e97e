"""Adversarial random forests: what leaves of a mixed table, and what does not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.generators.arf import Arf
from synth_audit.plugins.generator import FitContext

from .conftest import make_table


def test_relations_are_kept_and_rare_values_are_not_copied():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 900)
    x = np.array([0.0, 6.0, 12.0])[group] + rng.normal(size=900)
    labels = np.where(np.arange(900) < 3, "rare", np.array(list("abc"))[group])
    table = make_table({"label": labels, "x": x})
    told = []
    context = FitContext(rng=np.random.default_rng(0), progress=lambda what, *_: told.append(what))
    drawn = Arf(trees=8, rounds=4).fit(table, context).sample(3000, np.random.default_rng(1))
    assert set(drawn.labels("label")) == set("abc")
    for label, mean in zip("abc", (0, 6, 12), strict=True):
        assert drawn.numbers("x")[drawn.labels("label") == label].mean() == pytest.approx(mean, abs=1.5)
    assert not np.isin(drawn.numbers("x"), x).any()
    assert "told right" in told[0]


def test_a_number_of_few_people_is_not_copied_however_often_they_have_it():
    rng = np.random.default_rng(0)
    visits = np.append(rng.normal(size=400), np.full(60, 1.23456))
    alone = pa.array(np.full(460, 7.5), mask=np.arange(460) > 2)
    table = make_table({"visits": visits, "alone": alone})
    who = np.append(np.arange(400), np.full(60, 400))
    context = FitContext(rng=np.random.default_rng(0), entities=lambda: who)
    drawn = Arf(trees=2, rounds=1).fit(table, context).sample(2000, np.random.default_rng(1))
    assert not (drawn.numbers("visits") == 1.23456).any()
    assert drawn.missing("alone").all()
