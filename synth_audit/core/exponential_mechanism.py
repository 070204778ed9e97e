"""The exponential mechanism (McSherry & Talwar 2007): one of several candidates, the better the likelier."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.noise import gumbel_noise


def exponential_choice(scores: Floats, epsilon: float, sensitivity: float) -> int:
    """The position of one score, i with probability ∝ exp(ε · scores[i] / (2 Δ)).

    Drawn as the largest of scores plus Gumbel noise of scale 2 Δ / ε, from the operating system's entropy.

    Args:
        scores: of the candidates, shape (k,), k ≥ 1.
        epsilon: what the choice costs, to be spent before.
        sensitivity: the most Δ by which one row added or removed changes any score.
    """
    return int(np.argmax(scores + gumbel_noise(2 * sensitivity / epsilon, len(scores))))
