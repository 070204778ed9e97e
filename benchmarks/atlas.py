"""An atlas of generators: privacy against usefulness of every one that is installed, on three tables.

Two sweeps of `synth-audit frontier` for each table, over every generator of the registry but `external`:
those that spend nothing, and those that buy ε = 1. For each the verdict, both numbers with their intervals
(corrected for the number of candidates), what its fit may claim, the ε that `one_run` proves, and CPU seconds
and peak memory of making and auditing it. Finished candidates are kept: the command can be stopped and given
again. By default the audits that a verdict needs and few others, and networks of few steps; --whole takes all
defaults.

    .venv/bin/python benchmarks/atlas.py FOLDER --out FOLDER --page docs/research/atlas.md
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from synth_audit import api, registry
from synth_audit.findings.measurement import MeasurementId
from synth_audit.plan.plan import Plan
from synth_audit.report.study_pages import axis_of, dot_of, scatter_svg
from synth_audit.store.evidence import Evidence
from synth_audit.store.locate import newest_evidence
from synth_audit.store.workspace import Workspace
from synth_audit.studies.frontier import CandidateResult, FrontierRecord, Number, read_frontier

sys.path.insert(0, str(Path(__file__).parent / "leak_zoo"))

from tables import SUPPORT2

TABLES: dict[str, tuple[tuple[str, ...], list[str] | None, str, int | None]] = {
    "hepatitis": (("hepatitis_train", "hepatitis_test"), None, "b_class", None),
    "support2": (("support2_raw",), SUPPORT2, "hospdead", 2_000),
    "adult": (("adult_train", "adult_control"), None, "income", 10_000),
}
"""Files, columns if not all, target, and rows that are taken at most."""

PRIVACY, UTILITY = "membership_data_only.auc", "prediction.auroc_tstr"
FEW: tuple[Any, ...] = (
    {"membership_data_only": {"n_trees": 20}},
    {"prediction": {"models": ["random_forest"], "repeats": 1}},
    {"closest_record": {"n_bootstrap": 100}},
    "one_run",
    "marginals",
)
SMALL: dict[str, dict[str, Any]] = {
    "attention_ae": {"steps": 300},
    "attention_gan": {"steps": 300},
    "attention_vae": {"steps": 300},
    "tab_ddpm": {"steps": 1000},
    "tvae": {"epochs": 100},
    **{name: {"steps": 200} for name in ("dp_auto_gan", "dp_ctgan", "dp_wgan", "dpgan")},
}
"""Steps of networks by default."""

COPIES = "resample"
PRIVATE = (
    *("aim", "dp_auto_gan", "dp_ctgan", "dp_wgan", "dpgan", "mst", "pate_gan", "priv_bayes", "priv_pgd"),
    *("table_diffusion", "table_diffusion_denoiser"),
)
BUDGETS: dict[str, dict[str, float]] = {"free": {}, "private": {"epsilon": 1000, "per_fit": 1, "delta": 1e-5}}
"""Of all fits of a sweep together, and of each."""

PARTS = {"disjoint": {"generators": ["cart", "independent"]}}
CONTROL = 0.3
MOST_LABELS = 10
"""Distinct whole numbers that are called labels."""


def prepared(folder: Path, name: str, rows: int | None, out: Path) -> tuple[pa.Table, Path]:
    """The rows of a table as a file, the same ones each time."""
    files, columns, _, most = TABLES[name]
    data = pa.concat_tables(
        [pq.read_table(folder / f"{f}.parquet", columns=columns) for f in files], promote_options="permissive"
    )
    data = data.take(np.random.default_rng(0).permutation(len(data))[: rows or most])
    path = out / f"{name}.parquet"
    out.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path)
    return data, path


def declared(data: pa.Table, target: str) -> dict[str, dict[str, Any]]:
    """Bounds and labels as a plan would declare them; they are read off all rows here."""
    columns: dict[str, dict[str, Any]] = {}
    for name in data.column_names:
        values = data[name]
        number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        common = {"nullable": values.null_count > 0, **({"role": "target"} if name == target else {})}
        if number and name != target and len(values.unique()) > MOST_LABELS:
            ends = pc.min_max(values).as_py()
            kind = "integer" if pa.types.is_integer(values.type) else "continuous"
            columns[name] = {**common, "kind": kind, "bounds": [ends["min"], ends["max"]]}
            if kind == "continuous":
                columns[name]["precision"] = finest(values)
        else:
            labels = sorted(str(x) for x in values.unique().to_pylist() if x is not None)
            columns[name] = {**common, "kind": "categorical", "categories": labels}
    return columns


def repeated(data: pa.Table) -> bool:
    """Whether two rows are equal, which are then one person's to a guarantee."""
    return len(data.group_by(data.column_names).aggregate([])) < len(data)


