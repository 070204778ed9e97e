"""Judging, and the checks of the table through Great Expectations: every way to pass by mistake."""

import copy
import logging
import math
import random
import socket
import time
import weakref
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from synth_audit.errors import GateError
from synth_audit.findings.measurement import Direction, Interval, Measurement, Reference, read_scoped
from synth_audit.findings.sensitivity import PlantedResult, Sensitivity, SensitivityCurve
from synth_audit.findings.verdict import Result, TableCheck
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table
from synth_audit.verdict import expectations, table_checks
from synth_audit.verdict.criteria import CONTRACT
from synth_audit.verdict.gate_decision import Row, decide
from synth_audit.verdict.judge import BUILT_IN, judge
from synth_audit.verdict.suite import parse_suite
from synth_audit.verdict.table_checks import check_table, contract, contract_key, gate_frame

CELL = "bartholomew"


def gate(ident, severity="critical", **kwargs):
    return {
        "type": "expect_measurement_to_be_within",
        "kwargs": kwargs,
        "meta": {"id": ident, "reason": "for the test", "advice": "Try again."},
        "severity": severity,
    }


def on_table(ident, kind, severity="critical", **kwargs):
    return gate(ident, severity, **kwargs) | {"type": kind}


def suite_of(*expectations):
    return parse_suite({"name": "test", "expectations": list(expectations)}, installed=False)


def measured(value, low=None, high=None, *, name="copies.excess", scope="", **more):
    interval = None if low is None else Interval(low, high, 0.95, "test")
    return Measurement(read_scoped(name, scope), value, interval=interval, n_achieved=400, **more)


def sees(m, clean=0.0, full=1.0):
    """The response of a measurement that tells a full copy from new people."""
    answers = (PlantedResult(0.0, clean, clean, clean), PlantedResult(1.0, full, full, full))
    return SensitivityCurve(m.id, m.direction, Sensitivity.SENSITIVE, "", answers, clean, 0.01, 0.02)


def outcome(*measurements, audit="copies", status=Status.MEASURED, reason="", responses=None):
    vouched = {m.id: sees(m) for m in measurements if m.interval}
    found = tuple(vouched.values()) if responses is None else responses
    return AuditOutcome(audit, "privacy", status, measurements=measurements, reason=reason, responses=found)


SUITE = suite_of(gate("copies", name="copies.excess", maximum=0.02))
HELD = (
    TableCheck(
        contract_key({"type": "expect_table_columns_to_match_set", "kwargs": {"column_set": ["a"]}}),
        True,
        "ok",
    ),
)
GOOD = measured(0.01, 0.0, 0.015)


def verdict_of(*outcomes, suite=SUITE, checks=HELD):
    report = judge(suite, outcomes, checks)
    return report.verdict, {r.gate: r for r in report.results}


def unseen(undecided=True):
    """A gate on a number that says what could be found."""
    plain = gate("unseen", name="copies.least", maximum=0.05, bound="value")
    plain["meta"]["undecided"] = undecided
    return plain


def test_a_value_outside_its_interval_is_the_end_that_is_judged():
    _, gates = verdict_of(outcome(measured(0.2, 0.03, 0.09)))
    assert "even its lower end is 3 %. Since the value, 20 %, lies beyond the computed end, 9 %," in (
        gates["copies"].explanation
    )
    _, gates = verdict_of(outcome(measured(0.001, 0.01, 0.015)))
    assert gates["copies"].explanation.endswith("computed end, 1 %, it is the end here.")


@pytest.mark.parametrize("undecided", [True, False])
def test_what_could_not_be_seen_is_no_fail(undecided):
    suite = suite_of(unseen(undecided))
    large, small = (outcome(measured(x, name="copies.least")) for x in (0.1, 0.04))
    verdict, results = verdict_of(large, suite=suite)
    assert verdict is (Result.INSUFFICIENT if undecided else Result.FAIL)
    assert ("may be there unseen" in results["unseen"].advice) is undecided
    assert verdict_of(small, suite=suite)[0] is Result.PASS


