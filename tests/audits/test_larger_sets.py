"""Known sets beyond two to five plain columns: many answers that tell little, and differences of dates."""

from datetime import datetime

import numpy as np
import pytest

from synth_audit.audits.privacy.partial_knowledge import PartialKnowledge, excess_of_shares
from synth_audit.audits.privacy.partial_knowledge.column_sets import derived_sets, following

N = 600
BLOCK = [f"q{i:02}" for i in range(2, 16)]


def answers(rng, n):
    return {f"q{i:02}": rng.choice(["no", "yes"], n) for i in range(24)}


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_fourteen_answers_give_away_whom_five_do_not(subject_of, measure, share):
    rng = np.random.default_rng(3)
    train, control, made = (answers(rng, n) for n in (N, N // 2, N))
    copied = rng.random(N) < share
    for name in BLOCK:
        made[name] = np.where(copied, train[name], made[name])
    found, findings = measure(PartialKnowledge(max_sets=20, max_people=N), subject_of(train, control, made))
    excess = found["excess_people"].interval
    assert (excess.low > 0.1) if share else (excess.low < 0 < excess.high < 0.1)
    assert any("that tell little each" in note for note in findings.notes)
    if share:
        [exposure] = findings.exposures
        assert set(exposure.columns) <= set(BLOCK)


def test_answers_of_fewer_people_are_seen_over_all_columns_of_their_block(subject_of, measure):
    rng = np.random.default_rng(1)
    train, control, made = (answers(rng, n) for n in (N, N // 2, N))
    copied = rng.random(N) < 0.15
    for name in BLOCK:
        made[name] = np.where(copied, train[name], made[name])
    found, findings = measure(PartialKnowledge(max_sets=4), subject_of(train, control, made))
    assert found["excess_people"].interval.low > 0.05
    assert any("average over the columns of a block" in note for note in findings.notes)


def stays(rng, n):
    """Three times of a stay, to the minute, and a diagnosis."""
    days = np.sort(rng.integers(0, 20_000, (n, 3)), axis=1) + rng.integers(0, 10**6, (n, 1))
    return days, rng.choice(list("abcdef"), n)


@pytest.mark.parametrize("shifted", [True, False])
def test_dates_that_were_shifted_together_give_people_away(subject_of, measure, shifted):
    rng = np.random.default_rng(4)
    (train, who), control, made = (stays(rng, n) for n in (N, N // 2, N))
    if shifted:
        made = train + 1440 * rng.integers(-365, 366, (N, 1)), who

    def table(of):
        times, diagnosis = of
        columns = ((times[:, i] + 25_000_000) * 60 for i in range(3))
        stamps = ([datetime.fromtimestamp(int(s)) for s in column] for column in columns)
        return {**dict(zip(("admitted", "imaged", "left"), stamps, strict=True)), "diagnosis": diagnosis}

    subject = subject_of(*(table(of) for of in ((train, who), control, made)))
    found, findings = measure(PartialKnowledge(max_sets=30, max_people=N), subject)
    assert (found["excess_people"].interval.low > 0.5) is shifted
    assert {c for e in findings.exposures for c in e.columns} <= {"admitted", "imaged", "left", "diagnosis"}


def test_what_follows_from_differences():
    of = [(), (), (), (0, 1), (1, 2), (0, 2)]
    assert following([3, 4], of) == {3, 4, 5}
    assert following([0, 3], of) == {0, 1, 3}
    assert following([0, 2], of) == {0, 2, 5}
    assert following([0, 3, 5], of) == {0, 1, 2, 3, 4, 5}


def test_no_known_set_holds_what_follows_from_it():
    of = [(), (), (), (0, 1), (1, 2), (0, 2)]
    sets = derived_sets(3, of[3:], 40, np.random.default_rng(0))
    assert {(3, 4), (3, 5), (4, 5), (0, 3), (2, 3)} <= set(sets)
    assert (3, 4, 5) not in sets
    assert all(i not in following([j for j in s if j != i], of) for s in sets for i in s)


def test_claims_of_one_person_hang_together_in_a_block():
    rng = np.random.default_rng(6)
    member = np.arange(900) < 600
    made = (rng.random(900) < 0.5).astype(float)
    right = made * (rng.random(900) < 0.6)
    none = excess_of_shares(made, right, member, member | ~member, 0.95)
    assert none.interval.low < 0 < none.interval.high < 0.06
    known = member & (np.arange(900) < 120)
    made[known] = right[known] = 1.0
    some = excess_of_shares(made, right, member, member | ~member, 0.95)
    assert none.value + 0.03 < some.value < some.interval.high < 0.15
    few = np.arange(900) < 605
    assert excess_of_shares(made, right, member, few, 0.95) is None
