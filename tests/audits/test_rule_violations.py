"""Which rows break a rule: against a slow twin that reads rows one by one."""

import datetime
from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.audits.fidelity.constraints import put
from synth_audit.table.rules import Determines, OneOf, Ordered, Within, parse_rule, parse_rules
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

TEXTS = (
    "x between -1 and 1.5", "x > 0", "x < 1", "i >= 1", "i == 2", "i in [0, 2]", "x in [0.5, 1]",
    "c in [a, '2']", "flag in [true]", "x <= i", "x < i", "i == x", "c == d", "c == flag", "t <= 2020-01-02",
    "t > '2020-01-02 12:00'", "t < u", "t in [2020-01-02]", "c -> d", "c, i -> x", "flag, t -> c", "x -> i",
)  # fmt: skip
RULES = parse_rules(TEXTS)
SPECS = {n: ColumnSpec(kind=k) for n, k in (("x", "continuous"), ("i", "integer"), ("c", "categorical"))}

DAYS = [datetime.datetime(2020, 1, day, hour) for day in (1, 2, 3) for hour in (0, 12)]
COLUMNS = {
    "x": (st.sampled_from([-1.5, -1.0, 0.0, 0.5, 1.0, 2.0]), pa.float64()),
    "i": (st.integers(0, 3), pa.int64()),
    "c": (st.sampled_from(["a", "b", "2", "true"]), pa.string()),
    "d": (st.sampled_from(["a", "b", "2"]), pa.string()),
    "flag": (st.booleans(), pa.bool_()),
    "t": (st.sampled_from(DAYS), pa.timestamp("us")),
    "u": (st.sampled_from(DAYS), pa.timestamp("us")),
}


@st.composite
def pairs(draw):
    """Train and another table."""
    rows = st.fixed_dictionaries({n: st.none() | values for n, (values, _) in COLUMNS.items()})
    parts = [draw(st.lists(rows, min_size=1, max_size=12)) for _ in range(2)]
    return [pa.Table.from_pylist(p, pa.schema([(n, t) for n, (_, t) in COLUMNS.items()])) for p in parts]


def read(data, rules=RULES):
    schema = infer_schema(data[0], SPECS, rules=rules)
    return [read_table(d, schema, where="table") for d in data]


def twin(rule, row, train):
    """None where the rule cannot be asked of the row, else whether the row breaks it."""
    if any(row[name] is None for name in rule.columns):
        return None
    match rule:
        case Within(column=name, low=low, high=high):
            x = number(row[name])
            below = low is not None and (x <= low if rule.strict_low else x < low)
            above = high is not None and (x >= high if rule.strict_high else x > high)
            return below or above
        case OneOf(column=name):
            return all(not same(row[name], text) for text in rule.allowed)
        case Ordered(left=a, operator="==", right=b):
            return word(row[a]) != word(row[b])
        case Ordered(left=a, operator="<", right=b):
            return not number(row[a]) < number(row[b])
        case Ordered(left=a, right=b):
            return not number(row[a]) <= number(row[b])
        case Determines(determinants=names, dependent=dependent):
            beside = Counter(
                r[dependent]
                for r in train
                if r[dependent] is not None and all(r[n] is not None and r[n] == row[n] for n in names)
            )
            if not beside:
                return None
            return beside[row[dependent]] < max(beside.values())
    raise AssertionError(rule)


def number(value):
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC).timestamp() * 1e6
    return float(value)


def word(value):
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else float(value)


def same(value, text):
    if isinstance(value, (bool, str)):
        return word(value) == text
    if isinstance(value, datetime.datetime):
        return value == datetime.datetime.fromisoformat(text)
    return float(value) == float(text)


@settings(max_examples=60, deadline=None)
@given(pairs())
def test_every_kind_of_rule_is_what_its_definition_says(data):
    train, table = read(data)
    rows, learnt = data[1].to_pylist(), data[0].to_pylist()
    for rule in RULES:
        question = put(rule, table, train)
        expected = [twin(rule, row, learnt) for row in rows]
        assert question.asked.tolist() == [e is not None for e in expected], rule.text
        assert question.broken.tolist() == [bool(e) for e in expected], rule.text
        if isinstance(rule, Determines):
            whole = [all(row[n] is not None for n in rule.determinants) for row in rows]
            held = [
                any(
                    r[rule.dependent] is not None and all(r[n] == row[n] for n in rule.determinants)
                    for r in learnt
                )
                for row in rows
            ]
            assert question.whole.tolist() == whole
            assert question.unseen.tolist() == [w and not h for w, h in zip(whole, held, strict=True)]
        else:
            assert question.whole is question.unseen is None


def test_of_several_most_frequent_values_any_will_do():
    train = pa.table({"k": ["p", "p", "p", "q"], "v": ["a", "b", "b", None]})
    table = pa.table({"k": ["p", "p", "q", "r", None], "v": ["a", "b", "a", "a", "a"]})
    schema = infer_schema(train)
    one, other = (read_table(t, schema, where="t") for t in (train, table))
    question = put(parse_rule("k -> v"), other, one)
    assert question.broken.tolist() == [True, False, False, False, False]
    assert question.asked.tolist() == [True, True, False, False, False]
    assert question.unseen.tolist() == [False, False, True, True, False]
    tied = read_table(pa.table({"k": ["p", "p"], "v": ["a", "b"]}), schema, where="t")
    assert not put(parse_rule("k -> v"), other, tied).broken.any()
    assert put(parse_rule("k -> v"), tied, tied).asked.all()


def test_a_column_without_a_type_cannot_be_asked():
    rules = parse_rules(["void >= 0", "void <= i"])
    schema = infer_schema(pa.table({"void": pa.nulls(2), "i": [1, 2]}), rules=rules)
    train = read_table(pa.table({"void": pa.nulls(2), "i": [1, 2]}), schema, where="t")
    made = read_table(pa.table({"void": ["x", "5"], "i": [1, 2]}), schema, where="t")
    for rule in rules:
        assert not put(rule, made, train).asked.any()