def test_a_limit_that_was_not_measured_is_left_out_beside_a_fail_alone():
    suite = suite_of(gate("copies", name="copies.excess", maximum=0.02), unseen())
    verdict, results = verdict_of(outcome(measured(0.03, 0.025, 0.04)), suite=suite)
    assert (verdict, "unseen" in results) == (Result.FAIL, False)
    verdict, results = verdict_of(outcome(GOOD), suite=suite)
    assert verdict is results["unseen"].result is Result.INSUFFICIENT


def test_what_could_not_be_seen_says_how_many_people_would_do():
    large = replace(measured(0.1, name="copies.least"), n_requested=500, n_achieved=150)
    found = verdict_of(outcome(large), suite=suite_of(unseen()))[1]["unseen"]
    assert "Estimate: about 600 control people instead of 150" in found.advice
    assert "if the limit falls with the square root" in found.advice
    assert found.n_needed == 600
    never = replace(large, value=1.0)
    assert verdict_of(outcome(never), suite=suite_of(unseen()))[1]["unseen"].n_needed is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((GOOD,), Result.PASS),
        ((measured(0.03, 0.025, 0.04),), Result.FAIL),
        ((measured(0.015, 0.004, 0.031),), Result.INSUFFICIENT),
        ((), Result.INSUFFICIENT),
        ((measured(math.nan, 0.0, 0.01),), Result.INSUFFICIENT),
        ((measured(0.01, 0.0, math.nan),), Result.INSUFFICIENT),
        ((measured(0.01),), Result.INSUFFICIENT),
        ((GOOD, GOOD), Result.INSUFFICIENT),
        ((GOOD, measured(math.nan)), Result.INSUFFICIENT),
        ((replace(GOOD, id=read_scoped("copies.excess", "by age")),), Result.INSUFFICIENT),
        ((replace(GOOD, n_minimum=500),), Result.INSUFFICIENT),
        ((GOOD, measured(9.0, scope="by age"), measured(9.0, name="copies.other")), Result.PASS),
    ],
)
def test_only_one_finite_row_can_pass(found, expected):
    verdict, results = verdict_of(outcome(*found))
    assert results["copies"].result is expected
    assert verdict is expected
    pure = decide(SUITE.gates[0].limit, [Row.of(m) for m in found])
    assert pure.result is expected
    assert results["copies"].explanation.startswith(pure.explanation)


def test_a_result_tells_the_whole_story():
    _, results = verdict_of(outcome(measured(0.015, 0.004, 0.031)))
    found = results["copies"]
    assert (found.value, found.low, found.high, found.level) == (0.015, 0.004, 0.031, 0.95)
    assert (str(found.measurement), found.every, found.bound) == ("copies.excess", False, "upper")
    assert (found.minimum, found.maximum, found.blocking) == (None, 0.02, True)
    assert found.reason == "for the test"
    assert found.n_needed is not None
    assert found.advice.startswith("Repeat the audit with at least 4,09")
    assert found.advice.endswith("Try again.")
    _, results = verdict_of(outcome(GOOD))
    assert results["copies"].advice == ""


def test_advice_for_an_undecided_gate_beyond_its_limit():
    _, results = verdict_of(outcome(measured(0.03, 0.01, 0.05)))
    assert results["copies"].advice.startswith("The value itself is beyond the limit")


@pytest.mark.parametrize("severity", ["critical", "warning"])
def test_no_hope_is_held_out_once_a_deciding_gate_has_failed(severity):
    """More attempts would decide the one gate, and the table would stay in all the same."""
    suite = suite_of(
        gate("copies", name="copies.excess", maximum=0.02),
        gate("other", severity, name="copies.other", maximum=0.02),
    )
    undecided = measured(0.015, 0.004, 0.031)
    failed = measured(0.03, 0.025, 0.04, name="copies.other")
    verdict, results = verdict_of(outcome(undecided, failed), suite=suite)
    found, lost = results["copies"], severity == "critical"
    assert (verdict is Result.FAIL) is lost
    assert ("would decide it if the value stays" in found.explanation) is not lost
    assert ("Repeat the audit" in found.advice) is not lost
    assert ("Another gate has failed" in found.advice) is lost
    assert found.n_needed is not None


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [
        ((), "was not part of this run"),
        (
            (outcome(status=Status.NOT_APPLICABLE, reason="there are no control rows"),),
            "there are no control",
        ),
        ((outcome(status=Status.ERROR, reason="ValueError in copies.py:3"),), "ValueError in copies.py:3"),
        ((outcome(),), "could not measure it"),
        # Numbers of an audit that did not end well do not count.
        ((outcome(GOOD, status=Status.ERROR, reason="x"),), "ended in an error"),
    ],
)
def test_absence_is_explained_and_blocks(outcomes, says):
    verdict, results = verdict_of(*outcomes)
    assert verdict is Result.INSUFFICIENT
    assert says in results["copies"].explanation


