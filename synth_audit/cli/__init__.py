"""The command line: the same verbs as the Python functions, and nothing that they do not do."""

from synth_audit.cli import audits, inspect, pipeline, plugins, release  # noqa: F401 (they declare the commands)
from synth_audit.cli.shared import main

__all__ = ["main"]
