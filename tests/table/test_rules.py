"""Rules as a plan writes them: what is read, what is refused, and with what advice."""

import datetime
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_audit.errors import PlanError
from synth_audit.plan.plan import parse_plan, plan_schema
from synth_audit.table.arrow import microseconds
from synth_audit.table.rules import (
    Determines,
    OneOf,
    Ordered,
    Within,
    determines,
    misread,
    nameable,
    ordered,
    parse_rule,
    parse_rules,
    quoted,
    read_value,
)
from synth_audit.table.schema import declared_rules
from synth_audit.table.schema_inference import ColumnSpec, infer_schema

DAY = datetime.datetime(2024, 12, 31, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("age between 18 and 110", Within("", "age", 18, 110)),
        ("age BETWEEN -1.5e1 And +110.", Within("", "age", -15, 110)),
        ("age >= 18", Within("", "age", low=18)),
        ("age<=110", Within("", "age", high=110)),
        ("age > 18", Within("", "age", low=18, strict_low=True)),
        ("age < 110", Within("", "age", high=110, strict_high=True)),
        ("age == 40", Within("", "age", 40, 40)),
        ("seen <= 2024-12-31", Within("", "seen", high=DAY.timestamp() * 1e6, dates=True)),
        ("seen >= '2024-12-31 00:00+00:00'", Within("", "seen", low=DAY.timestamp() * 1e6, dates=True)),
        ("stage in [I, II, III]", OneOf("", "stage", ("I", "II", "III"))),
        ("stage in ['III b', II,'<5, \"x\"']", OneOf("", "stage", ('<5, "x"', "II", "III b"))),
        ("admitted <= discharged", Ordered("", "admitted", "<=", "discharged")),
        ("discharged >= admitted", Ordered("", "admitted", "<=", "discharged")),
        ("b > a", Ordered("", "a", "<", "b")),
        ("b == a", Ordered("", "a", "==", "b")),
        ("a <= `2024-12-31`", Ordered("", "a", "<=", "2024-12-31")),
        ('`RNA EF` < "RNA 12"', Ordered("", "RNA EF", "<", "RNA 12")),
        ("zip->city", Determines("", ("zip",), "city")),
        ("zip, street -> city", Determines("", ("street", "zip"), "city")),
        ("capital-gain, `a,b` -> x.y", Determines("", ("a,b", "capital-gain"), "x.y")),
        ("a in ['NaN', '2024-02-30']", OneOf("", "a", ("2024-02-30", "NaN"))),
        ("a <= `inf`", Ordered("", "a", "<=", "inf")),
        ("in in [in, and]", OneOf("", "in", ("and", "in"))),
        ("ålder >= 0", Within("", "ålder", low=0)),
    ],
)
def test_a_rule_is_read(text, rule):
    read = parse_rule(f"  {text} ")
    assert read == rule
    assert read.text == text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "name is missing"),
        ("age", "says nothing of it"),
        ("age = 5", "write `==`"),
        ("age != 5", "unequal cannot be asked"),
        ("RNA EF >= 3", "`RNA EF` >= 0"),
        ("age between 3", "two values"),
        ("age between 3 or 5", "two values"),
        ("age between low and 5", "neither a number nor a date"),
        ("age between 5 and 3", "lower one first"),
        ("age between 2024-01-01 and 5", "one end is a date"),
        ("stage in I, II", "list in brackets"),
        ("stage in []", "list in brackets"),
        ("stage in [I II]", "quote values"),
        ("stage in [I, II,]", "list in brackets"),
        ("stage in [I, I]", "listed twice"),
        ("18 <= age <= 110", "`between`"),
        ("age <=", "one value or column"),
        ("<= 5", "name is missing before '<='"),
        ("a <= a", "with itself"),
        ("a -> a", "occurs twice"),
        ("a, a -> b", "occurs twice"),
        ("a, -> b", "columns before it"),
        ("-> b", "columns before it"),
        ("a -> b, c", "one rule for each"),
        ("a -> b -> c", "one column after it"),
        ("`a >= 3", "left open"),
        ("`` >= 3", "left open"),
        ("a, b", "follows the column"),
        ("a <= 2024-13-45 12", "one value or column"),
        ("a <= 2024-02-30", "'2024-02-30' is a date that does not exist"),
        ("a <= '2024-02-28 25:00'", "is a date that does not exist or cannot be read"),
        ("a between 2024-01-01 and 2024-02-30", "is a date that does not exist"),
        ("a in [2024-02-28, 2024-02-30]", "quote it if it is a label"),
        ("a >= 1e400", "'1e400' is not a finite number"),
        ("a >= -Inf", "in backticks if it is a column"),
        ("a == nan", "not a finite number"),
        ("a between 0 and inf", "leave an end open"),
        ("a in [x, NaN]", "not a finite number"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(text, named):
    with pytest.raises(PlanError) as caught:
        parse_rule(text, where="rules.3")
    assert named in str(caught.value)
    assert repr(text) in caught.value.what
    assert caught.value.where == "rules.3"
    assert "between 18 and 110" in caught.value.expected


def test_the_same_rule_twice_is_refused_however_it_is_written():
    with pytest.raises(PlanError, match="say the same") as caught:
        parse_rules(["a <= b", "zip -> city", "`b` >= a"])
    assert caught.value.where == "rules.2"
    assert len(parse_rules(["a <= b", "a < b", "b <= a"])) == 3


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(nameable)


@given(NAMES, NAMES)
def test_any_two_columns_can_be_named(one, other):
    if one == other:
        return
    for rule in (ordered(one, "<=", other), ordered(one, "==", other), determines([one], other)):
        assert parse_rule(rule.text) == rule


MARKS = ("`", '"', "'")
KEYWORDS = ("in", "and", "between")
PLAIN = st.sampled_from(
    [*KEYWORDS, "IN", "a", "x-y", "ålder", "-", "$", "2 b", "->", "1e400", "nan", "[", "🙂"]
)
WORDS = PLAIN | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
WRITABLE = WORDS.filter(lambda word: not all(mark in word for mark in MARKS))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6).map(float)
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1))
SPACES = st.sampled_from(["", " ", "\n", " \t\u00a0"])
BARE = re.compile(r"((?!->)[^\s,\[\]<>=!`\"'])+(?<!-)")  # `a->b` is no `a- > b`


