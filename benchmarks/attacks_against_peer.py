"""Our attacks on Adult/CTGAN against the peer anonymeter 1.1.0: seconds and risks, both measured in one run.

The peer gets a virtual environment of its own, since it needs numpy < 2. Both sides have read the tables and
are warm (imports, compiled code) before the clock starts, and take turns, so that whatever else the machine
does disturbs both alike. Settings hold both to the same work, and both may use every core.

Singling out with a control smaller than train: the literature scales the control rate down by the ratio of
the sizes, though strangers are singled out more often in a larger table, not less. Our own risk does not;
what is compared with the golden file is ours "as published", with that factor.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from synth_audit.audits.privacy.inference import Inference
from synth_audit.audits.privacy.linkability import Linkability
from synth_audit.audits.privacy.singling_out import SinglingOut
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Measurement
from synth_audit.pipeline.stages import anchored_subject
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import risk
from synth_audit.stats.proportions import Proportion
from synth_audit.stats.resampling import critical_value

PEER = "anonymeter==1.1.0"
SECRET = "capital_gain"
LEVEL = 0.95
FEW = 20
"""Guesses of the peer's warm-up."""

AS_PUBLISHED = (
    "judge singling out by the risk whose control rate is carried to train's size as the peer does it"
)

Ends = tuple[float, float]
Attack = SinglingOut | Linkability | Inference


@dataclass(frozen=True)
class Contest:
    """The same attack on both sides.

    Attributes:
        settings: the peer's. at: setting and column of our measurements.
        golden: 95 % intervals of the peer's earlier runs.
        goal: how many times faster we mean to be; None without a goal.
    """

    kind: str
    audit: Attack
    at: tuple[str, str]
    settings: dict[str, Any]
    golden: tuple[Ends, ...]
    goal: float | None


@dataclass(frozen=True)
class Timed:
    """One attack.

    Attributes:
        seconds, cpu: on the wall, and of all threads.
        risk: with its interval's ends. rates: of success in train and control.
        published: risk of singling out with the published correction of the control rate; else the risk.
    """

    seconds: float
    cpu: float
    risk: Sequence[float]
    rates: Sequence[float]
    published: Sequence[float] = ()


class Peer:
    """The peer, running in an environment of its own and answering one request at a time."""

    def __init__(self, environment: Path, data: Path, jobs: int) -> None:
        script = Path(__file__).with_name("_peer_anonymeter.py")
        command = [interpreter(environment), script, data]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([str(x) for x in command], stdin=pipe, stdout=pipe, text=True)
        self.jobs = jobs

    def attack(self, contest: Contest, n_attacks: int | None = None) -> Timed:
        settings = contest.settings | ({"n_attacks": n_attacks} if n_attacks else {})
        request = {"kind": contest.kind, "settings": settings, "jobs": self.jobs}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the peer ended with exit code {self.process.wait()}")
        return Timed(**json.loads(line))


