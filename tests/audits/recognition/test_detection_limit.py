"""Detection limits: planted leaks are what they are called, and the limit is where they are found."""

import doctest
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
import pytest

from synth_audit import registry
from synth_audit.audits.recognition import Recognition, detection_limit
from synth_audit.audits.recognition.coded_cells import CodedCells
from synth_audit.audits.recognition.detection_limit import (
    LARGEST_SHARE,
    NEAR,
    TOGETHER,
    WANTED,
    Search,
)
from synth_audit.audits.recognition.leak_classes import CLASSES, planted
from synth_audit.audits.recognition.matching import matched
from synth_audit.audits.recognition.people import (
    PooledColumn,
    PooledPeople,
    PooledWords,
    ReleaseMemory,
    pooled,
)
from synth_audit.audits.recognition.side_test import side_test
from synth_audit.audits.recognition.view import scored
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import in_processes
from synth_audit.plugins.audit import Cost, RandomSplit

N, ROWS = 400, 300
X0, SIGMA = -1.9, 0.8
"""Margin without a leak, and its deviation, as they are on most tables."""
OF = {leak.name: leak for leak in CLASSES}


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(1)

    def number(name, shift):
        return PooledColumn(
            name, rng.normal(size=N).round(3), rng.normal(shift, 1, ROWS).round(3), True, 0.001
        )

    def label(name, k):
        return PooledColumn(name, rng.integers(0, k, N) * 1.0, rng.integers(0, k, ROWS) * 1.0, False)

    words = PooledWords(
        "note",
        tuple(np.array([i]) for i in range(N)),
        tuple(np.array([N + i]) for i in range(ROWS)),
    )
    columns = (number("a", 0), number("b", 0), number("c", 0), label("d", 5), label("e", 9), label("f", 3))
    return PooledPeople(columns, (words,), np.arange(N), ROWS, 1)


MEMBER = np.arange(N) % 4 > 0


def changed(before, after):
    """Rows that differ in any column."""
    pairs = zip(before.columns, after.columns, strict=True)
    return np.flatnonzero(np.any([a.release != b.release for a, b in pairs], axis=0))


@pytest.mark.parametrize("leak", CLASSES, ids=lambda leak: leak.name)
def test_as_many_rows_change_as_people_leave_one(pool, leak):
    made, people, _ = planted(pool, MEMBER, leak, 0.1, np.random.default_rng(2))
    assert MEMBER[people].all()
    assert len(set(people)) == len(people) == 30
    assert len(changed(pool, made)) == 30
    assert all(len(c.release) == ROWS for c in made.columns)
    mine = {int(w[0]) for w in made.words[0].release} & set(range(N))
    assert mine == set(people.tolist())


@pytest.mark.parametrize("leak", CLASSES, ids=lambda leak: leak.name)
def test_with_a_memory_of_the_release_a_planting_is_scored_alike(pool, leak):
    """All but a few scores of the few people who had a best row that would not have stood out before."""
    remembering = replace(pool, memory=ReleaseMemory())
    [before] = scored(pool, 1, 3)
    [kept] = scored(remembering, 1, 3)
    assert np.array_equal(before.views.bits, kept.views.bits)
    remembering = replace(pool, memory=ReleaseMemory(kept.found))
    (made, people, _), (spared, *_) = (
        planted(p, MEMBER, leak, 0.05, np.random.default_rng(4)) for p in (pool, remembering)
    )
    assert len(spared.memory.replaced) == len(people)
    [whole] = scored(made, 1, 3)
    [part] = scored(spared, 1, 3)
    assert [s.view.title for s in whole.scores] == [s.view.title for s in part.scores]
    away = np.abs(whole.views.bits - part.views.bits)
    assert away.mean() < 0.1
    assert away[:, people].mean() < 0.2


def test_views_that_take_long_start_first(pool):
    asked = []

    def spread(work, pieces):
        asked.extend(registry.build("view", piece.name, {}).info.cost for piece in pieces)
        return map(work, pieces)

    scored(pool, 2, 3, spread)
    assert asked == sorted(asked, key=get_args(Cost).index, reverse=True)
    assert len(set(asked)) > 1


def test_other_processes_score_and_remember_the_same(pool):
    remembering = replace(pool, memory=ReleaseMemory())
    elsewhere = partial(RunContext(executor=in_processes(2)).map, "view")
    for one, other in zip(scored(remembering, 2, 3), scored(remembering, 2, 3, elsewhere), strict=True):
        assert np.array_equal(one.views.bits, other.views.bits)
        assert [x.columns for x in one.scores] == [x.columns for x in other.scores]
        assert sorted(one.found) == sorted(other.found)
    assert one.found
    assert not remembering.memory.found, "what is shared was changed"


