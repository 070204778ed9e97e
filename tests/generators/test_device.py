"""Networks on a device that is not the processor: what meets there was sent there; the model is the same."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from synth_audit.dp.mechanisms import Noise

from .conftest import context
from .simulated_device import NAME, Elsewhere, simulated_device
from .test_large_batches import OPEN, PRIVATE, greedy, seven

ASKED = "synth_audit.generators._deep.network_model.torch_device"
"""Where it is asked which device there is."""


def test_the_device_tells_what_was_not_sent_to_it():
    with simulated_device():
        layer = torch.nn.Linear(3, 2).to(NAME)
        there = torch.ones(4, 3).to(NAME)
        assert isinstance(layer(there), Elsewhere)
        with pytest.raises(RuntimeError, match="two devices"):
            layer(torch.ones(4, 3))
        with pytest.raises(RuntimeError):
            layer(there).detach().numpy()
        assert layer(there).detach().cpu().numpy().shape == (4, 2)


WITHOUT_NOISE = ("table_diffusion", "dp_ctgan", "pate_gan")
"""Of each kind of private training one, where there is no budget; the others share its code."""


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        *((name, None) for name in OPEN + WITHOUT_NOISE),
        *((name, 1.0) for name in PRIVATE),
        *(pytest.param(name, None, marks=pytest.mark.slow) for name in PRIVATE if name not in WITHOUT_NOISE),
    ],
)
def test_a_fit_elsewhere_is_the_fit_here(name, epsilon, monkeypatch):
    table, drawn = seven(), []
    monkeypatch.setattr(Noise, "bits", staticmethod(lambda n: 1))
    monkeypatch.setattr(Noise, "gaussian", staticmethod(lambda scale, shape: np.full(shape, scale)))
    monkeypatch.setattr(Noise, "laplace", staticmethod(lambda scale, shape: np.full(shape, scale)))
    monkeypatch.setattr(Noise, "poisson_sample", staticmethod(lambda n, rate: np.arange(n)))
    for device, there in (("cpu", nullcontext), (NAME, simulated_device)):
        monkeypatch.setattr(ASKED, lambda wanted, what, device=device: device)
        with there():
            model = greedy(name).fit(table, context(table, epsilon))
        drawn.append(model.sample(20, np.random.default_rng(1)))
    assert drawn[0].fingerprint == drawn[1].fingerprint