@st.composite
def spelt(draw, word, *, name=True):
    """A word in some quotation marks, or bare where that is read as the same."""
    marks = [m for m in MARKS if m not in word]
    if BARE.fullmatch(word) and read_value(word) is None and not misread(word):
        marks.append("")
    if name and (read_value(word) is not None or misread(word)):
        marks = ["`"] if "`" not in word else marks
    mark = draw(st.sampled_from(marks))
    return f"{mark}{word}{mark}"


@st.composite
def values(draw):
    """Two values of one kind, ascending, each with a spelling, and whether they are dates."""
    dates = draw(st.booleans())
    if not dates:
        low, high = sorted(draw(st.tuples(NUMBERS, NUMBERS)))
        return (low, repr(low)), (high, repr(high)), False
    ends = sorted(draw(st.tuples(MOMENTS, MOMENTS)))
    low, high = ((microseconds(t), f"'{t.isoformat(draw(st.sampled_from(['T', ' '])))}'") for t in ends)
    return low, high, True


@st.composite
def stated(draw):
    """A rule and a text that states it, in any spelling."""
    one, other = draw(st.lists(WRITABLE, min_size=2, max_size=2, unique=True))
    a, b = draw(spelt(one)), draw(spelt(other))
    low, high, dates = draw(values())
    listed = draw(st.lists(WRITABLE, min_size=1, max_size=4, unique=True))
    operator = draw(st.sampled_from(["<", "<=", ">", ">=", "=="]))
    up = operator[0] == ">"
    strict = {"strict_low": operator == ">", "strict_high": operator == "<"}
    ends = (low[0], low[0]) if operator == "==" else (low[0], None) if up else (None, low[0])
    smaller, larger = (other, one) if up else sorted((one, other)) if operator == "==" else (one, other)
    rule, parts = draw(
        st.sampled_from(
            [
                (Within("", one, low[0], high[0], dates=dates), [a, " Between ", low[1], " and ", high[1]]),
                (Within("", one, *ends, dates=dates, **strict), [a, operator, low[1]]),
                (OneOf("", one, tuple(sorted(listed))), [a, " iN ", "["]),
                (Ordered("", smaller, operator.replace(">", "<"), larger), [a, operator, b]),
                (Determines("", (one,), other), [a, "->", b]),
            ]
        )
    )
    if isinstance(rule, OneOf):
        inside = [x for word in listed for x in (draw(spelt(word, name=False)), ",")]
        parts += [*inside[:-1], "]"]
    return rule, "".join(draw(SPACES) + part for part in parts)