def test_rows_that_stood_out_and_new_rows_are_enough_to_match():
    rng = np.random.default_rng(6)
    cells = [
        PooledColumn(c, rng.integers(9, size=80) * 1.0, rng.integers(9, size=200) * 1.0, False) for c in "abc"
    ]
    columns = [CodedCells.of(c) for c in cells]
    tables = [rng.random((4, 10, 10)) for _ in columns]
    memory = ReleaseMemory()
    matched(columns, tables, memory=memory, name="x")
    rows = np.array([7, 70, 170])
    for c in columns:
        c.release[rows] = rng.integers(9, size=3)
    whole, part = (
        matched(columns, tables, memory=m, name="x") for m in (None, replace(memory, replaced=rows))
    )
    for field in ("best", "margin", "mutual", "weights"):
        assert np.array_equal(getattr(whole, field), getattr(part, field))


def test_copies_are_rows_of_the_people(pool):
    made, people, _ = planted(pool, MEMBER, OF["copies"], 0.1, np.random.default_rng(3))
    rows = np.column_stack([c.release for c in made.columns])[changed(pool, made)]
    own = np.column_stack([c.people for c in made.columns])[people]
    assert {tuple(r) for r in rows} == {tuple(r) for r in own}


def test_fragments_keep_one_column_in_three_and_the_two_of_most_values(pool):
    made, people, _ = planted(pool, MEMBER, OF["fragments"], 0.2, np.random.default_rng(4))
    kept = [c for c in made.columns if np.isin(c.release[changed(pool, made)], c.people[people]).all()]
    exact = [c.name for c in kept if c.numeric]
    assert len(exact) in (2, 3)
    assert sum((a.release != b.release).any() for a, b in zip(pool.columns, made.columns, strict=True)) == 3


def test_near_copies_hold_numbers_near_by_rank(pool):
    made, people, _ = planted(pool, MEMBER, OF["near_copies"], 0.2, np.random.default_rng(5))
    rows = changed(pool, made)
    known = np.sort(pool.columns[0].people)
    theirs = np.searchsorted(known, np.sort(made.columns[0].release[rows]))
    mine = np.searchsorted(known, np.sort(pool.columns[0].people[people]))
    assert np.abs(theirs - mine).mean() < 0.05 * N


def test_a_subgroup_has_the_largest_or_rarest_values_of_a_column(pool):
    _, people, settled = planted(pool, MEMBER, OF["subgroup"], 0.05, np.random.default_rng(6))
    assert set(np.flatnonzero(settled & MEMBER)) == set(people.tolist())
    others = np.setdiff1d(np.flatnonzero(MEMBER), people)
    assert any(c.people[people].min() >= c.people[others].max() for c in pool.columns[:3]) or any(
        len(np.unique(c.people[people])) == 1 for c in pool.columns[3:]
    )


@pytest.mark.parametrize("seed", range(5))
def test_who_is_more_unusual_than_a_subgroup_keeps_their_side(pool, seed):
    """Had they been in the training set, they would have been chosen before others."""
    numbers = replace(pool, columns=pool.columns[:1])
    _, people, settled = planted(numbers, MEMBER, OF["subgroup"], 0.05, np.random.default_rng(seed))
    value = pool.columns[0].people
    above = value > value[people].min()
    assert settled.tolist() == (above | np.isin(np.arange(N), people)).tolist()
    assert (settled & ~MEMBER).any()


def test_no_more_people_than_rows_can_be_planted(pool):
    few = replace(
        pool, rows=20, columns=tuple(replace(c, release=c.release[:20]) for c in pool.columns), words=()
    )
    _, people, _ = planted(few, MEMBER, OF["copies"], 0.5, np.random.default_rng(7))
    assert len(people) == 20


def searched(margin, seed=0):
    """A search in which each planting has the margin that a function of share and randomness says."""
    search, rng = Search(OF["copies"], X0, 500), np.random.default_rng(seed)
    while not search.done:
        share = search.next_share()
        search.points += [(share, margin(share, rng), SIGMA) for _ in range(TOGETHER)]
    return search


@pytest.mark.parametrize("slope", [20, 80, 400])
def test_shares_planted_close_in_on_the_limit(slope):
    search = searched(lambda share, _: X0 + slope * share)
    assert len(search.points) <= 8
    assert search.limit() == pytest.approx((WANTED * SIGMA - X0) / slope, rel=0.01)


def test_a_leak_that_is_never_found_has_no_limit():
    search = searched(lambda *_: X0)
    assert search.limit() is None
    assert max(share for share, _, _ in search.points) * NEAR >= LARGEST_SHARE


@pytest.mark.parametrize("without", [X0, 0.0])
def test_a_leak_that_moves_nothing_has_no_limit(without):
    search = Search(OF["copies"], without, 500, 4 * [(0.05, without, 0.0)])
    assert search.limit() is None


def test_a_leak_that_one_person_shows_has_the_limit_of_one_person():
    assert searched(lambda *_: 50.0).limit() == 1 / 500


