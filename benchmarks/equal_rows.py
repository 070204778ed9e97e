"""How often equal rows without a key are taken for different people, where some people stand twice."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.encode.encoded import Encoded
from synth_audit.table.people import chance_equals
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

Draw: TypeAlias = Callable[[int, np.random.Generator], pa.Table]

SEEDS = 10
TWICE = (0.0, 0.02, 0.05, 0.1, 0.3, 0.99)
"""Shares of people who are in the table twice."""


def narrow(n: int, rng: np.random.Generator) -> pa.Table:
    """Three independent columns of 40, 5 and 14 values."""
    return pa.table({name: rng.integers(0, values, n) for name, values in (("a", 40), ("b", 5), ("c", 14))})


def survey(n: int, rng: np.random.Generator) -> pa.Table:
    """Six answers of 2 to 7 values that hang on one latent number, and on a group of three."""
    latent, group = rng.normal(size=n), rng.integers(0, 3, n)
    said = {"group": group}
    for place, values in enumerate((2, 5, 4, 5, 7)):
        answer = 0.8 * latent + rng.normal(size=n) + 0.5 * (group == place % 3)
        said[f"q{place}"] = np.digitize(answer, np.quantile(answer, np.arange(1, values) / values))
    return pa.table(said)


def adult(path: Path, columns: Callable[[str], bool]) -> Draw:
    """Some rows of Adult, of some columns."""
    whole = pq.read_table(path)
    chosen = whole.select([name for name in whole.column_names if columns(name)])
    return lambda n, rng: chosen.take(rng.permutation(len(chosen))[:n])


def apart(data: pa.Table) -> tuple[float, float]:
    """The share of rows with an equal, and of these the share that chance explains."""
    table = read_table(data, infer_schema(data, {}), where="source")
    (groups,) = Encoded([table], table.schema.features).groups()
    equal = np.bincount(groups)[groups] > 1
    return float(equal.mean()), float(chance_equals(table)[equal].mean()) if equal.any() else 0.0


def drawn(draw: Draw, n: int, twice: float, seed: int) -> pa.Table:
    """n rows, of whose people a share is there twice."""
    people = draw(round(n / (1 + twice)), np.random.default_rng(seed))
    return pa.concat_tables([people, people.slice(0, n - len(people))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where adult_train.parquet is")
    path = parser.parse_args().folder / "adult_train.parquet"
    answers = ("occupation", "relationship", "race", "sex", "education")
    tables = {
        "narrow": (narrow, (600, 2_400, 9_600)),
        "survey": (survey, (600, 2_400, 6_000)),
        "Adult, five columns of labels": (adult(path, answers.__contains__), (600, 2_400, 8_000)),
        "Adult without fnlwgt": (adult(path, lambda name: name != "fnlwgt"), (2_400, 8_000, 39_084)),
    }
    for name, (draw, sizes) in tables.items():
        for n in sizes:
            for twice in TWICE:
                found = [apart(drawn(draw, n, twice, seed)) for seed in range(SEEDS)]
                equal, explained = np.mean(found, axis=0)
                print(
                    f"{name}, {n:,} rows, {twice:.0%} twice: {equal:.3f} equal, {explained:.3f} of them apart"
                )


if __name__ == "__main__":
    main()
