"""Clipped gradients of a critic and an autoencoder against autograd, one row at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from synth_audit.generators._deep.gan import activated, pair_losses, settled
from synth_audit.generators._deep.networks import AskedNet, Critic
from synth_audit.generators._deep.private_gradient import NORMALISER, GradientNoise, private_gradient
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.dp_auto_gan import DpAutoGan, rebuilding_losses

LAYOUT = RowLayout(numbers=(0, 1), slices=((2, 5), (5, 7)), width=7, choices=(0, 1))
ROWS = 9


def pairs():
    torch.manual_seed(0)
    critic = Critic(LAYOUT.width, 16).double()
    real, made = torch.rand(2, ROWS, LAYOUT.width, dtype=torch.float64) * 4
    kept = critic.kept(ROWS, torch.Generator().manual_seed(1)).double()
    apart = pair_losses(critic, 0.0, real, made, kept)
    with torch.no_grad():  # half of the pairs are judged too steeply
        critic.out.weight.mul_(1 / (apart.abs() / (real - made).norm(dim=1)).median())
    return critic, lambda *rows: pair_losses(critic, 50.0, *rows), (real, made, kept)


def rebuilt():
    torch.manual_seed(0)
    network = DpAutoGan(latent=2, hidden=6).autoencoder(LAYOUT).double()
    rows = torch.rand(ROWS, LAYOUT.width, dtype=torch.float64)
    return network, lambda rows: rebuilding_losses(network, LAYOUT, rows), (rows,)


def silent(clip):
    return GradientNoise(clip, 1.0, lambda scale, shape: np.zeros(shape))


@pytest.mark.parametrize("case", [pairs, rebuilt])
@pytest.mark.parametrize("clip", [0.1, 1e6])
def test_the_sum_is_that_of_rows_clipped_one_by_one(case, clip):
    network, losses, rows = case()
    expected = {name: torch.zeros_like(w) for name, w in network.named_parameters()}
    for i in range(ROWS):
        network.zero_grad()
        losses(*(x[i : i + 1] for x in rows)).sum().backward()
        own = {name: w.grad.clone() for name, w in network.named_parameters()}
        norm = math.sqrt(sum(float(g.square().sum()) for g in own.values()))
        for name, g in own.items():
            expected[name] += g * min(1.0, clip / norm)
    private_gradient(network, losses, silent(clip), *rows)
    for name, w in network.named_parameters():
        torch.testing.assert_close(w.grad * NORMALISER, expected[name], rtol=1e-4, atol=3e-5)


@pytest.mark.parametrize("case", [pairs, rebuilt])
def test_one_row_more_moves_the_sum_by_the_clipping_norm_at_most(case):
    network, losses, rows = case()
    found = []
    for first in (0, 1):
        private_gradient(network, losses, silent(0.1), *(x[first:] for x in rows))
        found.append({name: w.grad.clone() for name, w in network.named_parameters()})
    moved = math.sqrt(sum(float((g - found[1][name]).square().sum()) for name, g in found[0].items()))
    assert 0.099 < moved * NORMALISER <= 0.1 * (1 + 1e-9)


def test_a_critic_steeper_than_one_between_a_pair_is_penalised():
    critic, _, (real, made, kept) = pairs()
    apart = pair_losses(critic, 0.0, real, made, kept)
    steep = apart.abs() / (real - made).norm(dim=1)
    assert steep.min() < 0.9
    assert steep.max() > 1.1
    expected = apart + 3 * (steep - 1).clamp(min=0) ** 2
    torch.testing.assert_close(pair_losses(critic, 3.0, real, made, kept), expected)


def test_numbers_reach_the_ends_of_their_range_and_labels_stay_chances():
    scores = torch.full((200, 7), 3.0)
    made = activated(scores, LAYOUT, torch.Generator().manual_seed(0), reach=1.25)
    assert (made[:, :2] == 1).all()
    assert torch.allclose(made[:, 2:5].sum(dim=1), torch.ones(200))
    assert (activated(scores, LAYOUT, torch.Generator().manual_seed(0))[:, :2] < 1).all()
    drawn = settled(scores.numpy(), LAYOUT, np.random.default_rng(0), reach=1.25)
    assert (drawn[:, :2] > 1).all(), "beyond the end of a range ranks still differ"
    assert len(set(drawn[:, 2:5].argmax(axis=1))) == 3, "equal scores are equal chances"


def test_what_is_asked_for_is_heard():
    torch.manual_seed(0)
    network = AskedNet(4, 3, LAYOUT.width, 8, 2)
    noise = torch.randn(1, 4).expand(3, -1)
    made = network(torch.cat([noise, torch.eye(3)], dim=1))
    assert not torch.allclose(made[0], made[1])
    assert sum(w.numel() for w in AskedNet(4, 10_000, 10_000, 8, 2).parameters()) < 400_000
