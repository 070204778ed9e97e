"""What a reader must be told of tables, of files made elsewhere, and of settings that were changed."""

import copy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import registry
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.pipeline import warnings
from synth_audit.plan.plan import Plan, parse_plan
from synth_audit.plugins.audit import RandomSplit, Subject
from synth_audit.store.evidence import GeneratorRecord
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table
from synth_audit.verdict.suite import load_suite, parse_suite


def tables(columns, control=None, **roles):
    data = pa.table(columns)
    schema = infer_schema(data, {name: ColumnSpec(role=role) for name, role in roles.items()})
    train = read_table(data, schema, where="train")
    return train, control and read_table(pa.table(control), schema, where="control")


def fair(n=100):
    return {"group": ["a", "b"] * (n // 2), "x": np.linspace(0, 1, n)}


def test_nothing_to_say_of_a_fair_table():
    assert not [*warnings.inspect(*tables(fair()), 10)]


@pytest.mark.parametrize(("width", "told"), [(200, ()), (201, ("201 columns, 20,100 pairs",))])
def test_a_table_of_many_columns_is_told_to_take_long(width, told):
    wide = {f"x{i}": np.arange(20) * 0.5 for i in range(width)}
    found = [*warnings.inspect(*tables(wide), 10)]
    assert len(found) == len(told)
    assert all(words in text for words, text in zip(told, found, strict=True))
    assert all("execution.deadline" in text for text in found)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["same"] * 100, "constant"),
        ([3.5] * 99 + [None], "constant"),
        ([None] * 100, "wholly missing"),
        (pa.nulls(100, pa.float64()), "wholly missing"),
        ([float("nan")] * 100, "wholly missing"),
        ([f"P{i}" for i in range(100)], "role: identifier"),
        ([f"name {i % 60}" for i in range(100)], "like names or free text"),
        ([f"2017/01/{1 + i % 31:02} {i // 31:02}:07" for i in range(100)], "numbers or dates as such"),
        (list(range(100)), "role: identifier"),
    ],
)
def test_a_doubtful_column_is_named(values, says):
    (warning,) = warnings.inspect(*tables(fair() | {"odd": values}), 10)
    assert "'odd'" in warning
    assert says in warning


def test_text_that_the_plan_lets_leave_is_not_told_to_stay():
    notes = pa.table(fair() | {"note": [f"seen on ward {i} by {i + 7} and sent home" for i in range(100)]})
    for specs, told in (({}, 1), ({"note": ColumnSpec(release_text=True)}, 0)):
        schema = infer_schema(notes, specs)
        assert len([*warnings.inspect(read_table(notes, schema, where="train"), None, 10)]) == told


def test_measurements_and_identifiers_are_no_identifiers_by_mistake():
    assert not [*warnings.inspect(*tables(fair() | {"id": list(range(100))}, id="identifier"), 10)]
    few = {"id": list(range(20)), "g": ["a", "b"] * 10}
    assert not [*warnings.inspect(*tables(few), 10)], "twenty rows may all differ by chance"


@pytest.mark.parametrize(
    ("shared", "says"), [(0, None), (3, "fewer than 10"), (10, "10 of 50"), (25, "25 of 50")]
)
def test_control_rows_that_occur_in_train_are_counted(shared, says):
    train = fair()
    x = np.concatenate([train["x"][:shared], np.linspace(2, 3, 50 - shared)])
    control = {"group": train["group"][:shared] + ["a"] * (50 - shared), "x": x}
    found = [*warnings.inspect(*tables(train, control), 10)]
    assert len(found) == (says is not None)
    if says:
        assert found[0].startswith(says)
        assert "understated" in found[0]


@pytest.mark.parametrize(
    ("count", "limit", "shown"), [(9, 10, "fewer than 10"), (10, 10, "10"), (1234, 10, "1,234"), (1, 1, "1")]
)
def test_small_counts_are_not_shown(count, limit, shown):
    assert warnings.shown_count(count, limit) == shown


CSV = parse_plan({"release": "released.csv"})


@pytest.mark.parametrize(
    "cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "=HYPERLINK(1)", "-a", "+-5"]
)
def test_formulas_in_a_csv_release_are_warned_of_and_not_shown(cell):
    data = pa.table({"fair": ["a", None], "note": ["a", cell], "x": [-5.0, 2.0]})
    (text,) = warnings.about_formulas(CSV, data)
    assert text.startswith("column 'note' of the CSV release")
    assert cell not in text
    coded = data.set_column(1, "note", data.column("note").dictionary_encode())
    assert [
        *warnings.about_formulas(CSV, coded),
        *warnings.about_formulas(parse_plan({}), data, as_csv=True),
    ] == [text] * 2
    for other in ({}, {"release": "released.parquet"}):
        assert not [*warnings.about_formulas(parse_plan(other), data)]


def test_numbers_and_signs_are_no_formulas():
    texts = ["-5", "+3.25", "-1e-7", "-", "a=b", "x-y", "", " ", "−5", None]
    data = pa.table({"note": texts, "x": [-5.0] * len(texts), "when": pa.nulls(len(texts))})
    assert not [*warnings.about_formulas(CSV, data)]


def test_names_of_columns_are_cells_too():
    data = pa.table({f"=c{i}": [1] for i in range(9)})
    (text,) = warnings.about_formulas(CSV, data)
    assert "columns '=c0', '=c1', '=c2', '=c3', '=c4' and 4 more of" in text


RARE = ["a"] * 60 + ["b"] * 21 + ["odd"] * 19


