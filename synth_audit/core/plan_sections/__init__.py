"""The sections of a plan, a file for each; ``columns`` is in :mod:`synth_audit.core.column_spec`."""
