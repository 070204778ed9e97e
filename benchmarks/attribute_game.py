"""The attribute game with the paper's parameters on its two data sets: every number by level, CPU seconds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from synth_audit.execution.context import Cache, RunContext
from synth_audit.findings.measurement import Measurement, MeasurementId
from synth_audit.pipeline.stages import anchored_subject
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.fitting import FitRecipe, draw, fit_shared

Found = Mapping[MeasurementId, Measurement]


@dataclass(frozen=True)
class Case:
    """A data set, its secrets, the levels of the paper's figure, and what must come out.

    Attributes:
        in_order: keep the file's order of columns, as the paper does for its simulation, instead of moving
            the secrets to the front.
        ratios: secret, level above, level below, and the least ratio of their MAB. flat: secret and the last
            level up to which it retains less than ``FLAT``.
    """

    name: str
    secrets: tuple[str, ...]
    levels: tuple[int, ...]
    in_order: bool
    ratios: tuple[tuple[str, int, int, float], ...]
    flat: tuple[tuple[str, int], ...]


FLAT = 0.2
CASES = (
    Case(
        "simulated_d20",
        ("X1", "X6", "X11"),
        tuple(range(1, 21)),
        in_order=True,
        ratios=(("X1", 20, 18, 1.3), ("X6", 16, 11, 2.0), ("X11", 2, 1, 1.1)),
        flat=(("X1", 18), ("X6", 11)),
    ),
    Case(
        "support2_small",
        ("totcst", "crea"),
        (1, 5, 10, 15, 20, 26),
        in_order=False,
        ratios=(("totcst", 20, 1, 1.3),),
        flat=(("totcst", 10),),
    ),
)


class Field:
    """One data set on which generators are played; fits are shared among levels."""

    def __init__(self, case: Case, folder: Path, cache: Cache) -> None:
        self.case, self.cache = case, cache
        paths = [folder / f"{case.name}_{part}.parquet" for part in ("train", "test")]
        self.train, self.control = (pq.read_table(path) for path in paths)
        self.columns = {"Y": {"role": "target"}} | {s: {"role": "sensitive"} for s in case.secrets}

    def vine(self, level: int) -> dict[str, Any]:
        names = [n for n in self.train.column_names if n != "Y"]
        order = {"order": names} if self.case.in_order else {}
        return {"vine": {"truncation": level, "root": "simplified"} | order}

    def play(self, generator: str | dict[str, Any], seed: int) -> Found:
        context = RunContext(seed=seed, cache=self.cache)
        settings = {
            "columns": self.columns,
            "generator": generator,
            "audits": ["attribute_game", "attribute_attack"],
            "seed": seed,
        }
        plan = parse_plan(settings)
        made = plan.build_generator()
        subject = anchored_subject(self.train, self.control, self.train, plan)
        known = subject.train.released_only()
        model = fit_shared(FitRecipe(made), known, seed, context).model
        release = draw(model, known.n_rows, known.schema, np.random.default_rng(seed))
        subject = replace(subject, synthetic=release, generator=made)
        return {
            replace(m.id, audit=name): m
            for name, audit in plan.build_audits().items()
            for m in audit.run(subject, context.child("audit", name)).measurements
        }


GAME, RELEASE = "attribute_game", "attribute_attack"
COLUMNS = (
    ("MAB", GAME, "mab"),
    ("real", GAME, "real_mab"),
    ("MR2", GAME, "mr2"),
    ("real", GAME, "real_mr2"),
    ("WCAB", GAME, "wcab"),
    ("retained in games", GAME, "retained"),
    ("by the release", RELEASE, "retained"),
)
"""Heading, audit and quantity."""


def shown(measurement: Measurement | None) -> str:
    if measurement is None:
        return "-"
    ends = measurement.interval
    return f"{measurement.value:.3f}" + (f" ({ends.low:.3f} to {ends.high:.3f})" if ends else "")


def lines(label: str, found: Found, secrets: Sequence[str], seconds: float) -> str:
    whole = ", ".join(shown(found.get(MeasurementId(audit, "retained"))) for audit in (GAME, RELEASE))
    rows = [f"  {label}: retained {whole}; {seconds:.0f} s CPU"]
    for secret in secrets:
        cells = [
            f"{heading} {shown(found.get(MeasurementId(audit, quantity, column=secret)))}"
            for heading, audit, quantity in COLUMNS
        ]
        rows.append(f"    {secret}: {', '.join(cells)}")
    return "\n".join(rows)


def measure(case: Case, folder: Path, seed: int) -> bool:
    """Print every level and whether what must come out does."""
    print(f"{case.name}: the worst that is retained, then every secret, with intervals")
    with TemporaryDirectory() as temporary:
        field = Field(case, folder, Cache(Path(temporary)))
        levels: dict[int, Found] = {}
        entries: list[tuple[str, Any]] = [("resample", "resample"), ("independent", "independent")]
        entries += [(f"level {level}", field.vine(level)) for level in case.levels]
        swept = 0.0
        for label, generator in entries:
            start = time.process_time()
            found = field.play(generator, seed)
            seconds = time.process_time() - start
            print(lines(label, found, case.secrets, seconds), flush=True)
            if isinstance(generator, dict):
                levels[int(label.split()[1])] = found
                swept += seconds
    whole = time.process_time()
    print(f"  all {len(case.levels)} levels: {swept:.0f} s CPU; the process so far: {whole:.0f} s CPU")
    return judged(case, levels)


def judged(case: Case, levels: Mapping[int, Found]) -> bool:
    held = []
    for secret, above, below, least in case.ratios:
        ratio = (
            levels[above][MeasurementId(GAME, "mab", column=secret)].value
            / levels[below][MeasurementId(GAME, "mab", column=secret)].value
        )
        held.append(ratio >= least)
        print(f"  MAB of {secret} at {above} is {ratio:.2f} times that at {below} (wanted ≥ {least})")
    for secret, last in case.flat:
        retained = MeasurementId(GAME, "retained", column=secret)
        most = max(levels[level][retained].value for level in case.levels if level <= last)
        held.append(most <= FLAT)
        print(f"  {secret} retains at most {most:.2f} in games up to level {last} (wanted ≤ {FLAT})")
    return all(held)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds <data set>_train.parquet and _test.parquet")
    parser.add_argument("--only", choices=[case.name for case in CASES])
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    cases = [case for case in CASES if chosen.only in (None, case.name)]
    held = [measure(case, chosen.folder, chosen.seed) for case in cases]
    return 0 if all(held) else 1


if __name__ == "__main__":
    raise SystemExit(main())
