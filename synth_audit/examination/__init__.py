"""Examines one candidate: audits, planted leaks, exposed records; never a limit."""
