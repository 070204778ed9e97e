"""Codes for "unknown" and a few extremes switch no distance off."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.published.closest_record import ClosestRecord

KEPT, REDRAWN = [f"x{i}" for i in range(6)], [f"y{i}" for i in range(4)]
CODE = 9999.0


def people(seed, n):
    rng = np.random.default_rng(seed)
    return {name: 50 + np.round(rng.normal(0, 10, n), 1) for name in (*KEPT, *REDRAWN)}


def spoilt(columns, seed):
    """In some columns 9999 in one cell of 200, and one absurd value."""
    rng = np.random.default_rng(seed)
    made = dict(columns)
    for name in KEPT:
        x = np.where(rng.random(len(columns[name])) < 0.005, CODE, columns[name])
        x[rng.integers(len(x))] = 1e6
        made[name] = x
    return made


def leaked(columns, seed):
    """The same rows with the last digits moved in these columns, and the others redrawn."""
    rng = np.random.default_rng(seed)
    moved = {name: columns[name] + rng.uniform(-0.3, 0.3, len(columns[name])) for name in KEPT}
    return moved | {name: rng.permutation(columns[name]) for name in REDRAWN}


@pytest.fixture(scope="module")
def scores(subject_of, measure):
    """What a leak of each table measures, plain and spoilt."""
    train, control = people(0, 400), people(1, 200)
    found = {}
    for name, change in (("plain", lambda x, _: x), ("spoilt", spoilt)):
        real, others = change(train, 2), change(control, 3)
        subject = subject_of(real, others, leaked(real, 4))
        audit = ClosestRecord(distances=("euclidean", "robust", "gower"), max_within=50, n_bootstrap=100)
        found[name] = measure(audit, subject)[0]
    return found


@pytest.mark.parametrize(
    ("name", "least"),
    [
        (("privacy_score", "agreement"), 0.9),
        (("privacy_score", "gower"), 0.2),
        (("privacy_score", "robust"), 0.07),
        (("share_leak", "gower"), 0.4),
    ],
)
def test_a_leak_is_seen_as_if_nothing_were_spoilt(scores, name, least):
    assert scores["plain"][name].value > least
    assert scores["spoilt"][name].value == pytest.approx(scores["plain"][name].value, abs=0.03)


def test_the_published_distance_keeps_its_scale_and_is_blinded(scores):
    assert scores["plain"]["privacy_score"].value > 0.05
    assert scores["spoilt"]["privacy_score"].value < 0.01
