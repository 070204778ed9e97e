"""A private autoencoder, and a private GAN that draws its codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from synth_audit.generators._deep import functional, gan, networks, nn, torch
from synth_audit.generators._deep.network_model import RowsToLearn, bought
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo, Part, Size, Weight


@dataclass(frozen=True, kw_only=True)
class DpAutoGan(gan.GanTraining):
    """Rows are decoded from codes, and a GAN learns which codes; its critic judges what is decoded.

    Autoencoder and critic are both trained by DP-SGD and their costs composed. The paper noises the decoder
    and leaves the encoder as it is, since it is not released; but the decoder learns from its codes, which
    one row then moves for all others. Here the gradients of both are clipped and noised together.

    Attributes:
        share: of ε for the autoencoder.
        latent: dimensions of the code.
        autoencoder_steps: bought beforehand, as those of the critic are.
        autoencoder_rate: of the autoencoder's Adam.
        penalty: weight of how much steeper than 1 the critic is between a real and a made row, squared.

    Source: Tantipongpipat et al. 2021.
    """

    share: Part = 0.3
    latent: Count = 16
    autoencoder_steps: Count = 300
    autoencoder_rate: Size = 5e-3
    penalty: Weight = 10.0
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="DP-auto-GAN",
        summary="Differentially private autoencoder with a private GAN that draws its codes.",
        cost="minutes",
        source="Tantipongpipat et al. 2021",
        trial={"steps": 3, "hidden": 8, "noise": 4, "batch": 20, "latent": 2, "autoencoder_steps": 3},
    )

    def buy(self, context: FitContext, n_rows: int, layout: RowLayout) -> tuple[Any, ...]:
        """The steps of the autoencoder, then those of the critic; both before the first is taken."""
        part, rate = context.accountant.reached(self.share), self.sampling_rate
        what = "training of the autoencoder"
        coding = bought(context, n_rows, count=self.autoencoder_steps, rate=rate, what=what, epsilon=part)
        return coding, super().buy(context, n_rows, layout)

    def teach(self, rows: RowsToLearn, bought: tuple[Any, ...]) -> Weights:
        """Train the autoencoder, then the GAN that makes its codes."""
        coding, judging = bought
        decoder = rows.bought_training("autoencoder", coding, self.clip).run(self.learn_decoder)

        def decoding() -> nn.Sequential:
            generator = self.generator(rows.layout, gan.NOT_ASKED)
            networks.with_weights(generator.decoder, decoder)
            return generator

        def play(training: Training) -> Weights:
            return gan.PrivateTraining(training, self, training.built(decoding), gan.NOT_ASKED).run()

        return rows.bought_training("train", judging, self.clip).run(play)

    def learn_decoder(self, training: Training) -> Weights:
        """Train encoder and decoder; the decoder's weights.

        Raises:
            PluginError: the loss is not a number any more.
        """
        network = training.built(lambda: self.autoencoder(training.layout))
        optimiser = torch.optim.Adam(network.parameters(), lr=self.autoencoder_rate)

        def losses(rows: torch.Tensor) -> torch.Tensor:
            return rebuilding_losses(network, training.layout, rows)

        parts = {"network": network, "optimiser": optimiser}
        for step in training.taken("autoencoder", parts, self):
            lost = training.gradient(network, losses, training.batch())
            optimiser.step()
            training.done_in_noise(step, lost, network)
        return networks.as_arrays(network.decoder)

    def autoencoder(self, layout: RowLayout) -> nn.Sequential:
        """A hidden layer on either side of the code, to the scores of what is rebuilt; each row by itself."""
        encoder = networks.perceptron(layout.width, self.hidden, self.latent).append(nn.Tanh())
        return networks.chain(encoder=encoder, decoder=self._decoder(layout))

    def generator(self, layout: RowLayout, conditions: gan.Conditions) -> nn.Sequential:
        """From noise to the scores of a row, by a code and a decoder that stays as it is."""
        codes = networks.ResidualNet(self.noise, self.latent, self.hidden, gan.BLOCKS)
        decoder = self._decoder(layout).requires_grad_(False)
        return networks.chain(codes=codes, bent=nn.Tanh(), decoder=decoder)

    def _decoder(self, layout: RowLayout) -> nn.Sequential:
        """From a code to the scores of a row."""
        return networks.perceptron(self.latent, self.hidden, layout.width)


def rebuilding_losses(network: nn.Module, layout: RowLayout, rows: torch.Tensor) -> torch.Tensor:
    """Of each row: squared error of ``reach · tanh`` of its numbers, plus cross-entropy of its labels."""
    scores, where = network(rows), list(layout.numbers)
    loss: torch.Tensor = (gan.REACH * torch.tanh(scores[:, where]) - rows[:, where]).square().sum(dim=1)
    for start, stop in layout.slices:
        chances = functional.log_softmax(scores[:, start:stop], dim=1)
        loss = loss - (chances * rows[:, start:stop]).sum(dim=1)
    return loss
