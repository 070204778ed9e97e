"""Judges an examination by a suite: limits, criteria, the contract of the table, fitness for purpose."""
