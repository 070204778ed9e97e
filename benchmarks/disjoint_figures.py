"""Disjoint generative models: the figures of the paper beside its table 3 (`disjoint_paper.py` has that).

Studies, each smaller than the paper's by default: `validators` (its figure 7), `calibration` (8),
`thresholds` (9), `relations` (5, on made-up columns whose parts are related more and more), `seconds` and
`98 columns` (4), and `ways`: what brings the ε risk of CART with DPGAN to a quarter of CART's. What is
measured stands in a file and is not measured again: the command can be stopped and given again at any time.

    .venv/bin/python benchmarks/disjoint_figures.py FOLDER --golden FILE --out FILE --page PAGE
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _disjoint_figures_page import times_as_fast, write  # beside this script
from disjoint_paper import CART, MODELS, TABLES, joined, numbers_of, on_file, shares, sides

from synth_audit.arrays import Floats
from synth_audit.audits.fidelity._shared_cells import hellinger
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.errors import DataError
from synth_audit.execution.seeds import child_rng
from synth_audit.generators.disjoint import DisjointModel
from synth_audit.generators.disjoint.join import Joiner, Validation
from synth_audit.generators.disjoint.partition import Groups, TableAssociations, exterior_to_interior
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.generator import FitContext, Model
from synth_audit.plugins.plugin_config import build_generator
from synth_audit.stats.roc import auroc
from synth_audit.table.schema import PublicDomain, quantitative
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import Table, read_table

Row = dict[str, Any]
STARVED = 120
"""Real rows that a validator short of them learns from."""

JOINERS: dict[str, tuple[Validation, int | None]] = {
    "tuned": (Validation(), None),
    "as scikit-learn has it": (Validation(tuned=False), None),
    f"tuned on {STARVED} rows": (Validation(), STARVED),
}
"""Random forests of figures 8 and 9."""

VALIDATORS = (
    *("random_forest", "gradient_boosting", "k_nearest", "svm", "mlp"),
    *("one_class_svm", "isolation_forest"),
)
THRESHOLDS = (0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
ADMITTED, FIXED = 400, Validation(decay=0.0, rounds=15, oversampling=8.0)
"""Rows that a join with a fixed threshold is asked for, and how."""

WEIGHTS = tuple(np.linspace(0, 0.9, 10).round(3).tolist())
"""Of the factors across parts."""

DUMMY_ROWS, DUMMY_COLUMNS, RELATED = 500, 4, 0.9
WIDE_ROWS, WIDE_LABELS, WIDE_NUMBERS, WIDE_PARTS = 225, 93, 5, (1, 2, 4, 8)
"""Rows and columns of the paper's table of 98 columns, which is not at hand, and parts of its network."""


@dataclass(frozen=True)
class Data:
    """A table of the paper.

    Attributes:
        partition: names of the columns of its two parts, if the paper says which.
    """

    name: str
    train: Table
    control: Table
    partition: Mapping[str, list[str]] | None = None

    @property
    def halves(self) -> dict[str, Any]:
        """The paper's partition, or that of the strongest relations."""
        if self.partition is None:
            return {"partition": "correlated", "parts": 2}
        return {"partition": "explicit", "columns": [self.partition["part1"], self.partition["part2"]]}


def fitted(generator: Any, train: Table, seed: int, epsilon: float | None = 1.0) -> Model:
    """A model whose domain is read off train: its ε, if it has one, is the noise's alone."""
    accountant = Accountant(Budget(epsilon, 1e-5) if epsilon else None, unit=Unit.ROW)
    domain = PublicDomain.of(train.schema)
    context = FitContext(rng=child_rng(seed, "fit"), accountant=accountant, public_domain=domain)
    return build_generator(generator).fit(train, context)


