"""Replicated uniques and DiSCO: copies beside strangers, keys by name and by entropy, numbers in parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.audits.published.disclosure import (
    Disclosure,
    disclosed_target,
    replicated_unique,
    unique_rows,
)
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


@st.composite
def tables(draw):
    """Keys and targets of two tables."""

    def column(n, most):
        return np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)))

    sizes = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    return [(column(n, 4), column(n, 2)) for n in sizes]


@settings(max_examples=60, deadline=None)
@given(pair=tables())
def test_counts_are_those_of_loops(pair):
    (keys, targets), (made, made_targets) = pair
    real, other = keys.tolist(), made.tolist()
    unique = [real.count(q) == 1 for q in real]
    assert unique_rows(keys).tolist() == unique
    replicated = [u and other.count(q) == 1 for u, q in zip(unique, real, strict=True)]
    assert replicated_unique(keys, keys, made, inside=True).tolist() == replicated
    strangers = [real.count(q) == 0 and other.count(q) == 1 for q in other]
    assert replicated_unique(made, keys, made, inside=False).tolist() == strangers
    found = [{t for k, t in zip(other, made_targets, strict=True) if k == q} for q in real]
    told = [values == {t} for values, t in zip(found, targets, strict=True)]
    assert disclosed_target(keys, targets, made, made_targets).tolist() == told


def test_published_shares_of_a_small_example():
    """Two of four people are unique by key, one of them in the release too; of three who are found two are
    told, one of them rightly."""
    keys, targets = np.array([0, 1, 2, 2]), np.array([0, 1, 0, 0])
    made, made_targets = np.array([0, 2, 2, 2, 3]), np.array([0, 0, 0, 1, 1])
    assert unique_rows(keys).mean() == 0.5
    assert replicated_unique(keys, keys, made, inside=True).mean() == 0.25
    assert disclosed_target(keys, targets, made, made_targets).mean() == 0.25
    assert disclosed_target(keys, targets, keys, targets).mean() == 1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_stranger_is_asked_about_as_if_added(share):
    """Whoever is drawn from the same people has the number of train, whether the release is a copy of others
    or of nobody."""
    rng = np.random.default_rng(0)
    train, other, made = (rng.integers(0, 3000, n) for n in (2000, 2000, 2000))
    made = np.where(rng.random(2000) < share, made, 3000 + np.arange(2000))
    inside = replicated_unique(train, train, made, inside=True).mean()
    outside = replicated_unique(other, train, made, inside=False).mean()
    assert inside == pytest.approx(outside, abs=0.03)
    assert (inside > 0.1) == (share == 1)
