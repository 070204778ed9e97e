"""What a fit cannot do without, and whether it is there."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from synth_audit.core.errors import DataError, PluginError

if TYPE_CHECKING:
    from synth_audit.core.table import Table
    from synth_audit.core.workplace import Device

_DRIVER = Path("/dev/nvidiactl")


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a fit cannot do without.

    Attributes:
        gpu: it computes on a GPU; the plan's ``execution.device`` must allow one.
        memory: GiB beyond the table, roughly; 0 for little. Fits that need much do not run beside others.
        rows: fewest training rows.
    """

    gpu: bool = False
    memory: float = 0.0
    rows: int = 1

    @property
    def words(self) -> str:
        """As a person reads it."""
        size = f"about {self.memory:g} GiB of memory" if self.memory else ""
        rows = f"{self.rows:,} rows" if self.rows > 1 else ""
        return ", ".join(filter(None, ["a GPU" if self.gpu else "", size, rows])) or "nothing beside train"

    def __or__(self, other: Needs) -> Needs:
        """What both need, one after the other."""
        return Needs(
            gpu=self.gpu or other.gpu,
            memory=max(self.memory, other.memory),
            rows=max(self.rows, other.rows),
        )

    def check(self, train: Table, device: Device, title: str) -> None:
        """Refuse a fit that lacks something.

        Raises:
            DataError: train has too few rows.
            PluginError: a GPU is needed, and the device is the processor or the machine has none.
        """
        if train.n_rows < self.rows:
            raise DataError(
                f"train has {train.n_rows} rows, too few for the generator {title!r}",
                where="train",
                expected=f"at least {self.rows} rows",
                fix="use more rows, or the generator `independent`",
            )
        if not self.gpu:
            return
        if device == "cpu":
            raise PluginError(
                f"the generator {title!r} needs a GPU, and the plan computes on the processor",
                where="execution.device: cpu",
                expected="cuda, or auto",
                fix="where there is a GPU, say `--device cuda`, or `execution: {device: cuda}` in the plan",
            )
        if not gpu_found():
            raise PluginError(
                f"the generator {title!r} needs a GPU, and none was found on this machine",
                where=f"execution.device: {device}",
                expected="a CUDA device with its driver",
                fix="run it on a machine with a GPU (`nvidia-smi` lists them; in Dagster, where runs of the "
                "pool `gpu` are started), or choose a generator without that need",
            )


def gpu_found() -> bool:
    """True when this machine has a GPU that torch sees; without torch, when it has the driver."""
    if find_spec("torch") is None:
        return _DRIVER.exists()
    from torch import cuda

    return bool(cuda.is_available())
