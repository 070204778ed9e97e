"""The same plan, with every default audit, by each way in: the library, the command line, Dagster."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"

import dagster as dg

from dagster_project.components import AuditedTable
from dagster_project.components.audited_table import TableSettings
from synth_audit import api, cli
from synth_audit.core.fingerprint import fingerprint
from synth_audit.store.evidence import Evidence, read_evidence
from synth_audit.store.workspace import Workspace


@pytest.fixture
def case(make_case, every_audit, with_salt, tmp_path, monkeypatch):
    """A folder with a plan in which nothing has run, and the salt of the case to compare with."""
    monkeypatch.chdir(tmp_path)
    made = make_case(tmp_path / "case", audits=every_audit)
    with_salt(Workspace(made.folder / "plan-audit"))
    return made


def by_library(plan: Path) -> Evidence:
    return api.run(plan)


def by_command_line(plan: Path) -> Evidence:
    ended = CliRunner().invoke(cli.main, ["run", str(plan)])
    assert ended.exit_code == 0, ended.output
    assert "PASS" in ended.stdout
    return read_evidence(Workspace(plan.parent / "plan-audit").evidence)


def by_dagster(plan: Path) -> Evidence:
    settings = TableSettings.model_validate(yaml.safe_load(plan.read_text()))
    made = dg.build_defs_for_component(AuditedTable(settings=settings, folder="plan", home=plan.parent))
    with dg.DagsterInstance.ephemeral() as instance:
        ended = made.resolve_job_def("plan_audit").execute_in_process(
            instance=instance, run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        )
    assert ended.success
    assert all(check.passed for check in ended.get_asset_check_evaluations())
    return read_evidence(Workspace(plan.parent / "plan-audit").evidence)


@pytest.mark.parametrize("way", [by_library, by_command_line, by_dagster])
def test_every_way_in_says_the_same_and_releases_the_audited_bytes(way, case, complete):
    evidence = way(case.folder / "plan.yaml")
    assert evidence.plan_sha256 == complete.evidence.plan_sha256
    assert [(o.audit, o.status) for o in evidence.outcomes] == [
        (o.audit, o.status) for o in complete.evidence.outcomes
    ]
    assert evidence.measurements == complete.evidence.measurements
    assert evidence.verdict is complete.evidence.verdict
    released = pq.read_table(case.folder / "out-of-the-house" / "released.parquet")
    assert fingerprint(released) == evidence.tables["synthetic"].sha256
