"""Texts as vectors of n-grams, and texts that hold numbers, dates and quantities."""

from datetime import UTC, datetime

import numpy as np
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.audits.privacy._known_columns import known_columns
from synth_audit.encode import texts as ngrams
from synth_audit.encode.texts import (
    FEWEST_LABELS,
    WIDTH,
    Composite,
    Reading,
    _made,
    greatest_similarity,
    ngram_vectors,
)
from synth_audit.table.kind import NumberPart, VectorPart
from synth_audit.table.label_forms import standard_form

NOTE = "Patient fell off a horse and broke her left wrist; cast for six weeks."
OTHERS = [
    "Routine check, no complaints. Blood pressure slightly raised.",
    "Admitted with chest pain at night, troponin negative twice.",
    "Vaccinated against influenza, no reaction seen.",
    "Allergic to penicillin, rash after the second dose.",
]


def apart(*texts):
    one, *others = ngram_vectors([standard_form(text) for text in texts])
    return np.linalg.norm(np.array(others) - one, axis=1)


def test_a_note_with_a_word_changed_is_nearer_than_any_other():
    changed = NOTE.replace("six", "eight")
    near, *far = apart(NOTE, changed, *OTHERS)
    assert 0 < near < 0.5
    assert min(far) > 2 * near


def test_case_and_width_move_nothing():
    assert apart(NOTE, NOTE.upper(), f"  {NOTE}").tolist() == [0.0, 0.0]


def test_vectors_have_length_one_and_are_the_same_beside_any_other():
    alone = ngram_vectors([NOTE])
    assert alone.shape == (1, WIDTH)
    assert alone.dtype == np.float32
    assert np.linalg.norm(alone) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(_made([*OTHERS, NOTE])[-1:], alone)
    assert not ngram_vectors([""]).any()
    assert ngram_vectors([]).shape == (0, WIDTH)


def test_the_vector_of_a_text_is_made_once_as_long_as_there_is_room(monkeypatch):
    made = []
    monkeypatch.setattr(ngrams, "_made", lambda texts: made.append(list(texts)) or _made(texts))
    monkeypatch.setattr(ngrams, "_MOST_KEPT", 3)
    monkeypatch.setattr(ngrams, "_KEPT", {})
    first = ngram_vectors([NOTE, OTHERS[0], NOTE])
    assert np.array_equal(first, _made([NOTE, OTHERS[0], NOTE]))
    assert np.array_equal(ngram_vectors([OTHERS[1], NOTE]), _made([OTHERS[1], NOTE]))
    assert np.array_equal(ngram_vectors([OTHERS[0]]), first[1:2])
    assert made == [[NOTE, OTHERS[0]], [OTHERS[1]]]
    assert np.array_equal(ngram_vectors(OTHERS), _made(OTHERS))  # more than there is room for
    assert np.array_equal(ngram_vectors([NOTE]), first[:1])
    assert made[2:] == [OTHERS, [NOTE]]


def test_only_the_beginning_of_a_long_text_counts():
    long = "word " * 400
    assert np.array_equal(ngram_vectors([long + "one end"]), ngram_vectors([long + "another"]))


def test_the_most_similar_text_is_found_whatever_the_order():
    texts = ["fever since two days", "a rash on the left knee"]
    others = ["no complaint", "a rash on the right knee", "fever since two days"]
    found = greatest_similarity(texts, others)
    assert found[0] == pytest.approx(1, abs=1e-6)
    assert 0.6 < found[1] < 0.99
    assert np.allclose(found, greatest_similarity(texts, others[::-1]))


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


@pytest.mark.parametrize(
    ("label", "numbers"),
    [
        ("52.3712,4.9012", (52.3712, 4.9012)),
        ("(-52.5; -4.25)", (-52.5, -4.25)),
        ("132/84", (132, 84)),
        ("132-84", (132, 84)),
        ("2x500 mg", (2, 500)),
        ("{lat: 15, lon: −24}", (15, -24)),
        ("12,5 / 3,25", (12.5, 3.25)),
    ],
)
def test_numbers_are_read_by_their_place(label, numbers):
    others = [label.replace("2", str(d)).replace("5", str(e)) for d in range(1, 9) for e in range(1, 9)]
    form = Composite.of([*others, *(label.replace("4", str(i)) for i in range(11, 50))])
    assert form is not None
    found = form.numbers([label, None, "something else"])
    assert found[0].tolist() == list(numbers)
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize(
    "labels", [[f"{i}-{i + 9}" for i in range(FEWEST_LABELS)], [f"n{i}" for i in range(90)]]
)
def test_few_groups_and_single_numbers_are_no_composites(labels):
    assert Composite.of(labels) is None


def test_a_text_too_long_or_infinite_is_no_number():
    form = Composite("#/#")
    assert np.isnan(form.numbers([f"1/{'9' * 400}", f"1/{'9' * 190}"])[0]).all()
    assert np.isfinite(form.numbers(["1/2"])).all()


def test_each_number_of_a_text_is_a_column_that_somebody_may_know():
    rng = np.random.default_rng(0)
    places = [f"{a:.4f},{b:.4f}" for a, b in rng.normal(size=(200, 2))]
    table = table_of({"place": places, "n": rng.normal(size=200)})
    parts = table.schema["place"].kind.parts([table.column("place")])
    assert [type(p) for p in parts[1:]] == [NumberPart, NumberPart]
    assert sum(p.weight for p in parts) == pytest.approx(1)
    assert [c.name for c in known_columns([table], list(table.schema), [table])] == ["place", "place", "n"]


def test_a_list_in_another_order_is_the_same_and_a_name_misspelt_is_near():
    rng = np.random.default_rng(1)
    drugs = np.array([f"drug{c}{d}" for c in "abcdef" for d in "uvwxyz"])
    held = [list(rng.choice(drugs, 3, replace=False)) for _ in range(300)]
    told = [";".join(x) for x in held] + [";".join(x[::-1]) for x in held[:100]] + ["; ".join(held[0][:2])]
    table = table_of({"drugs": told})
    *_, vector = table.schema["drugs"].kind.parts([table.column("drugs")])
    assert isinstance(vector, VectorPart)
    found = vector.read(table.column("drugs"))
    assert np.abs(found[:100] - found[300:400]).max() < 1e-6
    apart = np.linalg.norm(found[:300] - found[0], axis=1)
    assert np.mean(apart[1:] > np.linalg.norm(found[400] - found[0])) > 0.9
