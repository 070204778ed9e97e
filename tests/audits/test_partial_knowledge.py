"""Whoever knows two to five values: copies of a few columns are seen, honest releases are not accused."""

import numpy as np
import pytest

from synth_audit.audits.privacy._known_columns import (
    _FEWEST,
    _WORK,
    _Windows,
    co_agreement,
    grown,
    looked_rows,
    strongest_pairs,
)
from synth_audit.audits.privacy.partial_knowledge import PartialKnowledge
from synth_audit.audits.privacy.partial_knowledge.column_sets import column_sets
from synth_audit.audits.privacy.partial_knowledge.weak_blocks import few_labels, weak_blocks
from synth_audit.errors import NotApplicable

N = 400
D = 8


def people(n, seed):
    """Three numbers, one of them whole, and five labels; some depend on one another."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return {
        "size": z + rng.normal(size=n),
        "dose": rng.normal(size=n),
        "age": np.clip(np.rint(45 + 15 * z), 18, 90).astype(int),
        **{f"k{i}": rng.choice(list("abcdef")[: i + 2], n) for i in range(5)},
    }


def with_columns(release, names, source):
    return release | {name: source[name] for name in names}


@pytest.fixture
def found(subject_of, measure):
    """Measurements by quantity and the findings for a release made of train and of other people."""

    def run(make, seed=0, n=N, specs=None, wrap=lambda t: t, **settings):
        train, control, other = people(n, seed), people(n // 2, seed + 1), people(n, seed + 2)
        made = make(train, other, np.random.default_rng(seed))
        subject = subject_of(*map(wrap, (train, control, made)), **(specs or {}))
        by_name, findings = measure(PartialKnowledge(max_sets=80, **settings), subject, seed)
        return {name: m for name, m in by_name.items() if isinstance(name, str)}, findings

    return run


def fresh(train, other, rng):
    return other


def block(train, other, rng):
    """Four columns of every train record, in another order, beside the others of new people."""
    rows = rng.permutation(N)
    return with_columns(other, ("dose", "age", "k3", "k4"), {c: v[rows] for c, v in train.items()})


def near(train, other, rng):
    """The block with numbers a little off."""
    made = block(train, other, rng)
    return made | {"dose": made["dose"] + rng.normal(0, 0.002, N)}


def fifth(train, other, rng):
    """The block in one row of five."""
    copied = rng.random(N) < 0.2
    made = block(train, other, rng)
    return {c: np.where(copied, made[c], other[c]) for c in other}


def wide(n, seed):
    """Forty numbers that have nothing to do with one another."""
    values = np.random.default_rng(seed).normal(size=(40, n))
    return {f"x{i:02}": v for i, v in enumerate(values)}


def margins(train, other, rng):
    """Columns of train, each in an order of its own: exact values, and nobody's."""
    return {c: rng.permutation(v) for c, v in train.items()}


@pytest.mark.parametrize("make", [block, near])
def test_a_block_of_columns_is_seen_in_an_otherwise_independent_release(found, make):
    measured, findings = found(make)
    assert measured["excess_people"].interval.low > 0.4
    assert measured["claimed"].value > 0.6
    assert measured["train_rate"].value > 0.6 > 0.1 > measured["control_rate"].value
    [exposure] = findings.exposures
    assert set(exposure.columns) <= {"dose", "age", "k3", "k4"}
    assert len(exposure.train_hit) / N == measured["train_rate"].value
    assert any("dose" in note for note in findings.notes)


def test_a_block_in_some_rows_is_seen_by_the_people_it_gives_away(found):
    measured, _ = found(fifth)
    assert measured["excess_people"].interval.low > 0.08
    assert measured["excess_people"].value < 0.22


@pytest.mark.parametrize(("copied", "seen"), [(4, True), (0, False)])
def test_a_block_is_found_among_more_pairs_than_can_be_tried(subject_of, measure, copied, seen):
    train, control, made = (wide(500, seed) for seed in (1, 2, 3))
    rows = np.random.default_rng(0).permutation(500)
    made = with_columns(made, list(made)[20 : 20 + copied], {c: v[rows] for c, v in train.items()})
    measured, _ = measure(PartialKnowledge(max_sets=40), subject_of(train, control, made))
    assert (measured["excess_people"].interval.low > 0.3) is seen


def test_in_a_narrow_table_one_value_is_enough(found):
    def two(table):
        return {c: table[c] for c in ("dose", "size")}

    measured, _ = found(lambda train, other, rng: train, wrap=two)
    assert measured["excess_people"].interval.low > 0.5


