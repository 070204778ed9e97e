"""Does equal pieces of work in this process, in others or on other machines; the results are the same."""

from __future__ import annotations

from synth_audit.core.execution.executor import Ending, Executor, Piece, in_processes, opened

__all__ = ["Ending", "Executor", "Piece", "in_processes", "opened"]
