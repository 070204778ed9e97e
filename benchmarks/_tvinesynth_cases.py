"""What TVineSynth's comparison compares: its tables, the generators, and the domain of private ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from synth_audit.pipeline.stages import anchored_subject
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.audit import Subject

CLINICAL = {
    **dict.fromkeys(("totcst", "totmcst", "charges"), (0, 500_000)),
    **dict.fromkeys(("surv2m", "surv6m", "prg2m"), (0, 1)),
    **dict.fromkeys(("slos", "hday", "meanbp"), (0, 180)),
    **{"crea": (0, 13), "bun": (0, 120), "age": (18, 115), "num.co": (0, 9), "scoma": (0, 100)},
    **{"sps": (0, 163), "aps": (0, 299), "dnrday": (-30, 180), "wblc": (0, 100), "hrt": (0, 200)},
    **{"resp": (0, 40), "temp": (27, 42), "pafi": (0, 500), "alb": (0, 5), "bili": (0, 21)},
    **{"sod": (120, 160), "ph": (6.9, 7.8)},
}
"""The paper's ranges (appendix M), found without the data; but the coma score runs to 100 in SUPPORT."""

BOX = (-20, 40)
"""Every column of the simulation, which says of itself what it draws."""


@dataclass(frozen=True)
class Case:
    """A table: what is secret, the vine's levels, and how the paper's authors tuned the networks.

    Attributes:
        in_order: the vine takes the columns as the file has them, as the paper does for its simulation.
    """

    secrets: tuple[str, ...]
    levels: tuple[int, ...]
    in_order: bool
    ctgan: Mapping[str, float]
    tvae: Mapping[str, int]


AS_PUBLISHED = {"pack": 10, "averaging": 0}
CASES = {
    "simulated_d20": Case(
        ("X1", "X6", "X11"),
        (1, 11, 12, 18, 20),
        in_order=True,
        ctgan={"epochs": 1000, "batch": 150, **AS_PUBLISHED},
        tvae={"epochs": 1500, "batch": 400, "latent": 2},
    ),
    "support2_small": Case(
        ("totcst", "crea"),
        (1, 5, 10, 15, 20, 26),
        in_order=False,
        ctgan={"epochs": 400, "batch": 100, **AS_PUBLISHED},
        tvae={"epochs": 800, "batch": 100, "latent": 4},
    ),
}
BUDGETS = {"PrivBayes": (0.1, 1.0, 5.0), "PrivPGD": (2.5,)}
DELTA, QUARTER = 1e-5, 4
SLOW = ("CTGAN", "TVAE", "PrivPGD")
"""A fit of these takes seconds; the attribute game about the others has the published iterations."""


@dataclass(frozen=True)
class Candidate:
    """A generator as a plan has it, and its budget."""

    name: str
    generator: dict[str, Any]
    epsilon: float | None = None

    @property
    def slow(self) -> bool:
        return self.name.split(",")[0] in SLOW


def candidates(case: Case, names: Sequence[str], *, whole: bool) -> Iterator[Candidate]:
    """Everything that is compared on a table of these columns."""
    order = {"order": [n for n in names if n != "Y"]} if case.in_order else {}
    for level in case.levels:
        settings = {"truncation": level, "root": "simplified", "criterion": "aic", **order}
        yield Candidate(f"vine, level {level}", {"vine": settings})
    for epsilon in BUDGETS["PrivBayes"]:
        yield Candidate(f"PrivBayes, ε = {epsilon:g}", {"priv_bayes": {"degree": 1, "bins": 25}}, epsilon)
    for epsilon in BUDGETS["PrivPGD"]:
        yield Candidate(f"PrivPGD, ε = {epsilon:g}", {"priv_pgd": {}}, epsilon)
    for name, plugin, tuned in (("TVAE", "tvae", case.tvae), ("CTGAN", "ctgan", case.ctgan)):
        epochs = tuned["epochs"] // (1 if whole else QUARTER)
        yield Candidate(name, {plugin: {**tuned, "epochs": epochs}})
    yield Candidate("train's rows", {"resample": {}})
    yield Candidate("columns alone", {"independent": {}})


def subject_of(folder: Path, table: str, candidate: Candidate) -> Subject:
    """Train and test rows under a plan, with the domain declared where a budget asks for it."""
    train, test = (pq.read_table(folder / f"{table}_{part}.parquet") for part in ("train", "test"))
    columns: dict[str, dict[str, Any]] = {n: {} for n in train.column_names}
    if candidate.epsilon is not None:
        bounds = CLINICAL if table == "support2_small" else dict.fromkeys(columns, BOX)
        columns = {n: {"bounds": bounds[n], "nullable": False} for n in columns if n != "Y"}
        columns["Y"] = {"kind": "categorical", "categories": ["0", "1"], "nullable": False}
        train, test = (clipped(part, bounds) for part in (train, test))
    columns["Y"] = {**columns["Y"], "kind": "categorical", "role": "target"}
    for secret in CASES[table].secrets:
        columns[secret]["role"] = "sensitive"
    settings: dict[str, Any] = {"columns": columns, "generator": candidate.generator}
    if candidate.epsilon is not None:
        delta = 0.0 if "priv_bayes" in candidate.generator else DELTA
        settings |= {"privacy": {"epsilon": candidate.epsilon, "delta": delta}, "rows": train.num_rows}
    plan = parse_plan(settings)
    subject = anchored_subject(train, test, train, plan)
    # Public tables: boxes of few games may be shown.
    return replace(subject, generator=plan.build_generator(), terms=plan.fit_terms, suppression=1)


def clipped(data: pa.Table, bounds: Mapping[str, tuple[float, float]]) -> pa.Table:
    """Numbers within the declared ranges, which a table must keep to; what is missing stays missing."""
    for name in data.column_names:
        if name in bounds and name != "Y":
            low, high = (pa.scalar(end, data[name].type) for end in bounds[name])
            above = pc.max_element_wise(data[name], low, skip_nulls=False)
            inside = pc.min_element_wise(above, high, skip_nulls=False)
            data = data.set_column(data.column_names.index(name), name, inside)
    return data
