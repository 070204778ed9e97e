"""A first look without any set-up: one table is released, one is refused.

``python -m synth_audit.dagster.demo FOLDER`` puts scikit-learn's breast cancer table into an embedded
warehouse and runs both tables of ``defs/`` through Dagster. Everything lands in ``FOLDER``;
``--ui`` opens what is there in Dagster's web pages.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

import dagster as dg

from synth_audit.build import resource_folder
from synth_audit.dagster.assets import WORKERS
from synth_audit.dagster.loading import load_tables

if TYPE_CHECKING:
    import pyarrow as pa

Tell = Callable[[str], object]

WAREHOUSE = "warehouse.duckdb"
TABLES = {"tumours_vine": "released.tumours", "tumours_resample": "released.tumours_resample"}
"""The audited tables of ``defs/`` and where each would be released to."""

MOST_REASONS = 5
"""Of a refusal, that are printed here."""

_INSTANCE = "telemetry:\n  enabled: false\nnux:\n  enabled: false\npython_logs:\n  python_log_level: INFO\n"
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_demo(folder: Path, tell: Tell = print) -> bool:
    """Build the warehouse, audit both tables and show what came of it.

    Args:
        folder: gets the warehouse, the audits' files and Dagster's record of the runs.
        tell: prints one line.

    Returns:
        True when one table was released and the other was refused, as it should be.
    """
    folder = folder.resolve()
    rows = build_warehouse(folder / WAREHOUSE)
    tell(f"Warehouse   {folder / WAREHOUSE}: clinical.tumours, {rows} patients")
    for table in TABLES:
        _place_salt(folder, table)
    with _environment(_settings(folder)):
        released = {table: _audit_one(folder, table, tell) for table in TABLES}
    tell("\nOpen the two reports in a browser, then look around in Dagster:")
    tell(f"  {sys.executable} -m synth_audit.dagster.demo --ui {folder}")
    return released == {"tumours_vine": True, "tumours_resample": False}


def build_warehouse(path: Path) -> int:
    """Put the sensitive table ``clinical.tumours`` into a DuckDB file, without what an earlier demo released.

    Returns:
        Its number of rows.
    """
    import duckdb

    data = tumours()
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("data", data)
        connection.execute("CREATE SCHEMA IF NOT EXISTS clinical")
        connection.execute("CREATE SCHEMA IF NOT EXISTS released")
        connection.execute("CREATE OR REPLACE TABLE clinical.tumours AS SELECT * FROM data")
        for released in TABLES.values():
            connection.execute(f"DROP TABLE IF EXISTS {released}")
    return int(data.num_rows)


def tumours() -> "pa.Table":
    """The Wisconsin Diagnostic Breast Cancer table, 569 patients, with an identifier and a diagnosis."""
    import pyarrow as pa
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = [_column_name(name) for name in bunch.feature_names]
    labels = [str(bunch.target_names[code]) for code in bunch.target]
    identifiers = [f"P{i:04d}" for i in range(1, len(labels) + 1)]
    measured = dict(zip(names, bunch["data"].T, strict=True))
    return pa.table({"patient_id": identifiers, "diagnosis": labels, **measured})


def _column_name(name: str) -> str:
    """``worst concave points`` as ``concave_points_worst``, so that a feature's columns sort together."""
    first, _, rest = name.partition(" ")
    if first in ("mean", "worst"):
        return f"{rest} {first}".replace(" ", "_")
    return name.replace(" ", "_")


def _settings(folder: Path) -> Mapping[str, str]:
    """Environment of the demo: its folders, no telemetry, and a process for each core up to four."""
    home = folder / "dagster"
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text(_INSTANCE, encoding="utf-8")
    return {
        "SYNTH_AUDIT_HOME": str(folder),
        WORKERS: os.environ.get(WORKERS) or str(min(os.cpu_count() or 1, 4)),
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }


