"""Coins that fall alike in every test run."""

import numpy as np
import pytest

from synth_audit.mechanism_test.examination import Claim, ClaimedMechanism, Effort, examine_claim
from synth_audit.mechanism_test.white_box import FunctionMechanism, array_pairs


@pytest.fixture
def asked():
    """Examine a mechanism, or a function of arrays, against a claim."""

    def ask(mechanism, claim=None, runs=2000, seed=0, pairs=None, **more):
        claim = claim or Claim(1.0)
        if not hasattr(mechanism, "repeated"):
            mechanism = FunctionMechanism(mechanism, pairs or array_pairs(claim, 10))
        rng = np.random.default_rng(seed)
        subject = ClaimedMechanism("it", mechanism, claim, **more)
        return examine_claim(subject, Effort(runs, None), rng=rng)

    return ask
