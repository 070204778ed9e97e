"""Clipped and noised gradients against autograd, one row at a time, and against Opacus."""

import math

import numpy as np
import pytest
import torch

from synth_audit.generators._deep import private_gradient as gradients
from synth_audit.generators._deep.diffusion import row_losses
from synth_audit.generators._deep.networks import ResidualNet
from synth_audit.generators._deep.private_gradient import (
    NORMALISER,
    GradientNoise,
    mean_gradient,
    private_gradient,
)
from synth_audit.generators._deep.transforms import RowLayout

LAYOUT = RowLayout(numbers=(0, 1), slices=((2, 5), (5, 7)), width=7)
LEVELS, ROWS = 3, 9
UNCLIPPED = GradientNoise(1e6, 1.0, lambda scale, shape: np.zeros(shape))


@pytest.fixture
def case():
    torch.manual_seed(0)
    network = ResidualNet(LAYOUT.width, LAYOUT.width, 8, 2).double()
    rows = torch.rand(ROWS, LAYOUT.width, dtype=torch.float64)
    added = torch.randn(ROWS, LEVELS, LAYOUT.width, dtype=torch.float64)
    return network, rows, added


def protected(network, target, noise, rows, added):
    """What the gradients of the weights are set to, and the loss."""

    def losses(rows, added):
        return row_losses(network, LAYOUT, target, rows, added)

    lost = private_gradient(network, losses, noise, rows, added)
    return {name: w.grad.clone() for name, w in network.named_parameters()}, lost


def one_by_one(network, target, rows, added):
    """Every row's own backward pass through the T losses, averaged."""
    found = []
    for row, noise in zip(rows, added, strict=True):
        network.zero_grad()
        losses = [row_losses(network, LAYOUT, target, row[None], z[None, None])[0] for z in noise]
        (sum(losses) / LEVELS).backward()
        found.append({k: w.grad.clone() for k, w in network.named_parameters()})
    return found


@pytest.mark.parametrize("target", ["noise", "row"])
def test_the_gradient_of_all_levels_is_autograds_row_by_row(case, target):
    network, rows, added = case
    for i, expected in enumerate(one_by_one(network, target, rows, added)):
        made, _ = protected(network, target, UNCLIPPED, rows[i : i + 1], added[i : i + 1])
        for name, gradient in expected.items():
            torch.testing.assert_close(made[name] * NORMALISER, gradient, rtol=1e-6, atol=1e-9)


def test_the_gradient_of_a_linear_layer_is_what_opacus_has(case):
    from opacus import GradSampleModule

    _, rows, _ = case
    plain = torch.nn.Linear(LAYOUT.width, 2).double()
    made = []
    for row in rows:
        private_gradient(plain, lambda x: plain(x).square().sum(dim=1), UNCLIPPED, row[None])
        made.append({name: w.grad * NORMALISER for name, w in plain.named_parameters()})
    hooked = GradSampleModule(plain, loss_reduction="sum")
    hooked(rows.clone().requires_grad_()).square().sum().backward()
    for name, w in hooked._module.named_parameters():
        found = torch.stack([gradient[name] for gradient in made])
        torch.testing.assert_close(found, w.grad_sample, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("target", ["noise", "row"])
@pytest.mark.parametrize("clip", [0.01, 0.5, 1e6])
@pytest.mark.parametrize("some", [True, False])
def test_no_row_weighs_more_than_the_clipping_norm(case, target, clip, some, monkeypatch):
    network, rows, added = case
    if some:
        monkeypatch.setattr(gradients, "_ROWS", 4)
    silence = GradientNoise(clip, 1.0, lambda scale, shape: np.zeros(shape))
    expected = {k: torch.zeros_like(w) for k, w in network.named_parameters()}
    for gradient in one_by_one(network, target, rows, added):
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradient.values()))
        for name, g in gradient.items():
            expected[name] += g * min(1.0, clip / norm)
    made, _ = protected(network, target, silence, rows, added)
    for name, g in expected.items():
        torch.testing.assert_close(
            made[name] * NORMALISER, g, rtol=1e-4, atol=1e-7
        )  # never above, a little below


