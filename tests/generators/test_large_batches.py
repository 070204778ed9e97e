"""A batch that asks for more rows than the table has, of every generator that trains a network."""

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import registry
from synth_audit.generators._deep.training import Training
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table

from .conftest import context

N, BATCH = 7, 1000
OPEN = ("ctgan", "tvae", "tab_ddpm", "attention_ae", "attention_vae", "attention_gan")
PRIVATE = (
    *("table_diffusion", "table_diffusion_denoiser"),
    *("dp_wgan", "dpgan", "dp_ctgan", "dp_auto_gan", "pate_gan"),
)


def greedy(name):
    """Of the size that it is tried at, with batches as large as its settings allow."""
    kind = registry.find("generator", name).load()
    known = {field.name for field in fields(kind)}
    large = {k: v for k, v in {"batch": BATCH, "sampling_rate": 1.0}.items() if k in known}
    return kind(**kind.info.trial | large)


def seven() -> Table:
    data = pa.table({"x": np.arange(N, dtype=float), "label": list("abababa")})
    specs = {
        "x": ColumnSpec(kind="continuous", bounds=(0, 9), nullable=False),
        "label": ColumnSpec(kind="categorical", categories=("a", "b"), nullable=False),
    }
    return read_table(data, infer_schema(data, specs), where="train")


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [*((name, None) for name in OPEN + PRIVATE), *((name, 1.0) for name in PRIVATE)],
)
def test_no_batch_holds_more_rows_than_there_are_nor_one_twice(name, epsilon, monkeypatch):
    table, batches = seven(), []
    begin = Training.__init__

    def watched(self, vectors, layout, steps, sample, *more):
        def kept():
            batches.append(sample())
            return batches[-1]

        begin(self, vectors, layout, steps, kept, *more)

    monkeypatch.setattr(Training, "__init__", watched)
    handed = context(table, epsilon)
    model = greedy(name).fit(table, handed)
    assert model.sample(20, np.random.default_rng(1)).n_rows == 20
    assert epsilon is None or handed.accountant.guarantee().epsilon <= epsilon
    rows = [row for batch in batches if isinstance(batch, np.ndarray) for row in [batch.tolist()]]
    assert rows or name == "pate_gan", "its teachers draw from their own shards"
    assert all(len(set(row)) == len(row) <= N for row in rows)
