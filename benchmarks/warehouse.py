"""From a PostgreSQL table to a split in Parquet, and the same by pandas: seconds and peak memory of each.

Starts a server of its own from the system's packages, on loopback. Each way runs in a process of its own; the
server's work is not in the memory that is printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

from synth_audit.pipeline.stages import split_table
from synth_audit.plan.plan import Plan, parse_plan
from synth_audit.store.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = """
g AS id, 18 + g % 70 AS age, random() AS score, random() * 100 AS pressure,
(random() * 900)::numeric(9, 2) AS paid, g % 2 = 0 AS ill, 'city ' || g % 40 AS city,
(array['a', 'b', 'c', 'd'])[1 + g % 4] AS ward, 1 + g % 12 AS month,
date '2020-01-01' + g % 900 AS admitted, timestamptz '2020-01-01' + g * interval '1 minute' AS seen,
(g::bigint * 7919) % 1000 AS visits
"""


def server_room() -> ModuleType:
    spec = importlib.util.spec_from_file_location("postgres_server", ROOT / "tests" / "postgres_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def plan(port: str) -> Plan:
    options = {"host": "127.0.0.1", "port": port, "dbname": "postgres", "user": "admin"}
    connections = {"here": {"options": options, "secrets": {"password": "SYNTH_AUDIT_TEST_PASSWORD"}}}
    source = {"postgres": {"connection": "here", "table": "rows"}}
    columns = {"id": {"role": "identifier"}}
    return parse_plan(
        {"connections": connections, "source": source, "columns": columns, "generator": "independent"}
    )


def ours(port: str, folder: Path) -> None:
    split_table(plan(port), Workspace(folder))


def by_pandas(port: str, folder: Path) -> None:
    """What a notebook does: read_sql into a frame, a random mask, two files."""
    import numpy as np
    import pandas as pd
    from sqlalchemy import create_engine

    password = os.environ["SYNTH_AUDIT_TEST_PASSWORD"]
    engine = create_engine(f"postgresql+psycopg://admin:{password}@127.0.0.1:{port}/postgres")
    frame = pd.read_sql("SELECT * FROM rows", engine)
    control = np.random.default_rng(0).random(len(frame)) < 0.2
    folder.mkdir()
    frame[~control].to_parquet(folder / "train.parquet")
    frame[control].to_parquet(folder / "control.parquet")


WAYS = {"ours": ours, "pandas": by_pandas}


def measured(way: str, port: int, folder: Path) -> str:
    words = [sys.executable, __file__, str(folder / way), "--way", way, "--port", str(port)]
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        return f"{way:8} not run: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    return f"{way:8} {seconds:6.1f} s  {done.stdout.strip()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--way", choices=sorted(WAYS), help="run one way in this process, against --port")
    parser.add_argument("--port")
    given = parser.parse_args()
    if given.way:
        WAYS[given.way](given.port, given.folder)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(f"{used.ru_maxrss / 2**20:5.2f} GiB peak  {used.ru_utime + used.ru_stime:5.1f} CPU s")
        return
    room = server_room()
    programs = room.binaries()
    if programs is None:
        sys.exit("PostgreSQL is not installed: apt-get install postgresql")
    os.environ[room.VARIABLE] = room.PASSWORD
    given.folder.mkdir(parents=True, exist_ok=True)
    with room.running(programs) as server:
        server.run(f"CREATE TABLE rows AS SELECT {COLUMNS} FROM generate_series(1, {given.rows}) g")  # noqa: S608
        server.run("VACUUM ANALYZE rows")
        for way in WAYS:
            print(measured(way, server.port, given.folder), flush=True)


if __name__ == "__main__":
    main()