def test_one_row_more_moves_the_sum_by_the_clipping_norm_at_most(case):
    """The divisor is a constant: a normaliser that counts the batch would move every other row too."""
    network, rows, added = case
    silence = GradientNoise(0.1, 1.0, lambda scale, shape: np.zeros(shape))
    whole, _ = protected(network, "noise", silence, rows, added)
    without, _ = protected(network, "noise", silence, rows[1:], added[1:])
    moved = sum(float((whole[k] - without[k]).square().sum()) for k in whole)
    assert math.sqrt(moved) * NORMALISER <= 0.1 * (1 + 1e-9)
    assert math.sqrt(moved) * NORMALISER == pytest.approx(0.1, rel=1e-4)  # this row was clipped


@pytest.mark.parametrize("odd", [math.inf, math.nan, 1e200])
def test_a_row_whose_gradient_is_no_number_moves_nothing(case, odd):
    """Times a share of 0 it would be no number still, and end the training: a row could be told by that."""
    network, rows, added = case
    silence = GradientNoise(0.1, 1.0, lambda scale, shape: np.zeros(shape))
    without, _ = protected(network, "noise", silence, rows[1:], added[1:])
    rows[0, 0] = odd
    whole, _ = protected(network, "noise", silence, rows, added)
    for name, gradient in without.items():
        torch.testing.assert_close(whole[name], gradient, rtol=1e-9, atol=1e-12)


def test_noise_has_the_stated_scale_and_an_empty_batch_is_noise_alone(case):
    network, rows, added = case
    scales = []

    def gaussian(scale, shape):
        scales.append(scale)
        return np.full(shape, scale)

    noise = GradientNoise(0.5, 3.0, gaussian)
    made, lost = protected(network, "noise", noise, rows[:0], added[:0])
    assert math.isnan(lost)
    assert set(scales) == {1.5}
    assert len(scales) == len(made)
    assert all(torch.allclose(g, torch.full_like(g, 1.5 / NORMALISER)) for g in made.values())


def test_without_protection_the_gradient_is_the_mean(case):
    network, rows, added = case

    def mean(rows, added):
        return row_losses(network, LAYOUT, "row", rows, added)

    lost = mean_gradient(network, mean, rows, added)
    assert lost == pytest.approx(mean(rows, added).mean().item())
    made = {name: w.grad.clone() for name, w in network.named_parameters()}
    each = one_by_one(network, "row", rows, added)
    for name, g in made.items():
        expected = torch.stack([gradient[name] for gradient in each]).mean(dim=0)
        torch.testing.assert_close(g, expected, rtol=1e-6, atol=1e-9)


def test_a_layer_whose_gradient_is_not_known_is_refused():
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    silence = GradientNoise(1.0, 1.0, lambda scale, shape: np.zeros(shape))
    with pytest.raises(TypeError, match="BatchNorm1d"):
        private_gradient(network, lambda x: network(x).sum(dim=1), silence, torch.ones(5, 3))


def test_a_layer_met_twice_counts_once_with_both():
    network = torch.nn.Linear(3, 3).double()
    rows = torch.rand(6, 3, dtype=torch.float64)
    silence = GradientNoise(0.2, 1.0, lambda scale, shape: np.zeros(shape))

    def losses(rows):
        return network(torch.tanh(network(rows))).square().sum(dim=1)

    expected = torch.zeros(3, 3, dtype=torch.float64)
    for row in rows:
        network.zero_grad()
        losses(row[None]).sum().backward()
        norm = math.sqrt(sum(float(w.grad.square().sum()) for w in network.parameters()))
        expected += network.weight.grad * min(1.0, 0.2 / norm)
    network.zero_grad()
    private_gradient(network, losses, silence, rows)
    torch.testing.assert_close(network.weight.grad * NORMALISER, expected, rtol=1e-4, atol=1e-7)