@pytest.mark.parametrize("deviation", [0.05, 0.2, 0.4])
def test_leaks_at_the_limit_are_found_as_often_as_it_says(deviation):
    """A leak is stronger or weaker with the people and columns drawn; the limit covers a new draw."""

    def margin(share, rng):
        return X0 + 60 * np.exp(deviation * rng.normal()) * share + SIGMA / 3 * rng.normal()

    found = []
    for seed in range(100):
        limit = searched(margin, seed).limit()
        new = np.random.default_rng((seed, 1))
        if limit is not None:
            found += [margin(limit, new) + SIGMA * new.normal() > 0 for _ in range(100)]
    assert len(found) > 8000
    assert np.mean(found) > 0.92


def test_examples_in_docstrings_hold():
    assert doctest.testmod(detection_limit) == (0, 2)


def people_of(n, seed):
    rng = np.random.default_rng([9, seed])
    z = rng.normal(size=n)
    return {
        "a": np.round(50 + 9 * z, 1),
        "b": np.round(rng.normal(100, 20, n), 1),
        "c": np.round(z + rng.normal(size=n), 2),
        "d": rng.choice(list("pqrs"), n),
    }


def values_of(findings):
    return {(m.id.quantity, m.id.setting): m.value for m in findings.measurements}


@pytest.fixture(scope="module")
def tables():
    return people_of(400, 1), people_of(200, 2), people_of(400, 3)


def run(subject, *, detection=False, **settings):
    return Recognition(draws=1, detection=detection, **settings).run(
        subject, RunContext(seed=1, draws=np.random.default_rng(1))
    )


@pytest.mark.parametrize("names", [("copies", "mixtures"), pytest.param(tuple(OF), marks=pytest.mark.slow)])
def test_fresh_rows_pass_with_limits_stated(names, subject_of, tables, monkeypatch):
    monkeypatch.setattr(detection_limit, "CLASSES", tuple(OF[name] for name in names))
    found = values_of(run(subject_of(*tables), max_people=150, detection=True))
    assert found["found", ""] == found["found_in_subgroup", ""] == 0
    limits = {setting: value for (name, setting), value in found.items() if name == "detection_limit"}
    assert set(limits) == {"", *names}
    assert limits["copies"] < 0.25
    assert limits[""] == max(limits[name] for name in names if name != "mixtures")


def test_a_leak_is_found_and_told_by_view_and_columns(subject_of, tables):
    train, control, other = tables
    release = {c: np.concatenate([train[c][:60], x[60:]]) for c, x in other.items()}
    findings = run(subject_of(train, control, release), detection=True)
    found = values_of(findings)
    assert next(m for m in findings.measurements if m.id.quantity == "found").interval.low > 0.01
    assert found["found", ""] > 0.1
    assert not any(name == "detection_limit" for name, _ in found)
    assert any(note.startswith("people are recognised by ") for note in findings.notes)
    assert any(note.startswith("detection limits were not measured") for note in findings.notes)
    [exposed] = findings.exposures
    assert np.mean(exposed.train_hit < 60) > 0.9


def test_sides_that_differ_by_themselves_give_no_finding_unless_they_were_drawn_here(subject_of, tables):
    train, control, other = tables
    later = {**control, "b": control["b"] + 15}
    with pytest.raises(NotApplicable, match=r"differ by themselves .* most in b"):
        run(subject_of(train, later, other))
    drawn = replace(subject_of(train, later, other), random_split=RandomSplit(ours=True))
    assert ("found", "") in values_of(run(drawn))


def test_sides_of_one_population_hardly_ever_differ(subject_of):
    found = []
    for seed in range(40):
        subject = subject_of(people_of(200, seed), people_of(100, 100 + seed), people_of(50, 200 + seed))
        pool, sides = pooled(subject, 1000, np.random.default_rng(seed))
        found.append(side_test(pool, sides.member, np.random.default_rng(seed)).p)
    assert sum(p <= 0.01 for p in found) <= 2
    assert np.median(found) > 0.2


def test_a_leak_within_one_category_is_told_of_that_category(subject_of):
    train, control, other = people_of(800, 1), people_of(400, 2), people_of(800, 3)
    left = np.flatnonzero(train["d"] == "p")[:100]
    release = {c: np.concatenate([train[c][left], x[100:]]) for c, x in other.items()}
    findings = run(subject_of(train, control, release))
    of = {m.id.quantity: m for m in findings.measurements}
    assert of["found_in_subgroup"].value > of["found"].value > 0.05
    worst = of["found_in_subgroup"]
    assert (worst.id.column, worst.n_achieved) == ("d", (train["d"] == "p").sum())


def test_planted_numbers_have_the_digits_of_the_release(pool):
    column = next(c for c in pool.columns if c.numeric)
    coarse = replace(column, release=np.round(column.release))
    made, people, _ = planted(
        replace(pool, columns=(coarse,)), MEMBER, OF["copies"], 0.2, np.random.default_rng(4)
    )
    assert len(people)
    assert np.array_equal(made.columns[0].release % 1, np.zeros(made.rows))
