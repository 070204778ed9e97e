"""The pure decision: pass, fail, insufficient evidence, and the words for each."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_audit.findings.measurement import Interval, Measurement, MeasurementId
from synth_audit.findings.verdict import Result
from synth_audit.verdict.gate_decision import EVERY_SCOPE, Limit, Row, decide

NAME = "copies.excess"
EXCESS = MeasurementId("copies", "excess")
ROW = Row(EXCESS, 0.01, 0.001, 0.019, 0.95, 400, None)
AT_MOST = Limit(measurement=EXCESS, maximum=0.02)
AT_LEAST = Limit(measurement=EXCESS, minimum=0.02)
BETWEEN = Limit(measurement=EXCESS, minimum=0.8, maximum=1.2)


def row(value, low=None, high=None, **more):
    return replace(ROW, value=value, low=low, high=high, **more)


def about(column, *numbers):
    found = row(*numbers) if numbers else ROW
    return replace(found, id=replace(EXCESS, column=column))


@pytest.mark.parametrize(
    ("limit", "found", "expected"),
    [
        (AT_MOST, row(0.01, 0.0, 0.02), Result.PASS),
        (AT_MOST, row(0.01, 0.0, 0.0201), Result.INSUFFICIENT),
        (AT_MOST, row(0.03, 0.02, 0.04), Result.INSUFFICIENT),
        (AT_MOST, row(0.03, 0.0201, 0.04), Result.FAIL),
        (AT_LEAST, row(0.03, 0.02, 0.04), Result.PASS),
        (AT_LEAST, row(0.03, 0.0199, 0.04), Result.INSUFFICIENT),
        (AT_LEAST, row(0.01, 0.0, 0.0199), Result.FAIL),
        (replace(AT_MOST, strict=True), row(0.01, 0.0, 0.02), Result.INSUFFICIENT),
        (replace(AT_MOST, strict=True), row(0.03, 0.02, 0.04), Result.FAIL),
        (replace(AT_MOST, bound="value"), row(0.02), Result.PASS),
        (replace(AT_MOST, bound="value"), row(0.0201), Result.FAIL),
        (replace(AT_MOST, bound="value"), row(0.01, 0.0, 0.5), Result.PASS),
        (replace(AT_LEAST, bound="value"), row(0.01), Result.FAIL),
        # An interval that leaves its own value out may not hide it.
        (AT_MOST, row(0.5, 0.0, 0.01), Result.INSUFFICIENT),
        (BETWEEN, row(1.0, 0.8, 1.2), Result.PASS),
        (BETWEEN, row(0.2, 0.1, 0.3), Result.FAIL),
        (BETWEEN, row(2.0, 1.3, 3.0), Result.FAIL),
        (BETWEEN, row(1.0, 0.7, 1.1), Result.INSUFFICIENT),
        (BETWEEN, row(1.0, 0.9, 1.3), Result.INSUFFICIENT),
        (BETWEEN, row(1.0, 0.1, 2.0), Result.INSUFFICIENT),
        (BETWEEN, row(1.0, 0.9, math.inf), Result.INSUFFICIENT),
        (replace(BETWEEN, strict=True), row(1.0, 0.8, 1.1), Result.INSUFFICIENT),
        (replace(BETWEEN, bound="value"), row(0.79), Result.FAIL),
        (replace(BETWEEN, bound="value"), row(0.8), Result.PASS),
        (replace(BETWEEN, bound="both"), row(1.0, 0.9, 1.1), Result.PASS),
    ],
)
def test_three_results(limit, found, expected):
    assert decide(limit, [found]).result is expected


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "no audit reported it"),
        ([replace(ROW, id=MeasurementId("copies", "other"))], "no audit reported it"),
        ([about("age")], "no audit reported it"),
        ([ROW, ROW], "2 numbers claim"),
        ([row(math.nan, 0.0, 0.01)], "not a finite number"),
        ([row(-math.inf, 0.0, 0.01)], "not a finite number"),
        ([row(0.01, 0.0, math.nan)], "not a finite number"),
        ([row(0.01, -math.inf, 0.01)], "not a finite number"),
        ([row(0.01)], "without a confidence interval"),
        ([row(0.01, 0.015, 0.005)], "upside down"),
        ([replace(ROW, n_minimum=500)], "only 400 of the 500"),
        ([replace(ROW, n=None, n_minimum=5)], "only 0 of the 5"),
        ([replace(ROW, n=math.nan, n_minimum=5)], "of the 5 attempts"),  # what an audit of others may say
    ],
)
def test_what_cannot_be_judged_is_insufficient(rows, says):
    found = decide(AT_MOST, rows)
    assert found.result is Result.INSUFFICIENT
    assert says in found.explanation


@pytest.mark.parametrize("bound", ["value", "pessimistic"])
def test_a_value_bound_needs_a_finite_value_too(bound):
    limit = replace(AT_MOST, bound=bound)
    assert decide(limit, [row(math.nan)]).result is Result.INSUFFICIENT
    assert decide(limit, [row(0.0, n_minimum=500)]).n_needed == 500


def test_attempts_that_would_decide():
    # The side towards the limit is 0.03 wide, the limit 0.01 away: nine times the attempts.
    found = decide(AT_MOST, [row(0.01, -0.01, 0.04)])
    assert found.n_needed in (3600, 3601)
    assert f"Estimate: about {found.n_needed:,} attempts" in found.outlook
    assert "be a pass" in found.outlook
    assert "be a fail" in decide(AT_MOST, [row(0.03, 0.0, 0.04)]).outlook
    at_limit = decide(AT_MOST, [row(0.02, 0.0, 0.04)])
    assert at_limit.n_needed is None
    assert "exactly at the limit" in at_limit.outlook
    assert decide(AT_MOST, [row(0.01, 0.0, 0.04, n=None)]).n_needed is None
    assert decide(AT_MOST, [ROW]).n_needed is None


def test_words_of_an_undecided_gate():
    found = decide(AT_MOST, [row(0.015, 0.004, 0.031)])
    assert found.explanation.startswith(
        "The 95 % interval, from 0.004 to 0.031, reaches beyond the limit 0.02, so the evidence is"
    )


def test_every_scope_is_judged_and_the_worst_reported():
    limit = replace(AT_MOST, every=True)
    good, unsure, bad = (
        about("age", 0.01, 0.0, 0.02),
        about("sex", 0.02, 0.0, 0.04),
        about("zip", 0.03, 0.025, 0.04),
    )
    assert decide(limit, []).result is Result.INSUFFICIENT
    assert decide(limit, [good]).result is Result.PASS
    assert decide(limit, [good, unsure]).measurement.column == "sex"
    worst = decide(limit, [good, unsure, bad])
    assert (worst.result, worst.measurement) == (Result.FAIL, bad.id)
    assert worst.explanation.startswith("1 of 3 scopes pass; the worst is by zip.")
    assert decide(limit, [good, good]).result is Result.INSUFFICIENT
    nearer = about("sex", 0.01, 0.0, 0.0199)
    assert decide(limit, [nearer, good]).measurement == good.id


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"minimum": 1.0, "maximum": 0.0},
        {"minimum": 1.0, "maximum": 1.0, "strict": True},
        {"minimum": 0.0, "maximum": math.nan},
        {"minimum": math.inf, "maximum": 1.0},
        {"minimum": 0.0, "maximum": 1.0, "bound": "upper"},
        {"maximum": 1.0, "bound": "both"},
        {"maximum": math.nan},
        {"maximum": math.inf},
        {"maximum": "0.02"},
        {"maximum": True},
        {"maximum": 0.02, "bound": "lower"},
        {"minimum": 0.02, "bound": "upper"},
        {"maximum": 0.02, "bound": "middle"},
        {"maximum": 0.02, "strict": "no"},
        {"maximum": 0.02, "scope": None},
        {"maximum": 0.02, "name": "excess"},
        {"maximum": 0.02, "name": 3},
    ],
)
def test_limits_that_are_none(fields):
    with pytest.raises(ValueError, match=r"must be|must lie below|give a finite"):
        Limit.read(**{"name": NAME, **fields})


def test_a_limit_applies_to_what_it_names_and_no_more():
    age, ages = replace(EXCESS, column="age"), replace(EXCESS, column="ages")
    one, every = replace(AT_MOST, measurement=age), replace(AT_MOST, every=True)
    assert [one.applies_to(x) for x in (age, ages, EXCESS)] == [True, False, False]
    assert [every.applies_to(x) for x in (age, ages, EXCESS)] == [True, True, True]
    assert not every.applies_to(MeasurementId("copies", "other"))


def test_a_star_in_quotes_is_a_name():
    star = Limit.read(NAME, '"*"', maximum=0.02)
    assert (star.every, star.measurement.setting) == (False, "*")
    assert Limit.read(NAME, 'by "*"', maximum=0.02).measurement.column == "*"
    assert Limit.read(NAME, "*", maximum=0.02).every


def test_row_of_a_measurement_holds_plain_numbers():
    import numpy as np

    m = Measurement(EXCESS, np.float32(0.5), interval=Interval(np.float32(0.25), np.float64(0.75), 0.95, "x"))
    found = Row.of(m)
    assert (type(found.value), type(found.low), found.high) == (float, float, 0.75)


numbers = st.floats(-2, 2)
odd = st.sampled_from([math.nan, math.inf, -math.inf])
rows = st.builds(
    Row,
    id=st.sampled_from([EXCESS, replace(EXCESS, column="a")]),
    value=numbers | odd,
    low=st.none() | numbers | odd,
    high=st.none() | numbers | odd,
    level=st.just(0.95),
    n=st.none() | st.integers(0, 10**6),
    n_minimum=st.none() | st.integers(0, 100),
)


@given(
    found=st.lists(rows, max_size=3),
    limit=numbers,
    step=st.floats(0, 1),
    upper=st.booleans(),
    bound=st.sampled_from(["value", "pessimistic"]),
    scope=st.sampled_from(["", "by a", EVERY_SCOPE]),
    strict=st.tuples(st.booleans(), st.booleans()),
)
def test_tightening_never_opens_a_gate(found, limit, step, upper, bound, scope, strict):
    def at(x, strictly):
        end = {"maximum": x} if upper else {"minimum": -x}
        return decide(Limit.read(name=NAME, scope=scope, bound=bound, strict=strictly, **end), found)

    loose, tight = at(limit, min(strict)), at(limit - step, max(strict))
    if loose.result is not Result.PASS:
        assert tight.result is not Result.PASS
    if loose.result is Result.FAIL:
        assert tight.result is Result.FAIL
    assert loose.explanation
    for decision in (loose, tight):
        if decision.result is not Result.INSUFFICIENT:
            assert decision.n_needed is None


@given(
    found=st.lists(rows, max_size=3),
    ends=st.tuples(numbers, numbers).map(sorted),
    bound=st.sampled_from(["value", "pessimistic"]),
    scope=st.sampled_from(["", "by a", EVERY_SCOPE]),
)
def test_two_sides_decide_as_two_gates(found, ends, bound, scope):
    low, high = ends

    def at(**limit):
        return decide(Limit.read(name=NAME, scope=scope, bound=bound, **limit), found)

    apart = {at(minimum=low).result, at(maximum=high).result}
    together = at(minimum=low, maximum=high)
    if apart == {Result.PASS}:
        assert together.result is Result.PASS
    elif Result.FAIL in apart:
        assert together.result is Result.FAIL
    else:
        assert together.result is Result.INSUFFICIENT


def test_two_sides_are_explained_by_the_one_that_is_broken():
    title = replace(BETWEEN, strict=True).title
    assert title == "copies.excess above 0.8 and below 1.2"
    said = {
        (0.9, 1.1): "is within the limits 0.8 to 1.2: its ends are 0.9 and 1.1.",
        (0.1, 0.3): "is below the limit 0.8: even its upper end is 0.3.",
        (1.3, 1.4): "is above the limit 1.2: even its lower end is 1.3.",
        (0.7, 1.1): "interval, from 0.7 to 1.1, reaches beyond the limit 0.8, so",
        (0.7, 1.4): "from 0.7 to 1.4, reaches beyond both limits, 0.8 to 1.2",
    }
    for (low, high), words in said.items():
        assert words in decide(BETWEEN, [row((low + high) / 2, low, high)]).explanation


def test_of_two_open_sides_the_one_that_needs_more_says_how_many():
    found = decide(BETWEEN, [row(1.1, 0.7, 1.5)])
    alone = decide(Limit(measurement=EXCESS, maximum=1.2), [row(1.1, 0.7, 1.5)])
    assert found.n_needed == alone.n_needed == 6401  # rounded up
    assert "be a pass" in found.outlook


@pytest.mark.parametrize(
    ("worse", "copy", "blind"), [("up", 1.1, True), ("up", 1.4, False), ("down", 0.9, True)]
)
def test_a_side_that_a_full_copy_keeps_decides_nothing(worse, copy, blind):
    found = replace(row(1.0, 0.9, 1.1), worse=worse, copy_low=copy, copy_high=copy)
    decision = decide(BETWEEN, [found])
    assert (decision.result is Result.INSUFFICIENT) == blind
    assert ("a full copy" in decision.explanation) == blind


def test_of_several_the_one_farthest_beyond_either_side_is_the_worst():
    every = replace(BETWEEN, every=True)
    low, high = about("low", 0.3, 0.2, 0.4), about("high", 1.4, 1.3, 1.5)
    assert decide(every, [low, high]).measurement == low.id


@given(found=rows, limit=numbers)
def test_a_needed_number_is_more_than_was_tried(found, limit):
    decision = decide(Limit(measurement=found.id, maximum=limit), [found])
    if decision.n_needed is not None:
        assert decision.n_needed > (found.n or 0)


def test_a_share_and_its_limit_are_told_in_percent():
    shares = {**vars(row(0.015, 0.004, 0.031)), "unit": "share of people"}
    found = decide(AT_MOST, [Row(**shares)])
    assert found.explanation.startswith(
        "The 95 % interval, from 0.4 % to 3.1 %, reaches beyond the limit 2 %"
    )
    assert "if the value stays 1.5 %" in found.outlook


IN_PEOPLE = replace(AT_MOST, people=500, people_quantity="people")


def people(n, value, low):
    return Row(MeasurementId("copies", "people"), value, low, 2 * value - low, 0.95, n, None)


@pytest.mark.parametrize(
    ("n", "value", "low", "expected"),
    [
        (10_000_000, 0.019, 0.0189, Result.FAIL),  # 190,000 people
        (10_000_000, 0.0001, 0.00008, Result.FAIL),  # 600 people, surely
        (10_000_000, 0.0001, 0.00007, Result.PASS),  # 1,000 people, but perhaps 400
        (10_000_000, 0.0, -0.0001, Result.PASS),
        (25_000, 0.5, 0.49, Result.PASS),  # the share decides: 2 % are 500 people
        (25_001, 0.5, 0.49, Result.FAIL),
        (2_000, 0.5, 0.49, Result.PASS),
    ],
)
def test_people_bind_where_the_share_would_allow_more_of_them(n, value, low, expected):
    decision = decide(IN_PEOPLE, [row(0.01, 0.0, 0.019), people(n, value, low)])
    assert decision.result is expected
    assert decision.maximum == (500 / n if expected is Result.FAIL else None)
    assert ("500 people" in decision.explanation) == (expected is Result.FAIL)


def test_people_change_no_failure_and_are_needed_for_a_pass():
    failed = decide(IN_PEOPLE, [row(0.03, 0.021, 0.04), people(10_000_000, 0.019, 0.0189)])
    assert failed == decide(AT_MOST, [row(0.03, 0.021, 0.04)])
    assert decide(IN_PEOPLE, [row(0.01, 0.0, 0.019)]).result is Result.INSUFFICIENT


@pytest.mark.parametrize(
    ("n", "value", "low"), [(10_000_000, math.nan, math.nan), (10_000_000, 0.0, -math.inf), (-1, 0.0, 0.0)]
)
def test_people_without_a_number_decide_nothing(n, value, low):
    assert decide(IN_PEOPLE, [row(0.01, 0.0, 0.019), people(n, value, low)]).result is Result.INSUFFICIENT


@pytest.mark.parametrize(
    "wrong",
    [
        {"people": 500},
        {"people_quantity": "people"},
        {"people": -1, "people_quantity": "people"},
        {"people": 0.5, "people_quantity": "people"},
        {"people": True, "people_quantity": "people"},
        {"people": math.inf, "people_quantity": "people"},
        {"people": 500, "people_quantity": "people", "maximum": None, "minimum": 0.02},
    ],
)
def test_a_limit_in_people_is_whole(wrong):
    with pytest.raises(ValueError, match="people"):
        replace(AT_MOST, **wrong)
