"""Partial agreement: halves of two people in one row, mirrored numbers, whole copies; honest releases."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy.partial_agreement import PartialAgreement
from synth_audit.core.errors import NotApplicable

AUDIT = PartialAgreement()
N, LEAKED = 500, 0.2


def people(n, seed):
    """A dozen numbers, some of which go together, and four labels."""
    rng = np.random.default_rng([31, seed])
    z = rng.normal(size=n)
    made = {f"x{i}": np.round(50 + 9 * rng.normal(size=n) + 6 * z * (i % 2), 1) for i in range(12)}
    return {**made, **{f"l{i}": rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]) for i in range(4)}}


@pytest.fixture
def linked(subject_of, measure):
    def run(release, control=None, train=None, audit=AUDIT):
        subject = subject_of(train or people(N, 1), control or people(N, 2), release)
        found, findings = measure(audit, subject)
        return found["linked_people"], findings

    return run


def leaving(made, others):
    """Rows of some people among those of others."""
    return {c: np.concatenate([x, others[c][len(x) :]]) for c, x in made.items()}


def torn(seed=4):
    """Each row holds a random half of one person, numbers moved by 1 %, and the other half of another."""
    rng, train = np.random.default_rng(seed), people(N, 1)
    n = round(LEAKED * N)
    other = rng.permutation(n)
    made = {}
    for c, x in train.items():
        made[c] = np.where(rng.random(n) < 0.5, x[:n], x[:n][other])
        if x.dtype.kind == "f":
            made[c] = np.round(made[c] + rng.normal(scale=0.3, size=n), 1)
    return made


def test_halves_of_two_people_in_one_row_give_both_away(linked):
    found, _ = linked(leaving(torn(), people(N, 3)))
    assert found.interval.low > 0.06
    assert found.value < 1.3 * LEAKED


def test_four_numbers_and_two_labels_in_every_row_lead_to_people(linked):
    train, others = people(N, 1), people(N, 3)
    rng, n = np.random.default_rng(6), round(LEAKED * N)
    made = {c: x[:n] for c, x in others.items()}
    for c in ("x0", "x2", "x4", "x6"):
        made[c] = np.round(train[c][:n] + rng.normal(scale=0.3, size=n), 1)
    made |= {c: train[c][:n] for c in ("l0", "l1")}
    found, findings = linked(leaving(made, others))
    assert found.interval.low > 0.06
    assert "set of columns" in findings.notes[0]


def test_numbers_all_mirrored_by_rank_hide_nobody(linked):
    train = people(N, 1)
    made = leaving({c: x[: round(LEAKED * N)] for c, x in train.items()}, people(N, 3))
    turned = {c: 100 - x if x.dtype.kind == "f" else x for c, x in made.items()}
    found, findings = linked(turned)
    assert found.interval.low > 0.1
    assert "mirrored" in findings.notes[0]


def test_numbers_typed_wrongly_hide_nobody(linked):
    made = leaving({c: x[: round(LEAKED * N)] for c, x in people(N, 1).items()}, people(N, 3))
    for c in (c for c, x in made.items() if x.dtype.kind == "f"):
        tenths = np.rint(10 * made[c]).astype(int)
        made[c] = (tenths - tenths % 100 + tenths // 10 % 10 + 10 * (tenths % 10)) / 10
    found, findings = linked(made)
    assert found.interval.low > 0.05
    assert "digits" in findings.notes[0]


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_copy_of_train_links_nearly_everybody(linked, shuffled):
    order = np.random.default_rng(0).permutation(N) if shuffled else np.arange(N)
    found, _ = linked({c: x[order] for c, x in people(N, 1).items()})
    assert found.value > 0.9


@pytest.mark.parametrize("seed", [3, 5, 6])
def test_an_honest_release_links_nobody(linked, seed):
    found, _ = linked(people(N, seed))
    assert found.interval.low < 0 < found.interval.high < 0.06


def test_several_copies_of_everybody_are_no_excuse(linked):
    found, _ = linked({c: np.tile(x, 4) for c, x in people(N, 1).items()})
    assert found.value > 0.9


def test_missing_values_agree_with_nothing(linked):
    def gaps(table, seed):
        rng = np.random.default_rng(seed)
        return {
            c: np.where(rng.random(N) < 0.5, np.nan, x) if x.dtype.kind == "f" else x
            for c, x in table.items()
        }

    found, _ = linked(gaps(people(N, 3), 1), control=gaps(people(N, 2), 2), train=gaps(people(N, 1), 3))
    assert found.interval.high < 0.06


def test_with_few_strangers_nothing_is_decided(linked):
    found, _ = linked(people(N, 3), control=people(60, 2))
    assert found.n_achieved < found.n_minimum


def test_labels_alone_and_columns_that_do_not_differ(linked):
    def same(n):
        return {"a": np.full(n, "x"), "b": np.full(n, "y")}

    with pytest.raises(NotApplicable, match="differs"):
        linked(same(N), control=same(N), train=same(N))
    found, _ = linked(*({c: x for c, x in people(N, k).items() if c[0] == "l"} for k in (3, 2, 1)))
    assert abs(found.value) < 0.05


def test_two_rows_and_one_person_are_too_few(linked):
    with pytest.raises(NotApplicable, match="three"):
        linked(people(2, 3))
    with pytest.raises(NotApplicable, match="two people"):
        linked(people(N, 3), control=people(1, 2))
    with pytest.raises(ValueError, match="at least 1"):
        PartialAgreement(max_people=0)
