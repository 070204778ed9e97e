"""Scores of a search on a GPU; what they leave to compare is compared exactly as without one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Positions, Scores
from synth_audit.neighbours import memory

_WANTED: ContextVar[str] = ContextVar("device of scores", default="cpu")

Tensor = Any  # of torch, which is not loaded unless a GPU is wanted

NumberScores = Callable[[slice, slice], Tensor]
"""What the numbers of some queries and some reference rows add to the scores."""


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
    if _WANTED.get() == "cpu" or n * m < memory.DEVICE_PAIRS:
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


def differences(mine: Scores, theirs: Scores, caps: Sequence[float | None], device: str) -> NumberScores:
    """``Σ_j min(|x_j − y_j|, cap_j)`` of queries and reference, shape (p, n) and (p, m)."""
    queries, reference = _there(mine, device), _there(theirs, device)

    def scores(rows: slice, columns: slice) -> Tensor:
        total = queries.new_zeros((rows.stop - rows.start, columns.stop - columns.start))
        for x, y, cap in zip(queries[:, rows], reference[:, columns], caps, strict=True):
            apart = (x[:, None] - y).abs_()
            total += apart if cap is None else apart.clamp_(max=cap)
        return total

    return scores


def products(mine: Scores, theirs: Scores, device: str) -> NumberScores:
    """A matrix product of queries and reference, shape (p, n) and (p, m).

    In double precision where a product in single precision would not be one: the slack of a search is of the
    type's own rounding, and a near row would be missed.
    """
    from torch.backends import cuda

    # Somebody in this process may let GPUs round the factors of products to ten bits.
    dtype = np.dtype(np.float64) if str(cuda.matmul.fp32_precision) == "tf32" else mine.dtype
    queries, reference = (_there(part.astype(dtype, copy=False), device) for part in (mine, theirs))
    return lambda rows, columns: queries[:, rows].T @ reference[:, columns]


class TensorScores:
    """The scores of queries and a reference on a device.

    Args:
        labels, others: of the queries and the reference, shape (q, n) and (q, m).
        unlike: what each column of labels adds where they differ, length q.
    """

    def __init__(
        self,
        of_numbers: NumberScores,
        labels: npt.NDArray[Any],
        others: npt.NDArray[Any],
        unlike: Sequence[float],
        device: str,
    ) -> None:
        """Send the labels there, in a type that torch computes with everywhere."""
        sides = (codes.astype(np.int32) if codes.dtype.itemsize < 8 else codes for codes in (labels, others))
        self.of_numbers, self.unlike = of_numbers, unlike
        self.labels, self.others = (_there(codes, device) for codes in sides)

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


def _there(values: npt.NDArray[Any], device: str) -> Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(values)).to(device)