def test_an_error_of_any_audit_blocks():
    report = judge(
        SUITE, [outcome(GOOD), outcome(audit="other", status=Status.ERROR, reason="KeyError")], HELD
    )
    assert report.blockers == ("The audit other ended in an error: KeyError.",)
    assert report.verdict is Result.INSUFFICIENT
    assert report.results[1].result is Result.PASS


def test_a_lone_failing_warning_does_not_block():
    suite = suite_of(
        gate("copies", name="copies.excess", maximum=0.02),
        gate("loss", "warning", name="prediction.loss", maximum=0.1),
        gate("note", "info", name="prediction.loss", maximum=0.2),
    )
    bad = outcome(measured(0.5, 0.4, 0.6, name="prediction.loss"), audit="prediction")
    verdict, results = verdict_of(outcome(GOOD), bad, suite=suite)
    assert verdict is Result.PASS
    assert [results[g].result for g in ("copies", "loss", "note")] == [Result.PASS, Result.FAIL, Result.FAIL]
    verdict, results = verdict_of(outcome(GOOD), suite=suite)
    assert verdict is Result.PASS
    assert results["loss"].result is Result.INSUFFICIENT


def test_results_are_matched_to_their_gates_in_any_order():
    limits = {f"g{i}": i / 40 for i in range(30)}
    names = list(limits)
    random.Random(3).shuffle(names)  # noqa: S311
    suite = suite_of(
        *(
            gate(n, name=f"copies.{'excess' if limits[n] > 0.3 else 'share'}", maximum=limits[n])
            for n in names
        )
    )
    rows = outcome(measured(0.5, 0.5, 0.5), measured(0.1, 0.1, 0.1, name="copies.share"))
    _, results = verdict_of(rows, suite=suite)
    assert list(results) == [*BUILT_IN, *names]
    for name, limit in limits.items():
        value = 0.5 if limit > 0.3 else 0.1
        assert (results[name].maximum, results[name].value) == (limit, value)
        assert (results[name].result is Result.PASS) is (value <= limit)


def tamper_with(monkeypatch, tamper):
    """Have Great Expectations return other results than it found."""
    honest = expectations._validate

    def tampered(*args):
        (results,) = honest(*args)
        match tamper:
            case "drop":
                results.pop()
            case "twice":
                results[1] = results[0]
            case "unknown":
                results[0].expectation_config.meta.clear()
            case "raise":
                results[0].exception_info = {"metric": {"raised_exception": True}}
            case "lost":
                results[0].success = None
        yield results

    monkeypatch.setattr(expectations, "_validate", tampered)


@pytest.mark.parametrize("tamper", ["drop", "twice", "unknown"])
def test_what_great_expectations_mixes_up_is_an_error(monkeypatch, tamper):
    tamper_with(monkeypatch, tamper)
    with pytest.raises(GateError):
        check_table(SUITE, TABLE)


def test_great_expectations_keeps_no_rows_of_what_it_checked():
    """Its last context stays with it; a large table must not, and whoever handed it over keeps it whole."""
    values = np.arange(1000.0)
    alive = weakref.ref(values)
    frame = pd.DataFrame({"x": values}, copy=False)
    rows = {"type": "expect_table_row_count_to_equal", "kwargs": {"value": 1000}}
    assert expectations.run([frame], {"rows": rows}) == {"rows": True}
    assert frame.shape == (1000, 1)
    del values, frame
    assert alive() is None


