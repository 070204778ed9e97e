"""Recoded copies: renamed labels, moved and turned numbers, honest releases, sizes."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy.recoded_copies import RecodedCopies
from synth_audit.core.errors import NotApplicable

AUDIT = RecodedCopies()
LABELS = np.array(list("abcdef"))
N = 300


def people(n, seed):
    rng = np.random.default_rng([5, seed])
    z = rng.normal(size=n)
    return {
        "age": np.rint(45 + 15 * z),
        "income": np.exp(10 + 0.3 * z + 0.5 * rng.normal(size=n)),
        "weight": rng.normal(70, 10, n),
        "score": rng.normal(size=n),
        **{f"label{i}": rng.choice(LABELS, n) for i in range(6)},
    }


def leaving(train, others, share, *, renamed=True, turned=False):
    """A release of others, but for a share of whom the rows are those of train, recoded."""
    rng = np.random.default_rng(0)
    n = round(share * N)
    made = {}
    for name, values in train.items():
        mine = values[:n]
        if mine.dtype.kind == "f":
            mine = mine + 0.01 * values.std() * rng.normal(size=n)
            if turned:
                order = np.sort(values)
                mine = order[::-1][np.clip(np.searchsorted(order, mine), 0, N - 1)]
        elif renamed:
            mine = rng.permutation(LABELS)[np.searchsorted(LABELS, mine)]
        made[name] = np.concatenate([mine, others[name][n:]])
    return made


@pytest.fixture(scope="module")
def linked(subject_of, measure):
    def run(release, audit=AUDIT):
        found, findings = measure(audit, subject_of(people(N, 1), people(150, 2), release))
        return found["linked_people"], findings

    return run


@pytest.mark.parametrize("turned", [False, True])
def test_renamed_labels_and_moved_numbers_hide_nobody(linked, turned):
    found, findings = linked(leaving(people(N, 1), people(N, 3), 0.3, turned=turned))
    assert found.interval.low > 0.1
    assert found.value < 0.35
    assert ("turned round" in findings.notes[0]) is turned


def test_people_with_their_labels_as_they_are_are_linked_as_well(linked):
    found, _ = linked(leaving(people(N, 1), people(N, 3), 0.1, renamed=False))
    assert found.interval.low > 0.04


def under_a_secret(train, others, secret, *, renamed=False):
    """A release of others, but for three tenths of the rows, whose numbers a secret of each person moved."""
    rng = np.random.default_rng(0)
    n = round(0.3 * N)
    key, made = rng.uniform(size=n), {}
    for name, values in train.items():
        mine = values[:n]
        if mine.dtype.kind == "f":
            mine = secret(mine, values, key)
        elif renamed:
            mine = rng.permutation(LABELS)[np.searchsorted(LABELS, mine)]
        made[name] = np.concatenate([mine, others[name][n:]])
    return made


def round_the_range(x, all_of_them, key):
    wide = np.ptp(all_of_them)
    return all_of_them.min() + np.mod(x - all_of_them.min() + key * wide, wide)


def scaled(x, _, key):
    return x * 3 ** (2 * key - 1)


def moved_by_its_spread(x, all_of_them, key):
    return x + (key - 0.5) * np.diff(np.quantile(all_of_them, [0.05, 0.95]))


def turned_by_a_coin(x, all_of_them, key):
    return np.where(key < 0.5, x, all_of_them.min() + all_of_them.max() - x)


@pytest.mark.parametrize(
    ("secret", "renamed", "named"),
    [
        (round_the_range, True, "in their ranges"),
        (scaled, True, "ratios"),
        (moved_by_its_spread, False, "by their spread"),
        (turned_by_a_coin, False, "from the middle"),
    ],
)
def test_a_secret_of_each_person_hides_nobody(linked, secret, renamed, named):
    found, findings = linked(under_a_secret(people(N, 1), people(N, 3), secret, renamed=renamed))
    assert found.interval.low > 0.1
    assert found.value < 0.35
    assert named in findings.notes[0]


def test_other_units_of_each_group_and_column_hide_nobody(linked):
    train, others = people(N, 1), people(N, 3)
    rng, n = np.random.default_rng(0), round(0.3 * N)
    group = np.searchsorted(LABELS, train["label0"][:n])
    made = {name: np.concatenate([train[name][:n], x[n:]]) for name, x in others.items()}
    for name in ("age", "income", "weight", "score"):
        made[name][:n] *= rng.choice([0.4, 0.7, 1.5, 2.2], len(LABELS))[group]
    found, findings = linked(made)
    assert found.interval.low > 0.1
    assert "each group" in findings.notes[0]


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_an_honest_release_links_nobody(linked, seed):
    found, _ = linked(people(N, seed))
    assert found.interval.low < 0 < found.interval.high < 0.1
    assert abs(found.value) < 0.05


def test_several_copies_of_everybody_are_no_excuse(linked):
    train = people(N, 1)
    found, _ = linked({name: np.tile(values, 10) for name, values in train.items()})
    assert found.value > 0.8


def test_few_people_are_looked_up_where_so_many_are_asked_for(linked):
    found, _ = linked(people(N, 3), RecodedCopies(max_people=120))
    assert found.n_achieved == 120
    assert found.n_minimum == 100


def test_labels_alone_and_text_do_not_stop_it(subject_of, measure):
    def table(n, seed):
        rng = np.random.default_rng(seed)
        return {
            "label": rng.choice(LABELS, n),
            "name": np.array([f"{x:x}" for x in rng.integers(1 << 40, 1 << 44, n)]),
            "note": rng.choice(["yes", "no"], n),
        }

    found, _ = measure(AUDIT, subject_of(table(200, 1), table(200, 2), table(200, 3)))
    assert abs(found["linked_people"].value) < 0.05


def test_what_cannot_be_asked(subject_of, measure):
    with pytest.raises(ValueError, match="at least 1"):
        RecodedCopies(max_people=0)
    with pytest.raises(NotApplicable, match="three"):
        measure(AUDIT, subject_of(people(20, 1), people(20, 2), people(2, 3)))
    with pytest.raises(NotApplicable, match="varies"):
        measure(AUDIT, subject_of(*({"x": np.ones(20)} for _ in range(3))))
    with pytest.raises(NotApplicable, match="two people"):
        measure(AUDIT, subject_of(people(20, 1), people(1, 2), people(20, 3)))


def test_it_does_not_answer_for_linkability():
    """Its gate decides and that of `linkability` advises: were both about one criterion, the first would
    answer it where the second could not."""
    assert RecodedCopies.info.risk == "membership"


def test_of_many_columns_some_are_compared_and_a_copy_is_seen_in_them(subject_of, measure):
    rng = np.random.default_rng(9)
    train, control, made = ({f"c{j}": rng.normal(size=n) for j in range(55)} for n in (120, 110, 120))
    copied = {name: np.concatenate([train[name][:60], made[name][:60]]) for name in made}
    for release, least, most in ((made, -0.1, 0.1), (copied, 0.4, 0.6)):
        found, _ = measure(RecodedCopies(), subject_of(train, control, release))
        assert least < found["linked_people"].value < most
