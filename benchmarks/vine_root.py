"""What a root per class buys: AUROC of a forest trained on vine releases, and MAB, by truncation level.

For each table, root and level: the median over sets drawn from one fit on the training file, tested on the
test file; and MAB, the mean |β| of the sensitive column regressed on all others, standardised, labels as
codes, over the same sets, beside its value at level 1. `--references` measures MAB as the attribute game
does instead, with a fit on each of so many samples of 500 training rows.

`--rows-per-class` asks how many rows a class needs: both roots are fitted to stratified samples of train in
which the smallest class has so many rows, and the AUROC of their releases compared sample by sample.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from synth_audit.execution.seeds import child_rng
from synth_audit.generators.vine import MIN_ROWS, Vine
from synth_audit.generators.vine import columns as column_order
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema import quantitative
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import Table, read_table

TABLES = {
    "simulated_d20": ("Y", ("X1", "X6", "X11")),
    "support2_small": ("Y", ("totcst", "crea")),
    "heart": (None, ()),
    "breast_cancer": (None, ()),
    "hepatitis": ("b_class", ("RNA EF",)),
    "adult": ("income", ("capital_gain", "marital")),
}
"""Target (None: the last column) and sensitive columns."""
KINDS = {
    "simplified": Vine(root="simplified"),
    "per_class": Vine(root="per_class"),
    "r_vine_star1": Vine(root="simplified", topology="r_vine_star1"),
    "r_vine": Vine(root="simplified", topology="r_vine"),
}
LEVELS = (1, 2, 3, 5, 8, 10, 15, 20, None)
MAX_ROWS = 5000
REFERENCE_ROWS = 500
FEW_ROWS_LEVELS = (5, None)
Floats = npt.NDArray[np.float64]


def load(folder: Path, name: str) -> tuple[Table, Table]:
    """Training and test rows, with the roles of ``TABLES``."""
    parts = ("train", "control") if name == "adult" else ("train", "test")
    data = [pq.read_table(folder / f"{name}_{part}.parquet").slice(0, MAX_ROWS) for part in parts]
    target, sensitive = TABLES[name]
    roles: dict[str, object] = {s: {"role": "sensitive"} for s in sensitive}
    roles[target or data[0].column_names[-1]] = {"role": "target", "kind": "categorical"}
    schema = infer_schema(data[0], parse_plan({"columns": roles}).columns)
    train, test = (read_table(d, schema, where="table", partial=True) for d in data)
    return train, test


def codes(table: Table, names: Sequence[str], train: Table) -> Floats:
    """Columns as numbers, shape (n, len(names)); labels by their place among those of train."""
    columns, numbers = [], {c.name for c in quantitative(table.schema)}
    for name in names:
        if name in numbers:
            columns.append(np.nan_to_num(table.numbers(name)))
            continue
        known = sorted({x for x in train.labels(name) if x is not None})
        place = {label: i for i, label in enumerate(known)}
        columns.append(np.array([place.get(x, -1) for x in table.labels(name)], dtype=float))
    return np.column_stack(columns)


def area(release: Table, test: Table, train: Table, seed: int, trees: int) -> float:
    """AUROC from scores on the test rows; of one class against the rest, averaged, with several."""
    target = train.schema.target
    assert target is not None
    names = [c.name for c in train.schema.features if c.name != target.name]
    labels = target_labels(release)
    if len(set(labels)) < 2:
        return 0.5
    forest = RandomForestClassifier(trees, random_state=seed).fit(codes(release, names, train), labels)
    scores = forest.predict_proba(codes(test, names, train))
    truth = target_labels(test)
    if len(forest.classes_) == 2:
        return float(roc_auc_score(truth == forest.classes_[1], scores[:, 1]))
    return float(np.mean([roc_auc_score(truth == c, scores[:, i]) for i, c in enumerate(forest.classes_)]))


def mean_coefficient(release: Table, secret: str, train: Table) -> float:
    """Mean |β| of the standardised secret on the other standardised columns (minimum norm, no intercept)."""
    names = [c.name for c in train.schema.features]
    values = codes(release, names, train)
    spread = values.std(axis=0, ddof=1)
    values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1)
    at = names.index(secret)
    beta = np.linalg.lstsq(np.delete(values, at, axis=1), values[:, at], rcond=None)[0]
    return float(np.abs(beta).mean())


def sweep(name: str, args: argparse.Namespace) -> None:
    """Print one line for each generator and level of a table."""
    train, test = load(args.folder, name)
    secrets = [s for s in TABLES[name][1] if s in train.names]
    real = area(train, test, train, 0, args.trees)
    print(f"\n{name}: {train.n_rows} rows × {len(train.names)}; forest trained on real rows {real:.3f}")
    for kind in args.kinds:
        floor: dict[str, float] = {}
        for level, sets in releases(train, KINDS[kind], args):
            mab = {s: float(np.mean([mean_coefficient(r, s, train) for r in sets])) for s in secrets}
            floor = floor or mab
            shown = "  ".join(f"{s} {m:.4f} (×{m / floor[s]:.2f})" for s, m in mab.items())
            areas = [area(r, test, train, k, args.trees) for k, r in enumerate(sets[: args.forests])]
            auc = f"AUROC {np.median(areas):.3f}" if areas else ""
            print(f"  {kind:12s} level {level or 'all'!s:>3s}  {auc}  {shown}", flush=True)


def releases(train: Table, generator: Vine, args: argparse.Namespace) -> list[tuple[int | None, list[Table]]]:
    """The sets drawn at each level."""
    if args.references:
        rng = child_rng(0, "references")
        picks = [rng.permutation(train.n_rows)[:REFERENCE_ROWS] for _ in range(args.references)]
        fits = [
            generator.fit(train.take(rows), FitContext(rng=child_rng(k, "fit")))
            for k, rows in enumerate(picks)
        ]
    else:
        fits = [generator.fit(train, FitContext(rng=child_rng(0, "fit")))]
    n = REFERENCE_ROWS if args.references else min(train.n_rows, args.set_rows)
    found: list[tuple[int | None, list[Table]]] = []
    for level in args.levels:
        cut = [m if level is None else m.truncated(level) for m in fits]
        if level is not None and all(c is m for c, m in zip(cut, fits, strict=True)):
            continue  # no fewer trees than all
        per_fit = -(-args.sets // len(fits))
        sets = [m.sample(n, child_rng(k, "set", str(i))) for k, m in enumerate(cut) for i in range(per_fit)]
        found.append((level, sets))
    return found


def sweep_rows(name: str, args: argparse.Namespace) -> None:
    """Print one line for each size of the smallest class and each level: what a vine per class adds."""
    train, test = load(args.folder, name)
    _, counts = np.unique(target_labels(train), return_counts=True)
    print(f"\n{name}: {train.n_rows} rows × {len(train.names)}; smallest class {counts.min()}")
    for smallest in args.rows_per_class:
        if smallest > counts.min():
            continue
        areas = np.array([few_rows(train, test, smallest, draw, args) for draw in range(args.draws)])
        for at, level in enumerate(FEW_ROWS_LEVELS):
            simplified, per_class = areas[:, at].T
            gain = per_class - simplified
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            print(
                f"  {smallest:4d} rows  level {level or 'all'!s:>3s}  simplified {simplified.mean():.3f}"
                f"  per_class {per_class.mean():.3f}  gain {gain.mean():+.3f} ± {error:.3f}"
                f"  better in {np.mean(gain > 0):.0%}",
                flush=True,
            )


def few_rows(train: Table, test: Table, smallest: int, draw: int, args: argparse.Namespace) -> Floats:
    """Mean AUROC over the sets, shape (levels, 2): simplified, per class; for one sample of train."""
    part = thinned(train, smallest, child_rng(draw, "thinned", str(smallest)))
    found = np.empty((len(FEW_ROWS_LEVELS), 2))
    for column, kind in enumerate(("simplified", "per_class")):
        model = KINDS[kind].fit(part, FitContext(rng=child_rng(draw, "fit")))
        for row, level in enumerate(FEW_ROWS_LEVELS):
            cut = model if level is None else model.truncated(level)
            sets = (cut.sample(part.n_rows, child_rng(draw, "set", str(i))) for i in range(args.sets))
            found[row, column] = np.mean([area(s, test, train, i, args.trees) for i, s in enumerate(sets)])
    return found


def thinned(train: Table, smallest: int, rng: np.random.Generator) -> Table:
    """Rows drawn so that the smallest class has ``smallest`` of them and all keep their proportions."""
    labels = target_labels(train)
    classes, counts = np.unique(labels, return_counts=True)
    sizes = np.rint(smallest * counts / counts.min()).astype(int)
    picks = [
        rng.permutation(np.flatnonzero(labels == c))[:size] for c, size in zip(classes, sizes, strict=True)
    ]
    return train.take(np.sort(np.concatenate(picks)))


def target_labels(table: Table) -> npt.NDArray[np.str_]:
    """The target as text, shape (n,)."""
    target = table.schema.target
    assert target is not None
    return table.labels(target.name).astype(str)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the shared tables are")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--sets", type=int, default=50, help="synthetic sets at each level (50)")
    parser.add_argument("--forests", type=int, default=50, help="sets of which the AUROC is taken (50)")
    parser.add_argument(
        "--set-rows", type=int, default=MAX_ROWS, help="rows of a set, at most those of train"
    )
    parser.add_argument("--trees", type=int, default=100, help="trees of a forest (100)")
    parser.add_argument("--references", type=int, default=0, help="fits on samples of 500 rows, for MAB")
    parser.add_argument(
        "--levels", nargs="+", default=LEVELS, type=lambda x: None if x == "all" else int(x), help="or `all`"
    )
    parser.add_argument("--kinds", nargs="+", default=["simplified", "per_class"], choices=list(KINDS))
    parser.add_argument(
        "--rows-per-class", nargs="+", default=(), type=int, help="rows of the smallest class"
    )
    parser.add_argument("--draws", type=int, default=8, help="samples of train with so few rows (8)")
    args = parser.parse_args()
    if args.rows_per_class:  # the minimum is what is asked for, so none may stand in the way
        column_order.MIN_CLASS_ROWS = MIN_ROWS
        column_order.ROWS_PER_COLUMN = dict.fromkeys(column_order.ROWS_PER_COLUMN, 0)
    for name in args.tables:
        (sweep_rows if args.rows_per_class else sweep)(name, args)


if __name__ == "__main__":
    main()
