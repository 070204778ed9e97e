"""Audit a small table with this Python and with the one named; fail unless all numbers are equal to 1e-9.

Both draw by one salt, the same in every run. Only what belongs to versions, time and place may
differ, and audits that fit trees.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synth_audit.execution.seeds import LENGTH, Salt
from synth_audit.registry import default_audits
from synth_audit.store.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
TABLES = ("train.csv", "control.csv", "synthetic.csv")
PROGRAM = "from synth_audit.cli import main; main(prog_name='synth-audit')"
COMPARED = ("columns", "outcomes", "table_checks", "gates", "verdict", "planting")
LEFT_OUT = ("each_column", "recognition")
"""Audits that fit trees: another version of scikit-learn grows other ones."""

SLACK = 1e-9


def people(seed: int, n: int = 300) -> pd.DataFrame:
    """A table with every kind of column and missing values."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    income = np.round(rng.lognormal(10, 0.4, n), 2)
    return pd.DataFrame(
        {
            "age": age,
            "income": np.where(rng.random(n) < 0.1, np.nan, income),
            "city": np.array(["north", "south", "east"])[rng.integers(0, 3, n)],
            "ill": np.where(age + rng.normal(0, 15, n) > 55, "yes", "no"),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )


def audited(folder: Path, python: str, out: str) -> dict[str, Any]:
    """Evidence of the tables in the folder, by the command line under a Python; no account has seen them."""
    salt = Workspace(folder / out).prepare().salt
    salt.write_text(Salt(bytes(LENGTH)).text())
    salt.chmod(0o600)
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / f"account-{out}"), "PYTHONPATH": str(ROOT)}
    audits = [f"--only={name}" for name in default_audits() if name not in LEFT_OUT]
    words = [python, "-c", PROGRAM, "audit", *TABLES, "--out", out, *audits]
    done = subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)  # noqa: S603
    if done.returncode not in (0, 1):
        raise SystemExit(f"the audit under {python} ended with {done.returncode}")
    (path,) = (folder / out).glob("review/audits/*/evidence.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return {name: found[name] for name in COMPARED}


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, text and truth value in JSON, with its place."""
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{where}/{key}")
    else:
        yield where, value


def same(one: Any, other: Any) -> bool:
    """Equal, or two numbers that rounding alone tells apart."""
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=SLACK, abs_tol=SLACK)
    return bool(one == other)


def main() -> None:
    """Audit twice and compare."""
    pythons = [os.path.abspath(python) for python in (sys.executable, sys.argv[1])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed, table in enumerate(TABLES):
            people(seed).to_csv(folder / table, index=False)
        with ThreadPoolExecutor() as beside:  # an audit takes one core
            found = beside.map(partial(audited, folder), pythons, ("pinned", "other"))
            first, second = (dict(leaves(evidence)) for evidence in found)
    lost = object()
    differing = [
        place for place in {**first, **second} if not same(first.get(place, lost), second.get(place, lost))
    ]
    for place in differing[:20]:
        print(f"differs: {place}: {first.get(place)} and {second.get(place)}")  # noqa: T201
    if differing:
        raise SystemExit(f"{len(differing)} of {len(first)} values differ")
    numbers = sum(type(value) in (int, float) for value in first.values())
    print(f"{numbers} numbers are equal to {SLACK}")  # noqa: T201


if __name__ == "__main__":
    main()
