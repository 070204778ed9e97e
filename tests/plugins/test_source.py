"""What a source hands out by batches is one table, or it is refused."""

import errno
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from synth_audit import registry
from synth_audit.errors import DataError, PlanError
from synth_audit.files import scratch_in
from synth_audit.plan.plan import parse_plan, plan_schema
from synth_audit.plugins.source import ConnectionSpec, SourceInfo, batches, read
from synth_audit.table import arrow

FIRST = pa.record_batch({"a": [1, 2], "b": [3, 4]})


class Lying:
    """A source that somebody else wrote."""

    info: Any = None

    def __init__(self, *handed_out: pa.RecordBatch) -> None:
        self._handed_out = handed_out

    def read(self, base: Path) -> pa.Table:
        raise NotImplementedError

    def batches(self, base: Path) -> Any:
        return iter(self._handed_out)


@pytest.mark.parametrize("most", [0, 2**30])
@pytest.mark.parametrize(
    "change",
    [
        lambda batch: batch.select(["b", "a"]),
        lambda batch: batch.rename_columns(["a", "c"]),
        lambda batch: batch.select(["a"]),
        lambda batch: batch.append_column("c", batch["a"]),
        lambda batch: batch.set_column(0, "a", batch["a"].cast(pa.float64())),
    ],
)
def test_no_value_comes_under_the_name_of_another_column(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    change: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", most)
    with scratch_in(tmp_path), pytest.raises(DataError, match="batches whose columns differ"):
        arrow.kept(batches(Lying(FIRST, change(FIRST)), tmp_path), None)
    assert not list(tmp_path.iterdir())


def test_no_batch_at_all_is_told() -> None:
    with pytest.raises(DataError, match="no batch"):
        list(batches(Lying(), Path()))
    assert list(batches(Lying(FIRST.slice(0, 0)), Path())) == [FIRST.slice(0, 0)]


class Unplugged(Lying):
    info: Any = SourceInfo(title="Warehouse", summary="")

    def read(self, base: Path) -> pa.Table:
        raise ConnectionResetError("swordfish")

    def batches(self, base: Path) -> Any:
        yield FIRST
        raise OSError(errno.ENOSPC, "swordfish")


@pytest.mark.parametrize("most", [0, 2**30])
def test_what_the_system_says_to_a_source_is_not_told_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(arrow, "MOST_HELD", most)
    with (
        scratch_in(tmp_path),
        pytest.raises(DataError, match=r"the source cannot be read \(OSError\)") as caught,
    ):
        arrow.kept(batches(Unplugged(), tmp_path), None)
    assert caught.value.where == "source, Warehouse"
    assert caught.value.fix
    assert "swordfish" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_source_that_is_read_whole_tells_the_same(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the source cannot be read \(ConnectionResetError\)"):
        read(Unplugged(), tmp_path)


PASSWORD = "Sesame-Opens-77"
PLAN = {
    "connections": {"clinic": {"options": {"host": "db"}, "secrets": {"password": "CLINIC_PASSWORD"}}},
    "source": {"postgres": {"connection": "clinic", "table": "people"}},
}


def test_a_source_gets_what_its_connection_stands_for(monkeypatch):
    source = parse_plan(PLAN).check().build_source()
    monkeypatch.setenv("CLINIC_PASSWORD", PASSWORD)
    assert source.connection.settings() == {"host": "db", "password": PASSWORD}
    assert PASSWORD not in repr(source)


@pytest.mark.parametrize(
    "connection",
    [
        {"options": {"password": PASSWORD}},
        {"options": {"adbc.snowflake.sql.auth_token": PASSWORD}},
        {"options": {"uri": f"postgresql://me:{PASSWORD}@db/clinic"}},
        {"options": {"uri": f"host=db password={PASSWORD}"}},
        {"options": {"uri": f"https://db/clinic?access_token={PASSWORD}"}},
        {"options": {"uri": f"Driver=x;Server=db;UID=me;PWD={PASSWORD}"}},
        {"options": {"adls.account-key": PASSWORD}},
        {"options": {"adls.connection-string": PASSWORD}},
        {"options": {"warehouse": f"abfss://c@a.example.org/x?sv=1&sig={PASSWORD}"}},
        {"secrets": {"password": PASSWORD}},
        {"password": PASSWORD},
    ],
)
def test_a_secret_in_the_plan_is_refused_and_not_repeated(connection):
    with pytest.raises(PlanError) as caught:
        parse_plan(PLAN | {"connections": {"clinic": connection}})
    assert PASSWORD not in str(caught.value)


def test_the_digest_follows_the_server_and_not_the_secret(monkeypatch):
    before = parse_plan(PLAN).digest
    monkeypatch.setenv("CLINIC_PASSWORD", PASSWORD)
    assert parse_plan(PLAN).digest == before
    other = {"clinic": {"options": {"host": "other"}}}
    assert parse_plan(PLAN | {"connections": other}).digest != before


def test_a_connection_that_is_not_there_is_named_with_those_that_are():
    for name in ("nowhere", 3):
        with pytest.raises(PlanError) as caught:
            parse_plan(PLAN | {"source": {"postgres": {"connection": name, "table": "t"}}}).check()
        assert caught.value.where == "source.postgres.connection"
        assert "clinic" in caught.value.expected


def test_an_empty_variable_is_no_secret(monkeypatch):
    monkeypatch.setenv("CLINIC_PASSWORD", "")
    with pytest.raises(PlanError, match="CLINIC_PASSWORD is not set"):
        ConnectionSpec(secrets={"password": "CLINIC_PASSWORD"}).settings()


def test_the_schema_asks_for_a_name():
    schema = plan_schema()
    [variant] = [
        v for v in schema["$defs"]["source_plugin"]["anyOf"] if "postgres" in v.get("properties", {})
    ]
    settings = variant["properties"]["postgres"]["anyOf"][0]
    assert settings["properties"]["connection"]["type"] == "string"
    assert "connections" in schema["properties"]


def test_the_plans_in_the_docs_are_plans():
    text = (Path(__file__).parents[2] / "docs" / "warehouses.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    servers = blocks[0]["connections"]
    for block in blocks:
        parse_plan({"connections": servers} | block).check()
    assert len(blocks) == 6


SERVER = {"host": "db", "user": "auditor", "dbname": "clinic"}
WAREHOUSE = {
    "connections": {"clinic": {"options": SERVER}},
    "source": "people.parquet",
    "release": {"postgres": {"connection": "clinic", "table": "released.people"}},
}


def _reached(options: dict[str, str], **settings: Any) -> dict[str, Any]:
    release = {"connection": "clinic", "table": "released.people", **settings}
    return WAREHOUSE | {
        "connections": {"clinic": {"options": SERVER | options}},
        "release": {"postgres": release},
    }


@pytest.mark.parametrize(
    ("plain", "other"),
    [
        (WAREHOUSE, _reached({}, wait=3)),
        (WAREHOUSE, _reached({"sslmode": "verify-full", "connect_timeout": "3"})),
        (
            {"release": {"duckdb": {"path": "a.duckdb", "table": "t"}}},
            {"release": {"duckdb": {"path": "a.duckdb", "table": "t", "wait": 3}}},
        ),
        (
            {
                "connections": {"lake": {"secrets": {"uri": "LAKE"}}},
                "source": {"iceberg": {"connection": "lake", "table": "a.b"}},
            },
            {
                "connections": {"lake": {"options": {"s3.connect-timeout": "3"}, "secrets": {"uri": "LAKE"}}},
                "source": {"iceberg": {"connection": "lake", "table": "a.b"}},
            },
        ),
    ],
)
def test_the_digest_leaves_out_how_a_table_is_reached(plain: Any, other: Any) -> None:
    plan = parse_plan(other)
    assert plan.digest == parse_plan(plain).digest
    assert plan.plain() == parse_plan(plain).plain()
    plan.check()  # and what was left out is still a setting


@pytest.mark.parametrize(
    "other",
    [
        _reached({"host": "other"}),
        _reached({"hostaddr": "10.0.0.1"}),
        _reached({"port": "5433"}),
        _reached({"user": "other"}),
        _reached({"options": "-c search_path=other"}),
        _reached({"target_session_attrs": "standby"}),
        _reached({}, table="released.others"),
        WAREHOUSE | {"source": {"csv": {"path": "people.csv", "delimiter": ";"}}},
    ],
)
def test_the_digest_follows_which_rows_are_read_and_where_they_go(other: Any) -> None:
    assert parse_plan(other).digest != parse_plan(WAREHOUSE).digest


def test_an_option_that_one_user_of_a_connection_does_not_know_as_transport_stays() -> None:
    source = {"source": {"adbc": {"connection": "clinic", "driver": "x", "table": "t"}}}
    with_mode = _reached({"sslmode": "require"}) | source
    assert parse_plan(with_mode).digest != parse_plan(WAREHOUSE | source).digest


def test_of_the_fields_of_sources_only_waits_are_transport() -> None:
    for ref in registry.catalogue("source").values():
        source = ref.load()
        assert set(registry.field_names(source)) & set(vars(source)["info"].transport) <= {"wait"}


def test_a_source_that_is_not_there_has_a_digest_all_the_same() -> None:
    assert parse_plan({"source": {"nowhere": {"wait": 1}}}).plain()["source"]["config"] == {"wait": 1}