def test_numbers_in_text_are_compared_as_numbers(found):
    def as_text(table):
        spelled = {c: [f"{x:.3f} mg".replace(".", ",") for x in table[c]] for c in ("size", "dose")}
        return table | spelled

    measured, _ = found(near, wrap=as_text)
    assert measured["excess_people"].interval.low > 0.4


def test_exact_values_that_link_nothing_give_nobody_away(found):
    measured, _ = found(margins)
    assert measured["excess_people"].interval.low < 0.02


@pytest.mark.parametrize(("copied", "seen"), [(120, True), (0, False)])
def test_which_values_are_missing_is_a_secret(subject_of, measure, copied, seen):
    """Two numbers of some people with their gaps, every value beside them being somebody else's."""
    tables = [wide(N, seed) for seed in (1, 2, 3)]
    for seed, table in enumerate(tables):
        for name in list(table)[6:]:
            del table[name]
        gone = np.random.default_rng(10 + seed).random((4, N)) < 0.5
        for i, gaps in enumerate(gone):
            table[f"x{i + 2:02}"][gaps] = np.nan
    train, control, made = tables
    for name in ("x00", "x01"):
        made[name][:copied] = train[name][:copied]
    for name in list(made)[2:]:
        filled = np.nan_to_num(made[name][:copied], nan=0.3)
        made[name][:copied] = np.where(np.isnan(train[name][:copied]), np.nan, filled)
    measured, findings = measure(PartialKnowledge(max_sets=40), subject_of(train, control, made))
    assert (measured["excess_people"].interval.low > 0.08) is seen
    assert any("whether" in note and "is missing" in note for note in findings.notes) or not seen


def test_honest_releases_are_not_accused(found):
    runs = [found(fresh, seed=10 * seed)[0] for seed in range(4)]
    excess = [m["excess_people"] for m in runs]
    assert sum(m.interval.low <= 0 <= m.interval.high for m in excess) >= 3
    assert abs(np.mean([m.value for m in excess])) < 0.03


def test_people_are_counted_and_not_their_rows(found):
    def twice(table):
        n = len(table["dose"])
        return {c: np.repeat(v, 2) for c, v in table.items()} | {"id": np.repeat(np.arange(n), 2)}

    measured, _ = found(fresh, specs={"id": {"role": "identifier"}}, wrap=twice, max_people=1000)
    assert measured["excess_people"].n_achieved == N // 2


