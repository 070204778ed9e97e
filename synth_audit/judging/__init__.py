"""Judges an examination by a suite: limits, the contract of the table, proven leaks."""
