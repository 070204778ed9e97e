"""Great Expectations as users have it: it reads and writes suites, judges measurements.parquet as we do."""

import importlib
import json
import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from synth_audit.build import resource_folder
from synth_audit.findings.measurement import Direction, Interval, Measurement, MeasurementId
from synth_audit.findings.sensitivity import PlantedResult, Sensitivity, SensitivityCurve
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.verdict.judge import BUILT_IN, judge, measurement_frame
from synth_audit.verdict.suite import load_suite, parse_suite

SHIPPED = sorted(p.name for p in resource_folder("expectations").glob("*.json"))


@pytest.fixture(scope="module")
def gx():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import great_expectations

        import synth_audit.verdict.expectations  # noqa: F401
    return great_expectations


def essence(plain):
    """What a suite says, beside what each side adds of its own: identifiers and versions."""
    kept = ("type", "kwargs", "meta", "severity")
    return plain["name"], [{k: x.get(k) for k in kept} for x in plain["expectations"]]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_suite_that_ships_survives_great_expectations(gx, name, tmp_path):
    shipped = json.loads((resource_folder("expectations") / name).read_text(encoding="utf-8"))
    built = gx.ExpectationSuite(**shipped)
    assert essence(built.to_json_dict()) == essence(shipped)
    context = gx.get_context(mode="ephemeral")
    context.suites.add(built)
    exported = context.suites.get(shipped["name"]).to_json_dict()
    assert essence(exported) == essence(shipped)
    (tmp_path / "exported.json").write_text(json.dumps(exported))
    ours, theirs = load_suite(name, tmp_path), load_suite("exported.json", tmp_path)
    assert [g.limit for g in theirs.gates] == [g.limit for g in ours.gates]
    assert [(g.id, g.blocking, g.optional, g.reason) for g in theirs.gates] == [
        (g.id, g.blocking, g.optional, g.reason) for g in ours.gates
    ]


def test_a_suite_made_in_great_expectations_is_read(gx, tmp_path):
    made = gx.ExpectationSuite(name="theirs")
    meta = {"id": "copies", "reason": "copies disclose"}
    ours = importlib.import_module("synth_audit.verdict.expectations")
    made.add_expectation(
        ours.ExpectMeasurementToBeWithin(
            name="exact_match.excess", maximum=0.02, severity="critical", meta=meta
        )
    )
    made.add_expectation(
        gx.expectations.ExpectTableRowCountToBeBetween(
            min_value=3, severity="warning", meta={"id": "rows", "reason": "an empty table serves nobody"}
        )
    )
    (tmp_path / "theirs.json").write_text(json.dumps(made.to_json_dict()))
    suite = load_suite("theirs.json", tmp_path)
    assert [(g.id, g.blocking) for g in suite.gates] == [("copies", True), ("rows", False)]
    assert suite.measured[0].limit.maximum == 0.02


def curve(m, sight, full):
    answers = (PlantedResult(0.0, 0.0, 0.0, 0.0), PlantedResult(1.0, full, full - 0.1, full + 0.1))
    reason = "a copy gives no worse value" if sight is Sensitivity.INSENSITIVE else ""
    return SensitivityCurve(m.id, m.direction, sight, reason, answers, 0.0, 0.01, 0.02)


def outcome_of(rng, audit, family, status):
    """Measurements of every sort: without interval, not finite, open upwards, too few, doubled, blind."""
    measurements, curves = [], []
    for i in range(16):
        low, value, high = (float(x) for x in rng.normal() + np.sort(rng.normal(scale=0.2, size=3)))
        value = float(rng.choice([math.nan, math.inf, value, value, value, value, value]))
        low, high = rng.choice([low, low, low, low, math.nan]), rng.choice([high, high, high, math.inf])
        m = Measurement(
            MeasurementId(audit, f"q{i // 3}", ["", "a", "b 🙂"][i % 3]),
            value,
            interval=Interval(float(low), float(high), 0.9, "test") if rng.random() < 0.85 else None,
            n_achieved=int(rng.integers(1, 900)) if rng.random() < 0.8 else None,
            n_minimum=int(rng.integers(1, 400)) if rng.random() < 0.4 else None,
            direction=[Direction.LOWER, Direction.HIGHER][i % 2],
        )
        measurements += [m, replace(m, value=0.0)] if rng.random() < 0.1 else [m]
        if rng.random() < 0.85:
            sight = Sensitivity.INSENSITIVE if rng.random() < 0.15 else Sensitivity.SENSITIVE
            curves.append(curve(m, sight, float(rng.normal())))
    return AuditOutcome(
        audit, family, status, measurements=tuple(measurements), reason="none", responses=tuple(curves)
    )


