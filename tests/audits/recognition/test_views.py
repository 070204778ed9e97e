"""ViewScores: they see no sides, say the same twice, and together recognise what rows hold of people."""

from dataclasses import fields

import numpy as np
import pytest

from synth_audit import registry
from synth_audit.audits.recognition import pair_weights
from synth_audit.audits.recognition.coded_cells import CodedCells
from synth_audit.audits.recognition.matching import FIRST, LAST, matched
from synth_audit.audits.recognition.pair_weights import _larger
from synth_audit.audits.recognition.people import PooledColumn, PooledPeople, pooled
from synth_audit.audits.recognition.views import density, fragments, linkage
from synth_audit.errors import NotApplicable
from synth_audit.stats.roc import auroc

VIEWS = sorted(registry.catalogue("view"))
N = 150
WORDS = [f"word{i}" for i in range(60)]


def people(n, seed):
    rng = np.random.default_rng([5, seed])
    z = rng.normal(size=n)
    return {
        "a": np.round(50 + 9 * z, 1),
        "b": np.round(rng.normal(100, 20, n)),
        "c": np.where(rng.random(n) < 0.1, np.nan, np.round(z + rng.normal(size=n), 2)),
        "d": np.round(rng.gamma(2, 30, n), 1),
        "e": rng.choice(list("pqrs"), n),
        "f": rng.choice(list("uvw"), n, p=[0.7, 0.2, 0.1]),
        "note": [" ".join(rng.choice(WORDS, 9)) for _ in range(n)],
    }


@pytest.fixture(scope="module")
def release():
    """Rows of thirty training people among those of others."""
    train, other = people(N, 1), people(N, 3)
    return {c: np.concatenate([train[c][:30], x[30:]]) for c, x in other.items()}


@pytest.fixture(scope="module")
def drawn(subject_of, release):
    subject = subject_of(people(N, 1), people(N, 2), release)
    return pooled(subject, 1000, np.random.default_rng(0))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_scores_every_record_and_says_the_same_twice(name, drawn):
    pool, _ = drawn
    view = registry.build("view", name, {})
    first, second = (list(view.scores(pool, np.random.default_rng(1))) for _ in range(2))
    assert first or name == "shifts"  # which says nothing where no shift stands out
    assert len({s.name for s in first}) == len(first)
    for one, two in zip(first, second, strict=True):
        assert one.values.shape == (pool.records,)
        assert not np.isnan(one.values).any()
        assert (one.values < np.inf).all()
        assert np.array_equal(one.values, two.values)
        assert set(one.columns) <= {c.name for c in pool.columns} | {""}


@pytest.mark.parametrize("name", VIEWS)
def test_a_release_of_three_rows_is_scored_too(name, subject_of):
    few = {c: x[:3] for c, x in people(N, 3).items()}
    pool, _ = pooled(subject_of(people(N, 1), people(N, 2), few), 1000, np.random.default_rng(0))
    for score in registry.build("view", name, {}).scores(pool, np.random.default_rng(1)):
        assert not np.isnan(score.values).any()


@pytest.mark.parametrize("name", [v for v in VIEWS if v not in ("density", "shifts")])
def test_copied_people_score_higher_than_control_people(name, drawn):
    pool, sides = drawn
    copied = np.zeros(pool.people, dtype=bool)
    copied[sides.person[(sides.rows < 30) & sides.member[sides.person]]] = True
    best = 0.0
    for score in registry.build("view", name, {}).scores(pool, np.random.default_rng(1)):
        s = pool.of_people(score.values)
        best = max(best, np.mean(s[copied][:, None] > s[~sides.member][None]))
    assert best > 0.9


def of_numbers(people, release, numeric):
    """A pool of columns of whole numbers, given by name."""
    columns = tuple(PooledColumn(c, x, release[c], c in numeric, 1.0) for c, x in people.items())
    n, m = (len(next(iter(side.values()))) for side in (people, release))
    return PooledPeople(columns, (), np.arange(n), m, 1)


def separation(name, pool, leaked):
    """Largest AUC of the leaked people, of all scores of a view."""
    scores = [s.values for s in registry.build("view", name, {}).scores(pool, np.random.default_rng(1))]
    return max(np.mean(s[leaked][:, None] > s[~leaked][None]) for s in scores)


