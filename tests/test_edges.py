"""The same plan by each way in: the library, the command line with every default audit, Dagster."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"

import dagster as dg

from synth_audit import api, cli
from synth_audit.dagster.component import AuditedTable, TableSettings
from synth_audit.store.evidence import Evidence, read_evidence
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import fingerprint


@pytest.fixture
def like(make_case, with_salt, tmp_path, monkeypatch):
    """Makes a folder with the plan and the salt of a finished case, in which nothing has run."""

    def make(finished):
        monkeypatch.chdir(tmp_path)
        audits = yaml.safe_load((finished.folder / "plan.yaml").read_text())["audits"]
        made = make_case(tmp_path / "case", audits=audits)
        with_salt(Workspace(made.folder / "plan-audit"))
        return made

    return make


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


@pytest.mark.parametrize(
    ("way", "audits"),
    [
        (by_library, "finished"),
        (by_command_line, "finished"),
        pytest.param(
            by_command_line, "complete", marks=[pytest.mark.slow, pytest.mark.xdist_group("complete")]
        ),
        (by_dagster, "finished"),
    ],
)
def test_every_way_in_says_the_same_and_releases_the_audited_bytes(way, audits, like, request):
    before = request.getfixturevalue(audits)
    case = like(before)
    evidence = way(case.folder / "plan.yaml")
    assert evidence.plan_sha256 == before.evidence.plan_sha256
    assert [(o.audit, o.status) for o in evidence.outcomes] == [
        (o.audit, o.status) for o in before.evidence.outcomes
    ]
    assert evidence.measurements == before.evidence.measurements
    assert evidence.verdict is before.evidence.verdict
    released = pq.read_table(case.folder / "out-of-the-house" / "released.parquet")
    assert fingerprint(released) == evidence.tables["synthetic"].sha256
