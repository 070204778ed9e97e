"""What reading a workspace of many audits costs: a table of snapshots, one audit a day, people moving on."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

from synth_audit import api
from synth_audit.findings.verdict import Result
from synth_audit.store.evidence import _OUTSIDE, sha256_of
from synth_audit.store.evidence_store import EVIDENCE, MEASUREMENTS, REPORT
from synth_audit.store.files import sha256_of_bytes
from synth_audit.store.journal import AuditEntry, Head, Journal, chained, read_journal
from synth_audit.store.ledger import table_ledger
from synth_audit.store.locate import locate_newest, newest_evidence
from synth_audit.store.purge import Retention, survey
from synth_audit.store.records import Newest, to_json
from synth_audit.store.workspace import Workspace
from synth_audit.table.people import SIGNS

GATE = {
    "type": "expect_measurement_to_be_within",
    "kwargs": {"name": "exact_match.excess", "maximum": 0.5},
    "meta": {"id": "copies", "reason": "quick to audit"},
}
"""The only gate, so that only quick audits run."""

FIRST = datetime(2000, 1, 1, tzinfo=UTC)


def people(seed: int, n: int = 200) -> pa.Table:
    """Rows of three columns."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pa.table(
        {"age": age, "bmi": np.round(rng.normal(26, 4, n), 1), "ill": age > rng.normal(55, 15, n)}
    )


def fill(workspace: Workspace, runs: int) -> None:
    """File copies of the newest audit, each of a day of its own, as the store would have filed them."""
    newest = workspace.newest
    plain = json.loads(newest.evidence.read_text())
    parts = {name: (newest.path / name).read_bytes() for name in (MEASUREMENTS, REPORT)}
    hashes = {name: sha256_of_bytes(content) for name, content in parts.items()}
    journal = read_journal(workspace)
    assert journal is not None
    ledger = table_ledger(workspace, journal)
    entries, lines, rng = [], [], np.random.default_rng(0)
    head = ledger.head()
    previous, numbers = head.digest, len(ledger.attempts())
    for i in range(1, runs + 1):
        at = (FIRST + timedelta(days=i)).isoformat(timespec="seconds")
        made = plain | {"attempt": numbers + i, "created": at, "warnings": [f"day {i}"]}
        made["digest"] = digest = sha256_of({k: v for k, v in made.items() if k not in _OUTSIDE})
        content = json.dumps(made, indent=2).encode()
        folder = workspace.audit(digest)
        folder.path.mkdir()
        folder.evidence.write_bytes(content)
        for name in parts:
            os.link(newest.path / name, folder.path / name)
        files = hashes | {EVIDENCE: sha256_of_bytes(content)}
        entries.append(
            AuditEntry(numbers + i, digest, Result.PASS, sha256_of(i), at, "", files, "", numbers + i)
        )
        report = {"plan": "0" * 64, "candidate": sha256_of(i)}
        for line in (
            {"kind": "people", "people": 2000, "sums": rng.integers(-90, 90, SIGNS).tolist()},
            {"kind": "report", **report, "people": i},
            {"kind": "attempt", "number": numbers + i, **report, "suite": "0" * 64, "at": at},
            {"kind": "judged", "number": numbers + i, "verdict": "pass", "evidence": digest, "at": at},
        ):
            text, previous = chained(line, previous)
            lines.append(text + b"\n")
    with ledger.path.open("ab") as file:
        file.writelines(lines)
    end = Head(head.lines + len(lines), previous)
    ledger.mark.write_text(to_json(end))
    filled = Journal((*journal.audits, *entries), {"": digest}, ledger=end)
    workspace.journal.write_text(to_json(filled))
    workspace.newest_pointer.write_text(to_json(Newest(digest)))


def main() -> None:
    """Print the seconds of each way to read the workspace, of the processor and of the clock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--leave-out", nargs="*", default=[], help="ways to read that are not timed")
    given = parser.parse_args()
    os.environ["XDG_STATE_HOME"] = str(given.folder / "state")
    workspace = Workspace(given.folder / "daily")
    train, control, synthetic = (people(seed) for seed in range(3))
    suite = given.folder / "gates.json"
    plan = {"name": "daily", "audits": ["exact_match", "marginals"], "gates": str(suite.absolute())}

    def audit() -> object:
        return api.audit(train, control, synthetic, plan, out=workspace.root)

    def begin() -> None:
        new = not workspace.review.exists()
        audit()  # also of a workspace that another build has filled
        if new:
            fill(workspace, given.runs)

    def write_index() -> None:
        api.write_index([workspace.root], given.folder / "index.html")

    def write_index_without_journal() -> None:
        hidden = workspace.journal.rename(given.folder / "journal.json")
        write_index()
        hidden.rename(workspace.journal)

    given.folder.mkdir(exist_ok=True)
    suite.write_text(json.dumps({"name": "quick", "expectations": [GATE]}))
    apart(begin)
    newest = workspace.newest
    ways: dict[str, Callable[[], object]] = {
        "journal": lambda: read_journal(workspace),
        "ledger": lambda: table_ledger(workspace, None).attempts(),
        "newest": lambda: locate_newest(workspace),
        "newest evidence": lambda: newest_evidence(workspace),
        "verify": lambda: api.verify(newest.path),
        "index": write_index,
        "index, no journal": write_index_without_journal,
        "purge, dry": lambda: survey(workspace, Retention(keep=30)),
        "audit, nothing changed": audit,
    }
    for name in (n for n in ways if n not in given.leave_out):
        apart(partial(timed, name, ways[name]))


def apart(work: Callable[[], object]) -> None:
    """Work in a process of its own, which has read nothing yet."""
    process = get_context("fork").Process(target=work)
    process.start()
    process.join()


def timed(name: str, way: Callable[[], object]) -> None:
    """Print the seconds that it takes."""
    start, used = time.perf_counter(), time.process_time()
    way()
    print(f"{name}: {time.process_time() - used:.2f} s of the processor, ", end="")
    print(f"{time.perf_counter() - start:.2f} s in all", flush=True)


if __name__ == "__main__":
    main()
