"""The exponential mechanism chooses with exactly the probabilities that it is paid for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from synth_audit.dp.mechanisms import exponential_choice


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1.0), (0.5, 2.0), (3.0, 1.5)])
def test_probabilities_are_those_of_the_exponential_mechanism(epsilon, sensitivity):
    scores = np.array([0.0, 1.0, 2.5, -1.0])
    weights = np.exp(epsilon * scores / (2 * sensitivity))
    drawn = [exponential_choice(scores, epsilon, sensitivity) for _ in range(8000)]
    found = np.bincount(drawn, minlength=4)
    assert chisquare(found, 8000 * weights / weights.sum()).pvalue > 1e-6
