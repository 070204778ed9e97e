"""Any driver: here SQLite's, which needs no server."""

from pathlib import Path

import pytest
from refusals import SECRET, said

from synth_audit.errors import PlanError
from synth_audit.plugins.source import ConnectionSpec, Source, Target, read
from synth_audit.registry import build
from synth_audit.sources.adbc import Adbc

driver = pytest.importorskip("adbc_driver_sqlite", reason="the extra `dev` is not installed")
HERE = Path()


@pytest.fixture
def at(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERE_IT_IS", str(tmp_path / "db.sqlite"))
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(str(tmp_path / "db.sqlite"), autocommit=True) as opened, opened.cursor() as cursor:
        cursor.execute("CREATE TABLE people (id INTEGER, name TEXT)")
        cursor.execute(f"INSERT INTO people VALUES (1, '{SECRET}'), (2, NULL)")

    def make(**settings):
        connection = ConnectionSpec(secrets={"uri": "WHERE_IT_IS"})
        return Adbc(connection=connection, **({"driver": driver._driver_path()} | settings))

    return make


def test_tables_and_queries_are_read_and_nothing_is_written(at):
    assert read(at(table="people"), HERE).to_pydict() == {"id": [1, 2], "name": [SECRET, None]}
    none = read(at(query="SELECT id FROM people WHERE id > 9"), HERE)
    assert (none.num_rows, none.column_names) == (0, ["id"])
    assert isinstance(at(table="people"), Source)
    assert not isinstance(at(table="people"), Target)


def test_failures_are_told_without_the_drivers_words(at, monkeypatch):
    assert "cannot be read" in said(lambda: read(at(query="SELECT nothing FROM people"), HERE))
    assert "no session" in said(lambda: read(at(table="people", driver="no-such-driver"), HERE))
    monkeypatch.delenv("WHERE_IT_IS")
    assert "WHERE_IT_IS is not set" in said(lambda: read(at(table="people"), HERE), kind=PlanError)


def test_a_database_with_a_source_of_its_own_is_sent_there():
    settings = {"connection": ConnectionSpec(), "driver": "/opt/libadbc_driver_postgresql.so", "table": "t"}
    with pytest.raises(PlanError, match="write `postgres`"):
        build("source", "adbc", settings)