@given(stated())
def test_a_rule_is_read_as_it_was_meant_however_it_is_spelt(case):
    rule, text = case
    read = parse_rule(text)
    assert read == rule
    assert parse_rule(read.text) == rule


@pytest.mark.parametrize(
    "text",
    ["[" * 5_000, "a in " + "[" * 5_000, "a <= " * 5_000, "`" * 5_001, "a, " * 6_000 + "a", "a" * 1_000_000],
    ids=["brackets", "a list of brackets", "a chain", "backticks", "columns", "one name"],
)
def test_a_huge_text_is_refused_at_once_and_not_repeated(text):
    with pytest.raises(PlanError) as caught:
        parse_rule(text)
    assert len(str(caught.value)) < 1_500


def test_a_long_list_is_read():
    labels = [f"label_{i}" for i in range(1_500)]
    assert parse_rule(f"a in [{', '.join(labels)}]").allowed == tuple(sorted(labels))


@pytest.mark.parametrize(
    ("text", "place", "named"),
    [
        ("age between 18 or 110", 16, "two values"),
        ("stage in [I, II,]", 17, "list in brackets"),
        ("age <= 5 6", 10, "'<=' wants one value or column"),
        ("seen >= 2024-02-30", 9, "does not exist"),
        ("age", 4, "says nothing of it"),
        ("a b -> c", 3, "columns before it"),
        ("a <= 'b", 6, "left open"),
        ("a in [b, c, 'b', c]", 13, "listed twice"),
        ("a == `` ", 6, "left open or holds nothing"),
        ("a between 3 and 1", 11, "lies above the second"),
    ],
)
def test_a_mistake_is_named_with_its_place(text, place, named):
    with pytest.raises(PlanError, match=f"at character {place}: .*{named}"):
        parse_rule(text)


@given(st.text(st.sampled_from([*"ab1`'\"<>=!,[]- \n"])))
def test_any_signs_are_a_rule_or_a_plan_error(text):
    test_any_text_is_a_rule_or_a_plan_error.hypothesis.inner_test(text)


@given(st.text())
def test_any_text_is_a_rule_or_a_plan_error(text):
    try:
        rule = parse_rule(text)
    except PlanError:
        return
    assert rule.columns


def test_names_that_cannot_be_written():
    assert quoted("age") == "age"
    assert quoted("2024") == "`2024`"
    assert quoted("Inf") == "`Inf`"
    assert parse_rule(ordered("nan", "<", "infinity").text) == Ordered("", "nan", "<", "infinity")
    assert quoted("a`b") == '"a`b"'
    assert not nameable('a`"b')


def test_moments():
    assert microseconds(datetime.date(2024, 12, 31)) == DAY.timestamp() * 1e6
    assert microseconds(DAY.replace(tzinfo=None)) == DAY.timestamp() * 1e6
    assert microseconds(datetime.date(1970, 1, 2)) == 86_400e6


PLAN = {"rules": ["age >= 18", "zip -> city"], "columns": {"age": {"bounds": [0, 120]}}}


def test_a_plan_carries_rules_and_its_digest_depends_on_them():
    plan = parse_plan(PLAN)
    assert [r.text for r in plan.stated_rules] == PLAN["rules"]
    assert plan.plain()["rules"] == PLAN["rules"]
    assert plan.digest != parse_plan({"columns": PLAN["columns"]}).digest
    assert "rules" not in parse_plan({}).plain()
    assert parse_plan({"rules": "age >= 18"}).rules == ("age >= 18",)
    assert "between 18 and 110" in plan_schema()["properties"]["rules"]["description"]


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        ({"rules": ["age ~ 5"]}, "'age ~ 5'"),
        ({"rules": 5}, "rules"),
        ({"rules": [{"age": 5}]}, "rules.0"),
        ({"rules": ["a <= b", "b >= a"]}, "say the same"),
        ({"rules": ["k -> city"], "columns": {"k": {"role": "identifier"}}}, "never released"),
        ({"rules": ["k -> city"], "columns": {"k": {"role": ["split_key"]}}}, "never released"),
    ],
)
def test_a_plan_refuses_rules_that_cannot_be_meant(plan, named):
    with pytest.raises(PlanError) as caught:
        parse_plan(plan)
    assert named in str(caught.value)


