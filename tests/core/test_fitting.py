"""Fits that games share: what tells two of them apart, and generators that misbehave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.core.cache import Cache
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable, PluginError
from synth_audit.core.fitting import draw, fit_shared
from synth_audit.core.plan import ColumnSpec
from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.table import Table, read_table

FITS: list[int] = []


@dataclass(frozen=True)
class Ladder:
    """Counts its fits; a model is the number of rows it saw, and the level it keeps."""

    truncation: int | None = None
    weight: float = 1.0

    def untruncated(self):
        return replace(self, truncation=None)

    def fit(self, train, rng):
        FITS.append(train.n_rows)
        return Rung(train.n_rows)


@dataclass(frozen=True)
class Rung:
    n: int
    level: int | None = None

    def truncated(self, level):
        return replace(self, level=level)


@pytest.fixture(autouse=True)
def no_fits():
    FITS.clear()


def table(n=5, **roles):
    data = pa.table({"a": np.arange(n) + 0.5, "b": np.arange(n) * 2.0})
    specs = {name: ColumnSpec(role=role) for name, role in roles.items()}
    return read_table(data, infer_schema(data, specs), where="train")


def paired_otherwise():
    """The values of ``table()`` column by column, so that the schema is the same, in other rows."""
    known = table()
    data = known.data.set_column(1, "b", known.data.column("b").take(pa.array(range(known.n_rows))[::-1]))
    return read_table(data, known.schema, where="train")


def test_levels_share_one_fit_and_each_is_cut_to_its_own(tmp_path):
    context = RunContext(cache=Cache(tmp_path))
    models = [fit_shared(Ladder(level), table(), 1, context) for level in (None, 1, 2)]
    assert [m.level for m in models] == [None, 1, 2]
    assert len(FITS) == 1


@pytest.mark.parametrize(
    ("generator", "train", "seed"),
    [
        (Ladder(weight=2.0), table(), 1),
        (Ladder(), table(6), 1),
        (Ladder(), paired_otherwise(), 1),
        (Ladder(), table(b="target"), 1),
        (Ladder(), table(), 2),
    ],
    ids=["setting", "rows", "the same columns in other rows", "roles", "seed"],
)
def test_whatever_a_fit_depends_on_makes_it_another(tmp_path, generator, train, seed):
    context = RunContext(cache=Cache(tmp_path))
    fit_shared(Ladder(), table(), 1, context)
    fit_shared(generator, train, seed, context)
    assert len(FITS) == 2


@pytest.mark.parametrize("fault", [ValueError("income 123456"), NotApplicable("row 17"), SystemExit(0)])
def test_a_generator_that_fails_is_an_error_without_its_words(fault):
    def fail(*_):
        raise fault

    broken = SimpleNamespace(fit=fail, sample=fail)
    for attempt in (
        lambda: fit_shared(broken, table(), 1, RunContext()),
        lambda: draw(broken, 3, table().schema, np.random.default_rng(0)),
    ):
        with pytest.raises(PluginError) as caught:
            attempt()
        assert not isinstance(caught.value, NotApplicable)
        assert "123456" not in str(caught.value)
        assert "17" not in str(caught.value)


@pytest.mark.parametrize("what", ["rows", "columns", "infinite"])
def test_a_release_of_another_shape_or_without_bounds_is_refused(what):
    real = table()
    bad = real.data.set_column(1, "b", pa.array([np.inf, 1, 2, 3, 4]))
    made = {
        "rows": real.take(np.arange(3)),
        "columns": Table(real.schema, real.data.select(["a"])),
        "infinite": Table(real.schema, bad),
    }[what]
    model = SimpleNamespace(sample=lambda n, rng: made)
    with pytest.raises(PluginError, match="the generator drew"):
        draw(model, 5, real.schema, np.random.default_rng(0))
