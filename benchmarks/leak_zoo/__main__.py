"""The Referees' Table: which auditor sees how small a leak, by kind, with at most 5 % false alarms.

Leaks of a dozen kinds and five sizes, made from public tables, go before this tool and its peers, each in an
environment of its own and by its own documented use. Every answer is a line of a file, and what is on file is
not asked again, so the command can be stopped and given again at any time. From the largest leak down: a size
is asked only where the one above it was seen, unless --all asks for every size.

    .venv/bin/python benchmarks/leak_zoo FOLDER --out FILE
    .venv/bin/python benchmarks/leak_zoo --out FILE --show
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from environments import AUDITORS, Auditor
from leaks import KINDS, plain, release_of
from referees_table import lines
from tables import TABLES, deal

SHARES = (1.0, 0.2, 0.05, 0.01, 0.005)


class Case(NamedTuple):
    """One release before one auditor; an honest one has share 0 and the kind whose dress it wears."""

    auditor: str
    table: str
    kind: str
    share: float
    seed: int


class Answers:
    """What is on file, and where new answers go."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = path.read_text().splitlines() if path.exists() else []
        self.known = {Case(**{k: row[k] for k in Case._fields}): row for row in map(json.loads, rows)}

    def add(self, case: Case, answer: dict[str, Any]) -> None:
        dress = KINDS[case.kind].dress.__name__
        row = case._asdict() | {"dress": dress} | answer
        with self.path.open("a") as out:
            out.write(json.dumps(row) + "\n")
        self.known[case] = row


def honest(chosen: argparse.Namespace, auditor: str) -> Iterator[Case]:
    """Fresh rows, anew for each seed; a quarter as many in every dress that a kind wears."""
    dresses = {KINDS[kind].dress: kind for kind in reversed(chosen.kinds) if not KINDS[kind].poor}
    for table in chosen.tables:
        for kind in dresses.values():
            for seed in range(chosen.honest if KINDS[kind].dress is plain else -(-chosen.honest // 4)):
                yield Case(auditor, table, kind, 0.0, 1_000 + seed)


def ask(case: Case, auditor: Auditor, folder: Path) -> dict[str, Any]:
    """Make the release of a case and put it before the auditor."""
    dealt, release = release_of(deal(folder, case.table, case.seed), case.kind, case.share, case.seed)
    with tempfile.TemporaryDirectory() as place:
        files = {}
        for role, rows in (("train", dealt.train), ("control", dealt.control), ("synthetic", release)):
            files[role] = str(Path(place) / f"{role}.parquet")
            rows.to_parquet(files[role], index=False)
        return auditor.ask(files)


def tried(case: Case, auditor: Auditor, answers: Answers, folder: Path) -> dict[str, Any]:
    """The answer on file, or a new one."""
    if case not in answers.known:
        start = time.perf_counter()
        answers.add(case, ask(case, auditor, folder))
        row = answers.known[case]
        told = f"{row.get('error') or row['alarm']!s:>6} {time.perf_counter() - start:6.1f} s"
        print(*case, told, file=sys.stderr, flush=True)
    return answers.known[case]


def descend(
    chosen: argparse.Namespace, auditor: Auditor, answers: Answers, table: str, kind: str, seed: int
) -> None:
    """Sizes of one kind from the largest that it can have, down to the first that raises no alarm."""
    for share in (s for s in chosen.shares if s <= KINDS[kind].largest):
        answer = tried(Case(auditor.name, table, kind, share, seed), auditor, answers, chosen.folder)
        if answer["alarm"] is False and not chosen.all:
            return


def main() -> None:
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
    parser.add_argument("--seeds", type=int, default=1, help="releases of each leak and table")
    parser.add_argument("--honest", type=int, default=20, help="honest releases of each table and dress")
    parser.add_argument("--all", action="store_true", help="every size, also below one that was not seen")
    parser.add_argument("--show", action="store_true", help="print the table of what is on file, ask nothing")
    chosen = parser.parse_args()
    answers = Answers(chosen.out)
    chosen.shares = sorted(chosen.shares, reverse=True)
    for name in () if chosen.show else chosen.auditors:
        auditor = Auditor(name, chosen.environments)
        for table in chosen.tables:
            for kind in chosen.kinds:
                for seed in range(chosen.seeds):
                    descend(chosen, auditor, answers, table, kind, seed)
        for case in honest(chosen, name):
            tried(case, auditor, answers, chosen.folder)
    print("\n".join(lines(list(answers.known.values()), chosen.kinds)))


if __name__ == "__main__":
    main()
