"""Which options of sources and targets the plan's digest leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from synth_audit import registry
from synth_audit.plan.plan import parse_plan

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