@dg.definitions
def defs() -> dg.Definitions:
    """The code location of the demo: its two tables, from a checkout or from an installed wheel."""
    tables = ModuleType("dagster_project.defs")
    folder = resource_folder("dagster_project") / "defs"
    tables.__path__, tables.__file__ = [str(folder)], str(folder / "__init__.py")
    return load_tables(tables)


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _place_salt(folder: Path, table: str) -> None:
    """Give a table of the demo, which is public, a salt that everybody knows, so that it ends alike."""
    from synth_audit.execution.seeds import LENGTH, Salt
    from synth_audit.files import create_once
    from synth_audit.store.workspace import Workspace

    workspace = Workspace(folder / f"{table}-audit").prepare()
    create_once(workspace.salt, Salt(bytes(LENGTH)).text().encode())


def _audit_one(folder: Path, table: str, tell: Tell) -> bool:
    job = defs().resolve_job_def(f"{table}_audit")
    start = time.perf_counter()
    tell(f"\n{table}: split → synthetic → audit → report → gates → release")
    with dg.DagsterInstance.get() as instance:
        job.execute_in_process(instance=instance, run_config=_QUIET, raise_on_error=False)
        rows = released_rows(folder / WAREHOUSE, TABLES[table])
        _tell_result(folder, table, rows, time.perf_counter() - start, tell)
        if rows is None:
            tell(f"  alone     {_release_alone(job, table, instance)}")
    return rows is not None


def _release_alone(job: dg.JobDefinition, table: str, instance: dg.DagsterInstance) -> str:
    """What ``release`` says when it is run by itself, past the checks."""
    key = dg.AssetKey([table, "release"])
    result = job.execute_in_process(
        instance=instance, run_config=_QUIET, raise_on_error=False, asset_selection=[key]
    )
    observed = [e.asset_observation_data.asset_observation for e in result.get_asset_observation_events()]
    said = [o.description for o in observed if o.asset_key == key and o.description]
    return said[0].splitlines()[0] if said else "release ran, which it must not"


def released_rows(warehouse: Path, table: str) -> int | None:
    """Rows of a released table; None when there is no such table."""
    import duckdb

    with duckdb.connect(str(warehouse), read_only=True) as connection:
        known = connection.execute(
            "SELECT 1 FROM information_schema.tables WHERE table_schema || '.' || table_name = ?", [table]
        ).fetchone()
        if known is None:
            return None
        [(rows,)] = connection.execute(f"SELECT count(*) FROM {table}").fetchall()  # noqa: S608
    return int(rows)


def _tell_result(folder: Path, table: str, rows: int | None, seconds: float, tell: Tell) -> None:
    from synth_audit.dagster.metadata import reasons
    from synth_audit.report.gates import two_answers
    from synth_audit.store.evidence_store import evidence_store
    from synth_audit.store.locate import newest_evidence
    from synth_audit.store.workspace import Workspace

    workspace = Workspace(folder / f"{table}-audit")
    evidence = newest_evidence(workspace)
    _, fit = two_answers(evidence)
    tell(f"  verdict   {str(evidence.verdict).upper()} ({seconds:.0f} s); fit for purpose: {fit.answer}")
    told = reasons(evidence)
    for reason in told[:MOST_REASONS]:
        tell(f"            {reason}")
    if more := told[MOST_REASONS:]:
        tell(f"            and {len(more)} more, in the report")
    where = evidence_store(workspace).where()
    tell(f"  summary   {where['certificate']}")
    tell(f"  report    {where['report']}")
    landed = f"{TABLES[table]}, {rows} rows" if rows is not None else f"nothing; no {TABLES[table]} exists"
    tell(f"  released  {landed}")


def open_ui(folder: Path) -> NoReturn:
    """Turn this process into Dagster's web server over what the demo left in ``folder``."""
    command = f"-W ignore -m dagster dev -m {__spec__.name}".split()
    os.execve(sys.executable, [sys.executable, *command], {**os.environ, **_settings(folder.resolve())})  # noqa: S606


def main() -> int:
    """Command line; 0 when the demo went as it should."""
    parser = argparse.ArgumentParser("python -m synth_audit.dagster.demo", description="Try it on real data.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("demo"))
    parser.add_argument("--ui", action="store_true", help="open what an earlier demo left in Dagster")
    chosen = parser.parse_args()
    if chosen.ui:
        open_ui(chosen.folder)
    return 0 if run_demo(chosen.folder) else 1


if __name__ == "__main__":
    sys.exit(main())
