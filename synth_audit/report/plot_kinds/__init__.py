"""The kinds of pictures that a series may have: one file each, and the file's name is the name of the kind.

A new kind is a new file here with a ``PLOT`` of :mod:`~synth_audit.report.plot_kinds._contract`: a
:class:`ChartKind` draws one series with axes, a :class:`PanelKind` several side by side on one scale. An
audit may then return a series of that kind; nothing else is to be told.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from synth_audit.report.plot_kinds._contract import ChartKind, PanelKind


@cache
def plot_kinds() -> frozenset[str]:
    """Every kind there is."""
    return frozenset(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


@cache
def plot_kind(name: str) -> ChartKind | PanelKind | None:
    """How a kind is drawn; None for one that this version does not know, whose numbers are still shown."""
    if name not in plot_kinds():
        return None
    found: ChartKind | PanelKind = importlib.import_module(f"{__name__}.{name}").PLOT
    return found
