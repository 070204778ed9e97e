"""The component types that a ``defs.yaml`` may name."""

from dagster_project.components.audited_table import AuditedTable

__all__ = ["AuditedTable"]
