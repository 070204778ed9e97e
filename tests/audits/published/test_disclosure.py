"""Replicated uniques and DiSCO: copies beside strangers, keys by name and by entropy, numbers in parts."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.published.disclosure import Disclosure
from synth_audit.errors import NotApplicable

KEYS = Disclosure(keys=("age", "region", "sex"))


def people(n, rng):
    age = rng.integers(18, 90, n)
    return {
        "age": age,
        "sex": rng.choice(["f", "m"], n),
        "region": rng.choice([f"r{i}" for i in range(40)], n),
        "ill": np.where(rng.random(n) < 0.05 + (age > 70) * 0.5, "yes", "no"),
        "income": rng.lognormal(10, 1, n),
    }


SENSITIVE = {"ill": {"role": "sensitive"}}


def test_a_copy_replicates_all_uniques_and_discloses_what_train_does(subject_of, measure):
    rng = np.random.default_rng(0)
    train, control = people(800, rng), people(400, rng)
    found, findings = measure(KEYS, subject_of(train, control, train, **SENSITIVE))
    assert found["rep_u"].value == found["unique_in_original"].value > 0.3
    assert found["disco", "ill"].value == found["disclosive_in_original", "ill"].value > 0.5
    assert found["rep_u"].reference.value < found["rep_u"].value - 0.2
    assert found["disco", "ill"].reference.value < found["disco", "ill"].value - 0.1
    assert findings.notes == ("keys: age, region, sex",)


def test_of_fresh_people_strangers_have_the_same_numbers(subject_of, measure):
    apart = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found, _ = measure(KEYS, subject_of(*(people(n, rng) for n in (600, 300, 600)), **SENSITIVE))
        apart += [found[x].value - found[x].reference.value for x in ("rep_u", ("disco", "ill"))]
    assert np.mean(apart) == pytest.approx(0, abs=0.015)
    assert found["rep_u"].value > 0.05  # what strangers share is no loss of privacy


def test_numbers_of_many_values_are_read_in_parts(subject_of, measure):
    rng = np.random.default_rng(1)
    subject = subject_of(people(500, rng), people(200, rng), people(500, rng), **SENSITIVE)
    fine, _ = measure(Disclosure(keys=("income",), bins=10_000), subject)
    parts, _ = measure(Disclosure(keys=("income",), bins=4), subject)
    assert fine["unique_in_original"].value == 1
    assert parts["unique_in_original"].value == parts["rep_u"].value == 0


def test_keys_that_nobody_names_are_those_that_tell_people_apart(subject_of, measure):
    rng = np.random.default_rng(2)
    train = people(500, rng)
    subject = subject_of(train, people(200, rng), train, **SENSITIVE)
    found, findings = measure(Disclosure(key_size=2), subject)
    named, _ = measure(Disclosure(keys=("income", "region")), subject)
    assert found["rep_u"] == named["rep_u"]
    assert findings.notes[0].startswith("keys: income, region, which tell people apart best")
    assert {k[1] for k in found if isinstance(k, tuple)} == {"ill"}
    _, without = measure(Disclosure(key_size=9), subject_of(train, None, train))
    assert without.notes[0].startswith("keys: age, income, region, sex,")  # ill is left to be attributed


def test_without_a_sensitive_column_all_that_are_no_keys_are_attributed(subject_of, measure):
    rng = np.random.default_rng(3)
    found, _ = measure(KEYS, subject_of(people(100, rng), None, people(100, rng)))
    assert {k[1] for k in found if k[0] == "disco"} == {"ill", "income"}
    assert found["rep_u"].reference is None


def test_missing_is_a_value(subject_of, measure):
    train = {"k": ["a", None, "b", "b"], "t": ["x", None, "y", "x"]}
    found, _ = measure(Disclosure(keys=("k",)), subject_of(train, train, train))
    assert found["rep_u"].value == 0.5
    assert found["disco", "t"].value == 0.5


def test_a_table_of_secrets_has_no_keys(subject_of, measure):
    rng = np.random.default_rng(4)
    table = people(50, rng)
    with pytest.raises(NotApplicable, match="key"):
        measure(Disclosure(), subject_of(table, table, table, **{n: {"role": "sensitive"} for n in table}))
