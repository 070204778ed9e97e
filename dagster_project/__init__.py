"""Audited tables on a schedule: thin Dagster assets and checks over ``synth_audit``.

A table is onboarded by one file, ``defs/<table>/defs.yaml``, of type
``dagster_project.components.AuditedTable``: the keys of a plan, and ``schedule``, ``owners``, ``tags``,
``description``, ``deps`` and ``workspace``. ``dg scaffold defs AuditedTable <table>`` starts one,
``dg check defs`` checks it.

Relative paths, the workspaces' too, start at ``$SYNTH_AUDIT_HOME``, or at the project's root without
it. A table's files lie in ``<table>-audit`` there, where the shell's commands find them as well.
"""
