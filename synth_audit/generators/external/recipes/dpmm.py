# /// script
# requires-python = ">=3.10,<3.12"
# dependencies = ["dpmm==0.1.9", "pyarrow>=17,<22"]
#
# [tool.synth-audit]
# title = "dpmm: noisy tables of counts, by SAS"
# package = "dpmm"
# licence = "Apache-2.0"
# source = "Mahiou, Dizche, Nazari, Wu, Abbey, Silva, Ganev 2025"
# claims = "ε = {epsilon:g} at δ = {delta:g}, but for which columns are constant or have gaps"
# repeats = false
#
# [tool.synth-audit.settings]
# method = "mst"
# epsilon = 1.0
# delta = 1e-5
# bins = 20
# iterations = 2500
#
# [tool.synth-audit.trial]
# method = "privbayes"
# iterations = 200
# ///
"""Marginal-based generators of dpmm: ``method`` is ``mst``, ``aim`` or ``privbayes``.

Numbers are cut into ``bins`` equal parts of the declared bounds, so that all of ε buys tables of counts.
Which columns are constant, and which have missing values, dpmm 0.1.9 reads off the rows without noise. No
seed is handed over: its noise would follow from it.
"""

from pathlib import Path
from typing import Any

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

METHODS = {"mst": MSTPipeline, "aim": AIMPipeline, "privbayes": PrivBayesPipeline}


def fit(
    train: pd.DataFrame, columns: dict[str, Any], folder: Path, seed: int | None, settings: dict[str, Any]
) -> None:
    """Learn the rows within the declared domain."""
    pipeline = METHODS[settings["method"]](
        epsilon=settings["epsilon"],
        delta=settings["delta"],
        binner_type="uniform",
        proc_epsilon=None,
        n_bins=settings["bins"],
        n_jobs=1,
        gen_kwargs={"n_iters": settings["iterations"]},
    )
    labels = [name for name, column in columns.items() if not column["numeric"]]
    pipeline.fit(train.astype(dict.fromkeys(labels, "category")), _domain(columns))
    pipeline.store(folder)


def sample(folder: Path, rows: int, seed: int | None, settings: dict[str, Any]) -> pd.DataFrame:
    """Draw rows."""
    made: pd.DataFrame = METHODS[settings["method"]].load(folder).generate(n_records=rows)
    return made


def _domain(columns: dict[str, Any]) -> dict[str, Any]:
    domain: dict[str, Any] = {}
    for name, column in columns.items():
        if bounds := column.get("bounds"):
            domain[name] = {"lower": bounds[0], "upper": bounds[1]}
        elif labels := column.get("labels"):
            domain[name] = {"categories": labels}
    return domain