@pytest.mark.parametrize("tamper", ["raise", "lost"])
def test_what_great_expectations_could_not_evaluate_passes_no_gate(monkeypatch, tamper):
    tamper_with(monkeypatch, tamper)
    assert [c.met for c in check_table(SUITE, TABLE)].count(None) == 1
    assert contract_of(TABLE).result is Result.INSUFFICIENT


def test_unknown_types_are_refused_and_not_dropped():
    sound = on_table("rows", "expect_table_row_count_to_equal", value=3)
    suite = suite_of(gate("copies", name="copies.excess", maximum=0.02), sound)
    # Past the reader's own check, as if the file names of the library had misled it.
    plain = copy.deepcopy(sound) | {"type": "expect_table_row_count_to_be_prime"}
    broken = replace(suite, gates=(suite.gates[0], replace(suite.gates[1], plain=plain)))
    with pytest.raises(GateError, match="refuses expect_table_row_count_to_be_prime"):
        check_table(broken, TABLE)
    with pytest.raises(GateError, match="refuses"):
        judge(broken, [outcome(GOOD)], HELD)


SPECS = {
    "id": ColumnSpec.model_validate({"role": "identifier"}),
    "age": ColumnSpec(kind="integer", bounds=(0, 120), nullable=False),
    "pay": ColumnSpec(kind="continuous", bounds=(0, 1e6)),
    "sex": ColumnSpec(kind="categorical", categories=("f", "m")),
    "ok": ColumnSpec(kind="boolean", categories=(True, False)),
    "born": ColumnSpec(kind="datetime", bounds=(datetime(1900, 1, 1), datetime(2020, 1, 1))),
    "seen": ColumnSpec(kind="datetime", bounds=(datetime(2000, 1, 1, tzinfo=UTC), datetime(2020, 1, 1))),
    "name": ColumnSpec(kind="categorical"),
    "void": ColumnSpec(kind="categorical"),
}
DAY = datetime(2010, 5, 6)
DATA = {
    "id": pa.array([1, 2, 3]),
    "age": pa.array([30, 40, 50]),
    "pay": pa.array([1.5, None, 3.0]),
    "sex": pa.array(["f", None, "m"]).dictionary_encode(),
    "ok": pa.array([True, False, None]),
    "born": pa.array([DAY.date(), None, DAY.date()], type=pa.date32()),
    "seen": pa.array([DAY, DAY, DAY], type=pa.timestamp("ns", tz="Europe/Oslo")),
    "name": pa.array([CELL, "b", "c"]),
    "void": pa.nulls(3),
}
SCHEMA = infer_schema(pa.table(DATA), SPECS)
TABLE = read_table(
    pa.table({k: v for k, v in DATA.items() if k != "id"}), SCHEMA, where="synthetic", partial=True
)


def changed_table(**columns):
    """Past ``read_table``, so that the contract stands alone."""
    data = {**{n: TABLE.data.column(n) for n in TABLE.names}, **columns}
    return Table(SCHEMA, pa.table({k: v for k, v in data.items() if v is not None}))


def contract_of(table, suite=SUITE):
    checks = check_table(suite, table)
    return {r.gate: r for r in judge(suite, [outcome(GOOD)], checks).results}[CONTRACT]


