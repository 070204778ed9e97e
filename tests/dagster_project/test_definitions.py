"""The code location as it ships: what it defines, what it imports, and how it speaks of mistakes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import jsonschema
import pytest
import yaml
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing import create_defs_folder_sandbox

from dagster_project.definitions import defs
from synth_audit import build
from synth_audit.dagster import loading
from synth_audit.dagster.component import AuditedTable, TableSettings
from synth_audit.errors import GateError, PlanError
from synth_audit.plan.plan import Plan, parse_plan
from synth_audit.verdict.judge import BUILT_IN
from synth_audit.verdict.suite import load_suite

# Dagster's own loader uses beta parts of Dagster and a deprecated part of pydantic.
pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
    pytest.mark.filterwarnings("ignore:.*parse_obj_as.*:DeprecationWarning"),
]

Make = Callable[..., AuditedTable]
STAGES = ["split", "synthetic", "audit", "report", "release"]
HEAVY = [
    *("torch", "opacus", "sklearn", "pyvinecopulib", "great_expectations", "pandas", "scipy", "duckdb"),
    *("synth_audit.pipeline.stages", "synth_audit.examination", "synth_audit.report", "synth_audit.studies"),
    "synth_audit.audits.privacy.membership_game",  # of the audits those that the suite gates, to check it
]
DEFS = Path(__file__).parents[2] / "dagster_project/defs"


@pytest.fixture(scope="module")
def location() -> dg.RepositoryDefinition:
    return defs().get_repository_def()


def test_the_location_holds_five_assets_a_job_and_the_gates_of_each_table(
    location: dg.RepositoryDefinition,
) -> None:
    keys = {key.to_user_string() for key in location.asset_graph.get_all_asset_keys()}
    places = ["source", *STAGES, "released"]
    assert keys == {f"{t}/{s}" for t in ("tumours_vine", "tumours_resample") for s in places}
    assert {"tumours_vine_audit", "tumours_resample_audit"} <= {j.name for j in location.get_all_jobs()}
    assert [s.name for s in location.schedule_defs] == ["tumours_vine_schedule"]


def test_each_gate_has_one_check_on_the_report_that_blocks_as_the_suite_says(
    location: dg.RepositoryDefinition,
) -> None:
    graph = location.asset_graph
    suite = load_suite(Plan().gates, Path())
    gates = (
        {g.id: g.blocking for g in suite.gates}
        | dict.fromkeys((*BUILT_IN, "_verdict"), True)
        | {"fit_for_purpose": False}
    )
    assert min(gates) == "_verdict"  # Dagster lists checks by name
    for table in ("tumours_vine", "tumours_resample"):
        keys = [k for k in graph.asset_check_keys if k.asset_key.path[0] == table]
        assert {k.asset_key.path[1] for k in keys} == {"report"}
        assert {k.name: graph.get_check_spec(k).blocking for k in keys} == gates


def test_the_location_loads_without_what_is_heavy() -> None:
    code = (
        "import json, sys; from dagster_project.definitions import defs; defs().get_repository_def();"
        f"print(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_the_shipped_tables_match_the_schema_that_editors_use() -> None:
    jsonschema.Draft202012Validator.check_schema(TableSettings.model_json_schema())
    checker = jsonschema.Draft202012Validator(TableSettings.model_json_schema())
    for table in ("tumours_vine", "tumours_resample"):
        attributes = yaml.safe_load((DEFS / table / "defs.yaml").read_text())["attributes"]
        checker.validate(attributes)
        with pytest.raises(jsonschema.ValidationError, match="generatr"):
            checker.validate(attributes | {"generatr": "vine"})


def test_every_key_of_the_plan_may_stand_in_a_defs_file() -> None:
    assert set(Plan.model_fields) < set(TableSettings.model_fields)
    assert set(Plan.model_fields) < set(TableSettings.model_json_schema()["properties"])


def test_a_table_has_the_digest_of_the_same_plan_in_a_plan_file(component: Make) -> None:
    columns = {
        "id": {"role": "identifier"},
        "city": {"categories": ["b", "a"]},
        "x": {"bounds": [-9, 9]},
        "seen": {"kind": "datetime", "bounds": ["2020-01-01", "2024-12-31T12:00:00"]},
    }
    made = component(columns=columns, split={"control": 0.3}, description="of people").table()
    plain = {
        "name": "people",
        "source": "people.parquet",
        "columns": columns,
        "generator": "shuffled",
        "audits": ["exact_match"],
        "gates": "gates.json",
        "release": {"parquet": {"path": "out/released.parquet"}},
        "split": {"control": 0.3},
    }
    assert made.plan.digest == parse_plan(plain).digest


def test_the_code_version_follows_the_plan_and_the_suite(component: Make, home: Path) -> None:
    def versions(**settings: object) -> list[str]:
        table = component(**settings).table()
        return [table.code_version(stage) for stage in ("split", "audit")]

    before = versions(seed=1)
    assert versions(seed=1) == before
    assert all(a != b for a, b in zip(versions(seed=2), before, strict=True))
    suite = json.loads((home / "gates.json").read_text())
    suite["expectations"][0]["kwargs"]["maximum"] = 0.1
    (home / "gates.json").write_text(json.dumps(suite))
    assert [a == b for a, b in zip(versions(seed=1), before, strict=True)] == [True, False]


def test_the_code_version_follows_the_build(component: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def versions() -> list[str]:
        return [component().table().code_version(stage) for stage in STAGES]

    before = versions()
    assert versions() == before
    monkeypatch.setattr(build, "build_id", lambda: "0" * 12)
    assert all(a != b for a, b in zip(versions(), before, strict=True))


def test_a_table_without_a_target_has_no_release_asset(component: Make) -> None:
    made = dg.build_defs_for_component(component(release=None))
    keys = made.resolve_asset_graph().get_all_asset_keys()
    assert {k.path[-1] for k in keys} == {"source", *STAGES} - {"release"}


def test_owners_tags_and_upstream_assets_reach_the_catalogue(component: Make) -> None:
    made = dg.build_defs_for_component(
        component(owners=["team:clinical"], tags={"level": "high"}, deps=["raw/people"])
    )
    graph = made.resolve_asset_graph()
    split = graph.get(dg.AssetKey(["people", "split"]))
    assert split.parent_keys == {dg.AssetKey(["people", "source"])}
    assert graph.get(dg.AssetKey(["people", "source"])).parent_keys == {dg.AssetKey(["raw", "people"])}
    assert split.owners == ["team:clinical"]
    assert split.tags["level"] == "high"
    assert split.group_name == "people"


def test_what_reads_the_released_table_finds_it_under_its_own_key(component: Make) -> None:
    made = dg.build_defs_for_component(component(released_key="lake/people", fresh_hours=200))
    graph = made.resolve_asset_graph()
    release = graph.get(dg.AssetKey(["people", "release"]))
    assert release.child_keys == {dg.AssetKey(["lake", "people"])}
    assert graph.get(dg.AssetKey(["lake", "people"])).is_executable, (
        "or `people/audit+` selects what cannot run"
    )
    assert release.freshness_policy is not None


def test_release_follows_by_itself_only_where_blocking_checks_pass(component: Make) -> None:
    graph = dg.build_defs_for_component(component()).resolve_asset_graph()
    wanted = dg.AutomationCondition.all_deps_blocking_checks_passed()
    conditions = {k.path[-1]: graph.get(k).automation_condition for k in graph.get_all_asset_keys()}
    assert {name for name, found in conditions.items() if found is not None} == {"release"}
    assert wanted.get_node_unique_id(parent_unique_id=None, index=None, target_key=None) is not None
    assert "all_deps_blocking_checks_passed" in repr(conditions["release"])


def test_time_zone_and_longest_run_reach_dagster(component: Make) -> None:
    made = dg.build_defs_for_component(
        component(schedule="0 3 * * 1", timezone="Europe/Berlin", timeout=3600)
    )
    [schedule] = made.get_repository_def().schedule_defs
    assert schedule.execution_timezone == "Europe/Berlin"
    assert made.resolve_job_def("people_audit").tags["dagster/max_runtime"] == "3600"


def test_gates_that_would_share_a_check_are_refused(component: Make, home: Path) -> None:
    suite = json.loads((home / "gates.json").read_text())
    suite["expectations"][1]["meta"]["id"] = "no.copies"
    suite["expectations"][1]["severity"] = "critical"
    (home / "gates.json").write_text(json.dumps(suite))
    with pytest.raises(GateError, match="would share the check"):
        dg.build_defs_for_component(component())


def _load(**attributes: Any) -> BaseException:
    """The cause of the failure to load a ``defs.yaml`` with these attributes."""
    contents = {
        "type": "synth_audit.dagster.AuditedTable",
        "attributes": {"source": "people.parquet", "generator": "shuffled", **attributes},
    }
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=AuditedTable, defs_path="people", defs_yaml_contents=contents
        )
        with (
            pytest.raises(ComponentTreeException) as caught,
            sandbox.load_component_and_build_defs(path) as (component, _),
        ):
            assert component.folder == "people"
    assert caught.value.__cause__ is not None
    return caught.value.__cause__


def test_an_unknown_key_is_named_with_its_line() -> None:
    text = str(_load(generatr="shuffled"))
    assert "attributes.generatr at" in text
    assert "defs.yaml:" in text
    assert "unknown key (did you mean 'generator'?)" in text


def test_a_plug_in_field_that_does_not_exist_is_named() -> None:
    cause = _load(generator={"shuffled": {"strength": 1}})
    assert isinstance(cause, PlanError)
    assert cause.where == "generator.shuffled"


def test_a_table_without_a_source_does_not_load() -> None:
    assert "the plan has no source" in str(_load(source=None))


def test_a_process_that_loaded_the_location_ends_without_complaint(tmp_path):
    code = "import duckdb\nfrom dagster_project.definitions import defs\ndefs()"
    where = {**os.environ, "SYNTH_AUDIT_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=where)
    assert "leaked" not in done.stderr


@pytest.mark.parametrize("layout", ["", "src/"])
def test_paths_start_at_the_root_of_a_project_in_either_layout(tmp_path: Path, layout: str) -> None:
    module = ModuleType("my_project.defs")
    module.__path__ = [str(tmp_path / f"{layout}my_project/defs")]
    assert loading._root(module) == tmp_path
