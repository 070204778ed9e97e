"""TableDiffusion as its author published it, measured as the thesis measures it.

The thesis (Truda 2023) leaves open how numbers are encoded, how many levels there are and which learning
rate was chosen. These are read off the author's repository (gianlucatruda/TableDiffusion). Quantiles and
labels come from all training rows and cost no ε: this is a comparison of methods and no generator. Each try
changes one thing. The first line is of real cells permuted within their columns: αP .675 at a pMSE of 0.

pMSE is printed on two scales: its expectation counts the 13 columns of the table, as our page does, or the
indicators that labels become, as the repository does.

    .venv/bin/python benchmarks/thesis_diffusion.py FOLDER --seeds 3
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import QuantileTransformer
from table_diffusion_tables import BOUNDS, DELTA, adult, frame_of, measured  # beside this script

from synth_audit.arrays import Floats
from synth_audit.generators._deep.networks import ResidualNet
from synth_audit.generators._deep.private_gradient import GradientNoise, private_gradient


@dataclass(frozen=True)
class Try:
    """One reading of the thesis.

    Attributes:
        numbers: `quantiles` of all training rows, or `bounds` that were declared.
        scaled: subtract √β_t times what the network predicts, as printed; else what it predicts.
        raised: add 0.1 to β_t and count t from 0, as the author's code does; else as printed.
        momentum: Adam's first decay; 0.5 in the author's code.
        summed: the loss is the sum over coordinates, as printed; else their mean, as in the author's code.
    """

    name: str
    numbers: str = "quantiles"
    scaled: bool = True
    raised: bool = True
    momentum: float = 0.5
    levels: int = 5
    epochs: int = 5
    batch: int = 1024
    rate: float = 0.005
    clip: float = 1.0
    summed: bool = False


TRIES = (
    Try("the author's code"),
    Try("schedule as printed", raised=False),
    Try("what the network predicts, whole", scaled=False),
    Try("schedule as printed, whole", raised=False, scaled=False),
    Try("Adam's usual decay", momentum=0.9),
    Try("sum of squares, Adam's usual decay", momentum=0.9, summed=True),
    Try("numbers between bounds", numbers="bounds"),
    Try("numbers between bounds, as printed", numbers="bounds", raised=False),
)


def near_the_mean(vectors: Floats, groups: Sequence[Sequence[int]], rounds: int, seed: int) -> Floats:
    """Cells permuted within columns so that more rows are near the mean; margins stay as they are.

    First unusual cells are gathered in the same rows. Then pairs of rows swap a column's cell where that
    raises αP, the mean share of rows within the real rows' quantiles of the distance from the mean.

    Args:
        vectors: shape (n, width). groups: coordinates of each column.
    """
    rng, n = np.random.default_rng(seed), len(vectors)
    centre = vectors.mean(axis=0)
    parts = np.column_stack([((vectors[:, g] - centre[g]) ** 2).sum(axis=1) for g in map(list, groups)])
    radii = np.sort(parts.sum(axis=1))
    places = np.argsort(parts, axis=0, kind="stable")
    total = np.take_along_axis(parts, places, axis=0).sum(axis=1)

    def within(squares: Floats) -> Floats:
        return np.asarray(n - np.searchsorted(radii, squares, side="left"), dtype=np.float64)

    for column in rng.integers(len(groups), size=rounds):
        order = rng.permutation(n)
        a, b = order[: n // 2], order[n // 2 : n // 2 * 2]
        own = parts[places[:, column], column]
        moved = own[b] - own[a]
        better = within(total[a] + moved) + within(total[b] - moved) > within(total[a]) + within(total[b])
        a, b, moved = a[better], b[better], moved[better]
        places[a, column], places[b, column] = places[b, column], places[a, column]
        total[a], total[b] = total[a] + moved, total[b] - moved
    found = np.empty_like(vectors)
    for column, g in enumerate(map(list, groups)):
        found[:, g] = vectors[places[:, column]][:, g]
    return found


class Encoding:
    """Numbers in [0, 1] and a 0/1 coordinate for each label, and back."""

    def __init__(self, real: pd.DataFrame, numbers: str) -> None:
        self.columns = [str(c) for c in real]
        self.numbers = [c for c in real if c in BOUNDS]
        self.labels = {c: sorted(set(real[c])) for c in self.columns if c not in BOUNDS}
        self.quantiles = (
            QuantileTransformer(random_state=0).fit(real[self.numbers]) if numbers == "quantiles" else None
        )
        self.low, self.high = np.array([BOUNDS[c] for c in self.numbers], dtype=float).T

    def vectors(self, frame: pd.DataFrame) -> Floats:
        """Shape (n, width)."""
        if self.quantiles is not None:
            numbers = self.quantiles.transform(frame[self.numbers])
        else:
            numbers = (frame[self.numbers].to_numpy() - self.low) / (self.high - self.low)
        indicators = [
            (frame[c].to_numpy()[:, None] == np.array(labels)[None, :]) for c, labels in self.labels.items()
        ]
        found: Floats = np.column_stack([numbers, *indicators]).astype(np.float64)
        return found

    @property
    def groups(self) -> list[range]:
        """The coordinates of each column."""
        found, at = [range(i, i + 1) for i in range(len(self.numbers))], len(self.numbers)
        for labels in self.labels.values():
            found.append(range(at, at + len(labels)))
            at += len(labels)
        return found

    def frame(self, vectors: Floats) -> pd.DataFrame:
        """The label with the largest coordinate; numbers rounded and cut off at the ends."""
        k = len(self.numbers)
        numbers = np.clip(vectors[:, :k], 0, 1)
        if self.quantiles is not None:
            values = self.quantiles.inverse_transform(numbers)
        else:
            values = self.low + numbers * (self.high - self.low)
        found: dict[str, Any] = dict(zip(self.numbers, np.round(values).T, strict=True))
        for c, labels in self.labels.items():
            found[c] = np.array(labels, dtype=object)[vectors[:, k : k + len(labels)].argmax(axis=1)]
            k += len(labels)
        return pd.DataFrame(found)[self.columns]


def levels_of(tried: Try) -> Floats:
    """√β of each level, from little noise to much."""
    t = np.arange(tried.levels) + (0 if tried.raised else 1)
    found: Floats = np.sqrt((1 - np.cos(np.pi * t / tried.levels)) / 2 + (0.1 if tried.raised else 0))
    return found


def released(real: pd.DataFrame, tried: Try, epsilon: float, seed: int) -> pd.DataFrame:
    """Train on all rows and draw as many."""
    from opacus.accountants.utils import get_noise_multiplier  # type: ignore[import-untyped]

    encoding = Encoding(real, tried.numbers)
    data = torch.as_tensor(encoding.vectors(real), dtype=torch.float32)
    n, width = data.shape
    share = tried.batch / n
    steps = tried.epochs * round(1 / share)
    multiplier = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=DELTA, sample_rate=share, steps=steps, accountant="rdp"
    )
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    network = ResidualNet(width, width, 128, 2)
    optimiser = torch.optim.Adam(network.parameters(), lr=tried.rate, betas=(tried.momentum, 0.999))
    scales = torch.as_tensor(levels_of(tried), dtype=torch.float32)[:, None]
    noise = GradientNoise(tried.clip, multiplier, lambda scale, shape: rng.normal(scale=scale, size=shape))

    def losses(rows: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
        noised = (rows[:, None] + added).flatten(0, 1)
        return (network(noised).reshape(added.shape) - added).square().mean(dim=(1, 2)) * (
            width if tried.summed else 1
        )

    for _ in range(steps):
        batch = data[torch.as_tensor(rng.random(n) < share)]
        added = torch.randn((len(batch), tried.levels, width)) * scales
        private_gradient(network, losses, noise, batch, added)
        optimiser.step()
    with torch.no_grad():
        x = torch.randn((n, width))
        for scale in reversed(scales[:, 0]):
            x = x - network(x) * (scale if tried.scaled else 1.0)
    return encoding.frame(x.numpy().astype(np.float64))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each try and seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with adult_train.parquet and adult_control.parquet")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument(
        "--tries", nargs="*", default=[t.name for t in TRIES], choices=[t.name for t in TRIES]
    )
    chosen = parser.parse_args(arguments)
    real = frame_of(adult(chosen.folder))
    encoding = Encoding(real, "bounds")
    vectors = encoding.vectors(real)
    width = vectors.shape[1]
    arranged = encoding.frame(near_the_mean(vectors, encoding.groups, rounds=600, seed=0))
    print(json.dumps({"name": "columns arranged anew", **measured(real, arranged)}, ensure_ascii=False))
    for tried in (t for t in TRIES if t.name in chosen.tries):
        for seed in range(chosen.seeds):
            start = time.process_time()
            made = released(real, tried, chosen.epsilon, seed)
            found = measured(real, made)
            known = {name: found[name] for name in ("pMSE", "MD", "αP", "βR", "AUPRC")}
            known["pMSE, k of indicators"] = found["pMSE"] * len(real.columns) / width
            seconds = time.process_time() - start
            print(
                json.dumps({**asdict(tried), "seed": seed, **known, "cpu_s": seconds}, ensure_ascii=False),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
