# /// script
# requires-python = ">=3.9,<3.12"
# dependencies = ["synthcity==0.2.12", "opacus==1.5.2", "pyarrow>=14,<22"]
#
# [tool.synth-audit]
# title = "synthcity: ARF, TabDDPM, Bayesian networks and more, by the van der Schaar lab"
# package = "synthcity"
# licence = "Apache-2.0"
# source = "Qian, Cebere, van der Schaar 2023"
#
# [tool.synth-audit.settings]
# plugin = "arf"
#
# [tool.synth-audit.trial]
# plugin = "uniform_sampler"
# ///
"""Generators of synthcity that need no settings: ``plugin`` is one of its names, such as ``arf`` or ``ddpm``.

All numbers go in as floats, since of whole ones it lists every value between the least and the greatest.
Missing values have no form of their own there: gaps in numbers are filled with the middle value, and those in
labels are a label. What was learnt is kept as a pickle, which only this interpreter reads back, from the
private folder that it wrote it to.
"""

from pathlib import Path
from typing import Any

import pandas as pd
from synthcity.plugins import Plugins
from synthcity.plugins.core.dataloader import GenericDataLoader
from synthcity.utils.reproducibility import enable_reproducible_results
from synthcity.utils.serialization import load_from_file, save_to_file

FILE = "plugin.pkl"
GAP = "(missing)"


def fit(
    train: pd.DataFrame, columns: dict[str, Any], folder: Path, seed: int | None, settings: dict[str, Any]
) -> None:
    """Learn the rows."""
    enable_reproducible_results((seed or 0) % 2**32)
    filled = {
        name: train[name].astype(float).fillna(train[name].median())
        if column["numeric"]
        else train[name].fillna(GAP)
        for name, column in columns.items()
    }
    made = Plugins().get(settings["plugin"])
    made.fit(GenericDataLoader(pd.DataFrame(filled)))
    save_to_file(folder / FILE, made)


def sample(folder: Path, rows: int, seed: int | None, settings: dict[str, Any]) -> pd.DataFrame:
    """Draw rows."""
    enable_reproducible_results((seed or 0) % 2**32)
    drawn: pd.DataFrame = load_from_file(folder / FILE).generate(count=rows).dataframe()
    return drawn.replace({GAP: None})