def interpreter(environment: Path) -> Path:
    """The peer's Python; its environment is made unless it is there."""
    python = environment / "bin" / "python"
    if not python.exists():
        print(f"installing {PEER} into {environment}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PEER, "pyarrow"], check=True)
    name, version = PEER.split("==")
    program = f"from importlib.metadata import version; print(version({name!r}))"
    found = subprocess.run([str(python), "-c", program], check=True, capture_output=True, text=True).stdout
    if found.strip() != version:
        raise SystemExit(f"{environment} holds {name} {found.strip()}, not {version}")
    return python


def intervals(run: dict[str, Any]) -> tuple[Ends, ...]:
    """Golden intervals; where the file has none, from its rates, the middles of Wilson's intervals."""
    if "ci" in run:
        return tuple((low, high) for low, high in run["ci"])
    n, z2 = run["n"], critical_value(LEVEL) ** 2
    sides = [
        [Proportion(round(r * (n + z2) - z2 / 2), n) for r in run[f"{s}_rate"]] for s in ("train", "control")
    ]
    found = [risk(train, control, LEVEL).interval for train, control in zip(*sides, strict=True)]
    return tuple((i.low, i.high) for i in found)


def contests(golden: dict[str, Any], columns: Sequence[str]) -> list[Contest]:
    """The four attacks as the golden file describes them; a secret number counts when equal, as there."""
    uni, multi, link, infer = golden["runs"]
    k = int(re.findall(r"(\d+) columns", multi["attack"])[0])
    a, b = (side.split(",") for side in re.findall(r"\[(.*?)\]", link["attack"]))
    neighbours = int(re.findall(r"k=(\d+)", link["attack"])[0])
    others = [c for c in columns if c != SECRET]
    by_one = SinglingOut(multivariate=(), n_attacks=uni["n"], n_minimum=1, published=True)
    by_k = SinglingOut(univariate=False, multivariate=(k,), n_attacks=multi["n"], n_minimum=1, published=True)
    # One pair of sources, one set of known columns and no forests, as the peer has none.
    join = Linkability(
        columns_a=tuple(a),
        columns_b=tuple(b),
        n_neighbours=neighbours,
        n_attacks=link["n"],
        source_pairs=0,
    )
    guess = Inference(
        secrets=(SECRET,), n_attacks=infer["n"], tolerance=0.0, n_trees=0, known_sets=0, max_reconstructed=0
    )
    linking = {"aux_cols": [a, b], "n_neighbors": neighbours}
    guessing = {"aux_cols": others, "secret": SECRET, "regression": False}
    rows: list[tuple[str, Attack, tuple[str, str], dict[str, Any], dict[str, Any], float | None]] = [
        ("univariate", by_one, ("univariate", ""), {}, uni, 20),
        ("multivariate", by_k, (f"multivariate[{k}]", ""), {"n_cols": k}, multi, 10),
        ("linkability", join, ("", ""), linking, link, 40),
        ("inference", guess, ("", SECRET), guessing, infer, 40),
    ]
    return [
        Contest(kind, audit, at, {"n_attacks": run["n"], **settings}, intervals(run), goal)
        for kind, audit, at, settings, run, goal in rows
    ]


def ours(contest: Contest, subject: Subject, seed: int) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    findings = contest.audit.run(subject, RunContext(draws=np.random.default_rng(seed)))
    seconds, spent = time.perf_counter() - wall, time.process_time() - cpu
    found = {m.id.quantity: m for m in findings.measurements if (m.id.setting, m.id.column) == contest.at}
    rates = found["train_rate"].value, found["control_rate"].value
    published = found.get("published_risk", found["risk"])
    return Timed(seconds, spent, with_ends(found["risk"]), rates, with_ends(published))


def with_ends(m: Measurement) -> tuple[float, float, float]:
    assert m.interval is not None
    return m.value, m.interval.low, m.interval.high


def met(contest: Contest, mine: Sequence[Timed], theirs: Sequence[Timed]) -> bool:
    """Print one attack's line; True when it is as fast as it should be and agrees with the golden file."""
    wall, peer_wall = (median(t.seconds for t in side) for side in (mine, theirs))
    cpu, peer_cpu = (median(t.cpu for t in side) for side in (mine, theirs))
    fast = contest.goal is None or peer_wall / wall >= contest.goal
    goal = "none" if contest.goal is None else f"{contest.goal:.0f}× {'met' if fast else 'MISSED'}"
    risk_agrees = agree([t.risk for t in mine], contest.golden)
    published_agrees = agree([t.published for t in mine], contest.golden)
    rates = ", ".join(
        f"{ours:.3f}/{its:.3f}" for ours, its in zip(mine[0].rates, theirs[0].rates, strict=True)
    )
    cells = [
        *(contest.kind, f"{wall:.2f}", f"{peer_wall:.1f}", f"{peer_wall / wall:.0f}×", goal),
        *(f"{cpu:.2f}", f"{peer_cpu:.1f}", shown(mine[0].risk), shown(mine[0].published)),
        *(shown(theirs[0].risk), " ".join(f"({low:.3f} to {high:.3f})" for low, high in contest.golden)),
        *("yes" if risk_agrees else "NO", "yes" if published_agrees else "NO", rates),
    ]
    print(" | ".join(cells), flush=True)
    return fast and published_agrees


def agree(risks: Sequence[Sequence[float]], golden: Sequence[Ends]) -> bool:
    """Whether the interval of every round meets every golden one."""
    return all(r[1] <= high and low <= r[2] for r in risks for low, high in golden)


def shown(risk: Sequence[float]) -> str:
    return "{:.3f} ({:.3f} to {:.3f})".format(*risk)


def compete(options: argparse.Namespace, environment: Path) -> bool:
    names = ("train", "control", "ctgan_synthetic")
    train, control, synthetic = (pq.read_table(options.data / f"adult_{name}.parquet") for name in names)
    subject = anchored_subject(train, control, synthetic, parse_plan({"level": LEVEL}))
    agenda = contests(json.loads(options.golden.read_text()), train.column_names)
    peer = Peer(environment, options.data, options.peer_jobs)
    for contest in agenda:
        peer.attack(contest, FEW)
        ours(contest, subject, 0)
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; median of {options.rounds} rounds, peer and "
        f"ours in turn; peer's n_jobs {options.peer_jobs}; risks and rates of the first round\n"
        "attack | our s | peer s | ratio | goal | our CPU s | peer CPU s | our risk | as published | "
        "peer's risk (clipped) | golden intervals | overlaps golden | as published overlaps | "
        "train, control rate (ours/peer's)"
    )
    results = []
    for contest in agenda:
        turns = [(peer.attack(contest), ours(contest, subject, seed)) for seed in range(options.rounds)]
        theirs, mine = zip(*turns, strict=True)
        results.append(met(contest, mine, theirs))
    peer.process.communicate()
    return all(results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of adult_{train,control,ctgan_synthetic}.parquet")
    parser.add_argument("--golden", type=Path, required=True, help="the peer's earlier results")
    parser.add_argument("--peer-env", type=Path, help="keep the peer's environment here; else temporary")
    parser.add_argument("--peer-jobs", type=int, default=-1, help="-1: all cores; -2, its default: but one")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        return 0 if compete(options, options.peer_env or Path(temporary) / "peer") else 1


if __name__ == "__main__":
    sys.exit(main())
