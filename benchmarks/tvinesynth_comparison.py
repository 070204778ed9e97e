"""TVineSynth's comparison (figures 1, 2, 16, 17 and 26) with the generators of this tool.

The vine at its levels beside PrivBayes (ε = 0.1, 1, 5), PrivPGD (ε = 2.5, δ = 1e-5), CTGAN and TVAE, and two
yardsticks: train's rows again and columns by themselves. For each: MAB and MSE of the attribute game, gain of
the membership game, and the area that a random forest learnt from synthetic sets reaches on test rows, from
scores and, as the paper computes it, from hard labels. Everything is a line of a file and is not measured
again, so that the command can be stopped and given again; --minutes ends it after so many, between two lines.

Games are smaller than published, and networks learn for a quarter of the published epochs; --whole takes the
published sizes (days on two cores).

    .venv/bin/python benchmarks/tvinesynth_comparison.py FOLDER --out FILE --page PAGE
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from _tvinesynth_cases import CASES, Candidate, candidates, subject_of  # beside this script
from _tvinesynth_page import write

from synth_audit import registry
from synth_audit.arrays import Floats
from synth_audit.execution.context import Cache, RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.findings.measurement import Findings
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.fitting import FitRecipe, draw, fit_shared
from synth_audit.table.table import Table

Run = dict[str, Any]
Game = Mapping[str, int]

SEED = 0
PARTS = ("utility", "attribute", "membership")
PUBLISHED: dict[str, dict[str, int]] = {
    "utility": {"sets": 50},
    "attribute": {"iterations": 10, "reference": 500, "sets": 50, "rows": 500},
    "membership": {"outlying": 4, "random": 4, "achilles": 0},
}
"""Sizes as published; those of the membership game are the audit's own."""

SMALL: dict[str, dict[str, int]] = {
    "utility": {"sets": 5},
    "attribute": {"iterations": 3, "reference": 500, "sets": 50, "rows": 500},
    "membership": {
        **{"iterations": 2, "shadows": 1, "sets": 30, "evaluated": 30},
        **{"outlying": 1, "random": 1, "achilles": 0},
    },
}


def game_of(part: str, candidate: Candidate, *, whole: bool) -> dict[str, int]:
    """Sizes of what is measured; where a fit takes seconds, fewer iterations of the attribute game."""
    full = whole or (part == "attribute" and not candidate.slow)
    return dict((PUBLISHED if full else SMALL)[part])


def utility(subject: Subject, context: RunContext, sets: int) -> Run:
    """Areas of a random forest learnt from each of so many sets, from scores and from hard labels."""
    known = subject.train.released_only()
    fitted = fit_shared(FitRecipe.of(subject), known, SEED, context)
    assert subject.control is not None
    drawn = [
        draw(fitted.model, known.n_rows, known.schema, child_rng(SEED, "set", str(i))) for i in range(sets)
    ]
    areas = np.array([areas_of(made, subject.control, i) for i, made in enumerate(drawn)])
    real = np.array([areas_of(known, subject.control, i) for i in range(3)])
    names = ("scores", "labels")
    found: Run = {name: areas[:, i].tolist() for i, name in enumerate(names)}
    found |= {f"real_{name}": float(np.median(real[:, i])) for i, name in enumerate(names)}
    guarantee = fitted.guarantee
    return {**found, "spent": None if guarantee is None else guarantee.epsilon}


