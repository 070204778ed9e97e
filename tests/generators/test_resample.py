from __future__ import annotations

import numpy as np
import pyarrow as pa

from synth_audit.generators.resample import Resample
from synth_audit.plugins.generator import FitContext


def test_every_row_is_a_training_row_and_types_survive(mixed, rng):
    model = Resample().fit(mixed, FitContext(rng=rng))
    got = model.sample(1000, rng)
    assert got.data.schema == mixed.data.schema
    key = mixed.data.select(["money", "seconds", "text"])
    both = pa.concat_tables([key, got.data.select(["money", "seconds", "text"])])
    assert len(both.to_pandas().drop_duplicates()) == len(key.to_pandas().drop_duplicates())


def test_rows_are_drawn_with_replacement_and_by_the_generator(mixed):
    model = Resample().fit(mixed, FitContext(rng=np.random.default_rng(0)))
    first, again, other = (model.sample(300, np.random.default_rng(s)) for s in (1, 1, 2))
    assert first.data.equals(again.data)
    assert not first.data.equals(other.data)
    assert len(set(first.numbers("seconds"))) < 250
