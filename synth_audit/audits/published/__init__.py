"""Scores that papers define, under their published formulas, to compare with the literature."""
