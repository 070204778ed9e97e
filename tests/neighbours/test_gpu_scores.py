"""Scores on a GPU leave the same candidates; where there is none, torch's own processor stands in for it."""

import numpy as np
import pytest

from synth_audit.neighbours import gower, gpu_scores, memory
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.gower import NOWHERE, Mixed
from synth_audit.neighbours.gpu_scores import device_for, scored_on
from synth_audit.neighbours.search import Pairs, nearest, nearest_k, nearest_other

torch = pytest.importorskip("torch")


def mixed(n, rng):
    numbers = np.where(rng.random((n, 3)) < 0.1, NOWHERE, rng.random((n, 3)).round(2) * 3)
    return Mixed.of(numbers, rng.integers(-1, 4, (n, 2)), np.array([1.0, 1, 2, 1, 0.5]))


def coordinates(n, rng):
    return Coordinates.of(rng.normal(size=(n, 3)).round(1), rng.integers(0, 3, (n, 2)), np.array([2.0, 0.5]))


def answers(prepared, rng):
    queries, reference = prepared(70, rng), prepared(300, rng)
    found = [nearest(queries, reference), nearest_other(reference, np.arange(0, 300, 3))]
    fields = [getattr(f, name) for f in found for name in ("first", "second", "index", "ties")]
    return [*fields, nearest_k(queries, reference, 5)]


def compared(prepared):
    expected = answers(prepared, np.random.default_rng(0))
    with scored_on("cuda"):
        found = answers(prepared, np.random.default_rng(0))
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(memory, "DEVICE_QUERIES", 16)
    monkeypatch.setattr(memory, "DEVICE_REFERENCES", 64)
    monkeypatch.setattr(memory, "DEVICE_PAIRS", 1)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("prepared", [mixed, coordinates])
def test_scores_by_torch_leave_the_same_answers(prepared, monkeypatch):
    used = []
    monkeypatch.setattr(gpu_scores, "device_for", lambda n, m: used.append((n, m)) or "cpu")
    compared(prepared)
    assert used


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("prepared", [mixed, coordinates])
def test_a_gpu_leaves_the_same_answers(prepared):
    with scored_on("cuda"):
        assert device_for(70, 300) == "cuda"
    compared(prepared)


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


def on(space, device):
    numbers = space.numbers.on(device)
    return gpu_scores.TensorScores(numbers, space.mine, space.theirs, space.unlike, device)


def scored(space, device):
    rows, columns = slice(3, 60), slice(5, 290)
    expected = np.empty((57, 285), space.dtype)
    space.scores(rows, columns, expected)
    found = on(space, device).scores(rows, columns).cpu().numpy()
    size = np.abs(expected).max()
    return expected.astype(float), found.astype(float), 1e-6 * max(size, 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scale", [1.0, 1e4], ids=["single", "double"])
def test_scores_of_products_are_those_of_the_processor(device, scale):
    rng = np.random.default_rng(0)
    queries, reference = coordinates(70, rng), coordinates(300, rng)
    far = [Coordinates.of(part.numbers * scale, part.labels, part.unlike) for part in (queries, reference)]
    space = Pairs(*far)
    expected, found, near = scored(space, device)
    assert np.abs(expected - found).max() <= near


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("scale", "kind"),
    [(1.0, np.int16), (300.0, np.float32), (2e3, np.float64)],
    ids=["whole", "single", "double"],
)
def test_scores_of_differences_are_those_of_the_processor(device, scale, kind, monkeypatch):
    rng = np.random.default_rng(0)
    queries, reference = (mixed(n, rng) for n in (70, 300))
    for part in (queries, reference):
        part.numbers[:, 0] = np.where(part.numbers[:, 0] < NOWHERE, scale * rng.random(len(part)), NOWHERE)
        part.weights[:] = np.array([5.0, 1, 1, 1, 1]) / 9
    if kind == np.float64:
        monkeypatch.setattr(gower, "_SINGLE", 10.0)
    space = Pairs(queries, reference)
    assert space.dtype == kind
    expected, found, near = scored(space, device)
    assert np.abs(expected - found).max() <= near


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("device", DEVICES)
def test_products_are_whole_where_those_of_single_precision_are_rounded(device):
    rng = np.random.default_rng(0)
    space = Pairs(coordinates(70, rng), coordinates(300, rng))
    assert space.dtype == np.float32
    assert on(space, device).scores(slice(0, 2), slice(0, 2)).dtype == torch.float64
    expected, found, near = scored(space, device)
    assert np.abs(expected - found).max() <= near


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("prepared", [mixed, coordinates])
def test_a_gpu_without_room_leaves_the_work_to_the_processor(prepared, monkeypatch):
    asked = []

    def full(*args):
        asked.append(args)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(gpu_scores, "device_for", lambda n, m: "cpu")
    monkeypatch.setattr(gpu_scores.TensorScores, "scores", full)
    compared(prepared)
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