def areas_of(made: Table, test: Table, seed: int) -> tuple[float, float]:
    """AUROC on the test rows from scores, and from hard labels, which is the balanced accuracy."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    labels = made.labels("Y").astype(str)
    if len(set(labels)) < 2:
        return 0.5, 0.5
    names = [n for n in made.names if n != "Y"]

    def numbers(table: Table) -> Floats:
        return np.nan_to_num(np.column_stack([table.numbers(n) for n in names]))

    forest = RandomForestClassifier(100, random_state=seed).fit(numbers(made), labels == "1")
    truth, rows = test.labels("Y").astype(str) == "1", numbers(test)
    scores = forest.predict_proba(rows)[:, list(forest.classes_).index(True)]
    return float(roc_auc_score(truth, scores)), float(roc_auc_score(truth, forest.predict(rows)))


def attribute(subject: Subject, context: RunContext, game: Game) -> Run:
    """Quartiles of MAB over iterations, and what else the game says of each secret."""
    findings = registry.build("audit", "attribute_game", dict(game)).run(subject, context)
    boxes = {s.id.column: s.lines for s in findings.series if s.id.quantity == "mab"}
    mabs = {c: {k: lines[k][0] for k in lines} for c, lines in boxes.items()}
    return {
        "mab": mabs,
        "real_mab": {c: lines["median"][2] for c, lines in boxes.items()},
        "all": numbers_of(findings),
    }


def membership(subject: Subject, context: RunContext, game: Game) -> Run:
    """Medians of the gain by kind of target and feature set, and the worst of all."""
    findings = registry.build("audit", "membership_game", dict(game)).run(subject, context)
    [boxes] = [s for s in findings.series if s.id.quantity == "privacy_gain" and s.kind == "box"]
    return {"gains": dict(zip(boxes.x, boxes.lines["median"], strict=True)), "all": numbers_of(findings)}


def numbers_of(findings: Findings) -> dict[str, float]:
    return {f"{m.id.quantity}|{m.id.column}|{m.id.setting}": m.value for m in findings.measurements}


def measure(args: argparse.Namespace) -> bool:
    """One line for each table, candidate and part that is not in the file yet; True when all are there."""
    started = time.monotonic()
    done = {(r["table"], r["candidate"], r["part"]) for r in runs_in(args.out) if r["whole"] == args.whole}
    with TemporaryDirectory() as scratch:
        cache = Cache(args.fits or Path(scratch))
        for part, table in ((p, t) for p in args.parts for t in args.tables):
            names = pq.read_schema(args.folder / f"{table}_train.parquet").names
            for candidate in candidates(CASES[table], names, whole=args.whole):
                unasked = args.candidates and candidate.name not in args.candidates
                if unasked or (table, candidate.name, part) in done:
                    continue
                if time.monotonic() - started > 60 * args.minutes:
                    return False
                game = game_of(part, candidate, whole=args.whole)
                begun = time.process_time()
                subject = subject_of(args.folder, table, candidate)
                found = play(part, subject, RunContext(seed=SEED, cache=cache), game)
                head = {"table": table, "candidate": candidate.name, "part": part, "whole": args.whole}
                taken = time.process_time() - begun
                add(args.out, {**head, "cpu_s": taken, "game": game, "found": found})
    return True


def play(part: str, subject: Subject, context: RunContext, game: Game) -> Run:
    """Measure one part."""
    context = context.child("audit", part)
    if part == "utility":
        return utility(subject, context, game["sets"])
    return (attribute if part == "attribute" else membership)(subject, context, game)


def add(out: Path, run: Run) -> None:
    """Append one line, and say so."""
    with out.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(run) + "\n")
    print(f"{run['table']}: {run['candidate']}: {run['part']} ({run['cpu_s']:.0f} s CPU)", flush=True)


def runs_in(out: Path) -> list[Run]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, then write the page and its pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with the tables' _train.parquet and _test.parquet")
    parser.add_argument("--out", type=Path, required=True, help="a line for each candidate and part")
    parser.add_argument("--tables", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--candidates", nargs="+", help="of these names alone, as in the page's tables")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin nothing new after so many")
    parser.add_argument("--fits", type=Path, help="keeps the vine's fits, which its levels share")
    parser.add_argument("--whole", action="store_true", help="games and epochs as published")
    parser.add_argument("--page", type=Path, help="Markdown to write, with its pictures beside it")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    complete = measure(chosen)
    if chosen.page:
        command = "benchmarks/tvinesynth_comparison.py FOLDER --out FILE --page " + str(chosen.page)
        write([r for r in runs_in(chosen.out) if r["whole"] == chosen.whole], chosen.page, command)
    return 0 if complete else 3


if __name__ == "__main__":
    sys.exit(main())
