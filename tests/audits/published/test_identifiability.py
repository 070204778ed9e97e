"""Identifiability: copies, honest releases, a memorised minority, subgroups too small to be judged."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.published.identifiability import Identifiability
from synth_audit.core.entities import key_columns
from synth_audit.core.errors import NotApplicable

AUDIT = Identifiability()


def people(n, seed, minority=0.1):
    rng = np.random.default_rng([7, seed])
    z = rng.normal(size=n)
    return {
        "group": np.where(rng.random(n) < minority, "few", "many"),
        "region": rng.choice(list("abcd"), n),
        "age": 45 + 15 * z + rng.normal(size=n),
        "income": np.exp(10 + 0.5 * z + 0.6 * rng.normal(size=n)),
        "score": rng.normal(size=n),
        "rate": rng.normal(size=n),
    }


def poor(n, seed):
    """Independent columns."""
    rng = np.random.default_rng([8, seed])
    return {name: rng.permutation(values) for name, values in people(n, seed + 100).items()}


def with_minority(train, made, jitter, seed=0):
    """A release in whose first rows everybody of the minority is nearly copied."""
    rng, rows = np.random.default_rng(seed), np.flatnonzero(train["group"] == "few")
    found = {}
    for name, values in made.items():
        copies = train[name][rows]
        if copies.dtype.kind == "f":
            copies = copies + jitter * train[name].std() * rng.normal(size=len(rows))
        found[name] = np.concatenate([copies, values[len(rows) :]])
    return found


@pytest.mark.parametrize("make", [people, poor])
def test_an_honest_release_has_room_under_the_limits(make, subject_of, measure):
    found, _ = measure(AUDIT, subject_of(people(1200, 1), people(400, 2), make(1200, 3)))
    assert found["loss"].interval.low < 0 < found["loss"].interval.high < 0.1
    assert found["near_copies"].interval.high < 0.05
    assert found["worst_subgroup_near_copies"].interval.low < 0
    assert found["worst_subgroup_near_copies"].interval.high < 0.3
    assert found["unjudged_people"].value == 0


def test_a_copy_gives_everybody_away(subject_of, measure):
    train = people(600, 1)
    order = np.random.default_rng(0).permutation(600)
    made = {name: values[order] for name, values in train.items()}
    found, _ = measure(AUDIT, subject_of(train, people(200, 2), made))
    assert found["loss"].interval.low > 0.4  # about half of control is nearer to the copies as well
    for name in ("near_copies", "worst_subgroup_near_copies"):
        assert found[name].value > 0.95


@pytest.mark.parametrize("make", [people, poor])
@pytest.mark.parametrize("jitter", [0.0, 0.03])
def test_a_memorised_minority_is_seen_whatever_the_rest_is(make, jitter, subject_of, measure):
    train = people(1500, 1)
    made = with_minority(train, make(1500, 3), jitter)
    found, _ = measure(AUDIT, subject_of(train, people(400, 2), made))
    assert found["worst_subgroup_near_copies"].interval.low > 0.3
    assert found["worst_subgroup_near_copies"].value > 0.6
    assert found["near_copies"].value == pytest.approx(0.1, abs=0.04)


def test_copies_moved_by_a_band_are_seen(subject_of, measure):
    """Half of the people leave a row most of whose bands moved by one up or down: labels alone, equal or not,
    show too little of it."""
    names = [f"reading {i}" for i in range(14)]

    def bands(codes):
        return {k: np.array([f"{10 * i}-{10 * i + 9}" for i in v]) for k, v in zip(names, codes, strict=True)}

    rng = np.random.default_rng(3)
    train, control, fresh = (rng.integers(0, 10, (len(names), n)) for n in (900, 300, 450))
    moved = np.clip(train[:, :450] + rng.choice([-1, 0, 1], (len(names), 450), p=[0.36, 0.28, 0.36]), 0, 9)
    leaky = subject_of(bands(train), bands(control), bands(np.hstack([moved, fresh])))
    honest = subject_of(bands(train), bands(control), bands(rng.integers(0, 10, (len(names), 900))))
    assert measure(AUDIT, leaky)[0]["moved_copies"].interval.low > 0.055
    assert measure(AUDIT, honest)[0]["moved_copies"].interval.high < 0.055


def test_outliers_are_a_subgroup(subject_of, measure):
    """Copies of those who are farthest from everybody else, whom no column tells apart."""
    train = people(1500, 1)
    z = np.stack([(v - v.mean()) / v.std() for v in train.values() if v.dtype.kind == "f"])
    far = np.argsort(-np.abs(z).sum(axis=0))[:150]
    made = {k: np.concatenate([train[k][far], v[150:]]) for k, v in poor(1500, 3).items()}
    found, _ = measure(AUDIT, subject_of(train, people(400, 2), made))
    assert found["worst_subgroup_near_copies"].interval.low > 0.3


def test_small_subgroups_are_named_by_column_only_and_counted_without_small_counts(subject_of, measure):
    train, control = people(1000, 1, minority=0.5), people(300, 2, minority=0.5)
    train["region"] = train["region"].astype("U12")
    train["region"][:3] = "secret place"
    found, findings = measure(AUDIT, subject_of(train, control, people(1000, 3)))
    assert found["unjudged_people"].value == 10 / 1000, "3 rounded up to the suppression limit"
    assert any("too small to be judged, also together: region" in note for note in findings.notes)
    assert "secret" not in " ".join(findings.notes)


def test_small_labels_are_judged_together_where_they_are_enough(subject_of, measure):
    train, control = people(1200, 1), people(300, 2)
    for table in (train, control):
        rare = np.array([f"r{i % 40}" for i in range(len(table["age"]))])
        table["region"] = np.where(np.arange(len(rare)) % 3 == 0, rare, table["region"])
    found, findings = measure(AUDIT, subject_of(train, control, people(1200, 3)))
    assert found["unjudged_people"].value == 0
    assert any("judged together, since each is too small: region" in note for note in findings.notes)


def test_several_rows_of_one_person_count_once(subject_of, measure):
    """Every row of the first 30 of 600 people is copied: 5 % of the people, though 17 % of the rows."""
    rng = np.random.default_rng(0)
    owner = np.concatenate([np.repeat(np.arange(30), 4), np.arange(30, 600)])
    train = people(len(owner), 1) | {"who": owner.astype(float)}
    control = people(300, 2) | {"who": 10_000 + np.arange(300.0)}
    made = people(len(owner), 3)
    made = {k: np.concatenate([train[k][:120], v[120:]]) for k, v in made.items()}
    subject = subject_of(train, control, made, who={"role": "split_key"})
    assert key_columns(subject.schema)
    found, _ = measure(AUDIT, subject, seed=int(rng.integers(100)))
    assert found["near_copies"].value == pytest.approx(0.05, abs=0.025)
    assert found["near_copies"].n_achieved == 300


def visits(n, seed, times=3):
    """Rows of people who come several times and change little; in random order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.repeat(np.arange(n), times))
    rows = {k: v[order] for k, v in people(n, seed).items()}
    moved = {"age": rows["age"] + rng.normal(0, 0.3, len(order))}
    return rows | moved | {"who": 10_000.0 * seed + order}


