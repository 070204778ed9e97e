"""Generators by attention over the columns of a row and the rows of a batch: settings, encoder, heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Floats32
from synth_audit.errors import PlanError
from synth_audit.generators._deep import networks, torch
from synth_audit.generators._deep.network_model import OfNumbers, OpenNetwork
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import QuantileTransform, RowLayout, Weights
from synth_audit.plugins.generator import Count, Size

_CODES, _HEADS = "codes.", "heads."
"""What weights of a model begin with: of what makes codes, and of the heads that turn them into rows."""


@dataclass(frozen=True, kw_only=True)
class AttentionTraining(OpenNetwork):
    """How encoder and heads are built and trained.

    Attributes:
        steps: gradient steps of encoder and heads.
        batch: rows of a step, which attend to one another.
        width: dimensions of a column's token, and of the code of a row.
        heads: of attention; a divisor of ``width``.
        hidden: width of all perceptrons, of which each column has one that rebuilds it.
        mixtures: normal densities k that tell of a number, by 3 k outputs.
        labels_weight, numbers_weight: α and β of the loss.
        learning_rate: of Adam at first; it falls to 0 on a straight line.
    """

    steps: Count = 1500
    batch: Count = 128
    width: Count = 32
    heads: Count = 4
    hidden: Count = 64
    mixtures: Count = 5
    labels_weight: Size = 1.0
    numbers_weight: Size = 1.0
    learning_rate: Size = 2e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise PlanError(
                f"{self.width} dimensions cannot be shared by {self.heads} heads",
                where="generator.heads",
                expected="a divisor of width",
            )

    def of_numbers(self, rng: np.random.Generator) -> OfNumbers:
        """Standard normal by their ranks."""
        return QuantileTransform.of

    def autoencoder(self, training: Training) -> networks.AttentionAutoencoder:
        """Encoder and heads, trained by the first steps and frozen.

        Raises:
            PluginError: the loss is not a number any more.

        Source: Truda 2023, section 4.3.1.
        """
        network = training.built(lambda: networks.AttentionAutoencoder(training.layout, self))
        training.descend(network, network.losses, self.learning_rate, self, steps=range(self.steps))
        network.eval().requires_grad_(False)
        return network

    def drawn(
        self,
        codes: Callable[[torch.Tensor], torch.Tensor],
        inputs: int,
        weights: Weights,
        layout: RowLayout,
        n: int,
        rng: np.random.Generator,
    ) -> Floats32:
        """``n`` row vectors, by the heads of a model, of codes that are made of so many inputs."""
        network = networks.with_weights(networks.ColumnHeads(layout, self), named(weights, _HEADS))
        told = networks.drawn_in_blocks(lambda x: network(codes(x)), n, inputs, rng)
        return network.drawn(told, rng)


def codes_of_rows(network: networks.AttentionAutoencoder, training: Training) -> torch.Tensor:
    """Codes of rows among others of train, as in training; shape (n, width)."""
    n, size = len(training.rows), len(training.sample())
    order = np.array_split(training.rng.permutation(n), max(1, n // size))
    with torch.no_grad():
        return torch.cat([network.encoder(training.rows[torch.as_tensor(some)]) for some in order])


def kept_weights(codes: Weights, network: networks.AttentionAutoencoder) -> Weights:
    """The weights of a model: of what makes codes, and of the heads. The encoder is no part of it."""
    parts = ((_CODES, codes), (_HEADS, networks.as_arrays(network.heads)))
    return {start + name: array for start, weights in parts for name, array in weights.items()}


def named(weights: Weights, start: str = _CODES) -> Weights:
    """The weights whose names begin so, without that."""
    return {name.removeprefix(start): w for name, w in weights.items() if name.startswith(start)}
