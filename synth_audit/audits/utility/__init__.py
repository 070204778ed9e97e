"""The utility audits."""
