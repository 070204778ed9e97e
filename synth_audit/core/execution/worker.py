"""What runs inside a worker process around a piece of work."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from synth_audit.core.files import temporary_folder

Done = TypeVar("Done")

_ONE_AT_A_TIME = threading.Lock()
"""Held by the piece at work: where temporary files go, and how many threads algebra has, is settled for the
whole process, so that two pieces in threads of one process would move each other's last digits."""

_LOOK = 0.5
"""Seconds between two looks at whether the parent is alive."""


@dataclass(frozen=True)
class CallResult(Generic[Done]):
    """What a call returned, or that it failed."""

    result: Done | None = None
    failed: bool = False


def attempt(folder: str | None, call: Callable[[], Done]) -> CallResult[Done]:
    """Make a call; an error, which might not survive the way between processes, is told of without itself.

    Args:
        folder: where its temporary files go, deleted by whoever asked for the call. None, or one that is not
            on this machine: a folder of its own, deleted here.
    """
    with _ONE_AT_A_TIME:
        if folder is not None and Path(folder).is_dir():
            return _in_folder(folder, call)
        with temporary_folder() as own:
            return _in_folder(own, call)


def _in_folder(folder: str, call: Callable[[], Done]) -> CallResult[Done]:
    before, tempfile.tempdir = tempfile.tempdir, folder
    try:
        return CallResult(call())
    except (Exception, SystemExit):
        return CallResult(failed=True)
    finally:
        tempfile.tempdir = before
        _give_back()


def _give_back() -> None:
    """Return to the system what the call has freed: else the next call, which frees other pieces, holds both.

    Arrow's pool knows how; of the C library's only glibc does, which is asked where it is the one in use.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def end_with(parent: int) -> None:
    """End this process soon after its parent did, however that ended.

    A thread looks for it. The system's own signal would come too early: it is sent when the *thread* ends
    that started this process.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end with the parent").start()
