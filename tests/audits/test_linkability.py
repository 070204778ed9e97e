"""Linkability on tables whose answer is known, and against a loop that anyone can check."""

import numpy as np
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.audits.privacy import linkability
from synth_audit.audits.privacy.linkability import Linkability, _halves
from synth_audit.errors import NotApplicable
from synth_audit.stats.attack_success import risk
from synth_audit.stats.proportions import Proportion


def people(n, seed):
    """Two halves of a person that have nothing to do with each other: only the release can join them."""
    rng = np.random.default_rng(seed)
    return {
        "a1": rng.normal(size=n),
        "a2": rng.choice(["u", "v", "w"], n),
        "a3": rng.normal(size=n),
        "b1": rng.normal(size=n),
        "b2": rng.choice(["x", "y"], n),
        "b3": rng.normal(size=n),
    }


SIDES = {"columns_a": ("a1", "a2", "a3"), "columns_b": ("b1", "b2", "b3")}


def reordered(table, seed=0):
    n = len(next(iter(table.values())))
    order = np.random.default_rng(seed).permutation(n)
    return {name: np.asarray(values)[order] for name, values in table.items()}


@pytest.mark.parametrize("disguise", [dict, reordered])
@pytest.mark.parametrize("settings", [SIDES, {}])
def test_a_copy_joins_everybody(disguise, settings, subject_of, measure):
    train = people(600, 1)
    found, findings = measure(Linkability(**settings), subject_of(train, people(300, 2), disguise(train)))
    assert found["train_rate"].value == 1.0
    assert found["control_rate"].value < 0.3
    assert found["risk"].value > 0.95
    assert findings.exposures[0].train_hit.tolist() == list(range(600))


def test_strangers_are_joined_no_more_than_control(subject_of, measure):
    found, _ = measure(Linkability(**SIDES), subject_of(people(1500, 1), people(1500, 2), people(1500, 3)))
    assert found["risk"].interval.low <= 0 <= found["risk"].interval.high
    assert abs(found["risk"].value) < 0.05


def test_the_risk_grows_with_the_part_that_is_copied(subject_of, measure):
    train, control, other = people(1000, 1), people(500, 2), people(1000, 3)
    risks = []
    for part in (0, 250, 500, 1000):
        mixed = {name: np.concatenate([train[name][:part], other[name][part:]]) for name in train}
        risks.append(measure(Linkability(**SIDES), subject_of(train, control, mixed))[0]["risk"].value)
    assert risks == sorted(risks)
    assert risks[2] == pytest.approx(0.5, abs=0.06)


def by_hand(target, synthetic, side, spans, k):
    """Positions of the k nearest rows by one side; the tables have no ties."""
    n = len(synthetic[side[0]])
    distances = [
        sum(
            min(1, abs(target[c] - synthetic[c][i]) / spans[c])
            if c in spans
            else target[c] != synthetic[c][i]
            for c in side
        )
        for i in range(n)
    ]
    return set(np.argsort(distances)[:k].tolist())


def test_hits_are_those_of_a_plain_loop(subject_of, measure):
    train, control, synthetic = people(60, 1), people(40, 2), people(80, 3)
    spans = {c: np.ptp(train[c]) for c in ("a1", "a3", "b1", "b3")}
    audit = Linkability(**SIDES, n_neighbours=4)
    found, findings = measure(audit, subject_of(train, control, synthetic))
    [exposure] = findings.exposures
    for table, hits in ((train, exposure.train_hit), (control, exposure.control_hit)):
        expected = []
        for i in range(len(table["a1"])):
            target = {c: values[i] for c, values in table.items()}
            sets = [by_hand(target, synthetic, side, spans, 4) for side in SIDES.values()]
            if sets[0] & sets[1]:
                expected.append(i)
        assert hits.tolist() == expected
    assert 0 < len(exposure.train_hit) < 60
    tallies = Proportion(len(exposure.train_hit), 60), Proportion(len(exposure.control_hit), 40)
    assert found["risk"].value == risk(*tallies, 0.95).value
    assert found["risk"].interval == risk(*tallies, 0.95).interval


def test_ties_are_broken_apart_for_the_two_sides(subject_of, measure):
    """Everybody is alike on both sides: an attacker can only pick at random."""
    rng = np.random.default_rng(0)
    same = {"a": np.array(["u"] * 1000), "b": np.array(["x"] * 1000)}
    train = {**same, "c": rng.choice(["p", "q"], 1000), "d": rng.choice(["r", "s"], 1000)}
    sides = {"columns_a": ("a", "c"), "columns_b": ("b", "d")}
    found, _ = measure(Linkability(**sides), subject_of(train, train, train))
    assert found["train_rate"].value < 0.6
    assert found["control_rate"].value < 0.6


def test_the_naive_rate_is_that_of_random_sets(subject_of, measure):
    train = people(200, 1)
    found, _ = measure(Linkability(n_attacks=20_000), subject_of(train, people(100, 2), people(100, 3)))
    expected = 1 - np.prod([(90 - i) / (100 - i) for i in range(10)])
    assert found["naive_rate"].interval.low < expected < found["naive_rate"].interval.high


