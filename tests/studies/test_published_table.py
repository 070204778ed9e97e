"""Papers' tables: each column is measured by an audit of the table, and numbers are turned rightly."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from synth_audit import api, cli, registry
from synth_audit.errors import PlanError, SynthAuditError
from synth_audit.findings import measurement
from synth_audit.plan.plan import Plan
from synth_audit.studies.comparison import (
    PublishedColumn,
    PublishedTable,
    filled,
    published_table,
    published_tables,
)


@pytest.mark.parametrize("name", published_tables())
def test_every_column_is_declared_by_an_audit_that_the_table_asks_for(name):
    table = published_table(name)
    asked = {choice.name for choice in table.audits}
    for column in table.columns:
        wanted = measurement.read(column.measurement)
        info = vars(registry.catalogue("audit")[wanted.audit].load())["info"]
        assert wanted.audit in asked
        assert wanted.quantity in {q.name for q in info.quantities}
    assert len({c.heading for c in table.columns}) == len(table.columns)


def test_a_gain_is_a_loss_turned_round_with_its_interval(finished):
    known = finished.evidence
    measured = next(m for m in known.measurements if m.interval is not None and m.value)
    table = PublishedTable(
        title="t",
        audits=(),
        columns=(
            PublishedColumn(heading="loss", measurement=str(measured.id)),
            PublishedColumn(heading="gain", measurement=str(measured.id), negated=True),
            PublishedColumn(heading="other", measurement="nowhere.measured"),
        ),
    )
    found = filled(table, (("ours", known),))
    ((_, (loss, gain, other)),) = found.rows
    assert (loss.value, loss.interval.low) == (measured.value, measured.interval.low)
    assert (gain.value, gain.interval.low, gain.interval.high) == (
        -loss.value,
        -loss.interval.high,
        -loss.interval.low,
    )
    assert other is None
    assert found.missing == ("other",)


def test_a_place_that_is_missing_is_found_before_any_plan_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr("synth_audit.api.auditing.run", lambda *_, **__: pytest.fail("a plan was run"))
    plan = tmp_path / "plan.yaml"
    plan.write_text("audits: [exact_match]\n", encoding="utf-8")
    with pytest.raises(SynthAuditError, match="cannot be read"):
        api.fill_table("disjoint_generative_models", [plan, tmp_path / "nowhere"])


def test_a_plan_is_asked_for_the_tables_audits_and_releases_nothing():
    plan = Plan.model_validate({"audits": ["exact_match"], "release": "out.parquet", "seed": 3})
    asked = published_table("disjoint_generative_models").asked_of(plan)
    assert {"projection", "prediction"} <= {choice.name for choice in asked.audits}
    assert (asked.release, asked.seed) == (None, 3)


def test_the_command_prints_evidence_and_names_what_it_lacks(finished):
    command = ["table", "disjoint_generative_models", str(finished.workspace.root)]
    said = CliRunner().invoke(cli.main, command)
    assert said.exit_code == 0
    assert "not measured: " in said.output
    plain = json.loads(CliRunner().invoke(cli.main, [*command, "--json"]).stdout)
    assert plain["rows"][0]["Δλ"] is None


def test_an_unknown_table_is_refused_with_those_there_are():
    with pytest.raises(PlanError, match="no table") as caught:
        published_table("../secrets")
    assert "disjoint_generative_models" in str(caught.value.expected)
