"""People of train as strangers of the closest-record score, where control has few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from synth_audit.audits.published.closest_record import ClosestRecord
from synth_audit.audits.published.closest_record.neighbour_measures import StandIns
from synth_audit.plugins.audit import RandomSplit

AUDIT = ClosestRecord(distances=("euclidean",), n_bootstrap=200)
OURS = RandomSplit(0.8, ours=True)


def people(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: rng.normal(size=n) for name in "abcd"} | {"sex": rng.choice(["f", "m"], n)}


def measured(subject_of, measure, split, release, n=400, n_control=60, seed=0):
    rng = np.random.default_rng(seed)
    train, control = people(n, rng), people(n_control, rng)
    subject = subject_of(train, control, release(train, rng))
    return measure(AUDIT, replace(subject, random_split=split))


def fresh(train, rng):
    return people(len(train["a"]), rng)


def tenth(train, rng):
    made = people(len(train["a"]), rng)
    return {name: np.concatenate([train[name][:40], made[name][40:]]) for name in made}


@pytest.mark.parametrize("quantity", ["privacy_score", ("privacy_score", "agreement")])
def test_the_same_release_is_known_more_surely(quantity, subject_of, measure):
    rooms = {split: [] for split in (None, OURS)}
    for split, room in rooms.items():
        for seed in range(6):
            found, findings = measured(subject_of, measure, split, fresh, seed=seed)
            interval = found[quantity].interval
            assert interval.low <= 0.01
            assert interval.high >= 0
            room.append(interval.high)
            assert any("each beside those of others" in note for note in findings.notes) == (split is OURS)
    assert np.mean(rooms[OURS]) < 0.75 * np.mean(rooms[None])


def test_copies_score_what_they_are(subject_of, measure):
    found, _ = measured(subject_of, measure, OURS, lambda train, rng: train)
    assert found["privacy_score"].value == pytest.approx(1.0)
    found, _ = measured(subject_of, measure, OURS, tenth)
    assert found["privacy_score"].value == pytest.approx(0.1, abs=0.03)
    assert found["privacy_score"].interval.low > 0.05


def test_nobody_stands_in_where_chance_is_only_said_to_have_divided(subject_of):
    rng = np.random.default_rng(1)
    tables = people(30, rng), people(20, rng), people(30, rng)
    for split in (None, RandomSplit(), RandomSplit(0.6)):
        assert StandIns.of(replace(subject_of(*tables), random_split=split), rng) is None
    few = StandIns.of(replace(subject_of(*tables), random_split=OURS), rng)
    assert few is not None
    assert few.rows.tolist() == list(range(30))
    assert few.whose is None


def test_equal_rows_are_one_entity_as_their_coin_was(subject_of):
    rng = np.random.default_rng(2)
    train = {name: np.tile(values, 2) for name, values in people(15, rng).items()}
    subject = replace(subject_of(train, people(20, rng), train), random_split=OURS)
    few = StandIns.of(subject, rng)
    assert few is not None
    assert (few.whose[:15] == few.whose[15:]).all()
    assert len(np.unique(few.whose)) == 15


def test_equal_rows_that_had_coins_of_their_own_are_people_of_their_own(subject_of):
    rng = np.random.default_rng(3)
    train, control = ({f"q{i}": rng.integers(0, 8, n) for i in range(3)} for n in (900, 200))
    subject = subject_of(train, control, train)
    apart, together = (
        StandIns.of(replace(subject, random_split=replace(OURS, apart=how)), rng) for how in (True, False)
    )
    assert len(np.unique(together.whose)) < 450
    assert apart.whose is None or len(np.unique(apart.whose)) > 850
