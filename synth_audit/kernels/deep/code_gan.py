"""A Wasserstein GAN of codes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from synth_audit.kernels.deep.adversarial import PENALTY, Critic, steepness
from synth_audit.kernels.deep.networks import ResidualNet
from synth_audit.kernels.deep.training import Loop, refuse_lost

_MOMENTS = 0.5, 0.9
"""Of both Adams."""

_BLOCKS = 2
"""Residual blocks of the generator."""


@dataclass(frozen=True)
class CodeGanSettings:
    """A generator of codes and its critic.

    Attributes:
        noise: dimensions of the input. hidden: width of both. steps: of the generator.
        critic_steps: for each of them. learning_rate: of both Adams.
    """

    noise: int
    hidden: int
    steps: int
    critic_steps: int
    learning_rate: float


class GeneratedCodes(nn.Module):
    """Standardised codes from a residual net, brought back to their scale."""

    def __init__(self, settings: CodeGanSettings, width: int) -> None:
        super().__init__()
        self.net = ResidualNet(settings.noise, width, settings.hidden, _BLOCKS)
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, noise) to (n, width)."""
        codes: torch.Tensor = self.centre + self.scale * self.net(x)
        return codes


def play(
    made: GeneratedCodes,
    critic: Critic,
    real: torch.Tensor,
    gan: CodeGanSettings,
    loop: Loop,
    draws: torch.Generator,
) -> None:
    """Teach the critic ``E[c(made)] − E[c(real)]`` with a gradient penalty, the generator ``−E[c(made)]``.

    Args:
        real: standardised codes, shape (n, width). loop: its last ``gan.steps`` steps are taken.

    Raises:
        PluginError: a loss is not a number any more.

    Source: Gulrajani et al. 2017.
    """
    of_made, of_critic = (
        torch.optim.Adam(network.parameters(), lr=gan.learning_rate, betas=_MOMENTS)
        for network in (made.net, critic)
    )

    def judged(codes: torch.Tensor) -> torch.Tensor:
        return critic(codes, critic.kept(len(codes), draws).to(codes.device))

    def codes(n: int) -> torch.Tensor:
        return made.net(torch.randn((n, gan.noise), generator=draws).to(real.device))

    parts = {
        "made": made,
        "critic": critic,
        "of_made": of_made,
        "of_critic": of_critic,
        "draws": draws,
    }
    steps = range(loop.steps - gan.steps, loop.steps)
    for step in loop.taken("codes", parts, gan, real, steps=steps):
        for _ in range(gan.critic_steps):
            batch = real[torch.as_tensor(loop.sample(), device=real.device)]
            with torch.no_grad():
                false = codes(len(batch))
            apart = judged(false).mean() - judged(batch).mean()
            of_critic.zero_grad()
            (apart + PENALTY * steepness(judged, batch, false, draws)).backward()
            of_critic.step()
        loss = -judged(codes(len(batch))).mean()
        of_made.zero_grad()
        loss.backward()
        of_made.step()
        lost = float(loss.detach())
        refuse_lost(lost, step + 1)
        loop.told(step + 1, lost)
