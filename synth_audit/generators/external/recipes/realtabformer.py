# /// script
# requires-python = ">=3.10,<3.13"
# dependencies = [
#     "realtabformer==0.2.4", "transformers>=4.46,<5", "torch==2.13.0", "pandas>=2,<3", "pyarrow>=17"
# ]
#
# [tool.synth-audit]
# title = "REaLTabFormer: GPT-2 on rows as text, by the World Bank"
# package = "realtabformer"
# licence = "MIT"
# source = "Solatorio, Dupriez 2023"
#
# [tool.synth-audit.settings]
# epochs = 100
# batch = 32
# layers = 6
# width = 768
# heads = 12
# dropout = 0.1
# learning_rate = 5e-5
# overfitting_check = true
# bootstraps = 500
#
# [tool.synth-audit.trial]
# epochs = 2
# layers = 1
# width = 32
# heads = 2
# overfitting_check = false
# ///
"""GPT-2 that learns rows as sequences of characters, from scratch: no weights are fetched.

With ``overfitting_check`` the fit stops, as its authors have it, where samples come nearer to training rows
than held-out rows do, by a limit from ``bootstraps`` draws; without it, it learns for all of ``epochs``. What
was learnt is kept as a pickle, which only this interpreter reads back, from the private folder that it wrote
it to.
"""

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", WANDB_DISABLED="true")

import pandas as pd
from realtabformer import REaLTabFormer
from transformers.models.gpt2 import GPT2Config

FILE, STATES = "model.pkl", "states"


def fit(
    train: pd.DataFrame, columns: dict[str, Any], folder: Path, seed: int | None, settings: dict[str, Any]
) -> None:
    """Learn the rows."""
    dropped = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), settings["dropout"])
    size = GPT2Config(
        n_layer=settings["layers"], n_embd=settings["width"], n_head=settings["heads"], **dropped
    )
    made = REaLTabFormer(
        model_type="tabular",
        tabular_config=size,
        checkpoints_dir=str(folder / STATES),
        epochs=settings["epochs"],
        batch_size=settings["batch"],
        learning_rate=settings["learning_rate"],
        gradient_accumulation_steps=1,
        random_state=(seed or 0) % 2**31,
        report_to="none",
        use_cpu=True,
    )
    made.fit(
        train,
        device="cpu",
        n_critic=5 if settings["overfitting_check"] else 0,
        num_bootstrap=settings["bootstraps"],
        gen_kwargs={},
        save_full_every_epoch=0,  # it would write states that it cannot
    )
    (folder / FILE).write_bytes(pickle.dumps(made))
    shutil.rmtree(folder / STATES, ignore_errors=True)


def sample(folder: Path, rows: int, seed: int | None, settings: dict[str, Any]) -> pd.DataFrame:
    """Draw rows."""
    made = pickle.loads((folder / FILE).read_bytes())  # noqa: S301  (written by `fit` above)
    drawn: pd.DataFrame = made.sample(n_samples=rows, device="cpu", gen_batch=min(rows, 256))
    return drawn
