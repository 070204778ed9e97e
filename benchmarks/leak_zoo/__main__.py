"""The Referees' Table: which auditor sees how small a leak, by kind, with at most 5 % false alarms.

Leaks of a dozen kinds and five sizes, made from public tables, go before this tool and its peers, each in
an environment of its own and by its own documented use. Every answer is a line of a file, and what is on
file is not asked again, so the command can be stopped and given again at any time (--minutes stops it by
itself). Honest releases come first, then each leak from --start on: smaller as long as it is seen, larger
as long as it is not.

    .venv/bin/python benchmarks/leak_zoo FOLDER --out FILE
    .venv/bin/python benchmarks/leak_zoo --out FILE --show --page docs/research/referees.md
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from environments import AUDITORS, Auditor
from leaks import KINDS, PLAIN, release_of
from page import page
from referees_table import auditors_of, leaks_of, readings
from tables import ROWS, TABLES, deal

SHARES = (1.0, 0.2, 0.05, 0.01, 0.005)


class Case(NamedTuple):
    """One release before one auditor; an honest one has share 0 and the first kind of its guise."""

    auditor: str
    table: str
    kind: str
    share: float
    seed: int
    rows: int


class OutOfTime(Exception):
    """The minutes that were given are over."""


class Answers:
    """What is on file, and where new answers go."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = path.read_text().splitlines() if path.exists() else []
        self.known = {Case(**{k: row[k] for k in Case._fields}): row for row in map(json.loads, rows)}

    def add(self, case: Case, answer: dict[str, Any]) -> None:
        guise = KINDS[case.kind].guise
        row = case._asdict() | {"guise": guise, "date": f"{datetime.now(UTC):%Y-%m-%d}"} | answer
        with self.path.open("a") as out:
            out.write(json.dumps(row) + "\n")
        self.known[case] = row


def honest(chosen: argparse.Namespace, auditor: str, table: str) -> Iterator[Case]:
    """Releases of nobody in train, in every guise that a kind has: of the leaks' own deals, and of others."""
    first = {KINDS[kind].guise: kind for kind in reversed(KINDS)}
    for kind in sorted({first[KINDS[kind].guise] for kind in chosen.kinds}, key=list(KINDS).index):
        others = range(
            1_000, 1_000 + (chosen.honest if KINDS[kind].guise == PLAIN else -(-chosen.honest // 2))
        )
        for seed in (*range(chosen.seeds), *others):
            yield Case(auditor, table, kind, 0.0, seed, chosen.rows)


def ask(case: Case, auditor: Auditor, folder: Path) -> dict[str, Any]:
    """Make the release of a case and put it before the auditor."""
    people = deal(folder, case.table, case.seed, case.rows)
    dealt, release = release_of(people, case.kind, case.share, case.seed)
    with tempfile.TemporaryDirectory() as place:
        files = {}
        for role, rows in (("train", dealt.train), ("control", dealt.control), ("synthetic", release)):
            files[role] = str(Path(place) / f"{role}.parquet")
            rows.to_parquet(files[role], index=False)
        return auditor.ask(files)


def tried(case: Case, auditor: Auditor, answers: Answers, chosen: argparse.Namespace) -> dict[str, Any]:
    """The answer on file, or a new one."""
    if case not in answers.known:
        if time.monotonic() > chosen.until:
            raise OutOfTime
        start = time.monotonic()
        answers.add(case, ask(case, auditor, chosen.folder))
        row = answers.known[case]
        told = f"{row.get('error') or row['alarm']!s:>6} {time.monotonic() - start:6.1f} s"
        print(*case, told, file=sys.stderr, flush=True)
    return answers.known[case]


def search(chosen: argparse.Namespace, auditor: Auditor, answers: Answers, leak: Case) -> None:
    """Sizes of one kind from the first asked on: down while any reading sees it, up while one does not."""

    def seen(share: float) -> list[bool]:
        answer = tried(leak._replace(share=share), auditor, answers, chosen)
        return readings(answer, list(answers.known.values()))

    shares = [s for s in chosen.shares if s <= KINDS[leak.kind].largest]
    start = next((i for i, s in enumerate(shares) if s <= chosen.start), len(shares) - 1)
    first = found = seen(shares[start])
    for share in shares[start + 1 :]:
        if not any(found):
            break
        found = seen(share)
    found = first
    for share in reversed(shares[:start]):
        if all(found):
            break
        found = seen(share)


def collect(chosen: argparse.Namespace, answers: Answers) -> None:
    """Ask every auditor about every table, honest releases first."""
    for name in chosen.auditors:
        auditor = Auditor(name, chosen.environments)
        for table in chosen.tables:
            for case in honest(chosen, name, table):
                tried(case, auditor, answers, chosen)
            for kind in chosen.kinds:
                for seed in range(chosen.seeds):
                    search(chosen, auditor, answers, Case(name, table, kind, 0.0, seed, chosen.rows))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, default=Path("leak_zoo.jsonl"))
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "leak_zoo")
    parser.add_argument("--auditors", nargs="*", default=["synth_audit"], choices=AUDITORS)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--shares", nargs="*", type=float, default=list(SHARES))
    parser.add_argument("--start", type=float, default=0.05, help="the size asked first")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a whole table at most")
    parser.add_argument("--seeds", type=int, default=1, help="releases of each leak and table")
    parser.add_argument(
        "--honest", type=int, default=20, help="honest releases of each table, half as many in a guise"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--show", action="store_true", help="print the table of what is on file, ask nothing")
    parser.add_argument("--page", type=Path, help="write the table as a page of Markdown")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    answers = Answers(chosen.out)
    chosen.shares = sorted(chosen.shares, reverse=True)
    chosen.until = time.monotonic() + 60 * chosen.minutes
    if not chosen.show:
        try:
            collect(chosen, answers)
        except OutOfTime:
            print("out of time: give the command again to go on", file=sys.stderr)
    rows = list(answers.known.values())
    print("\n".join(auditors_of(rows)))
    for table in sorted({row["table"] for row in rows}):
        print("\n".join(["", table, *leaks_of([r for r in rows if r["table"] == table], chosen.kinds)]))
    if chosen.page and rows:
        chosen.page.write_text(page(rows, chosen.kinds))


if __name__ == "__main__":
    main()
