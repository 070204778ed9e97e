from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.core.errors import DataError, PlanError
from synth_audit.core.plan import parse_plan
from synth_audit.core.registry import build, config_of
from synth_audit.generators.external import External
from synth_audit.sources.duckdb import DuckDB
from synth_audit.sources.parquet import Parquet

from .conftest import make_table

TRAIN = make_table({"id": [1, 2, 3], "a": [1.0, 2.5, None]}, id={"role": "identifier"})
MADE = pa.table({"a": [0.5, 0.25, None, 4.0]})


def sample(generator, n=2, train=TRAIN):
    rng = np.random.default_rng(0)
    return generator.fit(train, rng).sample(n, rng)


def test_the_whole_table_is_read_whatever_n(tmp_path):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    got = sample(External(source="made.parquet").located(tmp_path))
    assert got.data.equals(MADE)
    assert got.names == ("a",)


def test_a_source_with_settings(tmp_path):
    DuckDB(path="db.duckdb", table="made").write(MADE, tmp_path)
    generator = External(source={"duckdb": {"path": "db.duckdb", "table": "made"}}).located(tmp_path)
    assert sample(generator).n_rows == 4


def test_relative_paths_start_at_the_working_folder_without_a_plan(tmp_path, monkeypatch):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert sample(External(source="made.parquet")).n_rows == 4


def test_relative_paths_start_at_the_plan(tmp_path):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    plan = parse_plan({"generator": {"external": {"source": "made.parquet"}}}).located(tmp_path)
    generator = plan.build_generator()
    assert sample(generator).n_rows == 4
    assert sample(pickle.loads(pickle.dumps(generator))).n_rows == 4  # noqa: S301
    assert config_of(generator) == {"source": "made.parquet"}


def test_train_rows_are_not_looked_at(tmp_path):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    other = make_table({"id": [9], "a": [-7.0]}, id={"role": "identifier"})
    generator = External(source="made.parquet").located(tmp_path)
    assert sample(generator, train=other).data.equals(sample(generator).data)


def test_a_table_of_other_columns_is_refused(tmp_path):
    Parquet(path="made.parquet").write(pa.table({"b": [1.0]}), tmp_path)
    with pytest.raises(DataError, match="columns of synthetic differ"):
        sample(External(source="made.parquet").located(tmp_path))


def test_a_missing_file_shows_when_it_is_read(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        sample(External(source="none.parquet").located(tmp_path))


@pytest.mark.parametrize("source", ["made.unknown", {"duckdb": {"path": "x"}}, {"nowhere": {}}, {}])
def test_a_source_that_cannot_be_built_is_refused_in_the_plan(source):
    with pytest.raises(PlanError):
        build("generator", "external", {"source": source})


def test_there_is_no_formal_claim(tmp_path):
    model = External(source="made.parquet").fit(TRAIN, np.random.default_rng(0))
    assert model.certificate.claim == "none"
    assert model.certificate.reason
