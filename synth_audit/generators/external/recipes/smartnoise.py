# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["smartnoise-synth==1.0.8", "torch==2.13.0", "pyarrow>=17", "cloudpickle>=3"]
#
# [tool.synth-audit]
# title = "SmartNoise: AIM and MST, by OpenDP"
# package = "smartnoise-synth"
# licence = "MIT"
# source = "McKenna, Mullins, Sheldon, Miklau 2021, 2022"
# claims = "ε = {epsilon:g} at δ = {delta:g}"
# repeats = false
#
# [tool.synth-audit.settings]
# method = "mst"
# epsilon = 1.0
# delta = 1e-5
# bins = 20
# ///
"""Marginal-based generators of SmartNoise: ``method`` is ``mst`` or ``aim``.

Labels, gaps and ``bins`` equal parts of the bounds are set up on made-up rows that show what is declared, so
that none of it is read off the table; what is not declared is. No seed is handed over. What was learnt is
kept as a pickle, which only this interpreter reads back, from the private folder that it wrote it to.
"""

from pathlib import Path
from typing import Any

import cloudpickle
import pandas as pd
from snsynth.aim import AIMSynthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.transform import BinTransformer, LabelTransformer
from snsynth.transform.table import TableTransformer

METHODS = {"mst": MSTSynthesizer, "aim": AIMSynthesizer}
FILE = "synthesizer.pkl"


def fit(
    train: pd.DataFrame, columns: dict[str, Any], folder: Path, seed: int | None, settings: dict[str, Any]
) -> None:
    """Learn the rows within the declared domain."""
    shown, transformers = {}, []
    for name, column in columns.items():
        gaps = [None] if column["nullable"] else []
        if column["numeric"]:
            known = train[name].dropna()
            low, high = column.get("bounds") or (float(known.min()), float(known.max()))
            shown[name] = [low, high]
            cut = BinTransformer(bins=settings["bins"], lower=low, upper=high, nullable=column["nullable"])
            transformers.append(cut)
        else:
            shown[name] = [*(column.get("labels") or sorted(set(train[name].dropna()))), *gaps]
            transformers.append(LabelTransformer(nullable=column["nullable"]))
    longest = max(map(len, shown.values()))
    domain = {name: [values[k % len(values)] for k in range(longest)] for name, values in shown.items()}
    transformer = TableTransformer(transformers)
    transformer.fit(pd.DataFrame(domain, dtype=object))
    made = METHODS[settings["method"]](epsilon=settings["epsilon"], delta=settings["delta"])
    made.fit(train, transformer=transformer)
    (folder / FILE).write_bytes(cloudpickle.dumps(made))


def sample(folder: Path, rows: int, seed: int | None, settings: dict[str, Any]) -> pd.DataFrame:
    """Draw rows."""
    made = cloudpickle.loads((folder / FILE).read_bytes())
    drawn: pd.DataFrame = made.sample(rows)
    return drawn