def mixed(data: Data, seed: int) -> DisjointModel:
    """CART with DPGAN, joined at random: fitted once for all validators."""
    generators = [MODELS["sp"], MODELS["dp"]]
    plan = joined(generators, {**data.halves, "shares": shares("sp", "dp")})
    plan["disjoint"]["join"] = "concatenate"
    model = fitted(plan, data.train, seed)
    assert isinstance(model, DisjointModel)
    return model


def joiner_of(settings: Validation, data: Data, groups: Groups, seed: int, rows: int | None = None) -> Joiner:
    train = data.train if rows is None else data.train.take(np.arange(min(rows, data.train.n_rows)))
    return Joiner.of(settings, train, groups, seed)


def numbers(made: Table, data: Data, seed: int) -> dict[str, float]:
    return numbers_of(Subject(data.train, data.control, made), seed)


def validators(data: Data, seed: int) -> Iterator[Row]:
    """Figure 7: the same parts joined by each validator."""
    model = mixed(data, seed)
    for name in ("concatenate", *VALIDATORS):
        own = model
        if name != "concatenate":
            settings = Validation(validator=name)  # type: ignore[arg-type]  # one of its names
            own = replace(model, joiner=joiner_of(settings, data, model.groups, seed))
        made = own.sample(data.train.n_rows, child_rng(seed, "sample"))
        yield {"case": name, **numbers(made, data, seed)}


def calibration(data: Data, seed: int) -> Iterator[Row]:
    """Figure 8: what validators say of control, which they never saw, and of control joined at random."""
    groups = tuple(tuple(part) for part in (data.partition or {}).values())
    for case, (settings, rows) in JOINERS.items():
        joiner = joiner_of(settings, data, groups, seed, rows)
        parts = [design.rows(data.control) for design in joiner.designs]
        rng = child_rng(seed, "control")
        real = joiner.validator.probability(np.hstack(parts))
        shuffled = [np.hstack([p[rng.permutation(len(p))] for p in parts]) for _ in range(4)]
        apart = joiner.validator.probability(np.vstack(shuffled))
        edges = np.linspace(0, 1, 11)
        counts = {k: np.histogram(p, edges)[0].tolist() for k, p in (("real", real), ("joined", apart))}
        yield {"case": case, "auc": auroc(real, apart), "control": data.control.n_rows, **counts}


def thresholds(data: Data, seed: int) -> Iterator[Row]:
    """Figure 9: the same parts joined at fixed thresholds; a join that falls short has no numbers."""
    model = mixed(data, seed)
    for case, (settings, rows) in JOINERS.items():
        learnt = joiner_of(settings, data, model.groups, seed, rows)
        for threshold in THRESHOLDS:
            fixed = replace(learnt, settings=replace(FIXED, tuned=settings.tuned, threshold=threshold))
            row: Row = {"case": case, "x": threshold}
            try:
                made = replace(model, joiner=fixed).sample(ADMITTED, child_rng(seed, "sample"))
            except DataError:
                yield row
                continue
            yield {**row, **numbers(made, data, seed)}


def relations(seed: int) -> Iterator[Row]:
    """Figure 5: CART on parts that are related to one another more and more, by both joins."""
    for weight in WEIGHTS:
        train, control, groups = dummy(weight, seed)
        strength = TableAssociations.of(train, list(train.schema), 10).values
        ratio = exterior_to_interior(strength, np.repeat([0, 1], DUMMY_COLUMNS))
        plan = joined([CART], {"partition": "explicit", "columns": [list(g) for g in groups]})
        model = fitted(plan, train, seed, None)
        assert isinstance(model, DisjointModel)
        for case, own in (("concatenate", replace(model, joiner=None)), ("validated", model)):
            made = own.sample(train.n_rows, child_rng(seed, "sample"))
            found = numbers_of(Subject(train, control, made), seed, "prediction")
            yield {"case": case, "x": weight, "ratio": ratio, "Hellinger": distance(train, made), **found}


