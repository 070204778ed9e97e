import math

import pytest

from synth_audit.findings.measurement import Interval, Measurement, MeasurementId
from synth_audit.report import words
from synth_audit.text import clean

NB = "\u00a0"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.8007, "share", f"80.1{NB}%"),
        (0.09, "share", f"9{NB}%"),
        (-0.0151, "share", f"−1.51{NB}%"),
        (0.0, "share", f"0{NB}%"),
        (1.0, "share", f"100{NB}%"),
        (39084, "count", "39,084"),
        (12, "rows", f"12{NB}rows"),
        (0.382123, "p-value", "0.382"),
        (3.2e-9, "p-value", "3.2 × 10⁻⁹"),
        (math.nan, "share", "not computed"),
        (None, "share", "not computed"),
        (math.inf, "ratio", "∞"),
        (-math.inf, "share", f"−∞{NB}%"),
        (1689.2, "ratio", "1,689"),
        (2.5e12, "", "2.5 × 10¹²"),
        (0.0, "flag", "none"),
        (1.0, "flag", "some"),
    ],
)
def test_numbers(value: float | None, unit: str, text: str) -> None:
    assert words.number(value, unit) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0062, 0.0184, f"0.6 to 1.8{NB}%"),
        (0.7965, 0.8049, f"79.7 to 80.5{NB}%"),
        (-0.005, 0.009, f"−0.5 to 0.9{NB}%"),
        (0.2, 0.6, f"20 to 60{NB}%"),
        (-0.00001, 0.02, f"0.0 to 2.0{NB}%"),
        (math.nan, 0.2, "not computed"),
    ],
)
def test_intervals_show_as_many_digits_as_they_are_worth(low: float, high: float, text: str) -> None:
    assert words.interval(low, high, "share") == text


def test_a_number_beyond_its_limit_never_reads_like_the_limit() -> None:
    places = words.telling_apart(1, "share", 0.09004, 0.09)
    assert words.number(0.09004, "share", places) == f"9.004{NB}%"


def test_limits_are_worded() -> None:
    assert words.limits(None, 0, "flag") == "none"
    assert words.limits(1, None, "flag") == "some"
    assert words.limits(None, 0.09, "share") == f"at most 9{NB}%"
    assert words.limits(0.85, None) == "at least 0.85"
    assert words.limits(0.9, 1.1) == "between 0.9 and 1.1"
    assert words.limits(None, None) == ""


@pytest.mark.parametrize(("step", "label"), [(0.025, f"2.5{NB}%"), (0.01, f"2{NB}%"), (0.0025, f"2.50{NB}%")])
def test_ticks_are_not_rounded_away(step: float, label: str) -> None:
    value = 0.02 if step == 0.01 else 0.025
    assert words.tick(value, step, "share") == label


def test_moments() -> None:
    assert words.moment("2026-11-14T10:32:00+00:00") == "14 November 2026, 10:32 UTC"
    assert words.moment("2026-11-14T10:32:00+00:00", day_only=True) == "14 November 2026"
    assert words.moment("2026-11-14") == "14 November 2026"
    assert words.moment("") == "not recorded"
    assert words.moment("yesterday") == "yesterday"


def test_misleading_characters_are_made_visible() -> None:
    assert clean("a\u202eb\x00c\ud800") == "a\ufffdb\ufffdc\ufffd"
    assert clean("two\nlines, σ × é 表") == "two\nlines, σ × é 表"


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0079236, f"0.8{NB}%"),
        (0.0023, f"0.23{NB}%"),
        (0.00231, f"0.24{NB}%"),
        (0.0467, f"4.7{NB}%"),
        (0.991, f"100{NB}%"),
        (1.0, f"100{NB}%"),
        (0.0, "one row"),
        (math.nan, "not computed"),
    ],
)
def test_no_smaller_leak_is_promised_than_was_found(share: float, said: str) -> None:
    assert words.detectable(share) == said


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.003, 0.0, 0.009), f"0.0 to 0.9{NB}%"),
        ((0.003, -0.02, 0.009), f"0.0 to 0.9{NB}%"),
        ((-0.01, -0.02, -0.009), f"0{NB}%"),
        ((0.9, 0.7, 1.2), f"70 to 100{NB}%"),
        ((math.nan, 0.0, 1.0), ""),
        ((0.5, -math.inf, math.inf), f"50{NB}%"),
    ],
)
def test_a_share_is_cut_at_none_and_all(ends: tuple[float, float, float], said: str) -> None:
    value, low, high = ends
    m = Measurement(MeasurementId("a", "b"), value, Interval(low, high, 0.95, "w"))
    assert words.cut_share(m) == said


@pytest.mark.parametrize(
    ("level", "shown"),
    [(0.95, "95"), (0.9, "90"), (1 - 0.05 / 6, "99.17"), (0.999999, "99.9999"), (1.0, "100")],
)
def test_a_level_is_short_and_never_rounded_to_certainty(level: float, shown: str) -> None:
    assert words.percent_level(level) == f"{shown}{NB}%"


def test_a_sentence_begins_with_a_capital_unless_a_name_comes_first():
    assert words.sentence("all is well") == "All is well."
    assert words.sentence("why? ") == "Why?"
    assert words.sentence("closest_record.risk is blind") == "closest_record.risk is blind."
    assert words.sentence("e.g. this") == "e.g. this."


@pytest.mark.parametrize("size", [1e308, 1.7e308, 5e-324])
def test_the_largest_and_smallest_numbers_have_words(size: float) -> None:
    for value in (size, -size):
        assert "10" in words.number(value, "share")
        assert words.measured("share", value, -size, size)[0]
        assert words.tick(value, size, "share")
        assert words.decimals("share", value, low=0.0, high=size) in (0, 6)
    assert words.number(1e308, "share") == f"1.0 × 10³¹⁰{NB}%"
    assert words.detectable(size)
