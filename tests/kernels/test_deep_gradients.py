"""Clipped and noised gradients against autograd, one row at a time, and against Opacus."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.func import functional_call

from synth_audit.kernels.deep import gradients
from synth_audit.kernels.deep.diffusion import row_loss
from synth_audit.kernels.deep.gradients import NORMALISER, GradientNoise
from synth_audit.kernels.deep.networks import ResidualNet
from synth_audit.kernels.row_layout import RowLayout

LAYOUT = RowLayout(numbers=(0, 1), slices=((2, 5), (5, 7)), width=7)
LEVELS, ROWS = 3, 9


@pytest.fixture
def case():
    torch.manual_seed(0)
    network = ResidualNet(LAYOUT.width, LAYOUT.width, 8, 2).double()
    rows = torch.rand(ROWS, LAYOUT.width, dtype=torch.float64)
    added = torch.randn(ROWS, LEVELS, LAYOUT.width, dtype=torch.float64)
    return network, {k: w.detach() for k, w in network.named_parameters()}, rows, added


def loss_of(network, target):
    return lambda weights, row, added: row_loss(network, LAYOUT, target, weights, row, added)


def one_by_one(network, target, rows, added):
    """Every row's own backward pass through the T losses, averaged."""
    found = []
    for row, noise in zip(rows, added, strict=True):
        network.zero_grad()
        losses = [
            row_loss(network, LAYOUT, target, dict(network.named_parameters()), row, z[None]) for z in noise
        ]
        (sum(losses) / LEVELS).backward()
        found.append({k: w.grad.clone() for k, w in network.named_parameters()})
    return found


@pytest.mark.parametrize("target", ["noise", "row"])
def test_the_gradient_of_all_levels_is_autograds_row_by_row(case, target):
    network, weights, rows, added = case
    made, losses = gradients.per_row_gradients(loss_of(network, target), weights, rows, added)
    assert losses.shape == (ROWS,)
    for i, expected in enumerate(one_by_one(network, target, rows, added)):
        for name, gradient in expected.items():
            torch.testing.assert_close(made[name][i], gradient, rtol=1e-6, atol=1e-9)


def test_the_gradient_of_a_linear_layer_is_what_opacus_has(case):
    from opacus import GradSampleModule

    _, _, rows, _ = case
    plain = torch.nn.Linear(LAYOUT.width, 2).double()
    weights = {k: w.detach().clone() for k, w in plain.named_parameters()}

    def loss(weights, row):
        return functional_call(plain, weights, (row[None],)).square().sum()

    made, _ = gradients.per_row_gradients(loss, weights, rows)
    hooked = GradSampleModule(plain, loss_reduction="sum")
    hooked(rows.clone().requires_grad_()).square().sum().backward()
    for name, w in hooked._module.named_parameters():
        torch.testing.assert_close(made[name], w.grad_sample, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("clip", [0.01, 0.5, 1e6])
@pytest.mark.parametrize("at_once", [1, 2**25])
def test_no_row_weighs_more_than_the_clipping_norm(case, clip, at_once, monkeypatch):
    network, weights, rows, added = case
    monkeypatch.setattr(gradients, "_AT_ONCE", at_once)
    silence = GradientNoise(clip, 1.0, lambda scale, shape: np.zeros(shape))
    made, _ = gradients.private_gradient(loss_of(network, "noise"), weights, silence, rows, added)
    expected = {k: torch.zeros_like(w) for k, w in weights.items()}
    for gradient in one_by_one(network, "noise", rows, added):
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradient.values()))
        for name, g in gradient.items():
            expected[name] += g * min(1.0, clip / norm)
    for name, g in expected.items():
        torch.testing.assert_close(made[name] * NORMALISER, g, rtol=1e-6, atol=1e-9)


def test_one_row_more_moves_the_sum_by_the_clipping_norm_at_most(case):
    """The divisor is a constant: a normaliser that counts the batch would move every other row too."""
    network, weights, rows, added = case
    silence = GradientNoise(0.1, 1.0, lambda scale, shape: np.zeros(shape))
    loss = loss_of(network, "noise")
    whole, _ = gradients.private_gradient(loss, weights, silence, rows, added)
    without, _ = gradients.private_gradient(loss, weights, silence, rows[1:], added[1:])
    moved = sum(float((whole[k] - without[k]).square().sum()) for k in weights)
    assert math.sqrt(moved) * NORMALISER <= 0.1 * (1 + 1e-9)
    assert math.sqrt(moved) * NORMALISER == pytest.approx(0.1, rel=1e-6)  # this row was clipped


def test_noise_has_the_stated_scale_and_an_empty_batch_is_noise_alone(case):
    network, weights, rows, added = case
    scales = []

    def gaussian(scale, shape):
        scales.append(scale)
        return np.full(shape, scale)

    noise = GradientNoise(0.5, 3.0, gaussian)
    made, lost = gradients.private_gradient(loss_of(network, "noise"), weights, noise, rows[:0], added[:0])
    assert math.isnan(lost)
    assert set(scales) == {1.5}
    assert len(scales) == len(weights)
    assert all(torch.allclose(g, torch.full_like(g, 1.5 / NORMALISER)) for g in made.values())


def test_without_protection_the_gradient_is_the_mean(case):
    network, weights, rows, added = case
    made, lost = gradients.plain_gradient(loss_of(network, "row"), weights, rows, added)
    each, losses = gradients.per_row_gradients(loss_of(network, "row"), weights, rows, added)
    assert lost == pytest.approx(float(losses.mean()))
    for name, g in made.items():
        torch.testing.assert_close(g, each[name].mean(dim=0), rtol=1e-6, atol=1e-9)
