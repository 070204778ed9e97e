"""The name of a measurement: one text for each identity, one identity for each text."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from synth_audit.errors import MeasurementNameError
from synth_audit.findings.measurement import MeasurementId, read, read_scoped

HOSTILE = [
    "by",
    "of",
    " by",
    "by ",
    "a by b",
    "by a",
    "of x",
    "x of y",
    "x[y]",
    "[",
    "]",
    "][",
    "a.b",
    ".",
    ",",
    '"',
    '""',
    '"by',
    "\\",
    "\\u0041",
    "*",
    "😀",
    "\x00",
    "\n",
    "\t",
    "\x7f",
    " ",
    "  ",
    "baby weight",
    "num.co",
    "größe",
    "é",
    "multivariate[4]",
    "\u202e",
    "-1",
    "risk[by x]",
    "by x of y",
    "null",
    "İ",
]
names = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8), st.sampled_from(["", "risk", "income"]))
measured = st.builds(MeasurementId, names, names, names, names)
ids = st.one_of(
    measured,
    st.builds(lambda x, of: replace(x, derived_from=of), measured, measured),
    st.builds(lambda x, of: replace(x, derived_from=replace(of, audit=x.audit)), measured, measured),
)


@given(ids)
def test_every_identity_is_read_back_from_its_text(x: MeasurementId) -> None:
    assert read(str(x)) == x
    assert read_scoped(x.name, x.scope) == x


@given(ids, ids)
def test_no_two_identities_share_a_text(x: MeasurementId, y: MeasurementId) -> None:
    assert (str(x) == str(y)) == (x == y)


@given(st.one_of(st.text(max_size=30), st.text(alphabet='ab.[]" \\*byof', max_size=12)))
@example('risk[""]')
@example('"".risk')
@example('risk[by "a"of x]')
@example("risk[by a  of b]")
@example("risk[by a of b of c]")
@example("risk[by a by b]")
@example("risk[a b]")
@example("risk[]")
@example("risk[by]")
@example("risk[of]")
@example("risk[of b[of c]]")
@example('risk["\\ud800"]')
@example("a.b.c")
@example(".b")
@example("risk ")
def test_what_is_not_a_name_is_refused_and_what_is_one_has_one_meaning(text: str) -> None:
    try:
        found = read(text)
    except MeasurementNameError:
        return
    assert read(str(found)) == found
    assert "\n" not in str(found)


REFUSED = [
    'risk[""]',
    '"".risk',
    'risk[by "a"of x]',
    "risk[by a  of b]",
    "risk[by a of b of c]",
    "risk[by a by b]",
    "risk[a b]",
    "risk[]",
    "risk[by]",
    "risk[of]",
    "risk[of b[of c]]",
    'risk["\\ud800"]',
    "a.b.c",
    ".b",
    "risk ",
    "",
    "risk[",
    "risk]",
    "risk[*]",
    "risk[by *]",
    'risk["a]',
    "risk[privacy_score[ranks]]",
    "risk[" * 5000,
]


@pytest.mark.parametrize("text", REFUSED)
def test_texts_outside_the_grammar_are_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(MeasurementNameError) as error:
        read(text)
    assert "by column" in error.value.expected
    assert len(str(error.value)) < 400


EXAMPLES = {
    "closest_record.privacy_score": MeasurementId("closest_record", "privacy_score"),
    "closest_record.privacy_score[ranks]": MeasurementId("closest_record", "privacy_score", "ranks"),
    "inference.risk[by income]": MeasurementId("inference", "risk", column="income"),
    "a.b[by num.co]": MeasurementId("a", "b", column="num.co"),
    'a.b[by "*"]': MeasurementId("a", "b", column="*"),
    'a.b["by"]': MeasurementId("a", "b", "by"),
    'a.b[x by "a by b"]': MeasurementId("a", "b", "x", "a by b"),
    "closest_record.leak_equivalent[of privacy_score[ranks]]": MeasurementId(
        "closest_record",
        "leak_equivalent",
        derived_from=MeasurementId("closest_record", "privacy_score", "ranks"),
    ),
    'singling_out.worst_subgroup[by "baby weight" of risk[univariate]]': MeasurementId(
        "singling_out",
        "worst_subgroup",
        column="baby weight",
        derived_from=MeasurementId("singling_out", "risk", "univariate"),
    ),
    "a.b[of c.d]": MeasurementId("a", "b", derived_from=MeasurementId("c", "d")),
    "a.b[of .d]": MeasurementId("a", "b", derived_from=MeasurementId("", "d")),
}


@pytest.mark.parametrize(("text", "x"), EXAMPLES.items())
def test_examples_of_the_grammar(text: str, x: MeasurementId) -> None:
    assert str(x) == text
    assert read(text) == x


def test_identities_are_ordered_with_and_without_what_they_are_derived_from() -> None:
    ordered = [
        MeasurementId("a", "b"),
        MeasurementId("a", "b", derived_from=MeasurementId("a", "c")),
        MeasurementId("a", "b", column="x"),
        MeasurementId("a", "b", "s"),
        MeasurementId("b", "a"),
    ]
    for some in permutations(ordered):
        assert sorted(some) == ordered


def test_what_is_derived_rests_on_what_was_measured() -> None:
    derived = MeasurementId("a", "b", derived_from=MeasurementId("a", "c"))
    with pytest.raises(ValueError, match="rests on one that an audit made"):
        MeasurementId("a", "d", derived_from=derived)


@given(ids)
def test_an_identity_survives_json(x: MeasurementId) -> None:
    adapter = TypeAdapter(MeasurementId)
    assert adapter.validate_json(adapter.dump_json(x)) == x


def test_a_label_shows_names_as_they_are() -> None:
    risk = MeasurementId("a", "risk", "univariate", "baby weight")
    assert risk.label == "univariate by baby weight"
    assert MeasurementId("a", "b", derived_from=risk).label == "risk (univariate by baby weight)"
    assert MeasurementId("a", "b", column="x", derived_from=MeasurementId("a", "risk")).label == "x, risk"
    assert risk.whole == MeasurementId("a", "risk")
    assert MeasurementId("", "risk", "s").stamped("a") == MeasurementId("a", "risk", "s")
