"""Whoever knows two to five values: copies of a few columns are seen, honest releases are not accused."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy.partial_knowledge import PartialKnowledge
from synth_audit.audits.privacy.partial_knowledge.attacks import _knowledge
from synth_audit.audits.privacy.partial_knowledge.column_sets import ColumnSets, column_sets
from synth_audit.audits.privacy.partial_knowledge.grown_sets import GrownSet
from synth_audit.core.errors import NotApplicable

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


def mirrored(train, other, rng):
    """All records with their numbers turned round by rank."""
    turned = {c: np.sort(train[c])[::-1][np.argsort(np.argsort(train[c]))] for c in ("size", "dose", "age")}
    return train | turned


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
    assert measured["worst_auc"].interval.low > 0.75
    assert measured["excess_people"].interval.low > 0.4
    assert measured["claimed"].value > 0.6
    assert measured["train_rate"].value > 0.6 > 0.1 > measured["control_rate"].value
    [exposure] = findings.exposures
    assert set(exposure.columns) <= {"dose", "age", "k3", "k4"}
    assert len(exposure.train_hit) / N == measured["train_rate"].value
    assert any("dose" in note for note in findings.notes)


def test_a_block_in_some_rows_is_seen_by_the_people_it_gives_away(found):
    measured, _ = found(fifth)
    assert measured["worst_auc"].value < 0.7
    assert measured["excess_people"].interval.low > 0.08
    assert measured["excess_people"].value < 0.22


@pytest.mark.parametrize(("copied", "seen"), [(4, True), (0, False)])
def test_a_block_is_found_among_more_pairs_than_can_be_tried(subject_of, measure, copied, seen):
    train, control, made = (wide(500, seed) for seed in (1, 2, 3))
    rows = np.random.default_rng(0).permutation(500)
    made = with_columns(made, list(made)[20 : 20 + copied], {c: v[rows] for c, v in train.items()})
    measured, _ = measure(PartialKnowledge(max_sets=40), subject_of(train, control, made))
    assert (measured["worst_auc"].interval.low > 0.7) is seen
    assert (measured["excess_people"].interval.low > 0.3) is seen


def test_in_a_narrow_table_one_value_is_enough(found):
    def two(table):
        return {c: table[c] for c in ("dose", "size")}

    measured, _ = found(lambda train, other, rng: train, wrap=two)
    assert measured["excess_people"].interval.low > 0.5


def test_numbers_turned_round_are_turned_back(found):
    measured, findings = found(mirrored)
    assert measured["worst_auc"].interval.low > 0.8
    assert any("turned round" in note for note in findings.notes)


def test_numbers_in_text_are_compared_as_numbers(found):
    def as_text(table):
        spelled = {c: [f"{x:.3f} mg".replace(".", ",") for x in table[c]] for c in ("size", "dose")}
        return table | spelled

    measured, _ = found(near, wrap=as_text)
    assert measured["excess_people"].interval.low > 0.4


def test_exact_values_that_link_nothing_give_nobody_away(found):
    measured, _ = found(margins)
    assert measured["worst_auc"].value > 0.6, "they betray who was in train"
    assert measured["excess_people"].interval.low < 0.02


def rounded(n, seed):
    """Twelve numbers of 60 values that have nothing to do with one another."""
    values = np.random.default_rng(seed).integers(0, 60, (12, n))
    return {f"x{i:02}": v for i, v in enumerate(values)}


@pytest.mark.parametrize(("copied", "seen"), [(600, True), (0, False)])
def test_a_leak_in_many_blocks_is_summed_over_them(subject_of, measure, copied, seen):
    train, control, made = (rounded(1000, 1), rounded(400, 2), rounded(1000, 3))
    rng = np.random.default_rng(4)
    for row in range(copied):
        for i in rng.choice([[0, 3, 5, 7], [1, 2, 8, 9], [0, 4, 10, 11], [2, 5, 6, 10], [1, 3, 6, 11]]):
            made[f"x{i:02}"][row] = train[f"x{i:02}"][row]
    measured, findings = measure(PartialKnowledge(max_sets=20), subject_of(train, control, made))
    assert (measured["recognised_people"].interval.low > 0.2) is seen
    assert any("together" in note for note in findings.notes) is seen
    if not seen:
        assert measured["recognised_people"].interval.high < 0.05


BLOCKS = ([0, 3, 5, 7], [1, 2, 8, 9], [0, 4, 10, 11], [2, 5, 6, 10], [1, 3, 6, 11])


@pytest.mark.parametrize(("copied", "seen"), [(160, True), (80, True), (0, False)])
def test_a_leak_in_many_blocks_of_a_small_table_is_seen_and_its_honest_twin_passes(
    subject_of, measure, copied, seen
):
    train, control, made = (rounded(n, seed) for seed, n in enumerate((400, 170, 400)))
    for row in range(copied):
        for i in BLOCKS[row % 5]:
            made[f"x{i:02}"][row] = train[f"x{i:02}"][row]
    measured, _ = measure(PartialKnowledge(max_sets=20), subject_of(train, control, made))
    found = measured["recognised_people"].interval
    assert (found.low > 0.05) if seen else (found.high < 0.05)


def decoyed(train, made, copied):
    """A block of five columns of some people, once as it is and five times with one of the five another's."""
    rng = np.random.default_rng(5)
    names = [f"x{i:02}" for i in range(5)]
    for person in range(copied):
        for copy in range(6):
            for i, name in enumerate(names):
                changed = i + 1 == copy
                made[name][6 * person + copy] = rng.integers(60) if changed else train[name][person]


