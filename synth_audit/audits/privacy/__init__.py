"""The privacy audits."""
