"""The words for where work is done, apart from what does it: a command lists them and loads nothing."""

from __future__ import annotations

from typing import Literal

ExecutorName = Literal["serial", "processes", "dask"]
"""Who does equal pieces of work."""

Device = Literal["cpu", "cuda", "auto"]
"""What networks are computed on; ``auto`` for a GPU where there is one."""
