"""A table run through Dagster: what is stopped, what is said, and what never is."""

import copy
import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.dagster.component import AuditedTable
from synth_audit.errors import BudgetSpent
from synth_audit.execution.seeds import Salt
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import fingerprint

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
Run = Callable[..., dg.ExecuteInProcessResult]
STAGES = ["split", "synthetic", "audit", "report", "release"]


def materialised(result: dg.ExecuteInProcessResult) -> list[str]:
    """The stages that left something; the released table is told of beside its stage."""
    keys = [e.asset_key for e in result.get_asset_materialization_events() if e.asset_key]
    return [key.path[-1] for key in keys if key.path[-1] != "released"]


def failures(result: dg.ExecuteInProcessResult) -> list[str]:
    datas = [e.step_failure_data.user_failure_data for e in result.get_step_failure_events()]
    return [d.description or "" for d in datas if d is not None]


def refusals(result: dg.ExecuteInProcessResult) -> list[dict[str, object]]:
    """What stages told that were refused."""
    told = [e.asset_observation_data.asset_observation for e in result.get_asset_observation_events()]
    return [{n: v.value for n, v in o.metadata.items()} for o in told if "kind" in o.metadata]


def outcome_of(result: dg.ExecuteInProcessResult, instance: dg.DagsterInstance) -> dict[str, str]:
    """What lists of runs show of one."""
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    shown = {name: run.tags.get(f"synth_audit/{name}.people") for name in ("verdict", "outcome")}
    return {name: value for name, value in shown.items() if value is not None}


CHECKS = {
    "_verdict",
    "no_copies",
    "schema_contract",
    "few_copies",
}


def everything_said(result: dg.ExecuteInProcessResult, instance: dg.DagsterInstance) -> str:
    return "\n".join(repr(entry) for entry in instance.all_logs(result.run_id))


def test_a_safe_table_is_released(run: Run, home: Path, instance: dg.DagsterInstance) -> None:
    result = run("shuffled")
    assert result.success
    assert outcome_of(result, instance) == {"verdict": "pass", "outcome": "released"}
    assert materialised(result) == STAGES
    told = {
        e.asset_key.path[-1]: e.materialization.metadata for e in result.get_asset_materialization_events()
    }
    assert (told["release"]["released"].value, told["release"]["table"].value) == ("yes", "people")
    for page in (told["release"], told["released"]):
        assert page["table"].value == "people"
        assert str(page["certificate link"].value).endswith("/certificate.html")
    train = pq.read_table(home / "people-audit/restricted/train.parquet")
    assert pq.read_table(home / "out/released.parquet").num_rows == train.num_rows
    checks = {c.check_name: c for c in result.get_asset_check_evaluations()}
    assert set(checks) == CHECKS
    assert checks["no_copies"].passed
    assert checks["_verdict"].passed
    assert str(checks["_verdict"].metadata["certificate link"].value).endswith("/certificate.html")


def test_an_advisory_gate_warns_and_stops_nothing(run: Run) -> None:
    result = run("shuffled")
    [advisory] = [c for c in result.get_asset_check_evaluations() if c.check_name == "few_copies"]
    assert not advisory.passed
    assert advisory.severity is dg.AssetCheckSeverity.WARN
    assert result.success


