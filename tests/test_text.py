import time

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from synth_audit.errors import DataError, problems_of
from synth_audit.plan.plan import Plan
from synth_audit.text import LONGEST_LINE, LONGEST_WORD, clean, one_line, shortened

HOSTILE = (
    "\x1b[2J",
    "\x9b31m",
    "\r",
    "\x00",
    "\x07",
    "\x7f",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\ud800",
)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_what_misleads_is_replaced(text):
    assert clean(f"a{text}b").startswith("a\ufffd")
    assert text[0] not in one_line(f"a{text}b")


def test_words_of_any_tongue_stay():
    for text in ("σ × é 表 ‑ ✓", "two\nlines\tand a tab", "soft\u00adhyphen", ""):
        assert clean(text) == text
    assert one_line("two\nlines\u2028or three") == "two\ufffdlines\ufffdor three"


def test_long_text_is_cut_in_its_middle():
    text = "start " + "x y " * 1000 + "end"
    cut = shortened(text)
    assert len(cut) == LONGEST_LINE
    assert cut.startswith("start")
    assert cut.endswith("end")
    assert "…" in cut
    word = shortened("no column " + "k" * 40_000 + ", alas")
    assert word.startswith("no column kkk")
    assert word.endswith("k, alas") or word.endswith("k,"[:1] + " alas")
    assert len(word) == len("no column ") + LONGEST_WORD + len(" alas")
    for short in ("", "x", "k" * LONGEST_WORD, "a b " * 200):
        assert shortened(short) == short


def test_cutting_a_megabyte_takes_no_time():
    start = time.process_time()
    for text in ("x" * 10**6, "x " * 500_000, "\x1b" * 10**5):
        assert len(shortened(one_line(text))) <= LONGEST_LINE
    assert time.process_time() - start < 5


def test_every_part_of_an_error_is_cut_and_clean():
    huge = "\x1b[31m" + "k" * 40_000 + "\n✓ all is well"
    error = DataError(f"column {huge!r}", where=huge, expected=huge, fix=huge)
    text = str(error)
    assert len(text) < 3000
    assert "\x1b" not in text
    assert (
        text.count("\n") == 4
    )  # where, expected, fix and the line break in the last, which may have several
    assert error.args == (error.what,)


def test_many_problems_are_counted():
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as caught:
        Plan.model_validate({f"{'k' * 1000}{i}": i for i in range(50)})
    text = problems_of(caught.value)
    assert text.endswith("; and 40 more")
    assert len(text) < 4000


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int


class Outer(BaseModel):
    inner: Inner


def test_every_problem_is_named_by_its_key_and_no_input_is_repeated():
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"inner": {"n": "swordfish", "colour": "swordfish"}})
    said = problems_of(caught.value)
    assert "inner.n: Input should be a valid integer" in said
    assert "; unknown key 'inner.colour'" in said
    assert "swordfish" not in said
