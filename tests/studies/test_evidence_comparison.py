from dataclasses import replace
from types import ModuleType

import pytest

from synth_audit.errors import PlanError
from synth_audit.findings.measurement import Direction, Measurement, read
from synth_audit.findings.verdict import Result
from synth_audit.store.evidence import TableRecord
from synth_audit.studies.ranking import Measure, measure_of, reliable, settle, shortfall
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


def test_directions_come_from_the_audit():
    assert measure_of("closest_record.privacy_score", "privacy").higher is False
    assert measure_of("prediction.auroc_tstr[logistic]", "utility").higher is True
    assert measure_of("prediction.auroc_tstr[logistic]", "utility").id.setting == "logistic"
    assert measure_of("inference.risk[by x]", "privacy").id.column == "x"
    assert measure_of("exact_match.leak_equivalent[of excess]", "privacy").higher is False


@pytest.mark.parametrize(
    "text",
    [
        "exact_match",
        "exact_match.leak_equivalent",
        "exact_match.leak_equivalent[excess]",
        "exact_match.leak_equivalent[of nothing]",
        "exact_match.excess[of share]",
        "inference.risk[by baby weight]",
        "inference.risk[",
    ],
)
def test_a_text_that_names_no_measurement_is_refused(text):
    with pytest.raises(PlanError) as error:
        measure_of(text, "privacy")
    assert error.value.where == "frontier.privacy"
    assert error.value.expected


class Found:
    """Evidence with these measurements, of which some may not count."""

    def __init__(self, *names, short=(), nan=()):
        self.measurements = [
            Measurement(
                read(n),
                float("nan") if n in nan else 0.0,
                n_achieved=12 if n in short else 100,
                n_minimum=100,
            )
            for n in names
        ]


USUAL = ("prediction.auroc_tstr", "prediction.r2_tstr", "marginals.total_variation")


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ([Found(*USUAL)], USUAL[0]),
        ([Found(*USUAL), Found(*USUAL[1:])], USUAL[1]),
        ([Found(USUAL[0]), Found(USUAL[2])], USUAL[0]),
        ([Found(USUAL[2]), Found()], USUAL[2]),
        ([Found(*USUAL, short=USUAL[:1])], USUAL[1]),
        ([Found(*USUAL), Found(*USUAL, nan=USUAL[:2])], USUAL[2]),
        ([Found(*USUAL[:2], short=USUAL[:2])], None),
        ([Found()], None),
        ([], None),
    ],
)
def test_what_is_compared_is_what_all_have_else_what_any_has(found, name):
    chosen = settle(None, USUAL, "utility", found)
    assert (chosen and str(chosen.id)) == name


def test_a_named_measurement_is_taken_even_if_none_has_it():
    assert settle("prediction.r2_tstr", USUAL, "utility", [Found()]).id.name == "prediction.r2_tstr"


def test_a_number_that_does_not_count_is_none_and_told_of_with_its_attempts():
    measure = Measure(read(USUAL[0]), True)
    found = [Found(*USUAL), Found(*USUAL, short=USUAL[:1]), Found()]
    assert [reliable(e, measure) is not None for e in found] == [True, False, False]
    assert shortfall(measure, found) == (
        f" {USUAL[0]} does not count for 1 of 3 audited: it rests on 12 attempts where 100 are needed."
    )
    assert shortfall(measure, found[:1]) == shortfall(None, found) == ""
