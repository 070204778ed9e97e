"""From tables to arrays: the kinds of columns."""
