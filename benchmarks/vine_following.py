"""How closely a vine per class follows its few people, beside the simplified one, and of what use it is.

AUC of `membership_data_only` (0.5 where training people cannot be told from control people), and the AUROC on
control people of a forest trained on the release; means over draws of train and of up to 600 control people.

    .venv/bin/python benchmarks/vine_following.py FOLDER --tables tumours heart --draws 7
"""

from __future__ import annotations

import argparse
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from _releases_to_judge import subject_of
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import Salt, child_rng
from synth_audit.pipeline.stages import MADE_ELSEWHERE, examine
from synth_audit.plan.plan import Plan
from synth_audit.plugins.generator import FitContext
from synth_audit.registry import build

sys.path.insert(0, str(Path(__file__).parent / "leak_zoo"))
import tables

TABLES = {
    "tumours": ("target", 398),
    "heart": ("target", 200),
    "support2_small": ("Y", 500),
    "adult": ("income", 500),
    "hepatitis": ("b_class", 696),
    "simulated_d20": ("Y", 300),
}
"""Target, of two classes, and people of train; the tumours are those of the demo, from scikit-learn."""

STRANGERS = 600
AUDIT = "membership_data_only"
AUC = f"{AUDIT}.auc"


def whole(folder: Path, name: str) -> pd.DataFrame:
    """All people of a table, the target as text."""
    if name == "tumours":
        rows: pd.DataFrame = load_breast_cancer(as_frame=True).frame
    else:
        parts = ("train",) if name == "adult" else ("train", "test")
        rows = pd.concat([pd.read_parquet(folder / f"{name}_{part}.parquet") for part in parts])
    return rows.astype({TABLES[name][0]: str})


def measured(rows: pd.DataFrame, name: str, root: str, draw: int) -> tuple[float, float]:
    """The AUC of the attack on one release, and the AUROC of what is learnt from it."""
    target, n = TABLES[name]
    order = np.random.default_rng(draw).permutation(len(rows))
    train, control = (
        rows.iloc[part].reset_index(drop=True) for part in (order[:n], order[n : n + STRANGERS])
    )
    plan = Plan.model_validate(
        {"name": name, "seed": draw, "columns": {target: {"kind": "categorical", "role": "target"}}}
    )
    dealt = tables.Dealt(train, control, control)
    context = FitContext(rng=child_rng(draw, "fit"))
    model = build("generator", "vine", {"root": root}).fit(subject_of(dealt, control, plan).train, context)
    release = model.sample(n, child_rng(draw, "sample")).data
    salt = Salt(sha256(f"{name} {draw}".encode()).digest())
    audits = {AUDIT: build("audit", AUDIT, {})}
    subject = subject_of(dealt, release, plan)
    evidence = examine(plan, subject, MADE_ELSEWHERE, RunContext(), salt, draws=salt, audits=audits).evidence
    found = {str(m.id): m.value for o in evidence.outcomes for m in o.measurements}
    return found[AUC], usefulness(release.to_pandas(), control, target)


def usefulness(release: pd.DataFrame, strangers: pd.DataFrame, target: str) -> float:
    """AUROC on control people of a forest trained on the release."""
    both = pd.concat([release.astype(strangers.dtypes.to_dict()), strangers])
    inputs = pd.get_dummies(both.drop(columns=target), dtype=float).fillna(-1)
    n = len(release)
    forest = RandomForestClassifier(100, random_state=0).fit(inputs[:n], both[target][:n])
    return float(roc_auc_score(strangers[target], forest.predict_proba(inputs[n:])[:, 1]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the shared tables are")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--draws", type=int, default=7, help="of train and control (7)")
    args = parser.parse_args()
    for name in args.tables:
        rows = whole(args.folder, name)
        print(f"\n{name}: {TABLES[name][1]} people × {rows.shape[1]} columns")
        for root in ("per_class", "simplified"):
            each = np.array([measured(rows, name, root, draw) for draw in range(args.draws)])
            auc, auroc = each.mean(axis=0)
            print(f"  {root:10s}  AUC {auc:.3f}  AUROC {auroc:.3f}", flush=True)


if __name__ == "__main__":
    main()
