"""The loop in which networks are trained: progress and losses told, the deadline kept, and taken up again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from synth_audit.core.arrays import Positions
from synth_audit.core.generator import FitContext

if TYPE_CHECKING:
    from synth_audit.kernels.deep.resuming import Kept
    from synth_audit.kernels.deep.training import Loop


def training_loop(
    context: FitContext,
    what: str,
    steps: int,
    sample: Callable[[], Positions],
    *known: object,
    **moved: Kept,
) -> Loop:
    """So many steps; where nothing private depends on it, a training that is broken off goes on from its
    checkpoint.

    Args:
        what: is trained, in a word or two. sample: positions of the rows of the next batch.
        known: what the batches follow from beside draws.
        moved: what ``sample`` moves beside the context's draws.
    """
    from synth_audit.kernels.deep.training import Loop, Resumption

    def told(done: int, loss: float) -> None:
        context.trained(what, done, steps, loss)

    def said(text: str) -> None:
        context.progress(f"{what}: {text}", 0, steps)

    folder = context.resumable
    if folder is None:
        return Loop(steps, sample, told)
    parts = {"rng": context.rng, "course": context.course, **moved}
    return Loop(steps, sample, told, Resumption(folder, parts, said, known))