@pytest.mark.parametrize("sizes", [(600, 420, 700), (400, 170, 600)])
@pytest.mark.parametrize("share", [0.125, 0.0])
def test_decoys_hide_nobody(subject_of, measure, sizes, share):
    """They silence claims on which all nearest rows must agree, and not who shares values with one row."""
    train, control, made = (rounded(n, seed) for seed, n in enumerate(sizes))
    decoyed(train, made, int(share * sizes[0]))
    measured, _ = measure(PartialKnowledge(max_sets=20), subject_of(train, control, made))
    found = measured["recognised_people"].interval
    assert (found.low > 0.05) if share else (found.high < 0.05)


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
    assert (measured["recognised_people"].interval.low > 0.15) is seen


def test_honest_releases_are_not_accused(found):
    runs = [found(fresh, seed=10 * seed)[0] for seed in range(4)]
    for name, null in (("worst_auc", 0.5), ("excess_people", 0.0), ("recognised_people", 0.0)):
        inside = [m[name].interval.low <= null <= m[name].interval.high for m in runs]
        assert sum(inside) >= 3
        assert abs(np.mean([m[name].value for m in runs]) - null) < 0.03


def test_people_are_counted_and_not_their_rows(found):
    def twice(table):
        n = len(table["dose"])
        return {c: np.repeat(v, 2) for c, v in table.items()} | {"id": np.repeat(np.arange(n), 2)}

    measured, _ = found(fresh, specs={"id": {"role": "identifier"}}, wrap=twice, max_people=1000)
    assert measured["worst_auc"].n_achieved == N // 2


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
    assert measured["worst_auc"].n_achieved == N // 4
    assert measured["excess_people"].interval.low > 0.15


def test_few_people_are_too_few_to_decide(found):
    measured, _ = found(fresh, n=60)
    assert all(m.short for m in (measured["worst_auc"], measured["excess_people"]))


def test_nothing_is_said_of_one_column_or_of_constants(subject_of, measure):
    one = {"x": np.arange(40.0)}
    measured, findings = measure(PartialKnowledge(), subject_of(one, one, one))
    assert set(measured) == {"worst_auc"}
    assert "the only one" in findings.notes[0]
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
    numeric = tuple(range(0, d, 2))
    looks = []

    def look(half):
        looks.append(half)
        apart = np.zeros((d, d))
        apart[4 + half, 9] = apart[9, 4 + half] = 5.0
        return apart

    sets = column_sets(d, numeric, budget, look, np.random.default_rng(0))
    both = [*sets.drawn, *sets.guided[0], *sets.guided[1]]
    assert len(set(sets.drawn)) == len(sets.drawn)
    assert len(both) <= budget + 3
    assert all(tuple(sorted(set(s))) == s and (2 if d > 4 else 1) <= len(s) <= 5 for s in both)
    assert len(sets.mirrored) <= budget // 10
    assert {i for s in sets.mirrored for i in s} <= set(numeric)
    assert column_sets(d, numeric, budget, look, np.random.default_rng(0)) == sets
    if d < 30:
        assert not looks, "all pairs are tried"
        assert {s for s in sets.drawn if len(s) == 2} == {(i, j) for j in range(d) for i in range(j)}
    else:
        assert [half[0] for half in sets.guided] == [(4, 9), (5, 9)]
    if d == 3:
        assert sets.drawn == ((0, 1), (0, 2), (1, 2), (0,), (1,), (2,), (0, 1, 2))


@pytest.mark.parametrize("wrong", [{"max_sets": 0}, {"max_people": 0}, {"alpha": 0.0}, {"alpha": 0.6}])
def test_settings_out_of_range(wrong):
    with pytest.raises(ValueError, match="must be"):
        PartialKnowledge(**wrong)


def test_sets_that_grew_on_one_half_are_its_own_also_where_the_other_was_guided_to_them():
    nobody = np.empty(0, np.intp)
    grown = [
        GrownSet((0, 1), (0, 1), nobody, rank=1),
        GrownSet((1, 2), (1,), nobody, rank=3),
        GrownSet((0, 2), (0,), nobody, rank=1),
        GrownSet((2, 3), (0,), nobody, rank=4),
    ]
    sets = ColumnSets(drawn=((0, 2),), mirrored=(), guided=(((0, 1),), ((1, 2),)), possible={2: 6})
    tried = [(k.known, k.halves, k.grown) for k in _knowledge(sets, grown)]
    assert tried == [
        ((0, 2), (0, 1), False),
        ((0, 1), (0,), False),
        ((1, 2), (1,), False),
        ((0, 1), (1,), True),
    ]
