"""The numbers that the attribute game alone reports."""

from __future__ import annotations

from synth_audit.core.measurement import Direction, Quantity

MAB = Quantity(
    "mab",
    "Mean absolute coefficient (MAB)",
    unit="standard deviations",
    range=(0.0, float("inf")),
    proportional=False,
    help="How much one other column tells of the secret, in standard deviations, averaged over columns.",
)
REAL_MAB = Quantity(
    "real_mab",
    "Mean absolute coefficient in real rows",
    unit="standard deviations",
    direction=Direction.NEUTRAL,
    range=(0.0, float("inf")),
    help="The same where the real reference rows are drawn again instead of a release.",
)
REAL_MR2 = Quantity(
    "real_mr2",
    "Explained share of the secret's variance in real rows",
    direction=Direction.NEUTRAL,
    range=(float("-inf"), 1.0),
    help="The same where the real reference rows are drawn again instead of a release.",
)
WCAB = Quantity(
    "wcab",
    "Largest absolute coefficient (WCAB)",
    unit="standard deviations",
    direction=Direction.NEUTRAL,  # a maximum grows with the number of games, so that no interval can hold it
    range=(0.0, float("inf")),
    help="The most that any column told of the secret in any set.",
)
MR2 = Quantity(
    "mr2",
    "Explained share of the secret's variance (MR²)",
    range=(float("-inf"), 1.0),
    proportional=False,  # rises with the square of what is left of the coefficients
    help="Adjusted R², averaged over sets; 0 when other columns tell nothing of the secret.",
)
MSE = Quantity(
    "mse",
    "Squared error of guesses at the secret",
    unit="variances",
    direction=Direction.NEUTRAL,  # low for targets near the mean, whatever the release tells
    range=(0.0, float("inf")),
    help="A guess informs only where the error is below that of guessing the mean.",
)
ADVANTAGE = Quantity(
    "advantage",
    "Secrets of those learnt from guessed oftener than those of others",
    unit="probability",
    direction=Direction.NEUTRAL,  # what all people have in common is handed on without it
    range=(-1.0, 1.0),
    help="Share of guesses nearer than the mean among rows the generator saw, less that among others.",
)
REAL_MSE = Quantity(
    "real_mse",
    "Squared error of guesses at the secret, learnt from real rows",
    unit="variances",
    direction=Direction.NEUTRAL,
    range=(0.0, float("inf")),
    help="The same where the attacker learns from the real reference rows, drawn with replacement (MSE_R).",
)
