# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["mostlyai-engine==2.7.3", "pyarrow>=17"]
#
# [tool.synth-audit]
# title = "TabularARGN: autoregressive network, by MOSTLY AI"
# package = "mostlyai-engine"
# licence = "Apache-2.0"
# source = "Tiwald, Krchova, Sidorenko, Vieyra, Scriminaci, Platzer 2025"
#
# [tool.synth-audit.settings]
# model = "MOSTLY_AI/Medium"
# epochs = 100
# value_protection = true
#
# [tool.synth-audit.trial]
# model = "MOSTLY_AI/Small"
# epochs = 1
# ///
"""The engine of MOSTLY AI on one table; rare labels give way to others, and extremes are cut, as it does.

The engine keeps its work in the folder it is given.
"""

from pathlib import Path
from typing import Any

import pandas as pd
from mostlyai import engine


def fit(
    train: pd.DataFrame, columns: dict[str, Any], folder: Path, seed: int | None, settings: dict[str, Any]
) -> None:
    """Learn the rows; how each column is read, the engine is told."""
    _seeded(seed)
    kinds = {
        name: "TABULAR_NUMERIC_AUTO" if column["numeric"] else "TABULAR_CATEGORICAL"
        for name, column in columns.items()
    }
    engine.split(train, model_type="TABULAR", tgt_encoding_types=kinds, workspace_dir=folder)
    engine.analyze(value_protection=settings["value_protection"], workspace_dir=folder)
    engine.encode(workspace_dir=folder)
    engine.train(model=settings["model"], max_epochs=settings["epochs"], device="cpu", workspace_dir=folder)


def sample(folder: Path, rows: int, seed: int | None, settings: dict[str, Any]) -> pd.DataFrame:
    """Draw rows."""
    _seeded(seed)
    engine.generate(
        sample_size=rows, rare_category_replacement_method="SAMPLE", device="cpu", workspace_dir=folder
    )
    return pd.read_parquet(folder / "SyntheticData")


def _seeded(seed: int | None) -> None:
    if seed is not None:
        engine.set_random_state(seed % 2**32)
