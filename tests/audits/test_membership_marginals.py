"""Membership by marginals: guessing for an independent release, better than distances where counts leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from synth_audit.audits.privacy.membership_data_only import MembershipDataOnly
from synth_audit.audits.privacy.membership_marginals import MembershipMarginals
from synth_audit.core.accounting import Neighbouring, PrivacyGuarantee, Unit
from synth_audit.core.generator import FitContext
from synth_audit.core.subject import RandomSplit
from synth_audit.generators.priv_bayes import PrivBayes
from synth_audit.kernels.privacy_region import most_found

AUDIT = MembershipMarginals()
SCORES = ("tree", "pairs", "columns")


def people(n, rng):
    z = rng.normal(size=n)
    more = {f"x{i}": 0.6 * z + 0.8 * rng.normal(size=n) for i in range(8)}
    return {"region": rng.choice(list("abcdef"), n), "smoker": rng.random(n) < 0.3, **more}


def guaranteed(epsilon, neighbouring):
    return PrivacyGuarantee(Unit.ROW, neighbouring, epsilon, 0.0, "hand", (), (), ())


def test_counts_of_a_tree_betray_whom_distances_do_not(subject_of, measure):
    rng = np.random.default_rng(0)
    subject = subject_of(people(300, rng), people(300, rng), people(10, rng))
    model = PrivBayes().fit(subject.train, FitContext(rng=rng))
    subject = replace(subject, synthetic=model.sample(300, rng))
    found, _ = measure(AUDIT, subject)
    usual, _ = measure(MembershipDataOnly(n_trees=10), subject)
    assert found["auc", "tree"].interval.low > 0.6
    assert found["auc", "tree"].value > usual["worst_auc"].value + 0.05
    assert found["advantage", "tree"].interval.low > 0.1
    assert found["worst_auc"].value == max(found["auc", s].value for s in SCORES)


@pytest.mark.parametrize(("n", "n_control", "n_synthetic"), [(200, 80, 200), (80, 200, 400)])
def test_an_independent_release_is_guessing_whatever_the_sizes(
    n, n_control, n_synthetic, subject_of, measure
):
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        subject = subject_of(people(n, rng), people(n_control, rng), people(n_synthetic, rng))
        found.append(measure(AUDIT, subject)[0])
    for score in SCORES:
        assert np.mean([f["auc", score].value for f in found]) == pytest.approx(0.5, abs=0.035)
        assert np.mean([f["advantage", score].value for f in found]) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize(
    ("split", "neighbouring", "times"),
    [
        (RandomSplit(0.5), Neighbouring.ADD_OR_REMOVE, 1),
        (None, Neighbouring.ADD_OR_REMOVE, 2),
        (None, Neighbouring.REPLACE, 1),
    ],
)
def test_what_a_guarantee_allows_is_drawn_beside(split, neighbouring, times, subject_of, measure):
    rng = np.random.default_rng(0)
    subject = subject_of(people(60, rng), people(60, rng), people(60, rng))
    [plain] = measure(AUDIT, subject)[1].series
    assert set(plain.lines) == set(SCORES)
    promised = replace(subject, guarantee=guaranteed(0.5, neighbouring), random_split=split)
    [drawn] = measure(AUDIT, promised)[1].series
    line = drawn.lines[f"most that ε = {promised.guarantee.epsilon:g} allows"]
    epsilon = times * promised.guarantee.epsilon
    assert line == pytest.approx([most_found(x, epsilon, 0) for x in drawn.x], abs=1e-6)


@pytest.mark.parametrize(
    ("unit", "rows_each", "lines"), [(Unit.ROW, 2, 3), (Unit.ENTITY, 2, 4), (Unit.ROW, 1, 4)]
)
def test_what_is_promised_to_rows_is_not_drawn_for_people_with_several(
    unit, rows_each, lines, subject_of, measure
):
    rng = np.random.default_rng(0)
    keys = {"person": np.arange(60) // rows_each}
    others = {"person": 100 + np.arange(60)}
    subject = subject_of(
        people(60, rng) | keys, people(60, rng) | others, people(60, rng), person={"role": "split_key"}
    )
    guarantee = replace(guaranteed(0.5, Neighbouring.REPLACE), unit=unit)
    [drawn] = measure(AUDIT, replace(subject, guarantee=guarantee))[1].series
    assert len(drawn.lines) == lines


def test_missing_values_text_and_single_columns_are_no_obstacle(subject_of, measure):
    rng = np.random.default_rng(0)
    gaps = {"x": [None if rng.random() < 0.2 else float(rng.normal()) for _ in range(60)]}
    found, _ = measure(AUDIT, subject_of(gaps, gaps, gaps))
    assert found["worst_auc"].value == pytest.approx(0.5, abs=0.02)
    assert ("auc", "tree") not in found
    notes = {"x": [f"a note of {i} words by {i * 7 % 61}" for i in range(60)]}
    others = {"x": [f"another note of {i} words" for i in range(60)]}
    found, _ = measure(AUDIT, subject_of(notes, others, notes, x={"kind": "text"}))
    assert found["worst_auc"].value == 1.0


@pytest.mark.parametrize("wrong", [{"bins": 1}, {"max_members": 0}, {"max_counted": 0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MembershipMarginals(**wrong)
