"""The code location: every table under ``defs/``, each run in one process.

Nothing here imports what fits or attacks a table; that happens inside the stages, so a location
loads in about a second. The stages of a table follow one another and share their files, so a process
for each would only pay the imports again; tables run beside each other as separate runs.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import dagster as dg

from dagster_project import defs as tables


@dg.definitions
def defs() -> dg.Definitions:
    """All tables, from a checkout as well as from an installed wheel, which has no project file."""
    with warnings.catch_warnings():
        # Dagster warns of the beta parts that its own component loader uses.
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        tree = dg.ComponentTree.from_module(defs_module=tables, project_root=Path(__file__).parent.parent)
        # From the folder of tables and not from the root, which would also describe every type of component
        # with the settings of every plug-in, for a page of the UI; `dg` makes that list itself.
        found = tree.build_defs(Path())
    ours = dg.Definitions(executor=dg.in_process_executor, component_tree=tree)
    return dg.Definitions.merge(found, ours)