def test_requested_and_achieved_are_both_told(subject_of, measure):
    train, control = people(500, 1), people(60, 2)
    found, findings = measure(Linkability(**SIDES, n_attacks=300), subject_of(train, control, train))
    assert (found["risk"].n_requested, found["risk"].n_achieved) == (300, 60)
    assert found["risk"].short
    assert (found["train_rate"].n_achieved, found["control_rate"].n_achieved) == (300, 60)
    [exposure] = findings.exposures
    assert len(set(exposure.train_tried.tolist())) == 300
    assert (np.diff(exposure.train_tried) > 0).all()
    assert set(exposure.train_hit) <= set(exposure.train_tried)
    assert exposure.columns == (*SIDES["columns_a"], *SIDES["columns_b"])


def test_enough_guesses_on_both_sides_are_not_short(subject_of, measure):
    found, _ = measure(Linkability(**SIDES), subject_of(people(100, 1), people(100, 2), people(100, 3)))
    assert not found["risk"].short


@pytest.mark.parametrize("n_synthetic", [1, 5])
def test_fewer_rows_than_neighbours_decide_nothing(n_synthetic, subject_of, measure):
    """Every set holds every row, so everybody is joined, control too."""
    few = {name: values[:n_synthetic] for name, values in people(10, 3).items()}
    found, _ = measure(Linkability(**SIDES), subject_of(people(400, 1), people(400, 2), few))
    assert found["train_rate"].value == found["control_rate"].value == found["naive_rate"].value == 1.0
    assert found["risk"].interval.high > 0.5


def test_chosen_halves_are_balanced_and_know_no_order():
    rng = np.random.default_rng(0)
    columns = {f"k{i}": rng.choice([str(x) for x in range(2**i)], 4000) for i in range(1, 7)}
    columns["constant"] = np.array(["same"] * 4000)
    train = table_of(columns)
    one, other = _halves(train, train.schema.columns)
    names = [{c.name for c in side} for side in (one, other)]
    bits = [sum(int(name[1:]) for name in side) for side in names]
    assert sorted(names[0] | names[1]) == [f"k{i}" for i in range(1, 7)]
    assert abs(bits[0] - bits[1]) <= 1
    backwards = _halves(train, tuple(reversed(train.schema.columns)))
    assert [{c.name for c in side} for side in backwards] == names


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 10])
def test_the_interval_covers_the_risk_of_an_honest_release(k, subject_of, measure):
    """Two-sided coverage holds, and the end that gates look at misses no more often than it may.

    With k = 10 of 150 rows half of control is joined by chance: a symmetric interval would lie too high.
    """
    n_runs, audit = 300, Linkability(**SIDES, n_neighbours=k)
    ends = []
    for i in range(n_runs):
        subject = subject_of(*(people(150, 3 * (3 * i + part)) for part in range(3)))
        ends.append(measure(audit, subject, seed=i)[0]["risk"].interval)
    above, below = np.mean([e.low > 0 for e in ends]), np.mean([e.high < 0 for e in ends])
    assert above + below <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)
    assert max(above, below) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / n_runs)


@pytest.mark.parametrize("columns", [{"k": ["a", "b"] * 50}, {"k": ["a", "b"] * 50, "x": [1.0] * 100}])
def test_one_informative_column_has_nothing_to_link(columns, subject_of, measure):
    with pytest.raises(NotApplicable, match="two released columns"):
        measure(Linkability(), subject_of(columns, columns, columns))


def test_a_side_that_never_varies_is_not_attacked(subject_of, measure):
    train = people(50, 1) | {"c": np.ones(50)}
    with pytest.raises(NotApplicable, match="columns_b varies"):
        measure(Linkability(columns_a=("a1",), columns_b=("c",)), subject_of(train, train, train))


def test_unknown_columns_and_identifiers_are_named(subject_of, measure):
    train = people(50, 1) | {"key": np.arange(50)}
    subject = subject_of(train, train, people(50, 1), key={"role": "identifier"})
    with pytest.raises(NotApplicable, match="columns_b names column 'nowhere'"):
        measure(Linkability(columns_a=("a1",), columns_b=("nowhere",)), subject)
    with pytest.raises(NotApplicable, match="columns_a names column 'key', an identifier"):
        measure(Linkability(columns_a=("key",), columns_b=("b1",)), subject)


def test_identifiers_take_no_part(subject_of, measure):
    train = people(300, 1)
    keyed = train | {"key": np.arange(300)}
    control = people(300, 2) | {"key": np.arange(300, 600)}
    _, findings = measure(Linkability(), subject_of(keyed, control, train, key={"role": "identifier"}))
    assert "key" not in findings.exposures[0].columns
    assert "key" not in " ".join(findings.notes)


def test_fewer_records_are_looked_up_in_a_large_release(subject_of, measure, monkeypatch):
    train = people(600, 1)
    monkeypatch.setattr(linkability, "most_queries", lambda most, rows: min(most, 400, rows))
    found, _ = measure(Linkability(**SIDES), subject_of(train, people(500, 2), train))
    assert (found["risk"].n_requested, found["risk"].n_achieved) == (2000, 400)
    assert found["risk"].value > 0.95
