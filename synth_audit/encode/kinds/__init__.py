"""One file per column kind, with all that is asked of it; see :mod:`synth_audit.table.kind`."""
