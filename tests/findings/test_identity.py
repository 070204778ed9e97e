"""The name of a measurement: one text for each identity, one identity for each text."""

import math
from dataclasses import FrozenInstanceError, replace
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from synth_audit.errors import DataError, MeasurementNameError, SynthAuditError
from synth_audit.findings.measurement import (
    Direction,
    Findings,
    Interval,
    Measurement,
    MeasurementId,
    Quantity,
    Series,
    read,
    read_scoped,
)
from synth_audit.plugins.audit import AuditInfo, AuditOutcome, Status

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


M = MeasurementId("", "m")
RISK = Quantity("risk", "Risk", unit="ratio", direction=Direction.HIGHER, range=(0, 2))


def test_a_quantity_lends_its_unit_and_direction():
    found = RISK.at(1, setting="deep", column="age", n_requested=5, n_achieved=4, n_minimum=5)
    assert (found.id, found.value) == (MeasurementId("", "risk", "deep", "age"), 1.0)
    assert (found.unit, found.direction) == ("ratio", Direction.HIGHER)
    assert isinstance(found.value, float)


@pytest.mark.parametrize(
    ("achieved", "minimum", "short"), [(4, 5, True), (5, 5, False), (None, 5, True), (0, None, False)]
)
def test_short_of_attempts(achieved, minimum, short):
    assert Measurement(M, 0.0, n_achieved=achieved, n_minimum=minimum).short is short


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_finite_means_value_and_both_ends(bad):
    assert Measurement(M, 0.0, interval=Interval(0, 1, 0.95, "x")).finite
    assert not Measurement(M, bad).finite
    assert not Measurement(M, 0.0, interval=Interval(bad, 1, 0.95, "x")).finite
    assert not Measurement(M, 0.0, interval=Interval(0, bad, 0.95, "x")).finite


def test_series_of_uneven_length_is_refused():
    with pytest.raises(ValueError, match="differ in length"):
        Series(M, "S", "line", "x", "y", (1.0, 2.0), {"a": (1.0, 2.0), "b": (1.0,)})


def test_outcome_stamps_measurements_with_the_audit():
    blank = AuditOutcome("copies", "privacy", Status.NOT_APPLICABLE)
    done = blank.with_findings(Findings((RISK.at(1),), notes=("seen",)))
    assert done.status is Status.MEASURED
    assert [str(m.id) for m in done.measurements] == ["copies.risk"]
    assert done.notes == ("seen",)
    assert blank.measurements == ()


def test_values_are_frozen():
    with pytest.raises(FrozenInstanceError):
        RISK.name = "other"


def test_audit_info_knows_only_declared_quantities():
    info = AuditInfo(
        title="", question="", threat_model="", not_covered="", quantities=(RISK,), risk="utility"
    )
    assert info.quantity("risk") is RISK
    with pytest.raises(KeyError):
        info.quantity("other")


def test_errors_say_what_where_expected_and_fix():
    text = str(DataError("bad", where="train", expected="good", fix="mend it"))
    assert text.splitlines() == ["bad", "  where: train", "  expected: good", "  fix: mend it"]
    assert str(SynthAuditError("bad")) == "bad"
