"""The demo's tables as a Dagster project: the pattern of a project of your own."""

from __future__ import annotations

import dagster as dg

from dagster_project import defs as tables
from synth_audit.dagster import load_tables


@dg.definitions
def defs() -> dg.Definitions:
    """All tables under ``defs/``."""
    return load_tables(tables)
