"""Clipped and noised gradients against autograd, one row at a time, and against Opacus."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.func import functional_call

from synth_audit.kernels.deep import gradients, layer_gradients
from synth_audit.kernels.deep.diffusion import row_losses
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
    def of_one(weights, row, added):
        def weighed(x):
            return functional_call(network, dict(weights), (x,))

        return row_losses(weighed, LAYOUT, target, row[None], added[None])[0]

    return of_one


def by_layers(network, target, noise, rows, added):
    """What the gradients of the weights are set to, and the loss."""

    def losses(rows, added):
        return row_losses(network, LAYOUT, target, rows, added)

    lost = layer_gradients.private_gradient(network, losses, noise, rows, added)
    return {name: w.grad for name, w in network.named_parameters()}, lost


def by_rows(network, target, noise, rows, added):
    weights = {k: w.detach() for k, w in network.named_parameters()}
    return gradients.private_gradient(loss_of(network, target), weights, noise, rows, added)


BOTH_WAYS = pytest.mark.parametrize("way", [by_layers, by_rows])


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


@BOTH_WAYS
@pytest.mark.parametrize("target", ["noise", "row"])
@pytest.mark.parametrize("clip", [0.01, 0.5, 1e6])
@pytest.mark.parametrize("some", [True, False])
def test_no_row_weighs_more_than_the_clipping_norm(case, way, target, clip, some, monkeypatch):
    network, weights, rows, added = case
    if some:
        monkeypatch.setattr(gradients, "_AT_ONCE", 1)
        monkeypatch.setattr(layer_gradients, "_ROWS", 4)
    silence = GradientNoise(clip, 1.0, lambda scale, shape: np.zeros(shape))
    expected = {k: torch.zeros_like(w) for k, w in weights.items()}
    for gradient in one_by_one(network, target, rows, added):
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradient.values()))
        for name, g in gradient.items():
            expected[name] += g * min(1.0, clip / norm)
    made, _ = way(network, target, silence, rows, added)
    for name, g in expected.items():
        torch.testing.assert_close(
            made[name] * NORMALISER, g, rtol=1e-4, atol=1e-7
        )  # never above, a little below


@BOTH_WAYS
def test_one_row_more_moves_the_sum_by_the_clipping_norm_at_most(case, way):
    """The divisor is a constant: a normaliser that counts the batch would move every other row too."""
    network, weights, rows, added = case
    silence = GradientNoise(0.1, 1.0, lambda scale, shape: np.zeros(shape))
    whole, _ = way(network, "noise", silence, rows, added)
    without, _ = way(network, "noise", silence, rows[1:], added[1:])
    moved = sum(float((whole[k] - without[k]).square().sum()) for k in weights)
    assert math.sqrt(moved) * NORMALISER <= 0.1 * (1 + 1e-9)
    assert math.sqrt(moved) * NORMALISER == pytest.approx(0.1, rel=1e-4)  # this row was clipped


@BOTH_WAYS
def test_noise_has_the_stated_scale_and_an_empty_batch_is_noise_alone(case, way):
    network, weights, rows, added = case
    scales = []

    def gaussian(scale, shape):
        scales.append(scale)
        return np.full(shape, scale)

    noise = GradientNoise(0.5, 3.0, gaussian)
    made, lost = way(network, "noise", noise, rows[:0], added[:0])
    assert math.isnan(lost)
    assert set(scales) == {1.5}
    assert len(scales) == len(weights)
    assert all(torch.allclose(g, torch.full_like(g, 1.5 / NORMALISER)) for g in made.values())


def test_without_protection_the_gradient_is_the_mean(case):
    network, weights, rows, added = case

    def mean(rows, added):
        return row_losses(network, LAYOUT, "row", rows, added)

    lost = layer_gradients.mean_gradient(network, mean, rows, added)
    made = {name: w.grad for name, w in network.named_parameters()}
    each, losses = gradients.per_row_gradients(loss_of(network, "row"), weights, rows, added)
    assert lost == pytest.approx(float(losses.mean()))
    for name, g in made.items():
        torch.testing.assert_close(g, each[name].mean(dim=0), rtol=1e-6, atol=1e-9)


def test_a_layer_whose_gradient_is_not_known_is_refused():
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    silence = GradientNoise(1.0, 1.0, lambda scale, shape: np.zeros(shape))
    with pytest.raises(TypeError, match="BatchNorm1d"):
        layer_gradients.private_gradient(network, lambda x: network(x).sum(dim=1), silence, torch.ones(5, 3))


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
    layer_gradients.private_gradient(network, losses, silence, rows)
    torch.testing.assert_close(network.weight.grad * NORMALISER, expected, rtol=1e-4, atol=1e-7)
