"""Vocabulary shared by every layer: schema, table, subject, measurement, plan, registry, seeds, errors."""
