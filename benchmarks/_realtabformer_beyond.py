"""Trains REaLTabFormer far beyond its least loss on rows that it does not learn from.

It runs under the Python of the recipe, and is handed a folder with ``train.parquet`` and
``validation.parquet``, and settings as JSON. It leaves releases, named by the ratio of the loss on validation
rows to its least, and ``training.json`` there.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", WANDB_DISABLED="true")

import pandas as pd
import torch
from realtabformer import REaLTabFormer
from transformers.models.gpt2 import GPT2Config


def encoded(made: Any, train: pd.DataFrame, held: pd.DataFrame) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens of both, shape (rows, length): its vocabulary is that of all rows, its network has seen none."""
    made._fit_tabular(pd.concat([train, held], ignore_index=True), device="cpu")
    ids = torch.tensor(made.dataset["train_dataset"]["input_ids"])
    del made.dataset
    return ids[: len(train)], ids[len(train) :]


def beyond(
    network: Any, rows: torch.Tensor, held: torch.Tensor, told: dict[str, Any]
) -> tuple[list[tuple[int, float, float]], dict[float, tuple[int, Any]]]:
    """Losses at each look, and step and weights where the loss on held rows had risen to each ratio first."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=told["rate"], weight_decay=0.0)
    losses: list[tuple[int, float, float]] = []
    kept: dict[float, tuple[int, Any]] = {}
    least = float("inf")
    for step in range(1, told["steps"] + 1):
        network.train()
        batch = rows[torch.randint(len(rows), (told["batch"],))]
        loss = network(batch, labels=batch).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % told["every"]:
            continue
        losses.append((step, mean_loss(network, rows), mean_loss(network, held)))
        looks = [unseen for _, _, unseen in losses[-told["looks"] :]]
        averaged = sum(looks) / len(looks)
        if averaged < least:
            least, kept = averaged, {}
        for ratio in told["ratios"]:
            if ratio not in kept and averaged >= ratio * least:
                kept[ratio] = step, copy.deepcopy(network.state_dict())
        if told["ratios"][-1] in kept:
            break
    return losses, kept


def mean_loss(network: Any, rows: torch.Tensor) -> float:
    """Mean cross entropy of a token."""
    network.eval()
    with torch.no_grad():
        return float(network(rows, labels=rows).loss)


def main(folder: Path, told: dict[str, Any]) -> None:
    torch.manual_seed(told["seed"])
    train, held = (pd.read_parquet(folder / f"{side}.parquet") for side in ("train", "validation"))
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), told["dropout"])
    size = GPT2Config(n_layer=told["layers"], n_embd=told["width"], n_head=told["heads"], **rates)
    made = REaLTabFormer(
        model_type="tabular",
        tabular_config=size,
        checkpoints_dir=str(folder / "states"),
        random_state=told["seed"],
        report_to="none",
        use_cpu=True,
    )
    rows, unseen = encoded(made, train, held)
    torch.manual_seed(told["seed"])
    losses, kept = beyond(made.model, rows, unseen, told)
    for ratio, (_, weights) in kept.items():
        made.model.load_state_dict(weights)
        made.model.eval()
        drawn = made.sample(n_samples=len(train), device="cpu", gen_batch=256)
        drawn.to_parquet(folder / f"release_{ratio:.1f}.parquet", index=False)
    releases = {f"{ratio:g}": step for ratio, (step, _) in kept.items()}
    (folder / "training.json").write_text(json.dumps({"losses": losses, "releases": releases}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
