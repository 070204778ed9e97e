"""Papers' tables: each column is measured by an audit of the table, and numbers are turned rightly."""

import importlib
import json
from pathlib import Path

import pytest

from synth_audit import registry
from synth_audit.errors import SynthAuditError
from synth_audit.findings import measurement
from synth_audit.plan.plan import Plan

FOLDER = Path(__file__).parent.parent / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("published_tables/*.yaml"))


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("published_tables")


@pytest.mark.parametrize("name", NAMES)
def test_every_column_is_declared_by_an_audit_that_the_table_asks_for(script, name):
    table = script.published_table(name)
    asked = {choice.name for choice in table.audits}
    for column in table.columns:
        wanted = measurement.read(column.measurement)
        info = registry.catalogue("audit")[wanted.audit].info
        assert wanted.audit in asked
        assert wanted.quantity in {q.name for q in info.quantities}
    assert len({c.heading for c in table.columns}) == len(table.columns)


def test_a_gain_is_a_loss_turned_round_with_its_interval(script, finished):
    known = finished.evidence
    measured = next(m for m in known.measurements if m.interval is not None and m.value)
    table = script.PublishedTable(
        title="t",
        audits=(),
        columns=(
            script.PublishedColumn(heading="loss", measurement=str(measured.id)),
            script.PublishedColumn(heading="gain", measurement=str(measured.id), negated=True),
            script.PublishedColumn(heading="other", measurement="nowhere.measured"),
        ),
    )
    found = script.filled(table, (("ours", known),))
    ((_, (loss, gain, other)),) = found.rows
    assert (loss.value, loss.interval.low) == (measured.value, measured.interval.low)
    assert (gain.value, gain.interval.low, gain.interval.high) == (
        -loss.value,
        -loss.interval.high,
        -loss.interval.low,
    )
    assert other is None
    assert found.missing == ("other",)


def test_a_place_that_is_missing_is_found_before_any_plan_is_run(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script.api, "run", lambda *_, **__: pytest.fail("a plan was run"))
    plan = tmp_path / "plan.yaml"
    plan.write_text("audits: [exact_match]\n", encoding="utf-8")
    table = script.published_table("disjoint_generative_models")
    with pytest.raises(SynthAuditError, match="cannot be read"):
        script.releases_at(table, [plan, tmp_path / "nowhere"])


def test_a_plan_is_asked_for_the_tables_audits_and_releases_nothing(script):
    plan = Plan.model_validate({"audits": ["exact_match"], "release": "out.parquet", "seed": 3})
    asked = script.published_table("disjoint_generative_models").asked_of(plan)
    assert {"projection", "prediction"} <= {choice.name for choice in asked.audits}
    assert (asked.release, asked.seed) == (None, 3)


def test_the_script_prints_evidence_and_names_what_it_lacks(script, finished, capsys):
    command = ["disjoint_generative_models", str(finished.workspace.root)]
    assert script.main(command) == 0
    assert "not measured: " in capsys.readouterr().out
    script.main([*command, "--json"])
    plain = json.loads(capsys.readouterr().out)
    assert plain["rows"][0]["Δλ"] is None


def test_an_unknown_table_is_refused_with_those_there_are(script, capsys):
    with pytest.raises(SystemExit):
        script.main(["../secrets", "audit"])
    assert "disjoint_generative_models" in capsys.readouterr().err
