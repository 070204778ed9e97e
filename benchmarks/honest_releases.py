"""How often does the suite that ships refuse honest releases, and does it ever pass a leak?

Every shared table is split anew per seed; releases are fresh real rows, the generators `independent` and
`vine`, and each of them with a share of copied training rows planted. One JSON line per audited release goes
to --out; --summary reads such a file, judges it by the suite of today and prints a table.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.core import registry
from synth_audit.core.context import RunContext
from synth_audit.core.generator import FitContext
from synth_audit.core.outcome import AuditOutcome
from synth_audit.core.plan import Plan
from synth_audit.core.plan_sections.known_answer import KnownAnswerSpec
from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import RandomSplit, Subject
from synth_audit.core.table import Table, read_table
from synth_audit.examination.examine import run_examination
from synth_audit.judging.judge import check_table, judge, load_suite

TABLES = {
    "heart": (["heart_train", "heart_test"], None),
    "support2": (["support2_small_train", "support2_small_test"], ["totcst", "crea"]),
    "hepatitis": (["hepatitis_train", "hepatitis_test"], None),
    "simulated": (["simulated_d20_train", "simulated_d20_test"], None),
    "breast_cancer": (["breast_cancer_train", "breast_cancer_test"], None),
    "adult": (["adult_train", "adult_control"], ["income", "capital_gain", "marital"]),
}
ROWS = 12_000
"""Adult is cut to this many rows, or a single seed would take minutes."""


def subject_of(folder: Path, name: str, kind: str, leak: float, seed: int) -> Subject:
    """Train, control and a release of the kind, with a share of its rows replaced by training rows."""
    files, sensitive = TABLES[name]
    rng = child_rng(seed, "honest", name)
    data = pa.concat_tables(
        [pq.read_table(folder / f"{f}.parquet") for f in files], promote_options="permissive"
    ).combine_chunks()
    data = data.take(rng.permutation(data.num_rows)[:ROWS])
    specs = Plan.model_validate({"columns": {c: {"role": "sensitive"} for c in sensitive or []}}).columns
    cut = np.cumsum(
        [round(data.num_rows * part) for part in ((0.44, 0.12) if kind == "fresh" else (0.8, 0.2))]
    )
    schema = infer_schema(data.slice(0, cut[0]), specs)
    train = read_table(data.slice(0, cut[0]), schema, where="train")
    control = read_table(data.slice(cut[0], cut[1] - cut[0]), schema, where="control")
    made = _release(train, data, cut, kind, seed)
    copied = round(leak * made.num_rows)
    made = pa.concat_tables([train.data.slice(0, copied), made.slice(copied)]).combine_chunks()
    release = read_table(made, schema, where="synthetic", partial=True)
    return Subject(train, control, release, random_split=RandomSplit())


def _release(train: Table, data: pa.Table, cut: np.ndarray, kind: str, seed: int) -> pa.Table:
    if kind == "fresh":
        return read_table(data.slice(cut[1]), train.schema, where="fresh").data
    generator = registry.build("generator", kind, {})
    model = generator.fit(train.released_only(), FitContext(rng=child_rng(seed, "fit", kind)))
    return model.sample(train.n_rows, child_rng(seed, "sample", kind)).data


def measure(folder: Path, name: str, kind: str, leak: float, seed: int) -> dict[str, Any]:
    subject = subject_of(folder, name, kind, leak, seed)
    audits = {
        n: registry.build("audit", n, {})
        for n, ref in registry.catalogue("audit").items()
        if ref.family == registry.PRIVACY
    }
    found = run_examination(audits, subject, KnownAnswerSpec(), RunContext(seed=seed))
    suite = load_suite("expectations/release.json", Path.cwd())
    gates = judge(suite, found.outcomes, check_table(suite, subject.synthetic))
    return {
        "table": name,
        "kind": kind,
        "leak": leak,
        "seed": seed,
        "verdict": str(gates.verdict),
        "holding": [f"{g.gate}: {g.result}" for g in gates.results if g.blocking and g.result != "pass"],
        "measurements": [_plain(o) for o in found.outcomes],
        "seconds": sum(found.seconds.values()),
    }


def _plain(outcome: AuditOutcome) -> dict[str, Any]:
    keep = ("value", "interval", "n_achieved", "n_minimum")
    return {
        "audit": outcome.audit,
        "status": str(outcome.status),
        "reason": outcome.reason,
        "numbers": [
            {"id": str(m.id), **{k: v for k, v in asdict(m).items() if k in keep}}
            for m in outcome.measurements
        ],
        "blind": [str(r.id) for r in outcome.responses if r.sensitivity == "blind"],
    }


def summarise(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for key in sorted({(r["table"], r["kind"], r["leak"]) for r in rows}):
        mine = [r for r in rows if (r["table"], r["kind"], r["leak"]) == key]
        verdicts = Counter(r["verdict"] for r in mine)
        holding = Counter(h for r in mine for h in r["holding"])
        print(*key, dict(verdicts), dict(holding.most_common(6)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("honest.jsonl"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--leaks", type=float, nargs="*", default=[0.0, 0.05])
    parser.add_argument("--summary", action="store_true")
    chosen = parser.parse_args()
    if chosen.summary:
        summarise(chosen.out)
        return
    with chosen.out.open("a") as out:
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            for name in chosen.tables:
                for kind in ("fresh", "independent", "vine"):
                    for leak in chosen.leaks:
                        found = measure(chosen.folder, name, kind, leak, seed)
                        print(name, kind, leak, seed, found["verdict"], found["holding"], file=sys.stderr)
                        out.write(json.dumps(found) + "\n")
                        out.flush()


if __name__ == "__main__":
    main()