def dummy(weight: float, seed: int) -> tuple[Table, Table, Groups]:
    """Train, control and two parts of four normal columns: a factor inside each, one for each pair across."""
    rng = child_rng(seed, "dummy", str(weight))
    inside = np.repeat(rng.normal(size=(2 * DUMMY_ROWS, 2)), DUMMY_COLUMNS, axis=1)
    across = np.tile(rng.normal(size=(2 * DUMMY_ROWS, DUMMY_COLUMNS)), 2)
    noise = rng.normal(size=across.shape)
    x = np.sqrt(RELATED) * (np.sqrt(1 - weight) * inside + np.sqrt(weight) * across)
    x += np.sqrt(1 - RELATED) * noise
    names = [f"{part}{i}" for part in "ab" for i in range(DUMMY_COLUMNS)]
    groups = tuple(names[:DUMMY_COLUMNS]), tuple(names[DUMMY_COLUMNS:])
    rows = table_of({name: np.round(column, 3) for name, column in zip(names, x.T, strict=True)})
    train, control = rows.take(np.arange(DUMMY_ROWS)), rows.take(np.arange(DUMMY_ROWS, 2 * DUMMY_ROWS))
    return train, control, groups


def distance(train: Table, made: Table) -> float:
    """The mean over columns of Hellinger's distance, in bins of a tenth of the real rows each."""
    found = []
    for name in train.names:
        real, other = train.numbers(name), made.numbers(name)
        edges = np.quantile(real, np.linspace(0, 1, 11))[1:-1]
        p, q = (np.bincount(np.digitize(v, edges), minlength=10) / len(v) for v in (real, other))
        found.append(hellinger(p, q))
    return float(np.mean(found))


def table_of(columns: Mapping[str, Any]) -> Table:
    data = pa.table(dict(columns))
    return read_table(data, infer_schema(data, {}), where="train")


def seconds(data: Data, seed: int) -> Iterator[Row]:
    """Figure 4 (a): CPU seconds of a fit and its rows by the number of random parts."""
    for name in ("sp", "ds"):
        taken(MODELS[name], 6, data.train, seed)  # what is imported at first is no fit's
        for parts in range(1, 7):
            yield {"case": name, "x": parts, "cpu": taken(MODELS[name], parts, data.train, seed)}


def wide_seconds(seed: int) -> Iterator[Row]:
    """Figure 4 (b): the same of a Bayesian network on a made-up table of 98 columns."""
    rng = child_rng(seed, "wide")
    factors: Floats = rng.normal(size=(WIDE_ROWS, 6))
    columns: dict[str, Any] = {}
    for i in range(WIDE_LABELS + WIDE_NUMBERS):
        x = factors @ rng.normal(size=6) / np.sqrt(6) + 0.5 * rng.normal(size=WIDE_ROWS)
        labels = np.array(["a", "b", "c", "d"])[np.digitize(x, np.sort(rng.normal(size=rng.integers(1, 4))))]
        columns[f"x{i}"] = labels if i < WIDE_LABELS else np.round(x, 2)
    train = table_of(columns)
    taken(MODELS["ds"], max(WIDE_PARTS), train, seed)  # what is imported at first is no fit's
    for parts in WIDE_PARTS:
        yield {"case": "ds", "x": parts, "cpu": taken(MODELS["ds"], parts, train, seed)}


def taken(generator: Any, parts: int, train: Table, seed: int) -> float:
    """CPU seconds of this process, parts in turn."""
    if parts > 1:
        settings = {"generators": [generator], "partition": "random", "parts": parts}
        generator = {"disjoint": settings}
    start = time.process_time()
    fitted(generator, train, seed, None).sample(train.n_rows, child_rng(seed, "sample"))
    return time.process_time() - start


