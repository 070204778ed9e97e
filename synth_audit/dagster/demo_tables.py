"""The code location of the demo: its two tables, from a checkout or from an installed wheel."""

from __future__ import annotations

from types import ModuleType

import dagster as dg

from synth_audit.build import resource_folder
from synth_audit.dagster.loading import load_tables


@dg.definitions
def defs() -> dg.Definitions:
    """Both tables of the demo."""
    tables = ModuleType("dagster_project.defs")
    folder = resource_folder("dagster_project") / "defs"
    tables.__path__, tables.__file__ = [str(folder)], str(folder / "__init__.py")
    return load_tables(tables)