DATA = pa.table(
    {
        "age": [20, 30, 40],
        "dose": [0, 1, 1],
        "seen": pa.array([0, 1, 2], pa.timestamp("us")),
        "left": pa.array([0, 1, 2], pa.date32()),
        "city": ["a", "b", "a"],
        "flag": [True, False, True],
        "void": pa.nulls(3),
        "key": ["p", "q", "r"],
    }
)


def schema_with(*texts, **specs):
    known = {name: ColumnSpec(**spec) for name, spec in ({"key": {"role": "identifier"}} | specs).items()}
    return infer_schema(DATA, known, rules=parse_rules(texts))


def test_rules_are_kept_by_the_schema_and_by_what_is_released_of_it():
    schema = schema_with("age >= 18", "city -> flag")
    assert [r.text for r in schema.rules] == ["age >= 18", "city -> flag"]
    assert schema.released_only().rules == schema.rules


def test_a_rule_that_asks_for_an_order_keeps_a_number_a_number():
    assert schema_with()["dose"].kind.name == "categorical"
    assert schema_with("dose -> city", "dose == age")["dose"].kind.name == "categorical"
    assert schema_with("dose >= 0")["dose"].kind.name == "integer"
    assert schema_with("dose <= age")["dose"].kind.name == "integer"
    assert schema_with("void <= age")["void"].kind.name == "categorical"


@pytest.mark.parametrize(
    ("text", "specs", "named"),
    [
        ("wrong >= 5", {}, "column 'wrong', which the table does not have"),
        ("city == Paris", {}, "for a label write"),
        ("key -> city", {}, "never released"),
        ("city >= 5", {}, "asks for an order in column 'city', which is categorical"),
        ("flag >= 0", {}, "asks for an order in column 'flag'"),
        ("dose >= 0", {"dose": {"kind": "categorical"}}, "asks for an order"),
        ("city <= seen", {}, "asks for an order"),
        ("seen >= 5", {}, "compares dates with a number"),
        ("age <= 2024-01-01", {}, "compares numbers with a date"),
        ("age <= seen", {}, "compares a date with something else"),
        ("city == seen", {}, "compares a date with something else"),
        ("age in [young, 30]", {}, "cannot hold"),
        ("seen in [1, 2]", {}, "cannot hold"),
    ],
)
def test_a_rule_that_does_not_go_with_the_table_is_refused(text, specs, named):
    with pytest.raises(PlanError) as caught:
        schema_with(text, **specs)
    assert named in str(caught.value)
    assert caught.value.where == "rules"
    assert caught.value.expected


def test_what_goes_with_the_table_is_taken():
    schema_with(
        "seen <= left", "left <= 2024-01-01", "seen in [2024-01-01]", "age in [20, 30.5]", "flag in [true]",
        "city == flag", "city, age -> seen", "dose in [0, 1]",
    )  # fmt: skip


def test_bounds_and_categories_are_rules_once():
    def texts(*rules, **specs):
        return [r.text for r in declared_rules(schema_with(*rules, **specs))]

    bounds = {"age": {"bounds": [0, 120]}, "city": {"categories": ["b", "a", "it's"]}}
    assert texts(**bounds) == ["age between 0 and 120", 'city in [a, b, "it\'s"]']
    assert texts("age>=0", "age between 0 and 120.0", **bounds)[:2] == ["age>=0", "age between 0 and 120.0"]
    assert len(texts("age>=0", "age between 0 and 120.0", **bounds)) == 3
    assert texts(seen={"bounds": [datetime.date(1970, 1, 1), datetime.datetime(2024, 12, 31, 12)]}) == [
        "seen between 1970-01-01 and 2024-12-31T12:00:00"
    ]
    many = {"city": {"categories": [*"abcdefghij", "10", "a b"]}}
    assert texts(**many) == ["city in [10, a, 'a b', b, c, d, e, … 12 in all]"]
    assert texts(key={"role": "identifier", "categories": ["p", "q", "r"]}) == []
