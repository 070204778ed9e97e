"""Text that holds numbers, dates and quantities."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from synth_audit.encode.texts import Reading
from synth_audit.table.label_forms import standard_form

NAN = float("nan")


def days(*dates):
    return [datetime(*d, tzinfo=UTC).timestamp() * 1e6 for d in dates]


@pytest.mark.parametrize(
    ("texts", "convention", "numbers"),
    [
        (["27,3", "1,25", "-4"], "decimal comma", [27.3, 1.25, -4]),
        (["1.234,5", "12", "1.000.000"], "decimal comma", [1234.5, 12, 1e6]),
        (["1,234.5", "12", "1e3"], "decimal point", [1234.5, 12, 1000]),
        (["1,234", "2,345", "0"], "decimal point", [1234, 2345, 0]),
        (["0,234", "2,345", "0"], "decimal comma", [0.234, 2.345, 0]),
        (["1 234 567", "12", "13"], "decimal point", [1234567, 12, 13]),
        (["213 mg", "7.5 mg", "10mg"], "decimal point", [213, 7.5, 10]),
        (["213,5 mg/dl", "7 mg/dl", "8 mg/dl"], "decimal comma", [213.5, 7, 8]),
        (["12 %", "3 %", "4%"], "decimal point", [12, 3, 4]),
        (["$1,200.50", "$3", "-$4"[1:]], "decimal point", [1200.5, 3, 4]),
        (["\N{EURO SIGN} 27,30", "\N{EURO SIGN} 3", "\N{EURO SIGN}4"], "decimal comma", [27.3, 3, 4]),
        (["<5", "7", "\N{MINUS SIGN}9"], "decimal point", [5, 7, -9]),
        (["2024-03-01T00:00:00", "2024-03-02", "2024-03-03 00:00:00Z"], "ISO dates", "dates"),
        (["1.3.2024", "02.03.2024", "3.3.2024"], "day.month.year", "dates"),
        (["2024/3/1", "2024/03/02", "2024/3/3"], "year/month/day", "dates"),
        (["3/1/2024", "3/2/2024", "3/3/2024", "3/14/2024"], "month/day/year", None),
        (["7:05", "23:59:30", "0:00"], "hours:minutes", [25500, 86370, 0]),
        (["2024-03", "2024-04", "2024-05"], "ISO dates", days((2024, 3, 1), (2024, 4, 1), (2024, 5, 1))),
        (["40-44", "45\N{EN DASH}49", "Under 40", "50 or more"], "bands", [42, 47, 40, 50]),
        (["0", "1", "2", "3+"], "bands", [0, 1, 2, 3]),
        (["120/80", "121/80", "140 / 90"], "bands", [100, 100.5, 115]),
        (["(0, 10]", "(10.0, 20.0]", "(20.0, inf]"], "bands", [5, 15, 20]),
        (["07-12 h", "12-18 h", "18 to 24 h"], "bands", [9.5, 15, 21]),
        (["10,000-20,000", "20,000-30,000", "< 10,000"], "bands", [15000, 25000, 10000]),
        (["1,5-2 mg", "2-2,5 mg", "at least 3 mg"], "bands", [1.75, 2.25, 3]),
        (["I25.1", "I25.2", "E11.9"], "letter and number", [8025.1, 8025.2, 4011.9]),
        (["Stage I", "Stage IIa", "Stage IV"], "Roman numerals", [1, 2.2, 4]),
    ],
)
def test_one_convention_reads_all(texts, convention, numbers):
    forms = [standard_form(text) for text in texts]
    reading = Reading.of(forms)
    assert reading.convention == convention
    if numbers == "dates":
        numbers = days((2024, 3, 1), (2024, 3, 2), (2024, 3, 3))
    if numbers is not None:
        assert reading.numbers(forms).tolist() == pytest.approx(numbers)


@pytest.mark.parametrize(
    "texts",
    [
        ["north", "south", "east"],
        ["a1", "b2", "c3"],
        ["1", "2"],
        ["1 mg", "2 g", "3 kg"],
        ["12ab", "13xy", "14pq"],
        ["inf", "nan", "1e999"],
        ["2024-13-01", "2024-02-30", "2024-03-99"],
        [],
    ],
)
def test_labels_that_are_none_are_not_read(texts):
    assert Reading.of(texts) is None


def test_one_label_in_ten_may_be_something_else_and_is_no_number():
    texts = [f"{i},5 mg" for i in range(18)]
    assert Reading.of([*texts, "unknown", "none"]).numbers(["unknown", None, "3 g", "4 mg"]).tolist() == (
        pytest.approx([NAN, NAN, NAN, 4.0], nan_ok=True)
    )
    assert Reading.of([*texts, "unknown", "none", "refused"]) is None


def test_neither_order_nor_repetition_of_labels_decides():
    texts = [f"{i},5" for i in range(30)] + ["unknown"]
    shuffled = np.random.default_rng(0).permutation(texts * 3).tolist()
    assert Reading.of(shuffled) == Reading.of(texts)
