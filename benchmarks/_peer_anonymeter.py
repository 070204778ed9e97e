"""Attacks of the peer anonymeter 1.1.0, in its own environment: a JSON request per line, a JSON answer."""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

Frames = dict[str, pd.DataFrame]


def attack(kind: str, tables: Frames, settings: dict[str, Any], jobs: int) -> Any:
    """The evaluator after its attack; each draws afresh, since only one of the three takes a seed."""
    match kind:
        case "univariate" | "multivariate":
            return SinglingOutEvaluator(**tables, **settings).evaluate(mode=kind)
        case "linkability":
            return LinkabilityEvaluator(**tables, **settings).evaluate(n_jobs=jobs)
        case "inference":
            return InferenceEvaluator(**tables, **settings).evaluate(n_jobs=jobs)
    raise ValueError(f"no attack {kind!r}")


def answer(request: dict[str, Any], tables: Frames) -> dict[str, Any]:
    """Seconds on the wall and of all threads, the risk with its interval, and the rates it comes from."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = attack(request["kind"], tables, request["settings"], request["jobs"])
    risk, results = found.risk(confidence_level=0.95), found.results(confidence_level=0.95)
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "risk": [float(x) for x in (risk.value, *risk.ci)],
        "rates": [float(rate.value) for rate in (results.attack_rate, results.control_rate)],
    }


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")  # it warns of attacks no better than chance, which is what we look for
    names = {"ori": "train", "control": "control", "syn": "ctgan_synthetic"}
    tables = {role: pd.read_parquet(folder / f"adult_{name}.parquet") for role, name in names.items()}
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            found = answer(json.loads(line), tables)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