def finest(values: pa.ChunkedArray) -> float:
    """The step of the last decimal digit."""
    known = [v for v in values.unique().to_pylist() if v is not None]
    digits = next(d for d in range(16) if d == 15 or all(round(v, d) == v for v in known))
    return float(f"1e-{digits}")


def plan_of(name: str, kind: str, folder: Path, chosen: argparse.Namespace) -> Plan:
    """The sweep of a table over what buys its privacy, or what does not."""
    data, path = prepared(folder, name, chosen.rows, chosen.out)
    *_, target, _ = TABLES[name]
    asked = chosen.generators or [g for g in registry.catalogue("generator") if g != "external"]
    settings = {} if chosen.whole else SMALL
    own = [g for g in asked if (g in PRIVATE) == bool(BUDGETS[kind])]
    plan: dict[str, Any] = {
        "name": name,
        "source": {"parquet": {"path": str(path.resolve())}},
        "columns": declared(data, target),
        "split": {"control": CONTROL},
        "rows": round((1 - CONTROL) * len(data)),
        "gates": "release",
        "frontier": {
            "generators": [{g: {**settings.get(g, {}), **PARTS.get(g, {})}} for g in own],
            "privacy": PRIVACY,
            "utility": UTILITY,
        },
    }
    if BUDGETS[kind]:
        plan["privacy"] = BUDGETS[kind] | ({"rows_per_entity": 1} if repeated(data) else {})
    if not chosen.whole:
        plan |= {"audits": list(FEW), "known_answer": {"max_rows": 500}}
    return Plan.model_validate(plan).located(chosen.out)


@dataclass
class Meter:
    """CPU seconds and peak memory of each candidate, from the progress of a sweep."""

    costs: Path
    table: str
    name: str = ""
    kept: bool = False
    start: float = field(default_factory=lambda: spent())

    def __call__(self, what: str, done: int, total: int) -> None:
        """Told what is under way: another candidate closes the account of the one before."""
        at = re.match(r"\d+/\d+ (.*?): (.*)", what)
        if at is None:
            return
        if at[1] != self.name:
            self.close()
            self.name, self.kept, self.start = at[1], False, spent()
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
            print(self.table, what, file=sys.stderr, flush=True)
        self.kept |= at[2] == "kept"

    def close(self) -> None:
        """Write down what the last candidate took; one that was kept took nothing."""
        if self.name and not self.kept:
            row = {"table": self.table, "name": self.name, "cpu_s": spent() - self.start, "gib": peak()}
            with self.costs.open("a") as out:
                out.write(json.dumps(row) + "\n")


