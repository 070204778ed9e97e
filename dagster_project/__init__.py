"""A Dagster project with the two tables of the demo; see :mod:`synth_audit.dagster`."""
