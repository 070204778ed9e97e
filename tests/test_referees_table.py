"""What the table of the leak zoo makes of answers, and two versions' verdicts side by side."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ZOO = Path(__file__).parent.parent / "benchmarks" / "leak_zoo"


@pytest.fixture
def table(monkeypatch):
    monkeypatch.syspath_prepend(str(ZOO))
    import referees_table

    yield referees_table
    sys.modules.pop("referees_table")


@pytest.fixture
def zoo(monkeypatch):
    monkeypatch.syspath_prepend(str(ZOO))
    import leaks

    yield leaks
    for name in ("leaks", "disclosure_control", "values", "tables"):
        sys.modules.pop(name)


def answer(share, scores, alarm=None, auditor="peer", **more):
    made = {"auditor": auditor, "table": "t", "guise": "plain", "kind": "copies", "seed": 0}
    return {**made, "share": share, "scores": scores, "alarm": alarm, "seconds": 1.0, **more}


def honest(values, **more):
    return [answer(0.0, {"s": v, "u": 1.0}, **more) for v in values]


def test_limits_keep_their_rate_of_false_alarms_whatever_the_number_of_scores(table):
    rng = np.random.default_rng(0)
    raised = [
        any(rng.normal() > table.limit(list(rng.normal(size=6)), 4) for _ in range(4)) for _ in range(1_500)
    ]
    assert 0.03 < np.mean(raised) < 0.07


def test_a_score_alarms_beyond_its_honest_values_alone(table):
    known = honest([0.1, 0.2, 0.3])
    assert table.readings(answer(0.05, {"s": 0.3, "u": 1.0}), known) == [False]
    assert table.exceeded(answer(0.05, {"s": 9.0, "u": 1.5}), known) == ["s", "u"]
    assert table.exceeded(answer(0.05, {"s": float("nan")}), known) == []
    assert table.readings(answer(0.05, {"s": 9.0}, table="other"), known) == []
    assert table.readings(answer(0.05, {"s": 9.0}, alarm=False), known) == [False, True]


def test_the_smallest_size_is_that_from_which_on_all_are_seen(table):
    assert table.smallest_seen({1.0: [True], 0.2: [True], 0.05: [False], 0.01: [True]}) == 0.2
    assert table.smallest_seen({1.0: [True, False]}) == table.NEVER
    assert table.smallest_seen({}) is None
    assert table.told({0.2: [False], 0.05: [False]}) == "not at 20 %"
    assert table.told({0.2: [True], 0.05: [False]}) == "20 %"
    assert table.told({}) == ""


def test_the_table_tells_sizes_versions_and_wrong_passes(table):
    rows = [
        *honest([0.1, 0.2, 0.3, 0.2], version="2"),
        answer(0.05, {"s": 7.0, "u": 1.0}, version="2"),
        answer(0.01, {"s": 0.2, "u": 1.0}, version="2"),
        answer(0.05, {"gate": 0.5}, True, "synth_audit"),
        answer(0.01, {"gate": 0.0}, False, "synth_audit"),
    ]
    told = "\n".join(table.leaks_of(rows, ["copies", "smote"]))
    assert "| copies | 5 %, insufficient evidence | 5 % s |" in told
    assert "smote" not in told
    auditors = table.auditors_of(rows)
    assert "| peer | 2 | 6 | 2 | none documented | 0 of 4 | 1, 1 |" in auditors
    assert "| synth_audit |  | 2 | 1 | 0 of 0 |  | 1, 1 |" in auditors
    assert table.passed(rows) == ["* copies, 1 % of t"]
    assert table.passed([{**rows[-1], "share": 0.2}]) == ["* **copies, 20 % of t**"]
    assert table.undecided(rows) == "1 of 1"


def test_it_tells_where_another_sees_less_than_this_tool(table):
    peer = [*honest([0.1, 0.2, 0.3]), answer(0.05, {"s": 9.0, "u": 1.0}), answer(0.01, {"s": 0.2, "u": 1.0})]
    ours = [
        answer(0.05, {"gate": 0.0}, False, "synth_audit"),
        answer(0.2, {"gate": 1.0}, True, "synth_audit"),
    ]
    assert table.beaten([*peer, *ours], ["copies", "smote"]) == [
        "* copies of t: peer sees 5 %; this tool sees 20 %"
    ]
    assert table.beaten([*peer, answer(0.05, {"gate": 1.0}, True, "synth_audit")], ["copies"]) == []
    assert table.beaten(peer, ["copies"]) == []
    unseen = answer(0.2, {"gate": 0.0}, False, "synth_audit")
    assert table.beaten([*peer, unseen], ["copies"]) == [
        "* copies of t: peer sees 5 %; this tool does not see it"
    ]


def people(rows, seed):
    """A table of numbers and labels."""
    rng = np.random.default_rng(seed)
    numbers = {f"x{j}": np.round(rng.normal(size=rows), 3) for j in range(5)}
    return pd.DataFrame(numbers | {f"c{j}": rng.choice(list("abc"), rows) for j in range(4)})


def test_an_honest_release_of_any_kind_is_the_same_whoever_is_in_train(zoo):
    fresh, control = people(60, 1), people(60, 2)
    for kind in zoo.KINDS:
        one, other = (
            zoo.release_of(zoo.Dealt(people(80, seed), control, fresh), kind, 0.0, 7)[1] for seed in (3, 4)
        )
        pd.testing.assert_frame_equal(one, other)


def test_whoever_leaves_a_part_leaves_it_beside_strangers(zoo):
    dealt = zoo.Dealt(people(80, 3), people(60, 2), people(60, 1))
    for kind, numbers in (("one_block", 5), ("shifted_part", 3)):
        made = zoo.release_of(dealt, kind, 0.5, 7)[1]
        strange = sum(not set(made[c]) <= set(dealt.fresh[c]) for c in made)
        assert 1 <= strange <= numbers


def test_disclosure_control_leaves_real_people_beside_what_it_changes(zoo):
    dealt = zoo.Dealt(people(80, 3), people(60, 2), people(60, 1))
    numbers, labels = dealt.train.columns[:5], dealt.train.columns[5:]
    for kind in ("rank_swapped", "microaggregated", "partly_synthetic", "continued"):
        leave = zoo.KINDS[kind].leaves
        made = leave(dealt.train, dealt, np.random.default_rng(0))
        assert list(made.dtypes) == list(dealt.train.dtypes)
        own = {c for c in made if made[c].equals(dealt.train[c])}
        whose = {"partly_synthetic": set(), "continued": {*numbers[:4]}}
        assert own >= whose.get(kind, set(labels))
        assert len(own) == 4
    assert made[labels[0]].isin(dealt.train[labels[0]]).all()
    assert (made[numbers[4]].sort_values().to_numpy() == dealt.train[numbers[4]].sort_values()).all()


def test_whoever_mistypes_keeps_the_digits_but_one(zoo):
    ages = pd.DataFrame({"age": [17, 20, 21, 44, 52, 71, *range(30, 43)], "l": ["a"] * 19})
    dealt = zoo.Dealt(ages, ages, ages)
    made = zoo.KINDS["mistyped"].leaves(ages, dealt, np.random.default_rng(0))
    assert made["l"].equals(ages["l"])
    assert made["age"].dtype == ages["age"].dtype
    kept = dict(zip(ages["age"], made["age"], strict=True))
    assert (kept[17], kept[52], kept[44], kept[20]) == (71, 25, 44, 20)


def test_it_tells_which_honest_releases_were_held_and_what_a_subsample_hides(table):
    held = [answer(0.0, {"a": a, "b": 0.0}, a > 0, "synth_audit") for a in (0.0, 0.5, 1.0)]
    assert table.held_honest(held) == ["* plain of t: 1 of 3 refused, 1 insufficient evidence (a)"]
    scores = {"DCRBaselineProtection": 1.0, "DCRBaselineProtection of 500 rows": 0.4}
    copied = answer(1.0, scores, auditor="sdmetrics")
    assert table.subsampled([copied]) == ["| t | 100 % | 1 | 0.000 | 0.600 |"]


FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def compared(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    from _verdicts_compared import compared

    yield lambda old, new: compared(old, new, lambda row: row["kind"], "fresh").splitlines()
    sys.modules.pop("_verdicts_compared")


def lines(kind, *verdicts, release="a"):
    """By seed: a line for each verdict."""
    row = {"table": "t", "kind": kind, "ratio": 1.0, "share": 0.05 * (kind == "copies"), "release": release}
    return {
        (kind, i): row | {"seed": i, "verdict": v, "holding": {} if v == "pass" else {"near_copies": v}}
        for i, v in enumerate(verdicts)
    }


UNDECIDED = "insufficient evidence"


def test_a_leak_that_is_judged_more_mildly_is_listed_and_one_judged_harder_is_not(compared):
    old = lines("copies", "fail", "fail", UNDECIDED, "pass", "fail")
    new = lines("copies", "pass", UNDECIDED, "pass", "fail", "fail")
    told = compared(old, new)
    assert "| copies | t | 5 | 1 / 1 / 3 | 2 / 1 / 2 |" in told
    assert [line for line in told if line.startswith("*")] == [
        "* t, copies 5.0%, seed 0: fail → pass (near_copies: fail)",
        f"* t, copies 5.0%, seed 1: fail → {UNDECIDED} (near_copies: fail)",
        f"* t, copies 5.0%, seed 2: {UNDECIDED} → pass (near_copies: {UNDECIDED})",
    ]
    assert "## The new version is weaker: 3" in told


def test_an_honest_release_that_is_judged_harder_is_listed(compared):
    told = compared(lines("fresh", "pass", "fail"), lines("fresh", UNDECIDED, "pass"))
    assert "## The new version is weaker: 0" in told
    assert told[-1] == f"* t, fresh x 1, seed 0: pass → {UNDECIDED} (near_copies: {UNDECIDED})"


def test_only_the_same_rows_that_both_judged_count(compared):
    old = lines("copies", "fail", "fail") | lines("fresh", "too few rows")
    new = lines("copies", "pass", release="b") | lines("fresh", "too few rows")
    told = compared(old, new)
    assert "1 more cases are left out: the two versions judged other rows." in told
    assert not [line for line in told if line.startswith(("* ", "| copies", "| fresh"))]
    del old["copies", 0]["release"]  # a file of before there were digests
    assert "| copies | t | 1 | 0 / 0 / 1 | 1 / 0 / 0 |" in compared(old, new)