@pytest.mark.parametrize("written", [np.float64, np.float32, lambda x: np.round(x, 3)])
def test_a_fragment_shows_by_numbers_as_far_as_the_release_has_digits(written):
    rng = np.random.default_rng(7)
    people, release = ({c: rng.normal(size=n) for c in "abcdefghi"} for n in (400, 400))
    for i in range(60):
        for c in rng.permutation(list("abcdefghi"))[:3]:
            release[c][i] = people[c][i]
    pool = of_numbers(people, {c: written(x).astype(np.float64) for c, x in release.items()}, set(people))
    view = registry.build("view", "fragments", {})
    scores = [s.values for s in view.scores(pool, np.random.default_rng(1)) if s.name == "any 3 columns"]
    assert auroc(scores[0][:60], scores[0][60:]) > 0.75


def test_a_fragment_shows_by_a_number_that_is_equal_to_the_last_digit():
    rng = np.random.default_rng(3)

    def drawn(n):
        return {
            "fine": rng.integers(10**6, size=n) * 1.0,
            **{c: rng.integers(3, size=n) * 1.0 for c in "pqr"},
        }

    people, release = drawn(300), drawn(300)
    for c in ("fine", "p"):
        release[c][:40] = people[c][:40]
    assert separation("fragments", of_numbers(people, release, {"fine"}), np.arange(300) < 40) > 0.95


def test_a_shift_of_three_numbers_is_found_beside_spikes_of_two_coarse_ones():
    rng = np.random.default_rng(3)

    def drawn(n, phase):
        coarse = {c: 5.0 * rng.integers(30, size=n) + phase for c in "pqrs"}
        return {"fine": rng.integers(10**6, size=n) * 1.0, **coarse}

    people, release = drawn(400, 0), drawn(400, 2)
    for c, by in (("fine", 33_333), ("p", 7), ("q", 4)):
        release[c][:40] = people[c][:40] + by
    assert separation("shifts", of_numbers(people, release, set(people)), np.arange(400) < 40) > 0.95


def test_what_a_view_is_given_says_nothing_of_sides():
    known = {f.name for f in fields(PooledPeople)} | {f.name for f in fields(PooledColumn)}
    assert known == {
        *("columns", "words", "person", "rows", "repeats", "memory"),
        *("name", "people", "release", "numeric", "step", "time"),
    }


