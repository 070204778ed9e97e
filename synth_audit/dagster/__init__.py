"""Audited tables on a schedule: thin Dagster assets and checks over ``synth_audit``.

A table is one file, ``defs/<table>/defs.yaml``, of type ``synth_audit.dagster.AuditedTable``: the keys of a
plan, and ``schedule``, ``owners``, ``tags``, ``description``, ``deps`` and ``workspace``.
``dg scaffold defs AuditedTable <table>`` starts one, ``dg check defs`` checks it. A project loads its tables
with :func:`load_tables`::

    import dagster as dg
    from my_project import defs as tables
    from synth_audit.dagster import load_tables

    @dg.definitions
    def defs():
        return load_tables(tables)

Relative paths, the workspaces' too, start at ``$SYNTH_AUDIT_HOME``, or at the project's root without it. A
table's files lie in ``<table>-audit`` there, where the shell's commands find them as well.
"""

from synth_audit.dagster.component import AuditedTable
from synth_audit.dagster.loading import load_tables

__all__ = ["AuditedTable", "load_tables"]
