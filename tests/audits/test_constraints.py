"""Rules that a release breaks: shares by hand, references, and what may not be told."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.fidelity.constraints import Constraints
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import corrected_level
from synth_audit.stats.proportions import proportion_interval
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


def subject_with(plan, train, control, synthetic, suppression=10):
    plan = parse_plan(plan)
    schema = infer_schema(pa.table(train), plan.columns, rules=plan.stated_rules)
    known, other, made = (
        None if t is None else read_table(pa.table(t), schema, where="table")
        for t in (train, control, synthetic)
    )
    return Subject(known, other, made, suppression=suppression)


TRAIN = {
    "age": [20, 30, 40, 50],
    "zip": ["p", "p", "q", "q"],
    "city": ["A", "A", "B", "B"],
    "end": [21, 31, 41, 51],
}
MADE = {
    "age": [17, 25, None, 130, 10],
    "zip": ["p", "q", "r", None, "p"],
    "city": ["B", "B", "A", "A", None],
    "end": [18, 20, 30, None, 11],
}
PLAN = {
    "rules": ["age >= 18", "age <= end", "zip -> city"],
    "columns": {"age": {"bounds": [0, 120]}, "city": {"categories": ["A", "B"]}},
}


def test_shares_by_hand(measure):
    found, findings = measure(Constraints(), subject_with(PLAN, TRAIN, TRAIN, MADE))
    expected = {
        "age >= 18": (2, 4),
        "age <= end": (1, 3),
        "zip -> city": (1, 2),
        "age between 0 and 120": (1, 4),
        "city in [A, B]": (0, 4),
    }
    for text, (broken, asked) in expected.items():
        m = found["violations", text]
        assert (m.value, m.n_achieved, m.n_requested) == (broken / asked, asked, 5)
        assert m.interval == proportion_interval(broken, asked, 0.95)
    assert found["violations"].value == 4 / 5
    assert found["violations"].interval == proportion_interval(4, 5, 0.95)
    assert found["unseen", "zip -> city"].value == 1 / 4
    assert {scope for name, scope in filter(lambda k: isinstance(k, tuple), found) if name == "unseen"} == {
        "zip -> city"
    }
    worst = found["worst_violations"]
    assert (worst.value, worst.n_achieved) == (1 / 2, 4)
    at = [proportion_interval(*pair, corrected_level(0.95, 5)) for pair in expected.values()]
    assert (worst.interval.low, worst.interval.high) == (max(i.low for i in at), max(i.high for i in at))
    assert worst.interval.method == "wilson, corrected for 5 rules"
    assert worst.interval.low <= worst.value <= worst.interval.high
    assert findings.notes == ()


def town(n, seed):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 30, n)
    age = rng.integers(18, 90, n)
    return {
        "zip": [f"z{c}" for c in code],
        "city": [f"c{c // 3}" for c in code],
        "age": age,
        "end": age + rng.integers(0, 20, n),
        "since": pa.array(rng.integers(0, 10**15, n), pa.timestamp("us")),
        "member": pa.array(rng.random(n) < 0.5, mask=rng.random(n) < 0.1),
    }


RULES = {
    "rules": [
        "zip -> city",
        "age <= end",
        "age between 18 and 89",
        "since >= 1970-01-01",
        "member in [true, false]",
    ]
}


@pytest.mark.parametrize("n", [150, 300])
def test_control_as_the_release_stands_at_its_reference(measure, n):
    plan = RULES | {"rules": [*RULES["rules"], "end < 80", "member, city -> zip"]}
    control = town(n, 1)
    found, _ = measure(Constraints(), subject_with(plan, town(300, 0), control, control))
    referred = [m for m in found.values() if m.reference is not None]
    assert {m.id.setting for m in referred} >= {"", "end < 80", "zip -> city", "member, city -> zip"}
    for m in referred:
        assert (m.value, m.interval) == (m.reference.value, m.reference.interval)
        assert m.reference.candidate is None


def test_columns_shuffled_one_by_one_break_what_ties_columns_together(measure):
    rng = np.random.default_rng(0)
    train = town(2000, 0)
    made = {n: pa.array(c).take(pa.array(rng.permutation(2000))) for n, c in train.items()}
    found, _ = measure(Constraints(), subject_with(RULES, train, town(500, 1), made))
    assert found["violations", "zip -> city"].value == pytest.approx(0.9, abs=0.03)
    assert found["violations", "age <= end"].value > 0.2
    for text in RULES["rules"][2:]:
        assert found["violations", text].value == 0
    copy, _ = measure(Constraints(), subject_with(RULES, train, town(500, 1), train))
    assert all(m.value == 0 for m in copy.values())


def test_a_release_larger_than_control_is_set_beside_it_at_its_size(measure):
    found, _ = measure(Constraints(), subject_with(RULES, town(300, 0), town(200, 1), town(300, 2)))
    assert found["worst_violations"].reference.candidate is not None


def test_without_rules_it_says_where_to_get_some():
    with pytest.raises(NotApplicable, match="synth-audit init"):
        Constraints().run(subject_with({}, TRAIN, TRAIN, MADE), RunContext(draws=np.random.default_rng(0)))


def test_bounds_alone_are_rules(measure):
    plan = {"columns": {"age": {"bounds": [0, 120]}}}
    found, _ = measure(Constraints(), subject_with(plan, TRAIN, None, MADE))
    assert found["violations", "age between 0 and 120"].value == found["violations"].value == 0.25
    assert all(m.reference is None for m in found.values())
    assert found["worst_violations"].interval.method == "wilson, corrected for 1 rule"


def test_a_rule_that_training_rows_break_is_said_to_be_a_habit(measure):
    train = {"a": [1] * 60 + [9] * 40, "b": [5] * 100}
    found, findings = measure(Constraints(), subject_with({"rules": ["a <= b"]}, train, train, train))
    assert found["train_violations", "a <= b"].value == 0.4
    assert found["violations"].reference.value == 0.4
    assert findings.notes == ("training rows break 'a <= b' themselves (40.00%)",)


@pytest.mark.parametrize("few", [1, 9])
def test_a_few_people_are_not_counted_out(measure, few):
    kept = {"a": [1] * 100, "b": [5] * 100}
    rare = {"a": [9] * few + [1] * (100 - few), "b": [5] * 100}
    most = {"a": [9] * (100 - few) + [1] * few, "b": [5] * 100}
    plan = {"rules": ["a <= b", "a >= 0"]}
    for train, control in ((rare, kept), (kept, rare), (rare, rare), (most, most)):
        found, findings = measure(Constraints(), subject_with(plan, train, control, kept))
        assert ("train_violations", "a <= b") not in found
        hidden = control is not kept
        assert (found["violations", "a <= b"].reference is None) is hidden
        assert (found["violations"].reference is None) is hidden
        assert (found["worst_violations"].reference is None) is hidden
        assert found["violations", "a >= 0"].reference.value == 0
        assert any("withheld" in note for note in findings.notes) is hidden
        assert any("training rows break" in note for note in findings.notes) is (train is not kept)
        said = json.dumps([findings.notes, findings.measurements], default=repr)
        assert f"0.0{few}" not in said
        assert f"0.{100 - few}" not in said
    shown, _ = measure(Constraints(), subject_with(plan, rare, rare, kept, suppression=few))
    assert shown["violations", "a <= b"].reference.value == few / 100


def test_values_that_are_not_there_leave_nothing_to_say(measure):
    train = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    made = {"a": pa.nulls(3, pa.float64()), "b": [1.0, 2.0, 3.0]}
    found, findings = measure(
        Constraints(), subject_with({"rules": ["a <= b", "b >= 0"]}, train, train, made)
    )
    silent = found["violations", "a <= b"]
    assert math.isnan(silent.value)
    assert silent.interval is None
    assert silent.short
    assert found["violations"].n_achieved == 3
    assert found["worst_violations"].value == 0
    assert any("a <= b" in note for note in findings.notes)
    nothing, _ = measure(Constraints(), subject_with({"rules": ["a <= b"]}, train, made, made))
    assert all(math.isnan(m.value) and m.interval is None and m.reference is None for m in nothing.values())


def test_names_of_columns_do_not_matter(measure):
    odd = {"a b": [1, 2, 3], "0.0": [2, 3, 4], "x`y": ["p", "q", "p"], "größe": [True, False, True]}
    plan = {"rules": ["`a b` <= `0.0`", '"x`y" -> größe', "größe -> `a b`"]}
    found, _ = measure(Constraints(), subject_with(plan, odd, odd, odd))
    assert found["violations", '"x`y" -> größe'].value == 0
    assert found["violations", "größe -> `a b`"].value == 0  # 1 and 3 are held equally often beside true


@pytest.mark.slow
def test_intervals_cover_the_shares_that_the_release_is_drawn_with():
    """Rules kept by 2, 10 and 10 % of rows, the last two by the same ones."""
    plan = {"rules": ["a < 0.02", "b < 0.1", "c < 0.1"]}
    truth = {
        ("violations", "a < 0.02"): 0.98,
        ("violations", ""): 1 - 0.02 * 0.1,
        ("worst_violations", ""): 0.98,
    }
    train = {name: [0.0, 0.01] for name in "abc"}
    rng = np.random.default_rng(0)
    hits = dict.fromkeys(truth, 0)
    for _ in range(1000):
        a, b = rng.random((2, 400))
        found = Constraints().run(
            subject_with(plan, train, None, {"a": a, "b": b, "c": b}), RunContext(draws=rng)
        )
        for m in found.measurements:
            if (m.id.quantity, m.id.setting) in truth:
                at = (m.id.quantity, m.id.setting)
                hits[at] += m.interval.low <= truth[at] <= m.interval.high
    assert min(hits.values()) >= 935


def test_a_determinant_whose_values_tie_determines_nothing_in_train(measure):
    tied = {"a": [f"g{i // 2}" for i in range(200)], "b": ["x", "y"] * 100}
    found, findings = measure(Constraints(), subject_with({"rules": ["a -> b"]}, tied, tied, tied))
    assert found["violations", "a -> b"].value == 0
    assert found["train_violations", "a -> b"].value == 0.5
    assert findings.notes == ("training rows break 'a -> b' themselves (50.00%)",)


@pytest.mark.parametrize("n_missing", [0, 1, 9, 10, 60])
def test_shares_do_not_tell_how_few_rows_lack_values(n_missing, measure):
    gaps = pa.array([9] * 30 + [1] * 70, mask=np.arange(100) >= 100 - n_missing)
    table = {"a": gaps, "b": [5] * 100}
    plan = {"rules": ["a <= b", "b >= 0"]}
    few = 0 < n_missing < 10
    found, findings = measure(Constraints(), subject_with(plan, table, table, table))
    assert (("train_violations", "a <= b") not in found) is few
    if not few:
        habit = found["train_violations", "a <= b"]
        assert habit.value == 30 / (100 - n_missing)
        assert habit.n_requested == habit.n_achieved == 100
    assert (found["violations", "a <= b"].reference is None) is few
    assert (found["worst_violations"].reference is None) is few
    assert found["violations", "b >= 0"].reference.value == 0
    assert found["violations"].reference.value == 0.3
    assert any("lack values" in note for note in findings.notes) is few


@pytest.mark.parametrize(("of_b", "told"), [(0, True), (3, False), (15, True)])
def test_the_share_of_all_rules_does_not_tell_how_few_break_one_alone(of_b, told, measure):
    rows = np.arange(200)
    control = {"a": np.where(rows < 50, 9, 1), "b": np.where((rows >= 20) & (rows < 50 + of_b), 9, 1)}
    kept = {"a": [1] * 200, "b": [1] * 200}
    found, findings = measure(
        Constraints(), subject_with({"rules": ["a <= 5", "b <= 5"]}, kept, control, kept)
    )
    assert found["violations", "b <= 5"].reference.value == (30 + of_b) / 200
    assert (found["violations"].reference is not None) is told
    assert any("break any rule is withheld" in note for note in findings.notes) is not told
    both = {"a": np.where(rows < 50, 9, 1), "b": np.where((rows >= 47) & (rows < 90), 9, 1)}
    found, _ = measure(Constraints(), subject_with({"rules": ["a <= 5", "b <= 5"]}, kept, both, kept))
    assert found["violations"].reference is None  # three rows break both