def spent() -> float:
    """CPU seconds of this process and of those that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def peak() -> float:
    """The most memory since the peak was started again, in GiB."""
    [kib] = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(kib) / 2**20


def picture(name: str, records: Sequence[FrontierRecord]) -> str:
    """Privacy against usefulness, a point for each candidate; colours are verdicts.

    Copies of train lie so far away that all others would lie on one another.
    """
    every = [c for record in records for c in record.candidates if c.name != COPIES]
    dots = [d for c in every if (d := dot_of(c, c.name.split(" ")[0], chosen=False)) is not None]
    axes = axis_of(records[0].privacy), axis_of(records[0].utility)
    return scatter_svg(dots, *axes, anchor=name, title=f"{name}: privacy and usefulness")


def line(candidate: CandidateResult, workspace: Workspace, costs: dict[str, dict[str, float]]) -> str:
    """One candidate of a table."""
    cost = costs.get(candidate.name, {})
    taken = [f"{cost['cpu_s']:.0f}", f"{cost['gib']:.1f}"] if cost else ["", ""]
    if candidate.problem and candidate.privacy is None:
        return f"| `{candidate.name}` | no table | {' | ' * 4}| " + " | ".join(taken) + " |"
    evidence = newest_evidence(workspace.candidate(candidate.slug))
    assert evidence.generator is not None
    guarantee = evidence.generator.privacy.guarantee
    failed = sum(g.result == "fail" for g in candidate.gates)
    cells = [
        f"`{candidate.name}`",
        candidate.verdict + (f" ({failed})" if failed else ""),
        told(candidate.privacy),
        told(candidate.utility),
        f"{guarantee.epsilon:.3g}" if guarantee else "none",
        proven(evidence),
        *taken,
    ]
    return "| " + " | ".join(cells) + " |"


def told(number: Number | None) -> str:
    return "" if number is None else f"{number.value:.3f} ({number.low:.3f} to {number.high:.3f})"


def proven(evidence: Evidence) -> str:
    """The ε that `one_run` proves, and the most that it could have proven."""
    known = {m.id: m.value for outcome in evidence.outcomes for m in outcome.measurements}
    found, most = (
        known.get(MeasurementId("one_run", quantity)) for quantity in ("empirical_epsilon", "epsilon_ceiling")
    )
    return "" if found is None or most is None else f"{found:.2f} of {most:.2f}"


def section(name: str, chosen: argparse.Namespace) -> list[str]:
    """A table of the page with its picture."""
    places = [Workspace(chosen.out / f"{name}-{kind}") for kind in BUDGETS]
    swept = {w: read_frontier(w.frontier) for w in places if w.frontier.exists()}
    rows = [json.loads(text) for text in (chosen.out / "costs.jsonl").read_text().splitlines()]
    costs = {row["name"]: row for row in rows if row["table"] == name}
    drawn = chosen.page.with_suffix("") / f"{name}.svg"
    drawn.parent.mkdir(exist_ok=True)
    drawn.write_text(picture(name, [*swept.values()]) + "\n")
    head = ["generator", "verdict (gates failed)", "membership AUC", "AUROC", "ε claimed", "ε proven"]
    head += ["CPU s", "GiB"]
    of_each = [f"{len(r.candidates)} candidates, intervals at {r.level:.2%}" for r in swept.values()]
    real = newest_evidence(next(iter(swept)).candidate(next(iter(swept.values())).candidates[0].slug)).tables
    return [
        f"## {name}",
        "",
        f"{real['train'].rows:,} training and {real['control'].rows:,} control rows; {'; '.join(of_each)}.",
        "",
        f"![{name}: privacy and usefulness of every generator]({drawn.parent.name}/{drawn.name})",
        "",
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
        *(line(c, w, costs) for w, record in swept.items() for c in record.candidates),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds the tables")
    parser.add_argument("--out", type=Path, required=True, help="folder for workspaces, which are kept")
    parser.add_argument("--page", type=Path, help="write what stands behind the heading of each table")
    parser.add_argument("--tables", nargs="*", default=[*TABLES], choices=[*TABLES])
    parser.add_argument("--generators", nargs="*", help="all that are installed if left out")
    parser.add_argument("--rows", type=int, help="rows of a table at most")
    parser.add_argument("--whole", action="store_true", help="the whole suite, and networks as they are")
    chosen = parser.parse_args()
    for name in chosen.tables:
        for kind in BUDGETS:
            plan, meter = plan_of(name, kind, chosen.folder, chosen), Meter(chosen.out / "costs.jsonl", name)
            if plan.frontier and plan.frontier.generators:
                api.frontier(plan, chosen.out / f"{name}-{kind}", progress=meter)
                meter.close()
    if chosen.page:
        swept = [n for n in TABLES if any(chosen.out.glob(f"{n}-*/review/frontier.json"))]
        before = chosen.page.read_text().split("\n## ")[0].rstrip("\n") if chosen.page.exists() else "# Atlas"
        sections = [text for name in swept for text in section(name, chosen)]
        chosen.page.write_text("\n".join([before, "", *sections]))


if __name__ == "__main__":
    main()