@pytest.mark.parametrize(("copied", "share"), [(0, 0.0), (40, 0.1)])
def test_other_visits_of_a_person_are_no_fellows(subject_of, measure, copied, share):
    """They were for train, but not for control: an honest release seemed farther from train than chance."""
    train, control, made = visits(400, 1), visits(150, 2), visits(400, 3)
    one_each = np.unique(train["who"], return_index=True)[1][:copied]
    made = {k: np.concatenate([train[k][one_each], made[k][copied:]]) for k in made if k != "who"}
    subject = subject_of(train, control, made | {"who": np.zeros(1200)}, who={"role": "split_key"})
    found, _ = measure(AUDIT, subject)
    assert found["near_copies"].value == pytest.approx(share, abs=0.035)
    assert found["loss"].value == pytest.approx(share / 3, abs=0.1)
    assert found["loss"].interval.low < share / 3 < found["loss"].interval.high


def test_one_person_has_no_fellows(subject_of, measure):
    one = people(40, 1) | {"who": np.zeros(40)}
    subject = subject_of(one, visits(50, 2), visits(50, 3), who={"role": "split_key"})
    with pytest.raises(NotApplicable, match="no fellows"):
        measure(AUDIT, subject)


def test_only_some_columns_make_subgroups_of_a_wide_table(subject_of, measure):
    subject = subject_of(people(300, 1), people(100, 2), people(300, 3))
    one, other = (measure(Identifiability(max_columns=2), subject, seed=3)[0] for _ in range(2))
    assert one["worst_subgroup_near_copies"] == other["worst_subgroup_near_copies"]


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"alpha": 0.6}, {"max_queries": 0}, {"max_columns": 0}])
def test_settings_are_checked(bad):
    with pytest.raises(ValueError, match="must be"):
        Identifiability(**bad)
