"""What the whole data-only privacy suite costs on Adult from the command line, with and without embedding."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from synth_audit import registry
from synth_audit.plugins.audit import Need
from synth_audit.store.workspace import Workspace


def plan(*, embedding: bool) -> str:
    """Every privacy audit that needs no generator, with its defaults but for the embedding."""
    refs = [r for r in registry.catalogue("audit").values() if r.family == registry.PRIVACY]
    loaded: dict[str, Any] = {r.name: r.load() for r in refs}
    audits: dict[str, object] = {
        n: {} for n, audit in loaded.items() if Need.GENERATOR not in audit.info.needs
    }
    audits["closest_record"] = {"distances": ["euclidean", "gower"] + ["embedding"] * embedding}
    audits["singling_out"] = {"embedding": embedding}
    return json.dumps({"audits": [{name: settings} for name, settings in audits.items()]})


def resident(pid: str) -> int:
    """KiB resident in a process and all below it; pages that they share count for each."""
    try:
        below = sum(map(resident, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
        return below + int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0])
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0  # ended in the meantime


def measure(command: list[str], out: Path, label: str) -> str:
    """Print one run's line and its audits' seconds; return the digest of its evidence."""
    start, peak = time.perf_counter(), 0
    process = subprocess.Popen([*command, "--out", out], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, resident(str(process.pid)))
        time.sleep(0.1)
    took = f"exit {process.returncode}, {time.perf_counter() - start:.0f} s, {peak / 2**20:.2f} GiB"
    evidence = json.loads(Workspace(out).newest.evidence.read_text())
    spent = {k: v for k, v in evidence["timings"].items() if k.startswith(("audit.", "known answer."))}
    check = sum(v for k, v in spent.items() if k.startswith("known")) / sum(spent.values())
    errors = sum(o["status"] == "error" for o in evidence["outcomes"])
    print(f"{label}: {took}, known-answer check {check:.0%}, errors {errors}", spent, sep="\n  ", flush=True)
    return str(evidence["digest"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds adult_{train,control,ctgan_synthetic}.parquet")
    folder = parser.parse_args().folder
    tables = [f"{folder}/adult_{name}.parquet" for name in ("train", "control", "ctgan_synthetic")]
    audit = str(Path(sys.executable).with_name("synth-audit"))
    with tempfile.TemporaryDirectory() as scratch:
        for on in (False, True):
            Path(scratch, "plan.yaml").write_text(plan(embedding=on))
            run = [audit, "audit", *tables, "--plan", f"{scratch}/plan.yaml", "--workers"]
            digests = {
                measure([*run, w], Path(scratch, f"{on}{w}"), f"embedding {on}, workers {w}") for w in "12"
            }
            print(
                f"  evidence digests of 1 and 2 workers {'agree' if len(digests) == 1 else 'DIFFER'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