def test_contract_holds_for_a_sound_table():
    found = contract_of(TABLE)
    assert found.result is Result.PASS
    assert found.blocking
    assert found.explanation == f"All {len(contract(SCHEMA))} checks hold."
    assert contract_of(Table(SCHEMA.released_only(), TABLE.data)).result is Result.PASS


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"id": DATA["id"]}, "must not leave (identifiers or split keys): id"),
        ({"pay": None}, "lacks columns that were declared: pay"),
        ({"age": pa.array([30, 40, None])}, "Column 'age' has missing values"),
        ({"age": pa.array([30, 40, 121])}, "Column 'age' has values outside its bounds"),
        (
            {"age": pa.array([30.0, 40.5, 50.0])},
            "Column 'age' does not hold the kind",
        ),
        ({"pay": pa.array([-1.0, 2.0, 3.0])}, "Column 'pay' has values outside its bounds"),
        ({"pay": pa.array([CELL, "2", "3"])}, "Column 'pay'"),
        ({"sex": pa.array(["f", "m", CELL])}, "Column 'sex' has values outside its categories"),
        ({"ok": pa.array([2, 0, 1])}, "Column 'ok' has values outside its categories"),
        ({"born": pa.array([DAY.date(), None, datetime(2020, 1, 2).date()])}, "Column 'born'"),
        ({"born": pa.array([1, 2, 3])}, "Column 'born'"),
        ({"seen": pa.array([datetime(1999, 12, 31)] * 3)}, "Column 'seen'"),
        ({"name": pa.array([[CELL], ["b"], ["c"]])}, "Column 'name' "),
    ],
)
def test_contract_fails_and_says_where_without_a_value(columns, says):
    found = contract_of(changed_table(**columns))
    assert found.result is not Result.PASS
    assert says in found.explanation
    assert CELL not in repr(found)


@pytest.mark.parametrize("many", [1, 2])
def test_the_contract_by_batches_is_that_of_the_whole(monkeypatch, many):
    bad = {"age": pa.array([30.0, None, 40.5]), "sex": pa.array(["f", None, CELL]), "pay": None}
    for table in (TABLE, changed_table(**bad), changed_table(born=pa.array([1, 2, 3]))):
        whole = check_table(TABLE_SUITE, table)
        with monkeypatch.context() as patch:
            patch.setattr(table_checks, "_FRAMED", many)
            assert check_table(TABLE_SUITE, table) == whole


def test_contract_leaves_out_what_was_read_off_train():
    text = repr(contract(SCHEMA))
    assert CELL not in text
    assert "'id'" not in text
    assert contract(SCHEMA) == contract(SCHEMA.released_only())


def test_missing_integers_stay_integers():
    table = changed_table(age=pa.array([30, 40, None]))
    assert gate_frame(table).dtypes["age"] == "Int64"


TABLE_SUITE = suite_of(
    gate("copies", name="copies.excess", maximum=0.02),
    on_table("rows", "expect_table_row_count_to_be_between", min_value=3),
    on_table("distinct", "expect_column_values_to_be_unique", "warning", column="name"),
    on_table("odd", "expect_column_values_to_be_between", "warning", column="nowhere", max_value=1),
    on_table("mixed", "expect_column_values_to_be_between", "warning", column="name", max_value=1),
)


def test_the_suite_s_own_table_expectations():
    checks = {c.key: c for c in check_table(TABLE_SUITE, TABLE)}
    assert len(checks) == len(contract(SCHEMA)) + 4
    met = {g.id: checks[g.key].met for g in TABLE_SUITE.on_table}
    assert met == {"rows": True, "distinct": True, "odd": None, "mixed": None}
    report = judge(TABLE_SUITE, [outcome(GOOD)], tuple(checks.values()))
    results = {r.gate: r.result for r in report.results}
    assert results["rows"] is Result.PASS
    assert results["odd"] is results["mixed"] is Result.INSUFFICIENT
    assert report.verdict is Result.PASS
    short = check_table(TABLE_SUITE, TABLE.take(np.arange(2)))
    assert judge(TABLE_SUITE, [outcome(GOOD)], short).verdict is Result.FAIL