def test_any_row_of_a_person_may_be_the_one_that_is_looked_up(found):
    """The release has a block of everybody's second row alone."""

    def second_rows(train, other, rng):
        names = ("dose", "age", "k3", "k4")
        return with_columns(
            other, names, {c: np.concatenate([train[c][1::2], other[c][N // 2 :]]) for c in names}
        )

    def in_twos(table):
        return table | {"id": np.arange(len(table["dose"])) // 2}

    measured, _ = found(second_rows, specs={"id": {"role": "identifier"}}, wrap=in_twos)
    assert measured["excess_people"].n_achieved == N // 4
    assert measured["excess_people"].interval.low > 0.15


def test_few_people_are_too_few_to_decide(found):
    measured, _ = found(fresh, n=60)
    assert measured["excess_people"].short


def test_nothing_is_said_of_one_column_or_of_constants(subject_of, measure):
    one = {"x": np.arange(40.0)}
    with pytest.raises(NotApplicable, match="a further column"):
        measure(PartialKnowledge(), subject_of(one, one, one))
    constant = {"x": ["a"] * 10, "y": [1.5] * 10}
    with pytest.raises(NotApplicable, match="no column varies"):
        measure(PartialKnowledge(), subject_of(constant, constant, constant))
    two = {"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 4.0]}
    with pytest.raises(NotApplicable, match="two"):
        measure(PartialKnowledge(), subject_of(two, {c: v[:1] for c, v in two.items()}, two))


def test_how_many_sets_were_tried_is_said(found):
    _, findings = found(fresh)
    assert findings.notes[0] == (
        "known columns tried: 28 of 28 pairs, 17 of 56 triples, 17 of 70 quadruples, 18 of 56 quintuples, "
        "5 sets with differences of columns"
    )


@pytest.mark.parametrize(("d", "budget"), [(3, 100), (8, 80), (30, 60), (500, 200)])
def test_sets_differ_and_keep_to_the_budget(d, budget):
    looks = []

    def look(half):
        looks.append(half)
        apart = np.zeros((d, d))
        apart[4 + half, 9] = apart[9, 4 + half] = 5.0
        return apart

    drawn, guided = found = column_sets(d, budget, look, np.random.default_rng(0))
    both = [*drawn, *guided[0], *guided[1]]
    assert len(set(drawn)) == len(drawn)
    assert len(both) <= budget + 3
    assert all(tuple(sorted(set(s))) == s and (2 if d > 4 else 1) <= len(s) <= 5 for s in both)
    assert column_sets(d, budget, look, np.random.default_rng(0)) == found
    if d < 30:
        assert not looks, "all pairs are tried"
        assert {s for s in drawn if len(s) == 2} == {(i, j) for j in range(d) for i in range(j)}
    else:
        assert [half[0] for half in guided] == [(4, 9), (5, 9)]
    if d == 3:
        assert drawn == ((0, 1), (0, 2), (1, 2), (0,), (1,), (2,), (0, 1, 2))


BLOCK = list(range(3, 15))


def answers(rng, n):
    """Twenty-four answers of two or three, which hang together in both halves of the columns."""
    mood = rng.normal(size=(n, 1))
    return (rng.normal(size=(n, 24)) + 0.7 * mood > np.linspace(-1, 1, 24)).astype(np.int64)


@pytest.mark.parametrize(("share", "columns"), [(0.5, BLOCK), (0.0, [])])
def test_a_block_of_answers_is_found_and_nothing_where_there_is_none(share, columns):
    rng = np.random.default_rng(1)
    people, release = answers(rng, 700), answers(rng, 600)
    rows = rng.permutation(600)[: round(600 * share)]
    release[np.ix_(rows, columns)] = people[: len(rows)][:, columns]
    best = weak_blocks(release, people, np.random.default_rng(0))[0]
    if columns:
        assert set(best.order[: len(columns)].tolist()) == set(columns)
        assert best.size == pytest.approx(len(columns), abs=1)
        assert best.evidence > 10
    else:
        assert best.evidence < 7
    assert sorted(best.order.tolist()) == list(range(24))


def test_the_rarest_labels_are_one():
    assert few_labels(np.array([7, 7, 7, 2, 2, 9, 4]), 3).tolist() == [0, 0, 0, 1, 1, 2, 2]


STEP = 1e4


def test_near_rows_are_those_of_a_slow_twin():
    rng = np.random.default_rng(0)
    m = 200
    release = np.column_stack([rng.normal(size=m), rng.integers(0, 5, m), rng.integers(0, 3, m) * STEP])
    people = np.column_stack([rng.normal(size=9), rng.integers(-1, 7, 9), rng.integers(0, 4, 9) * STEP])
    windows = _Windows.of(zip(release.T, people.T, strict=True), STEP)
    for i, person in enumerate(people):
        near = np.empty((m, 3), bool)
        for j in range(3):
            ordered = np.sort(release[:, j])
            low = max(np.searchsorted(ordered, person[j]) - 2, 0)  # two values on either side: 2 % in all
            high = min(np.searchsorted(ordered, person[j], "right") + 1, m - 1)
            inside = (release[:, j] >= ordered[low]) & (release[:, j] <= ordered[high])
            near[:, j] = inside & (np.abs(release[:, j] - person[j]) < STEP / 2)
        counts = near.sum(axis=0)
        expected = np.minimum(
            (near.astype(float).T @ near) / np.sqrt(np.maximum(np.outer(counts, counts) / m, 1e-300)), 10
        )
        assert windows.agreement(i) == pytest.approx(np.where(np.outer(counts, counts) > 0, expected, 0))


def test_pairs_that_were_copied_together_stand_out():
    rng = np.random.default_rng(1)
    train, control, release = (rng.normal(size=(400, 12)) for _ in range(3))
    release[:, [2, 5, 7]] = train[rng.permutation(400)][:, [2, 5, 7]]
    member = np.arange(800) < 400
    apart = co_agreement(zip(release.T, np.vstack([train, control]).T, strict=True), member, STEP)
    assert set(strongest_pairs(apart, 3)) == {(2, 5), (2, 7), (5, 7)}
    assert apart[2, 5] > 6
    assert grown(apart, (2, 5), 3) == (2, 5, 7)
    assert len(set(grown(apart, (2, 5), 5))) == 5
    others = np.delete(np.delete(apart, [2, 5, 7], 0), [2, 5, 7], 1)[np.triu_indices(9, 1)]
    assert np.abs(others).max() < 4.5
    assert abs(others.mean()) < 1


@pytest.mark.parametrize(("m", "d"), [(1_000, 20), (1_000_000, 20), (8_000_000, 20), (8_000_001, 33)])
def test_looking_for_pairs_has_a_bound_and_takes_all_rows_below_it(m, d):
    looked = len(range(m)[looked_rows(m, d)])
    assert 2 * _FEWEST * (looked - 1) * d**2 <= _WORK
    assert (looked == m) == (2 * _FEWEST * m * d**2 <= _WORK)
