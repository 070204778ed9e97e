"""Scores of a search on a GPU; what they leave to compare is compared exactly as without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Positions, Scores

_PAIRS = 2**24
"""Fewer pairs than this are scored before they have reached another device."""

_WANTED: ContextVar[str] = ContextVar("device of scores", default="cpu")

Tensor = Any  # of torch, which is not loaded unless a GPU is wanted


@contextmanager
def scored_on(device: str) -> Iterator[None]:
    """Have the searches of this thread score on a device, ``cpu``, ``cuda`` or ``auto``.

    Where there is no GPU, or no torch, they score on the processor: the numbers are the same.
    """
    before = _WANTED.set(device)
    try:
        yield
    finally:
        _WANTED.reset(before)


def device_for(n: int, m: int) -> str | None:
    """The device on which so many queries of so many reference rows are scored; None for the processor."""
    if _WANTED.get() == "cpu" or n * m < _PAIRS:
        return None
    try:
        from torch import cuda
    except ModuleNotFoundError:
        return None
    return "cuda" if cuda.is_available() else None


@contextmanager
def while_memory_lasts() -> Iterator[None]:
    """End a block where the GPU has no room left, perhaps since other processes use it as well.

    What comes after the block does the work without it.
    """
    from torch import OutOfMemoryError, cuda

    try:
        yield
    except OutOfMemoryError:
        cuda.empty_cache()


@dataclass(frozen=True, eq=False)
class TensorScores:
    """The scores of a space on a device.

    Attributes:
        of_numbers: what the numbers of some queries and some reference rows add to the scores.
        labels, others: of the queries and the reference, shape (q, n) and (q, m).
        unlike: what each column of labels adds where they differ, length q.
    """

    of_numbers: Callable[[slice, slice], Tensor]
    labels: Tensor
    others: Tensor
    unlike: tuple[float, ...]

    @classmethod
    def differences(
        cls,
        numbers: tuple[Scores, Scores],
        caps: Sequence[int | None],
        labels: tuple[npt.NDArray[Any], npt.NDArray[Any]],
        unlike: Sequence[float],
        device: str,
    ) -> TensorScores:
        """``Σ_j min(|x_j − y_j|, cap_j)`` and labels; of queries and reference, columns first."""
        mine, theirs = (_there(part, device) for part in numbers)

        def added(rows: slice, columns: slice) -> Tensor:
            total = mine.new_zeros((rows.stop - rows.start, columns.stop - columns.start))
            for x, y, cap in zip(mine[:, rows], theirs[:, columns], caps, strict=True):
                apart = (x[:, None] - y).abs_()
                total += apart if cap is None else apart.clamp_(max=cap)
            return total

        return cls(added, *_labels_there(labels, device), tuple(unlike))

    @classmethod
    def products(
        cls,
        factors: tuple[Scores, Scores],
        labels: tuple[npt.NDArray[Any], npt.NDArray[Any]],
        unlike: Sequence[float],
        device: str,
    ) -> TensorScores:
        """A matrix product, shape (n, w) and (w, m), and labels.

        In double precision where a product in single precision would not be one: the slack of a search is of
        the type's own rounding, and a near row would be missed.
        """
        wide = _products_are_rounded()
        mine, theirs = (_there(part.astype(np.float64) if wide else part, device) for part in factors)

        def added(rows: slice, columns: slice) -> Tensor:
            return mine[rows] @ theirs[:, columns]

        return cls(added, *_labels_there(labels, device), tuple(unlike))

    def scores(self, rows: slice, columns: slice) -> Tensor:
        """Scores of a block of queries and reference rows."""
        total = self.of_numbers(rows, columns)
        for x, y, cost in zip(self.labels[:, rows], self.others[:, columns], self.unlike, strict=True):
            total += (x[:, None] != y).to(total.dtype) * cost
        return total


def near_tile(
    scores: Tensor, least: Floats, slack: Callable[[Floats], Floats]
) -> tuple[Floats, Floats, Positions, Positions, Floats]:
    """What a tile of scores says of the nearest rows.

    Args:
        least: upper bounds of the k smallest scores so far, shape (n, k). slack: of limits, shape (n,).

    Returns:
        The new bounds; the limits up to which a score may be near; row, column and score of what is.
    """
    import torch

    k = least.shape[1]
    smallest = torch.topk(scores, min(k, scores.shape[1]), dim=1, largest=False).values
    both = np.hstack([least, smallest.cpu().numpy().astype(np.float64)])
    least = np.partition(both, k - 1, axis=1)[:, :k]
    limit = least.max(axis=1)
    limit = limit + slack(limit)
    near = scores <= torch.from_numpy(limit).to(scores.device)[:, None]
    row, column = torch.nonzero(near, as_tuple=True)
    found = scores[row, column].cpu().numpy().astype(np.float64)
    return least, limit, row.cpu().numpy(), column.cpu().numpy(), found


def _products_are_rounded() -> bool:
    """Whether somebody in this process lets GPUs round the factors of products to ten bits (TF32)."""
    from torch.backends import cuda

    return str(cuda.matmul.fp32_precision) == "tf32"


def _there(values: npt.NDArray[Any], device: str) -> Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def _labels_there(labels: tuple[npt.NDArray[Any], npt.NDArray[Any]], device: str) -> tuple[Tensor, Tensor]:
    """Labels of queries and reference on a device, in a type that torch computes with everywhere."""
    mine, theirs = (codes.astype(np.int32) if codes.dtype.itemsize < 8 else codes for codes in labels)
    return _there(mine, device), _there(theirs, device)