def test_people_stand_in_no_order_of_their_sides(drawn):
    _, sides = drawn
    assert 0.3 < sides.member[: N // 2].mean() < 0.7


def test_every_record_of_a_person_counts_as_the_person(subject_of):
    def visits(n, seed):
        return {"who": [f"{seed}-{i // 3}" for i in range(n)], **people(n, seed)}

    made = people(90, 3)
    subject = subject_of(visits(90, 1), visits(90, 2), made, who={"role": "split_key"})
    pool, sides = pooled(subject, 1000, np.random.default_rng(0))
    assert (pool.people, pool.records) == (60, 180)
    assert sides.member.sum() == 30
    scores = np.arange(180.0)
    assert np.array_equal(pool.of_people(scores), np.arange(2.0, 180, 3))
    assert np.array_equal(sides.positions(sides.member), np.arange(90))


def test_what_cannot_be_compared_is_not_applicable(subject_of):
    constant = {"a": np.ones(20)}
    for train, control, made in (
        (people(20, 1), None, people(20, 3)),
        (people(20, 1), people(3, 2), people(20, 3)),
        (people(20, 1), people(20, 2), people(2, 3)),
        (constant, constant, constant),
    ):
        with pytest.raises(NotApplicable):
            pooled(subject_of(train, control, made), 1000, np.random.default_rng(0))


@pytest.mark.parametrize("different", [1, 2, 30])
@pytest.mark.parametrize("m", [8, 9, 100, 3000])
def test_of_rows_that_weigh_the_same_the_last_are_kept(different, m):
    weights = np.random.default_rng(m).integers(0, different, (7, m)).astype(np.uint16)
    expected = np.argsort(weights, axis=1, kind="stable")[:, -LAST:]
    keyed = np.take_along_axis(weights, expected, axis=1).astype(np.int64) << 32 | expected
    none = np.zeros((7, LAST), np.uint64)
    assert np.array_equal(_larger(none, weights.T, 0), keyed)
    half = m // 2
    later = _larger(none, weights[:, half:].T, half)
    assert np.array_equal(_larger(later, weights[:, :half].T, 0), keyed)


@pytest.mark.parametrize("name", ["agreement", "linkage", "nearness", "recoding"])
def test_blocks_and_groups_of_any_size_give_the_same_scores(name, drawn, monkeypatch):
    def scores():
        return [s.values for s in registry.build("view", name, {}).scores(drawn[0], np.random.default_rng(2))]

    whole = scores()
    for size, value in {"RECORDS": 7, "ROWS": 16, "_COMBINATIONS": 5}.items():
        monkeypatch.setattr(pair_weights, size, value)
    assert np.array_equal(whole, scores())


def test_linkage_learns_from_the_best_rows_by_all_other_columns():
    rng, kept = np.random.default_rng(3), 1 + LAST
    columns = [
        CodedCells.of(
            PooledColumn(f"c{i}", *(rng.integers(4, size=n).astype(float) for n in (30, 400)), False)
        )
        for i in range(5)
    ]
    tables = [rng.integers(-5, 6, (5, 5)) * (8.0 if i == 2 else 0.5) for i in range(5)]  # many rows are tied
    bits = [c.agreement() for c in columns]
    place = rng.permutation(400)
    _, found = linkage._learned(columns, bits, tables, np.arange(30), place, None)
    for i in range(30):
        weights = np.array([t[c.people[i], c.release] for c, t in zip(columns, tables, strict=True)])
        for c in range(5):
            best = np.lexsort((place, weights[c] - weights.sum(axis=0)))[:kept]
            assert found[c, i].tolist() == best.tolist()


def test_trees_see_some_rows_of_a_large_release(drawn, monkeypatch):
    pool, seen = drawn[0], []

    def log_odds(cells, second, asked, rng):
        seen.append(int(second.sum()))
        return np.zeros(len(asked))

    monkeypatch.setattr(density, "log_odds", log_odds)
    for most in (pool.rows, 60):
        monkeypatch.setattr(density, "_MOST_ROWS", most)
        list(registry.build("view", "density", {}).scores(pool, np.random.default_rng(0)))
    assert seen == [pool.rows, pool.rows, 60, 60]


def test_fewer_sets_are_counted_in_a_large_release(drawn, monkeypatch):
    pool, asked, drawn_sets = drawn[0], [], fragments._some_sets

    def some_sets(d, size, most, rng):
        asked.append(most)
        return drawn_sets(d, size, most, rng)

    monkeypatch.setattr(fragments, "_some_sets", some_sets)
    for work in (fragments._WORK, 100 * pool.records * pool.rows, 0):
        monkeypatch.setattr(fragments, "_WORK", work)
        list(registry.build("view", "fragments", {}).scores(pool, np.random.default_rng(0)))
    assert asked == [400] * 3 + [100] * 3 + [24] * 3


@pytest.mark.parametrize("among_people", [False, True])
def test_match_weights_are_those_of_a_naive_sum(among_people):
    rng = np.random.default_rng(4)
    n, m = 300, 50
    columns = [
        PooledColumn("x", rng.normal(size=n), rng.normal(size=m), numeric=True),
        PooledColumn("y", rng.integers(-1, 4, n) * 1.0, rng.integers(-1, 4, m) * 1.0, numeric=False),
    ]
    cells = [CodedCells.of(c) for c in columns]
    person = np.arange(n) // 2
    if among_people:
        cells = [c.among_people() for c in cells]
    tables = [c.agreement()[None] for c in cells]
    found = matched(cells, tables, person=person if among_people else None)
    total = sum(t[0][c.people][:, c.release] for t, c in zip(tables, cells, strict=True))
    if among_people:
        total[person[:, None] == person[None]] = 0
    ranked = np.sort(total, axis=1)[:, ::-1]
    step = 3 * float(total.max()) / 2**16
    assert found.best[0] == pytest.approx(ranked[:, 0], abs=step)
    assert found.margin[0] == pytest.approx(ranked[:, 0] - ranked[:, 4:LAST].mean(axis=1), abs=step)
    assert found.weights[0] == pytest.approx(ranked[:, LAST - 1 :: -1], abs=2 * step)
    assert found.rows.shape == (4, n, LAST)
    others = np.sort(total, axis=0)[-FIRST:-1].mean(axis=0)  # a row's own best person is left out
    own = found.rows[0]
    beside = np.minimum(
        found.weights[0] - ranked[:, 4:LAST].mean(axis=1)[:, None], found.weights[0] - others[own]
    )
    assert found.mutual[0] == pytest.approx(beside.max(axis=1), abs=2 * step)


def test_cells_of_people_hold_no_cells_of_the_release():
    rng = np.random.default_rng(0)
    cells = CodedCells.of(PooledColumn("x", rng.random(10), rng.random(1000), numeric=True))
    assert cells.people.base is None
