"""Scores on a GPU leave the same candidates; where there is none, torch's own processor stands in for it."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.neighbours import euclidean, gower, gpu_scores, memory
from synth_audit.neighbours import gower as _grid
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.gower import MISSING, Mixed
from synth_audit.neighbours.gpu_scores import device_for, scored_on

torch = pytest.importorskip("torch")


def mixed(n, rng):
    numbers = np.where(rng.random((n, 3)) < 0.1, MISSING, rng.random((n, 3)).round(2) * 3)
    return Mixed.of(numbers, rng.integers(-1, 4, (n, 2)), np.array([1.0, 1, 2, 1, 0.5]))


def coordinates(n, rng):
    return Coordinates.of(rng.normal(size=(n, 3)).round(1), rng.integers(0, 3, (n, 2)), np.array([2.0, 0.5]))


def answers(prepared, module, rng):
    queries, reference = prepared(70, rng), prepared(300, rng)
    found = [module.nearest(queries, reference), module.nearest_other(reference, np.arange(0, 300, 3))]
    fields = [getattr(f, name) for f in found for name in ("first", "second", "index", "ties")]
    if module is gower:
        fields.append(gower.nearest_k(queries, reference, 5))
    return fields


def compared(prepared, module):
    expected = answers(prepared, module, np.random.default_rng(0))
    with scored_on("cuda"):
        found = answers(prepared, module, np.random.default_rng(0))
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(memory, "DEVICE_QUERIES", 16)
    monkeypatch.setattr(memory, "DEVICE_REFERENCES", 64)
    monkeypatch.setattr(gpu_scores, "_PAIRS", 1)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("prepared", "module"), [(mixed, gower), (coordinates, euclidean)])
def test_scores_by_torch_leave_the_same_answers(prepared, module, monkeypatch):
    used = []
    monkeypatch.setattr(gpu_scores, "device_for", lambda n, m: used.append((n, m)) or "cpu")
    compared(prepared, module)
    assert used


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize(("prepared", "module"), [(mixed, gower), (coordinates, euclidean)])
def test_a_gpu_leaves_the_same_answers(prepared, module):
    with scored_on("cuda"):
        assert device_for(70, 300) == "cuda"
    compared(prepared, module)


DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")),
]


@pytest.fixture
def tf32():
    """Products of single precision are let be rounded, as a library beside this one may have it."""
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32"
    yield
    matmul.fp32_precision = before


def scored(space, device):
    rows, columns = slice(3, 60), slice(5, 290)
    expected = np.empty((57, 285), space.dtype)
    space.scores(rows, columns, expected)
    found = space.on(device).scores(rows, columns).cpu().numpy()
    size = np.abs(expected).max()
    return expected.astype(float), found.astype(float), 1e-6 * max(size, 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scale", [1.0, 1e4], ids=["single", "double"])
def test_scores_of_products_are_those_of_the_processor(device, scale):
    rng = np.random.default_rng(0)
    queries, reference = coordinates(70, rng), coordinates(300, rng)
    far = [Coordinates.of(part.dense * scale, part.labels, part.unlike) for part in (queries, reference)]
    space = euclidean._Products.of(*far)
    expected, found, near = scored(space, device)
    assert np.abs(expected - found).max() <= near


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("kind", "short"), [(np.int16, 3), (np.int32, 0), (np.int32, 2), (np.int32, 3), (np.float64, 0)]
)
def test_scores_of_differences_are_those_of_the_processor(device, kind, short, monkeypatch):
    """Also where so many of the columns are kept in the smallest type."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(_grid, "_fitting", lambda *_: (np.dtype(kind), 2.0**11, np.arange(3) < short))
    queries, reference = mixed(70, rng), mixed(300, rng)
    space = gower._GowerPairs.of(queries, reference)
    assert space.dtype == kind
    expected, found, _ = scored(space, device)
    assert np.array_equal(expected, found)


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("device", DEVICES)
def test_products_are_whole_where_those_of_single_precision_are_rounded(device):
    rng = np.random.default_rng(0)
    space = euclidean._Products.of(coordinates(70, rng), coordinates(300, rng))
    assert space.dtype == np.float32
    assert space.on(device).scores(slice(0, 2), slice(0, 2)).dtype == torch.float64
    expected, found, near = scored(space, device)
    assert np.abs(expected - found).max() <= near


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("prepared", "module"), [(mixed, gower), (coordinates, euclidean)])
def test_a_gpu_without_room_leaves_the_work_to_the_processor(prepared, module, monkeypatch):
    asked = []

    def full(*args):
        asked.append(args)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(gpu_scores, "device_for", lambda n, m: "cpu")
    monkeypatch.setattr(gpu_scores.TensorScores, "scores", full)
    compared(prepared, module)
    assert asked


def test_little_work_and_none_asked_for_stay_on_the_processor(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_for(10**4, 10**4) is None
    with scored_on("auto"):
        assert device_for(10**4, 10**4) == "cuda"
        assert device_for(100, 100) is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with scored_on("cuda"):
        assert device_for(10**4, 10**4) is None
