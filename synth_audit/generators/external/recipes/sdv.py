# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["sdv==2.0.0", "torch==2.13.0", "pyarrow>=17"]
#
# [tool.synth-audit]
# title = "SDV: Gaussian copula, CTGAN, TVAE, CopulaGAN, by DataCebo"
# package = "sdv"
# licence = "BUSL-1.1"
# terms = "SDV is source-available, not open source: read its licence before production use"
# source = "Patki, Wedge, Veeramachaneni 2016"
#
# [tool.synth-audit.settings]
# synthesizer = "gaussian_copula"
# epochs = 300
#
# [tool.synth-audit.trial]
# epochs = 1
# ///
"""Single-table synthesizers of SDV: ``gaussian_copula``, ``ctgan``, ``tvae`` or ``copula_gan``.

``epochs`` is for the three networks. SDV keeps what it learnt as a pickle, which only its own interpreter
reads back, from the private folder that it wrote it to.
"""

from pathlib import Path
from typing import Any

import pandas as pd
from sdv import single_table
from sdv.metadata import Metadata
from sdv.utils import load_synthesizer

NETWORKS = {
    "ctgan": single_table.CTGANSynthesizer,
    "tvae": single_table.TVAESynthesizer,
    "copula_gan": single_table.CopulaGANSynthesizer,
}
FILE = "synthesizer.pkl"
TABLE = "table"


def fit(
    train: pd.DataFrame, columns: dict[str, Any], folder: Path, seed: int | None, settings: dict[str, Any]
) -> None:
    """Learn the rows; what each column is, SDV is told."""
    kinds = {n: {"sdtype": "numerical" if c["numeric"] else "categorical"} for n, c in columns.items()}
    metadata = Metadata.load_from_dict({"tables": {TABLE: {"columns": kinds}}})
    name = settings["synthesizer"]
    if name == "gaussian_copula":
        made = single_table.GaussianCopulaSynthesizer(metadata)
    else:
        made = NETWORKS[name](metadata, epochs=settings["epochs"])
    made.fit({TABLE: train})
    made.save(str(folder / FILE))


def sample(folder: Path, rows: int, seed: int | None, settings: dict[str, Any]) -> pd.DataFrame:
    """Draw rows."""
    made = load_synthesizer(str(folder / FILE))
    drawn = made.sample(rows)
    table: pd.DataFrame = drawn[TABLE] if isinstance(drawn, dict) else drawn
    return table
