"""How work is done: executor, seeds, salt, deadline, cache, progress."""

from typing import Literal

ExecutorName = Literal["serial", "processes", "dask"]
"""Who does equal pieces of work."""

Device = Literal["cpu", "cuda", "auto"]
"""What networks are computed on; ``auto`` for a GPU where there is one."""
