"""Where the work of a verb is done, and who is told of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

if TYPE_CHECKING:
    from synth_audit.core.context import Progress, RunContext
    from synth_audit.core.plan import Plan
    from synth_audit.core.workplace import Device, ExecutorName


class Execution(TypedDict, total=False):
    """Where the work is done; no number depends on it.

    What is given here stands above the plan's ``execution``.

    Attributes:
        workers: processes to spread audits and games over; 1 if left out.
        executor: ``serial``, ``processes`` or ``dask``; what the others imply if left out.
        scheduler: address of a Dask scheduler; without one, ``dask`` means a cluster on this machine.
        deadline: longest time in seconds of one candidate's audits, and of one fit of its generator.
        device: what networks and long searches are computed on: ``cpu``, ``cuda`` or ``auto``.
    """

    workers: int | None
    executor: ExecutorName | None
    scheduler: str | None
    deadline: float | None
    device: Device | None


class Running(Execution, total=False):
    """Where the work is done, and who is told of it.

    Attributes:
        progress: called with what is under way and how many pieces are done; True prints a line now and then.
            Left out, a notebook shows a line that is rewritten.
    """

    progress: Progress | bool | None


@contextmanager
def run_context(plan: Plan, scratch: Path | None = None, **running: Unpack[Running]) -> Iterator[RunContext]:
    """The context that a verb's work is done in: here, and nowhere else, it is made.

    Args:
        scratch: where temporary folders are made; the system's place for them if None.
    """
    from synth_audit.core.context import RunContext, silent, spoken
    from synth_audit.core.execution import opened
    from synth_audit.core.execution.deadline import Deadline

    progress = running.pop("progress", None)
    rewritten = progress is None and _in_notebook()
    if rewritten:
        progress = spoken(_rewrite, every=0.5)
    told = (spoken(print) if progress is True else progress) or silent
    settled = plan.execution.changed(running)
    with ExitStack() as stack:
        if rewritten:
            stack.callback(_rewrite, "")
        executor = stack.enter_context(opened(settled.name, settled.n_workers, settled.scheduler))
        yield RunContext(
            seed=plan.seed,
            executor=executor,
            progress=told,
            deadline=Deadline.within(settled.deadline),
            device=settled.device,
            scratch=scratch,
        )


def _in_notebook() -> bool:
    """Whether a kernel runs this, whose output a browser shows."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def _rewrite(line: str) -> None:
    print(f"\r{line:<79}", end="\r", flush=True)  # noqa: T201 (a notebook has no other place)
