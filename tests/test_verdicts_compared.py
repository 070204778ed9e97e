"""Two versions' verdicts of the same releases, side by side."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
