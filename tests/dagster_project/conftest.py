"""A small table with two stand-in generators, so that these tests fit nothing and take seconds."""

import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, event

from synth_audit import registry
from synth_audit.dagster.component import AuditedTable, TableSettings
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.store.workspace import Workspace
from synth_audit.table.table import Table


@event.listens_for(Engine, "connect")
def _unflushed(connection: object, _: object) -> None:
    """Dagster's record of runs waits for the disk at each event; see ``fsync`` in the tests' own set-up."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")


QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
SECRET = "Amsterdam-7391"
"""A value of the sensitive table that must never be seen in Dagster's records."""


@dataclass(frozen=True)
class Drawn:
    """A fitted stand-in: every column drawn from train, together or each by itself."""

    train: Table
    together: bool

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        rows = rng.integers(self.train.n_rows, size=(len(self.train.names), n))
        picked = [rows[0] if self.together else r for r in rows]
        columns = zip(self.train.names, picked, strict=True)
        data = pa.table({name: self.train.data.column(name).take(pa.array(r)) for name, r in columns})
        return Table(self.train.schema, data)


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """Independent columns: nobody's record."""

    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Shuffled", summary="Independent columns.")

    def fit(self, train: Table, context: FitContext) -> Drawn:
        return Drawn(train, together=False)


@dataclass(frozen=True, kw_only=True)
class Copied:
    """Real records, drawn again."""

    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Copied", summary="Real records again.")

    def fit(self, train: Table, context: FitContext) -> Drawn:
        return Drawn(train, together=True)


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Fails with a cell value in its message, as a library might."""

    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Broken", summary="Fails.")

    def fit(self, train: Table, context: FitContext) -> Drawn:
        try:
            float(SECRET)
        except ValueError as error:
            raise RuntimeError(f"bad cell {SECRET}") from error
        raise AssertionError


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the stand-in generators as a third party would, by entry point."""
    module = ModuleType("stand_in_generators")
    classes = {"shuffled": Shuffled, "copied": Copied, "broken": Broken}
    for cls in classes.values():
        setattr(module, cls.__name__, cls)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    points = {
        "generator": tuple(
            EntryPoint(name, f"{module.__name__}:{cls.__name__}", "synth_audit.generators")
            for name, cls in classes.items()
        )
    }
    monkeypatch.setattr(registry, "_entry_points", lambda room: points.get(room, ()))


@pytest.fixture
def home(tmp_path: Path, with_salt: Callable[[Workspace], None]) -> Path:
    """A folder with a sensitive table and a suite of one blocking and one advisory gate.

    Its workspace has the salt of all tests: under some others an honest release fails a gate by chance.
    """
    with_salt(Workspace(tmp_path / "people-audit"))
    rng = np.random.default_rng(1)
    cities = [f"city-{i % 7}" for i in range(298)] + [SECRET] * 2
    data = {
        "id": [f"P{i}" for i in range(300)],
        "city": cities,
        "x": rng.normal(size=300),
        "y": rng.normal(size=300),
    }
    pq.write_table(pa.table(data), tmp_path / "people.parquet")
    blocking = _gate("no-copies", "exact_match.excess", 0.2)
    advisory = _gate("few.copies", "exact_match.share", 0, "info")
    (tmp_path / "gates.json").write_text(json.dumps({"name": "small", "expectations": [blocking, advisory]}))
    return tmp_path


def _gate(name: str, measurement: str, maximum: float, severity: str = "critical") -> dict[str, Any]:
    return {
        "type": "expect_measurement_to_be_within",
        "kwargs": {"name": measurement, "maximum": maximum, "bound": "upper"},
        "meta": {"id": name, "title": f"Gate {name}", "reason": "to try it out"},
        "severity": severity,
    }


@pytest.fixture
def component(home: Path) -> Callable[..., AuditedTable]:
    """Make the component of a table with the given generator and other settings."""

    def make(generator: str = "shuffled", **settings: object) -> AuditedTable:
        attributes = {
            "source": "people.parquet",
            "columns": {"id": {"role": "identifier"}},
            "generator": generator,
            "audits": ["exact_match"],
            "gates": "gates.json",
            "release": {"parquet": {"path": "out/released.parquet"}},
            **settings,
        }
        return AuditedTable(settings=TableSettings.model_validate(attributes), folder="people", home=home)

    return make


@pytest.fixture(scope="session")
def instance() -> Iterator[dg.DagsterInstance]:
    """An instance in memory."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


Run = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def run(component: Callable[..., AuditedTable], instance: dg.DagsterInstance) -> Run:
    """Run a table's job, wholly or for some of its stages."""

    def execute(generator: str = "shuffled", *stages: str, **settings: object) -> dg.ExecuteInProcessResult:
        defs = dg.build_defs_for_component(component(generator, **settings))
        return defs.resolve_job_def("people_audit").execute_in_process(
            instance=instance,
            run_config=QUIET,
            raise_on_error=False,
            asset_selection=[dg.AssetKey(["people", s]) for s in stages] or None,
        )

    return execute
