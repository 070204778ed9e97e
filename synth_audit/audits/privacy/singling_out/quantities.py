"""The numbers that singling out reports."""

from __future__ import annotations

from synth_audit.core.measurement import Direction, Quantity

RISK = Quantity(
    "risk",
    "Singling-out risk",
    range=(float("-inf"), 1.0),
    proportional=False,  # a joined guess at a copied row fits others in train too, unless all of it is copied
    help="0: guesses single out training rows no more often than strangers; 1: every guess does.",
)
WORST = Quantity(
    "worst_risk",
    "Singling-out risk, worst attack",
    range=(float("-inf"), 1.0),
    proportional=False,  # generators that draw exact values of single columns reach 1 without copying a row
    help="The riskiest of the attack's settings; its interval allows for their number.",
)
TRAIN_RATE = Quantity(
    "train_rate",
    "Guesses that match exactly one training row",
    direction=Direction.NEUTRAL,
    help="Includes what chance and general knowledge of the population achieve.",
)
CONTROL_RATE = Quantity(
    "control_rate",
    "Guesses that would match exactly one of as many strangers",
    direction=Direction.NEUTRAL,
    help="From control rows, at the size of the training table.",
)
NAIVE_RATE = Quantity(
    "naive_rate",
    "Random guesses that match exactly one training row",
    direction=Direction.NEUTRAL,
    help="Predicates of the same kind made without the release.",
)
PAIRED_RISK = Quantity(
    "paired_risk",
    "Singling-out risk, guess by guess",
    direction=Direction.NEUTRAL,
    range=(float("-inf"), 1.0),
    help="The same risk with each guess's outcome on train and control paired; where they are of equal size.",
)
PUBLISHED_RISK = Quantity(
    "published_risk",
    "Singling-out risk, control rate corrected as published",
    direction=Direction.NEUTRAL,
    range=(float("-inf"), 1.0),
    help="To compare with figures in the literature; it takes an honest release for a risk.",
)
EXACT_VALUES = Quantity(
    "exact_values",
    "Values of a column that belong to exactly one training row, beyond strangers",
    range=(float("-inf"), 1.0),
    proportional=False,
    help="Above 0 the column leaves with exact values of real people, whether or not their rows do.",
)
