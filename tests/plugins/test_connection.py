from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from synth_audit.errors import PlanError
from synth_audit.plan.plan import parse_plan, plan_schema
from synth_audit.plugins.source import ConnectionSpec

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
