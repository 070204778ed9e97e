from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from synth_audit.findings.measurement import Direction
from synth_audit.findings.verdict import Result
from synth_audit.store.evidence import TableRecord
from synth_audit.verdict.comparison import Change, compare


def moved(evidence, value, low, high, result=Result.PASS):
    """The evidence with another number in its first measured gate."""
    (gate, *others) = sorted(evidence.gates.results, key=lambda g: g.measurement is None)
    changed = replace(gate, value=value, low=low, high=high, result=result)
    return replace(evidence, gates=replace(evidence.gates, results=(changed, *others)))


@pytest.mark.parametrize(
    ("later", "change"),
    [
        ((0.2, 0.1, 0.3), Change.SAME),
        ((0.4, 0.3, 0.5), Change.ALIKE),
        ((0.5, 0.31, 0.6), Change.WORSE),
        ((0.0, -0.1, 0.09), Change.BETTER),
        ((0.5, None, None), Change.UNKNOWN),
        ((0.2, None, None), Change.SAME),
        ((float("nan"), float("nan"), float("nan")), Change.UNKNOWN),
    ],
)
def test_numbers_are_told_apart_where_their_intervals_are(build: ModuleType, later, change) -> None:
    first = moved(build.passing(), 0.2, 0.1, 0.3)
    second = moved(build.passing(), *later)
    about = second.gates.results[0].measurement
    direction = {m.id: m.direction for m in second.measurements}.get(about, Direction.NEUTRAL)
    assert direction is Direction.LOWER
    found = compare(first, second)
    assert found.gates[0].change is change
    assert (found.gates[0] in found.changed) == (change not in (Change.SAME, Change.ALIKE))
    frame = found.to_frame()
    assert frame["change"][0] == str(change)
    assert frame["value_before"][0] == 0.2


def test_another_result_is_a_change_even_where_the_numbers_are_alike(build: ModuleType) -> None:
    first = moved(build.passing(), 0.2, 0.1, 0.3)
    second = moved(build.passing(), 0.21, 0.1, 0.3, Result.INSUFFICIENT)
    found = compare(first, second)
    assert found.gates[0].change is Change.ALIKE
    assert found.changed == found.gates[:1]


def test_gates_of_one_audit_only_and_what_keeps_audits_from_being_compared(build: ModuleType) -> None:
    first, second = build.passing(), build.passing()
    assert compare(first, second).caveats == ()
    assert compare(first, second).changed == ()
    fewer = replace(second, gates=replace(second.gates, results=second.gates.results[1:], suite_sha256="0"))
    found = compare(first, replace(fewer, table="another", level=0.9))
    assert [g.change for g in found.gates if g.after is None] == [Change.ALONE]
    assert len(found.caveats) == 3


@pytest.mark.parametrize(
    ("salt", "rows", "hashed", "told"),
    [
        ("1", 200, "a", None),
        ("1", 200, "b", "they have two training sets"),
        ("2", 100, "b", "they have two training sets"),
        ("2", 200, "b", "does not tell whether the training sets are the same"),
        ("", 200, "b", "does not tell whether the training sets are the same"),
    ],
)
def test_training_sets_are_compared_where_one_salt_hashed_them(
    build: ModuleType, salt, rows, hashed, told
) -> None:
    first, second = (
        replace(build.passing(), salt_commitment=commitment, tables={"train": TableRecord(n, digest)})
        for commitment, n, digest in (("1", 200, "a"), (salt, rows, hashed))
    )
    found = compare(first, second).caveats
    assert len(found) == (told is not None)
    assert all(told in caveat for caveat in found)


def test_an_audit_that_left_audits_out_is_said_to_be_partial(build: ModuleType) -> None:
    whole = build.passing()
    partial = replace(whole, outcomes=whole.outcomes[1:])
    assert partial.left_out == ("singling_out",)
    assert compare(whole, partial).caveats == ("the second audit was not whole: it left out singling_out",)