@pytest.mark.parametrize(
    ("generator", "labels", "drawn", "told"),
    [
        ("independent", RARE, 100, True),
        ("independent", ["a"] * 60 + ["b"] * 20 + ["c"] * 20, 100, False),
        ("resample", RARE, 100, False),
        (None, RARE, 100, False),
        ("cart", RARE, 100, False),
        ("cart", RARE, 81, True),
        ("disjoint", RARE, 100, False),
        ("disjoint", RARE, 81, True),
    ],
)
def test_labels_that_nobody_learns_or_draws_are_told_of_by_column(generator, labels, drawn, told):
    train, _ = tables(fair() | {"class": labels})
    settings = {"generators": ["cart"]} if generator == "disjoint" else {}
    made = registry.build("generator", generator, settings) if generator else None
    release = train.take(np.arange(drawn))
    found = warnings.about_rare_labels(Subject(train=train, control=None, synthetic=release, generator=made))
    assert [("'class'" in text, "odd" in text) for text in found] == [(True, False)] * told


@pytest.mark.parametrize(
    ("values", "key", "ours", "told"),
    [
        ([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], False, True, True),
        ([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], True, True, False),
        ([0, 0, 0, 0, 0, 1, 1, 1, 1, 1], False, False, False),
        (range(10), False, True, False),
    ],
    ids=["natural duplicates", "with a key", "files made elsewhere", "no equal rows"],
)
def test_equal_rows_without_a_key_are_told_of_where_they_share_a_coin(values, key, ours, told):
    columns = {"x": list(values), "key": [f"P{i}" for i in range(10)]}
    if not key:
        del columns["key"]
    train, _ = tables(columns, **({"key": "identifier"} if key else {}))
    split = RandomSplit(0.7, ours=ours)
    found = warnings.about_equal_rows(
        Subject(train=train, control=None, synthetic=train, generator=None, random_split=split)
    )
    assert ["10 of 10 train rows equal another" in text for text in found] == [True] * told


def test_equal_rows_that_chance_explains_are_told_of_as_different_people():
    rng = np.random.default_rng(0)
    train, control = tables({f"q{i}": rng.integers(0, 8, 900) for i in range(3)})
    for apart in (True, False):
        split = RandomSplit(0.5, ours=True, apart=apart)
        subject = Subject(train=train, control=control, synthetic=train, generator=None, random_split=split)
        first, *others = warnings.about_equal_rows(subject)
        assert ("different people's" in first, "share a side" in first) == (apart, not apart)
        assert len(others) <= apart, "some groups may be left"


@pytest.mark.parametrize(
    ("name", "config", "warned"),
    [
        ("external", {}, True),
        ("external", {"source": "made.parquet", "command": None}, True),
        ("external", {"source": None, "command": ["program"]}, False),
        ("external", {"source": None, "command": None, "recipe": "dpmm"}, False),
        ("vine", {}, False),
    ],
)
def test_only_a_finished_table_may_hold_control_rows(name, config, warned):
    record = GeneratorRecord(name, config, PrivacyAccount(guarantee=None, reason="a test"))
    assert len([*warnings.about_external(record)]) == warned


@pytest.mark.parametrize(
    ("rows_each", "delta", "told"),
    [(None, 0.049, ""), (None, 0.05, "20 rows"), (2, 0.05, ""), (2, 0.1, "10 people"), (None, 0.0, "")],
)
def test_a_delta_that_pays_for_somebodys_row_is_told_of(rows_each, delta, told):
    data = {"who": [f"p{i // 2}" for i in range(20)], "x": [i / 3 for i in range(20)]}
    train, _ = tables(data, who="identifier")
    privacy = {"epsilon": 1, "delta": delta, "rows_per_entity": rows_each}
    found = [*warnings.about_delta(parse_plan({"privacy": privacy}), train)]
    assert len(found) == bool(told)
    assert told in "".join(found)
    assert not [*warnings.about_delta(Plan(), train)]


def test_changed_settings_of_a_judged_audit_are_told():
    suite = load_suite(Plan().gates, Path())
    plan = parse_plan({"audits": [{"recognition": {"draws": 1}}, {"marginals": {"cells": 5}}]})
    [said] = warnings.about_settings(plan, suite)
    assert "changes draws of recognition" in said
    assert not [*warnings.about_settings(parse_plan({"audits": ["recognition"]}), suite)]


@pytest.mark.parametrize("name", ["release", "sensitive", "health"])
def test_of_a_suite_that_ships_nothing_is_told(name):
    assert not [*warnings.about_suite(Plan(), load_suite(name, Path()))]


def test_a_weaker_suite_is_told_of_whatever_its_name():
    usual = load_suite("release", Path())
    plain = copy.deepcopy(dict(usual.plain))
    assert not [*warnings.about_suite(Plan(), parse_suite(plain | {"meta": {"notes": "ours"}}))]
    dropped, widened, idle, stricter = (plain["expectations"][i] for i in (0, 3, 2, 4))
    plain["expectations"].remove(dropped)
    widened["kwargs"]["maximum"] *= 2
    idle["severity"] = "warning"
    stricter["kwargs"]["maximum"] /= 2
    names = [x["meta"]["id"] for x in (dropped, idle, widened)]
    [said] = warnings.about_suite(Plan(), parse_suite(plain))
    assert "'release' is none that ships" in said
    assert said.endswith(f"widens 3: {', '.join(names)}")


def test_a_lower_level_and_smaller_counts_are_told():
    plan = parse_plan({"level": 0.9, "suppression": 1})
    level, counts = warnings.about_suite(plan, load_suite("release", Path()))
    assert "level of every interval to 0.9, from the usual 0.95" in level
    assert "smallest count shown to 1, from the usual 10" in counts