def ways(data: Data, seed: int) -> Iterator[Row]:
    """Other settings of CART with DPGAN, by both joins."""
    sp, dp, halves = MODELS["sp"], MODELS["dp"], data.halves
    numeric = [c.name for c in quantitative(data.train.schema)]
    labels = [name for name in data.train.names if name not in numeric]
    few, many = ({"dpgan": {"margins": 0, "steps": steps}} for steps in (50, 1000))
    cases: dict[str, tuple[Any, Any, dict[str, Any], float]] = {
        "50 steps": (sp, few, halves, 1.0),
        "1,000 steps": (sp, many, halves, 1.0),
        "ε = 0.1": (sp, dp, halves, 0.1),
        "margins of a fifth of ε": (sp, {"dpgan": {"margins": 0.2, "steps": 200}}, halves, 1.0),
        "leaves of 20, smoothed": ({"cart": {"minimum_leaf": 20}}, dp, halves, 1.0),
        "the best fiftieth admitted": (
            *(sp, dp),
            {**halves, "validation": {"share": 0.02, "oversampling": 10}},
            1.0,
        ),
        "parts by our relations": (sp, dp, {"partition": "correlated", "parts": 2}, 1.0),
        "labels by CART, numbers by DPGAN": (
            *(sp, dp),
            {"partition": "explicit", "columns": [labels, numeric]},
            1.0,
        ),
    }
    for case, (a, b, settings, epsilon) in cases.items():
        plan = joined([a, b], {**settings, "shares": shares("sp", "dp")})
        model = fitted(plan, data.train, seed, epsilon)
        assert isinstance(model, DisjointModel)
        for join, own in (("concatenate", replace(model, joiner=None)), ("validated", model)):
            made = own.sample(data.train.n_rows, child_rng(seed, "sample"))
            yield {"case": case, "join": join, **numbers(made, data, seed)}


STUDIES: dict[str, tuple[Callable[..., Iterator[Row]], tuple[str, ...]]] = {
    "validators": (validators, tuple(TABLES)),
    "calibration": (calibration, ("hepatitis",)),
    "thresholds": (thresholds, ("hepatitis",)),
    "ways": (ways, ("hepatitis",)),
    "seconds": (seconds, tuple(TABLES)),
    "relations": (relations, ("made up",)),
    "98 columns": (wide_seconds, ("made up",)),
}
"""Each with the tables that it is made on."""


def collect(chosen: argparse.Namespace) -> None:
    """Measure what is not on file yet."""
    partition = json.loads(chosen.golden.read_text())["partition"]
    known = {(row["study"], row["table"], row["repeat"]) for row in on_file(chosen.out)}
    for repeat in range(chosen.repeats):
        for study in chosen.studies:
            measure, tables = STUDIES[study]
            for name in set(tables) & {*chosen.tables, "made up"}:
                if (study, name, repeat) in known:
                    continue
                asked: tuple[Any, ...] = (repeat,)
                if name in TABLES:
                    own = partition if name == "hepatitis" else None
                    asked = (Data(name, *sides(chosen.folder, name), own), repeat)
                start, rows = time.process_time(), list(measure(*asked))
                each = (time.process_time() - start) / len(rows)
                head = {"study": study, "table": name, "repeat": repeat, "seconds": each}
                with chosen.out.open("a") as out:
                    out.writelines(json.dumps({**head, **row}) + "\n" for row in rows)
                print(study, name, repeat, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="holds the tables' train and test")
    parser.add_argument(
        "--golden", type=Path, required=True, help="the paper's figures with its partition (JSON)"
    )
    parser.add_argument("--out", type=Path, default=Path("disjoint_figures.jsonl"))
    parser.add_argument("--page", type=Path, help="write what stands behind its heading `Measured`")
    parser.add_argument("--studies", nargs="*", default=[*STUDIES], choices=[*STUDIES])
    parser.add_argument("--tables", nargs="*", default=["hepatitis", "heart"], choices=[*TABLES])
    parser.add_argument("--repeats", type=int, default=3, help="10 in the paper")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        collect(chosen)
    rows = on_file(chosen.out)
    if wide := [row for row in rows if row["study"] == "98 columns"]:
        print("\n".join(times_as_fast(wide)))
    if chosen.page:
        write(rows, chosen.page)


if __name__ == "__main__":
    main()