def test_no_cell_value_in_checks_results_or_logs(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    bad = suite_of(
        *(e.plain for e in TABLE_SUITE.gates),
        on_table("strings", "expect_column_values_to_be_in_set", "warning", column="name", value_set=["z"]),
    )
    table = changed_table(sex=pa.array(["f", "m", CELL]), pay=pa.array([CELL, "2", "3"]))
    checks = check_table(bad, table)
    report = judge(bad, [outcome(GOOD)], checks)
    assert "great_expectations" not in {r.name.partition(".")[0] for r in caplog.records}
    captured = capfd.readouterr()
    for text in (repr(checks), repr(report), caplog.text, captured.out, captured.err):
        assert CELL not in text
    assert captured.err == ""


@pytest.mark.parametrize(
    "checks",
    [
        (),
        (*HELD, *HELD),
        (replace(HELD[0], met=None),),
        (TableCheck(contract_key({"type": "expect_column_to_exist", "kwargs": {}}), True, "ok"),),
    ],
)
def test_a_contract_that_was_not_checked_blocks(checks):
    verdict, results = verdict_of(outcome(GOOD), checks=checks)
    assert verdict is Result.INSUFFICIENT
    assert results[CONTRACT].result is Result.INSUFFICIENT


def test_damaged_and_foreign_checks():
    with pytest.raises(GateError, match="damaged"):
        verdict_of(outcome(GOOD), checks=(*HELD, TableCheck("contract: {", True, "ok")))
    foreign = TableCheck(TABLE_SUITE.on_table[0].key, False, "of another suite")
    assert verdict_of(outcome(GOOD), checks=(*HELD, foreign))[0] is Result.PASS
    verdict, results = verdict_of(outcome(GOOD), suite=TABLE_SUITE)
    assert verdict is Result.INSUFFICIENT
    assert results["rows"].result is Result.INSUFFICIENT


def test_no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the gate called out")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert contract_of(TABLE).result is Result.PASS


def test_it_is_quick_on_a_large_table():
    many = TABLE.take(np.arange(60_000) % 3)
    verdict_of(outcome(GOOD))
    start = time.process_time()
    assert contract_of(many).result is Result.PASS
    assert time.process_time() - start < 20


INSENSITIVE = SensitivityCurve(
    read_scoped("copies.excess"), Direction.LOWER, Sensitivity.INSENSITIVE, "a copy gives no worse value"
)


@pytest.mark.parametrize(
    ("responses", "says"),
    [
        ((), "did not try it"),
        ((INSENSITIVE,), "a copy gives no worse value"),
        ((sees(GOOD, full=0.015),), "a full copy of the training rows would pass"),
    ],
)
def test_a_number_that_would_not_have_seen_a_leak_does_not_pass(responses, says):
    verdict, results = verdict_of(outcome(GOOD, responses=responses))
    assert verdict is Result.INSUFFICIENT
    assert says in results["copies"].explanation


def test_a_limit_on_the_other_side_need_not_stop_a_copy():
    """A copy moves the number up; a gate against what is too low has other things to look for."""
    suite = suite_of(gate("low", name="copies.excess", minimum=-0.5))
    verdict, _ = verdict_of(outcome(GOOD), suite=suite)
    assert verdict is Result.PASS


def test_a_number_of_usefulness_needs_nobody_to_vouch_for_it():
    useful = replace(outcome(GOOD, responses=()), family="utility")
    assert verdict_of(useful)[0] is Result.PASS


@pytest.mark.parametrize(
    ("name", "scope"),
    [("copies.leak_equivalent", "of excess"), ("copies.worst_subgroup", "by sex of excess")],
)
def test_what_is_derived_from_a_blind_number_is_blind(name, scope):
    derived = measured(0.0, -0.01, 0.01, name=name, scope=scope)
    suite = suite_of(gate("derived", name=name, scope=scope, maximum=0.05))
    assert verdict_of(outcome(derived, responses=(INSENSITIVE,)), suite=suite)[0] is Result.INSUFFICIENT
    assert verdict_of(outcome(derived, responses=(sees(GOOD),)), suite=suite)[0] is Result.PASS


def test_columns_for_which_the_audit_proves_it_are_named_where_the_gate_does_not_pass():
    zero = Reference(0.0, "an independent release")
    of_columns = [
        measured(v, v - 0.1, v + 0.1, scope=f"by {c}", name="copies.exact", reference=zero)
        for c, v in (("wage", 0.5), ("age", 0.8), ("sex", 0.05))
    ]
    for value, named in ((0.9, True), (0.0, False)):
        found = outcome(measured(value, value - 0.001, value + 0.001), *of_columns)
        result = judge(SUITE, [found], HELD).results[-1]
        assert ("beyond chance on each of these columns by itself: age, wage." in result.explanation) is named
        useful = replace(SUITE, gates=tuple(replace(g, fitness="always") for g in SUITE.gates))
        assert "beyond chance" not in judge(useful, [found], HELD).results[-1].explanation
