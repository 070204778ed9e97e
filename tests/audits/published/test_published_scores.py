"""Golden numbers: the scores that papers define stay what they were on one table with copies."""

import numpy as np
import pytest

from synth_audit import registry
from synth_audit.audits.published.closest_record import identifiability

N_TRAIN, N_CONTROL, COPIED = 300, 100, 60


def people(n, rng):
    z = rng.normal(size=n)
    return {
        "age": np.clip(np.rint(45 + 15 * z), 18, 90),
        "income": np.round(np.exp(10 + 0.5 * z + 0.6 * rng.normal(size=n)), 2),
        "sex": rng.choice(["f", "m"], n),
        "region": rng.choice(list("abcdef"), n),
    }


@pytest.fixture(scope="module")
def subject(subject_of):
    rng = np.random.default_rng(2)
    train, control, other = (people(n, rng) for n in (N_TRAIN, N_CONTROL, N_TRAIN))
    release = {name: np.concatenate([train[name][:COPIED], x[COPIED:]]) for name, x in other.items()}
    return subject_of(train, control, release)


GOLDEN = {
    ("closest_record", "privacy_score"): 0.23129251700680273,
    ("closest_record", "share"): 250 / 300,
    ("closest_record", "nndr"): 0.6213577968709434,
    ("closest_record", "median_dcr"): 0.7691305318487702,
    ("disclosure", "rep_u"): 67 / 300,
    ("disclosure", ("disco", "sex")): 70 / 300,
    ("coverage", "authenticity"): 104 / 300,
}
"""Numbers into which no draw enters, by audit and quantity."""

GOLDEN_NEIGHBOURS = {
    "epsilon_identifiability": 163 / 300,
    "epsilon_identifiability_loss": 49 / 300,
    "nnaa": 247 / 600,
    "nnaa_loss": 0.0975,
    "hitting_rate": 166 / 300,
    "hitting_excess": 166 / 300 - 28 / 100,
}


@pytest.fixture(scope="module")
def reported(subject, measure):
    return {name: measure(registry.build("audit", name, {}), subject)[0] for name, _ in GOLDEN}


@pytest.mark.parametrize(("audit", "quantity"), GOLDEN)
def test_an_audit_reports_the_published_score(audit, quantity, reported):
    assert reported[audit][quantity].value == pytest.approx(GOLDEN[audit, quantity], rel=1e-6)


def test_measures_of_neighbours_report_the_published_scores(subject):
    rng = np.random.default_rng(3)
    found = [
        *identifiability.identifiability(subject, 1000, rng),
        *identifiability.adversarial_accuracy(subject, 1000, rng),
        *identifiability.hits(subject, 1000, rng),
    ]
    assert {m.id.quantity: m.value for m in found} == pytest.approx(GOLDEN_NEIGHBOURS, rel=1e-6)