def test_a_release_that_is_not_fit_warns_and_says_both(run: Run, home: Path) -> None:
    suite = json.loads((home / "gates.json").read_text())
    suite["expectations"][1]["meta"]["fitness"] = "always"
    suite["expectations"][1]["kwargs"]["maximum"] = -1
    (home / "gates.json").write_text(json.dumps(suite))
    result = run("shuffled")
    assert result.success
    checks = {c.check_name: c for c in result.get_asset_check_evaluations()}
    assert set(checks) == CHECKS | {"fit_for_purpose"}
    fit, verdict = checks["fit_for_purpose"], checks["_verdict"]
    assert (fit.passed, fit.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert verdict.passed
    for check in (fit, verdict):
        assert check.metadata["safe to release"].value == "yes"
        assert check.metadata["fit for purpose"].value == "no"
    assert fit.description.startswith("Fit for purpose: no.")
    assert "allowed" in fit.description
    assert fit.metadata["reasons"].value.strip("- ") in fit.description
    assert "reasons" not in verdict.metadata


def test_an_optional_gate_that_was_left_out_is_no_check(
    run: Run, home: Path, instance: dg.DagsterInstance
) -> None:
    suite = json.loads((home / "gates.json").read_text())
    rules = copy.deepcopy(suite["expectations"][1])
    rules["kwargs"]["name"] = "constraints.worst_violations"
    rules["meta"] |= {"id": "rules", "optional": True}
    (home / "gates.json").write_text(json.dumps(suite | {"expectations": [*suite["expectations"], rules]}))
    result = run("shuffled", audits=["exact_match", "constraints"])
    assert result.success
    found = {c.check_name for c in result.get_asset_check_evaluations()}
    assert found == CHECKS
    assert "did not yield" not in everything_said(result, instance)
    [spec] = [s for s in result.job_def.asset_layer.asset_graph.asset_check_keys if s.name == "rules"]
    described = result.job_def.asset_layer.asset_graph.get_check_spec(spec).description
    assert described.endswith(
        "Skipped where the audit constraints is not applicable, as the report explains."
    )


def test_a_detection_limit_that_was_not_measured_is_no_failed_check_of_a_refusal(
    run: Run, home: Path
) -> None:
    suite = json.loads((home / "gates.json").read_text())
    limit = copy.deepcopy(suite["expectations"][0])
    limit["kwargs"]["name"] = "constraints.worst_violations"
    limit["meta"] |= {"id": "limit", "undecided": True}
    (home / "gates.json").write_text(json.dumps(suite | {"expectations": [*suite["expectations"], limit]}))
    refused = {c.check_name: c for c in run("copied").get_asset_check_evaluations()}
    assert set(refused) == CHECKS | {"limit"}
    assert refused["limit"].severity is dg.AssetCheckSeverity.WARN
    assert refused["limit"].description.startswith("Not judged")
    passed = {c.check_name for c in run("shuffled").get_asset_check_evaluations()}
    assert passed == CHECKS | {"limit"}


def test_a_refused_table_is_an_outcome_and_no_error(
    run: Run, home: Path, instance: dg.DagsterInstance
) -> None:
    result = run("copied")
    assert result.success
    assert result.get_step_failure_events() == []
    assert "Traceback" not in everything_said(result, instance)
    assert outcome_of(result, instance) == {"verdict": "fail", "outcome": "not released: refused"}
    [refused] = refusals(result)
    assert (refused["released"], refused["kind"], refused["verdict"]) == ("no", "refusal", "fail")
    assert "no-copies: fail" in str(refused["held by"])
    assert str(refused["report link"]).endswith("/report.html")
    [logged] = [
        e.user_message for e in instance.all_logs(result.run_id) if "release: release" in e.user_message
    ]
    assert "Fail: " in logged
    assert "the verdict is fail, held by no-copies" in logged
    assert "/report.html" in logged
    [verdict] = [c for c in result.get_asset_check_evaluations() if c.check_name == "_verdict"]
    assert verdict.description.startswith("Fail: ")
    assert str(verdict.metadata["reasons"].value).startswith("- Fail: ")
    assert str(verdict.metadata["report link"].value).endswith("/report.html")
    assert materialised(result) == STAGES[:-1]
    assert Workspace(home / "people-audit").report.is_file()
    assert not (home / "out").exists()
    failed = {c.check_name for c in result.get_asset_check_evaluations() if not c.passed}
    assert {"no_copies", "_verdict"} <= failed
    assert {c.asset_key.path[-1] for c in result.get_asset_check_evaluations()} == {"report"}


def test_a_number_of_workers_that_is_none_is_told_as_such(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTH_AUDIT_WORKERS", "four")
    result = run("shuffled", "split")
    assert not result.success
    assert "where: SYNTH_AUDIT_WORKERS" in failures(result)[0]


def test_release_alone_refuses_after_a_failed_audit(run: Run, home: Path) -> None:
    run("copied")
    result = run("copied", "release")
    assert materialised(result) == []
    assert "release refused" in str(refusals(result)[0]["reason"])
    assert not (home / "out").exists()


def test_what_hangs_on_the_release_does_not_run_after_a_refusal(
    component: Callable[..., AuditedTable], instance: dg.DagsterInstance
) -> None:
    @dg.asset(deps=[dg.AssetKey(["people", "release"])])
    def reader() -> None:
        raise AssertionError("read what was never released")

    table = dg.build_defs_for_component(component("copied"))
    made = dg.Definitions.merge(table, dg.Definitions(assets=[reader]))
    result = made.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, run_config=QUIET, raise_on_error=False
    )
    assert result.success
    assert [e.step_key for e in result.all_events if e.is_step_skipped] == ["reader"]


def test_a_spent_budget_is_a_refusal_and_the_rest_is_skipped(
    run: Run, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from synth_audit.pipeline import stages

    def spent(*args: object) -> None:
        raise BudgetSpent("the budget of the table is spent", fix="declare a larger one")

    monkeypatch.setattr(stages, "make_synthetic", spent)
    result = run("shuffled")
    assert result.success
    assert materialised(result) == ["split"]
    assert refusals(result)[0]["reason"] == "the budget of the table is spent"
    assert outcome_of(result, instance) == {"outcome": "not released: refused"}
    assert not result.get_asset_check_evaluations()


def test_a_purge_of_older_audits_leaves_report_checks_and_release_as_they_were(run: Run, home: Path) -> None:
    run("copied", "split", "synthetic", "audit")
    run("shuffled", *STAGES[:-1])
    found = api.purge(home / "people-audit", keep=1, dry_run=False)
    assert len(found.goes) == 1
    result = run("shuffled", "report", "release")
    assert result.success
    assert {c.passed for c in result.get_asset_check_evaluations() if c.check_name == "_verdict"} == {True}
    assert (home / "out/released.parquet").is_file()


def test_release_alone_refuses_before_any_audit_and_under_another_plan(run: Run, home: Path) -> None:
    assert not run("shuffled", "release").success
    run("shuffled", "split", "synthetic", "audit")
    result = run("shuffled", "release", seed=9)
    assert "another plan" in failures(result)[0]
    assert not (home / "out").exists()
    assert run("shuffled", "release").success


def test_release_alone_refuses_other_bytes(run: Run, home: Path) -> None:
    run("shuffled", "split", "synthetic", "audit")
    candidate = home / "people-audit/restricted/synthetic.parquet"
    pq.write_table(pq.read_table(candidate).slice(1), candidate)
    result = run("shuffled", "release")
    assert "not the bytes that were audited" in failures(result)[0]


def test_release_beside_a_single_check_that_passes_still_refuses(
    component: Callable[..., AuditedTable], run: Run, instance: dg.DagsterInstance
) -> None:
    run("copied")
    report, release = (dg.AssetKey(["people", s]) for s in ("report", "release"))
    contract = dg.AssetCheckKey(report, "schema_contract")
    job = dg.define_asset_job(
        "picked", selection=dg.AssetSelection.checks(contract) | dg.AssetSelection.assets(release)
    )
    made = dg.Definitions.merge(dg.build_defs_for_component(component("copied")), dg.Definitions(jobs=[job]))
    result = made.resolve_job_def("picked").execute_in_process(
        instance=instance, run_config=QUIET, raise_on_error=False
    )
    assert [(c.check_name, c.passed) for c in result.get_asset_check_evaluations()] == [
        ("schema_contract", True)
    ]
    assert "release refused" in str(refusals(result)[0]["reason"])
    assert "release" not in materialised(result)


def test_checks_refuse_evidence_that_was_touched(run: Run, home: Path) -> None:
    run("copied")
    evidence = Workspace(home / "people-audit").evidence
    evidence.write_text(evidence.read_text().replace('"result": "fail"', '"result": "pass"'))
    result = run("copied", "report")
    assert not result.success
    assert "evidence was altered" in failures(result)[0]
    assert not result.get_asset_check_evaluations()


def test_the_metadata_tell_counts_hashes_numbers_and_columns(run: Run) -> None:
    result = run("shuffled")
    found = {
        e.asset_key.path[-1]: e.materialization.metadata for e in result.get_asset_materialization_events()
    }
    assert found["split"]["dagster/row_count"].value == 300
    assert found["synthetic"]["dagster/row_count"] == found["split"]["train rows"]
    columns = found["synthetic"]["dagster/column_schema"].value.columns
    assert [c.name for c in columns] == ["city", "x", "y"]
    assert isinstance(found["audit"]["exact_match.excess"], dg.FloatMetadataValue)
    assert found["release"]["released, keyed hash"] == found["synthetic"]["synthetic, keyed hash"]
    assert found["report"]["gates, drawn"].value.startswith("![gates](data:image/svg+xml;base64,")
    assert len(found["audit"]["gates"].records) == 3


@pytest.mark.parametrize("generator", [pytest.param("shuffled", marks=pytest.mark.slow), "copied", "broken"])
def test_no_cell_value_reaches_the_run_records(
    run: Run, instance: dg.DagsterInstance, generator: str
) -> None:
    result = run(generator, audits=["exact_match", "closest_record", "marginals"])
    said = everything_said(result, instance)
    assert "people/split" in said or "people__split" in said
    assert "Amsterdam" not in said


@pytest.mark.parametrize(("generator", "public"), [("copied", set()), ("shuffled", {"synthetic"})])
def test_no_plain_hash_of_rows_that_stay_reaches_the_run_records(
    run: Run, instance: dg.DagsterInstance, home: Path, generator: str, public: set[str]
) -> None:
    result = run(generator)
    said = everything_said(result, instance)
    restricted = home / "people-audit/restricted"
    tables = {
        name: pq.read_table(restricted / f"{name}.parquet") for name in ("train", "control", "synthetic")
    }
    tables["source"] = pq.read_table(home / "people.parquet")
    assert {name for name, table in tables.items() if fingerprint(table)[:12] in said} == public
    salt = Salt.parse((restricted / "salt").read_text())
    keyed = {name: salt.digest(fingerprint(table).encode()) for name, table in tables.items()}
    assert all(text in said for text in keyed.values()), "what changed is still told"
    versions = {
        e.asset_key.path[-1]: e.step_materialization_data.materialization.tags["dagster/data_version"]
        for e in result.get_asset_materialization_events()
    }
    assert versions["split"] == f"{keyed['train'][:16]}+{keyed['control'][:16]}"
    assert versions["synthetic"] == keyed["synthetic"]
    assert salt.text().strip() not in said


def test_an_unexpected_error_shows_its_kind_and_place_only(run: Run) -> None:
    result = run("broken")
    assert failures(result)[0].startswith("synthetic: RuntimeError at fitting.py:")
    assert materialised(result) == ["split"]


def test_no_stage_hands_rows_to_dagster(run: Run, instance: dg.DagsterInstance) -> None:
    result = run("shuffled")
    assert result.success
    assert not [p for p in Path(instance.storage_directory()).rglob("*") if p.is_file()]
