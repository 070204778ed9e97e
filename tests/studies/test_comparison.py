"""By what candidates are compared: its direction, what is taken unasked, and what counts."""

from __future__ import annotations

import pytest

from synth_audit.errors import PlanError
from synth_audit.findings.measurement import Measurement, read
from synth_audit.studies.ranking import Measure, measure_of, reliable, settle, shortfall


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
