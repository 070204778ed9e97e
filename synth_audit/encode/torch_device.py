"""Torch, where it is installed, and the device that it computes on."""

from __future__ import annotations

from synth_audit.errors import PluginError


def torch_device(wanted: str, what: str) -> str:
    """``cpu`` or ``cuda``.

    Args:
        wanted: ``cpu``, ``cuda``, or ``auto`` for a GPU where there is one.
        what: what asks, for a reader.

    Raises:
        PluginError: torch is not installed, or there is no such device.
    """
    try:
        from torch import cuda
    except ModuleNotFoundError as error:
        raise PluginError(
            f"{what} needs torch, which is not installed",
            expected="torch",
            fix="pip install 'synth-audit[deep]'",
        ) from error
    if wanted == "cuda" and not cuda.is_available():
        raise PluginError("no CUDA device was found", expected="a GPU", fix="set device to cpu or auto")
    return "cuda" if wanted != "cpu" and cuda.is_available() else "cpu"
