import datetime
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.dp import composition
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.generators._deep import network_model
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema import PublicDomain
from synth_audit.table.schema_inference import ColumnSpec
from synth_audit.table.table import Table


def make_table(columns: Mapping[str, object], **specs: Mapping[str, object]) -> Table:
    """A training table; ``specs`` are the plan's column declarations."""
    return table_of(dict(columns), {name: ColumnSpec(**spec) for name, spec in specs.items()})


def context(
    table: Table | None = None,
    epsilon: float | None = None,
    *,
    delta: float = 1e-5,
    seed: int = 0,
    **terms: object,
) -> FitContext:
    """What a fit is handed that may spend epsilon, and knows of the columns what is declared."""
    budget = None if epsilon is None else Budget(epsilon, delta)
    accountant = Accountant(budget, **{"unit": Unit.ROW, **terms})
    accountant.draws(500)
    domain = PublicDomain() if table is None else PublicDomain.of(table.schema)
    return FitContext(rng=np.random.default_rng(seed), accountant=accountant, public_domain=domain)


def mixed_columns(n: int = 300, seed: int = 0) -> dict[str, pa.Array]:
    """One column of every kind and storage, with missing values in some."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    gaps = rng.random(n) < 0.2
    days = (18_000 + 100 * z).astype(int)
    start = datetime.datetime(2021, 5, 1, tzinfo=datetime.UTC)
    moments = [start + datetime.timedelta(seconds=float(s)) for s in 1e6 * z]
    counts = np.clip(np.rint(60 + 40 * z), -128, 127)
    colours = np.array(["red", "green", "blue"])[np.digitize(z, [-0.5, 0.8])]
    return {
        "i8": pa.array(counts.astype(np.int8)),
        "i64": pa.array(rng.integers(0, 10**12, size=n), mask=gaps),
        "u16": pa.array(rng.poisson(3, size=n).astype(np.uint16)),
        "f32": pa.array((z**2).astype(np.float32), mask=gaps),
        "f64": pa.array(np.where(rng.random(n) < 0.4, 0.0, np.exp(z))),
        "money": pa.array(np.round(50 + 20 * z, 2)).cast(pa.decimal128(9, 2)),
        "text": pa.array(colours),
        "large": pa.array(colours.tolist(), pa.large_string(), mask=rng.random(n) < 0.1),
        "coded": pa.array(colours).cast(pa.dictionary(pa.int8(), pa.string())),
        "flag": pa.array(z > 0, mask=rng.random(n) < 0.1),
        "day": pa.array(days, pa.int32()).cast(pa.date32()),
        "seconds": pa.array(moments, pa.timestamp("s", tz="UTC")),
        "nanos": pa.array(moments, pa.timestamp("ns", tz="Europe/Berlin")),
        "constant": pa.array([3.5] * n),
        "constant_gaps": pa.array(["same"] * n, mask=gaps),
        "nothing": pa.array([None] * n, pa.float64()),
        "void": pa.nulls(n),
        "y": pa.array((z + 0.5 * rng.normal(size=n) > 0).astype(np.int64)),
    }


@pytest.fixture(autouse=True)
def _with_margins_of_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks see how far their margins are off by a tenth of the rows, enough for what is asked of them."""
    monkeypatch.setattr(network_model, "_DRAWN", 4000)


@pytest.fixture(autouse=True)
def _with_guarantees_on_the_coarse_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is calibrated on the coarse grid. The fine one takes ten times as long and gains a percent."""
    monkeypatch.setitem(composition.by_pld.__kwdefaults__, "grid", composition.COARSE)


@pytest.fixture(scope="session")
def mixed() -> Table:
    return make_table(mixed_columns(), y={"role": "target"}, f64={"role": "sensitive"})


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