ONE_SIDED = 240


def gates_of(rng, count):
    """Limits of every sort, the last of two sides, on what was measured and on what is not there."""
    for i in range(count):
        audit = ["probe", "probe", "use", "use", "broken", "absent"][i % 6]
        keys = ["minimum", "maximum"] if i >= ONE_SIDED else [str(rng.choice(["minimum", "maximum"]))]
        limit = {
            "name": f"{audit}.q{rng.integers(6)}",
            "scope": str(rng.choice(["", "a", '"b 🙂"', "*"])),
            "bound": str(rng.choice(["value", "pessimistic", "pessimistic"])),
            "strict": bool(rng.random() < 0.3),
            **dict(zip(keys, sorted(rng.normal(scale=2, size=len(keys)).tolist()), strict=True)),
        }
        yield {
            "type": "expect_measurement_to_be_within",
            "kwargs": limit,
            "meta": {"id": f"g{i}", "reason": "for the test"},
            "severity": "critical",
        }


def validated(gx, file, plain):
    """What a user's own Great Expectations finds in the file."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("review").add_parquet_asset("measurements", path=file)
    batch = asset.add_batch_definition("all").get_batch()
    found = batch.validate(gx.ExpectationSuite(**plain))
    json.dumps(found.to_json_dict())  # what a store of validation results would keep
    return {r.expectation_config.meta["id"]: r for r in found.results}


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(11)
    outcomes = (
        outcome_of(rng, "probe", "privacy", Status.MEASURED),
        outcome_of(rng, "use", "utility", Status.MEASURED),
        outcome_of(rng, "broken", "privacy", Status.ERROR),
        AuditOutcome("absent", "privacy", Status.NOT_APPLICABLE, reason="no control"),
    )
    return outcomes, {"name": "test", "expectations": list(gates_of(rng, ONE_SIDED + 60))}


def test_great_expectations_on_the_file_decides_as_the_audit_did(gx, case, tmp_path):
    outcomes, plain = case
    pq.write_table(measurement_frame(SimpleNamespace(outcomes=outcomes)), tmp_path / "measurements.parquet")
    theirs = validated(gx, tmp_path / "measurements.parquet", plain)
    ours = judge(parse_suite(plain, installed=False), outcomes, ())
    gates = [r for r in ours.results if r.gate not in BUILT_IN]
    assert len(gates) == len(theirs) == ONE_SIDED + 60
    for gate in gates:
        details = theirs[gate.gate].result["details"]
        assert theirs[gate.gate].success is (gate.result is Result.PASS)
        assert details["result"] == gate.result
        assert gate.explanation.startswith(details["explanation"])
        assert (details["measurement"], details["n_needed"]) == (str(gate.measurement), gate.n_needed)
        for end in ("value", "low", "high", "level"):
            assert repr(details[end]) == repr(getattr(gate, end))
    counts = {r: sum(g.result is r for g in gates) for r in Result}
    assert min(counts.values()) > 15


@pytest.mark.parametrize("column", ["insensitive", "n_minimum", "outcome", "copy_high"])
def test_a_file_that_lacks_a_column_passes_nothing(gx, case, tmp_path, column):
    outcomes, plain = case
    table = measurement_frame(SimpleNamespace(outcomes=outcomes)).drop_columns([column])
    pq.write_table(table, tmp_path / "old.parquet")
    plain = plain | {"expectations": plain["expectations"][::4]}
    assert not any(r.success for r in validated(gx, tmp_path / "old.parquet", plain).values())


def test_a_row_of_which_nothing_says_that_it_would_see_a_leak_does_not_pass(gx, tmp_path):
    m = Measurement(MeasurementId("use", "loss"), 0.1, interval=Interval(0.0, 0.2, 0.9, "test"), n_achieved=9)
    outcome = AuditOutcome("use", "utility", Status.MEASURED, measurements=(m,))
    gate = {"type": "expect_measurement_to_be_within", "kwargs": {"name": "use.loss", "maximum": 0.5}}
    plain = {"name": "test", "expectations": [{**gate, "meta": {"id": "loss"}}]}
    frame = measurement_frame(SimpleNamespace(outcomes=(outcome,))).to_pandas()
    for name, insensitive, success in (("a", "", True), ("b", None, False), ("c", "no copy seen", False)):
        frame.assign(insensitive=pd.Series([insensitive], dtype=object)).to_parquet(tmp_path / name)
        assert validated(gx, tmp_path / name, plain)["loss"].success is success
