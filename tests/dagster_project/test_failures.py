"""Which failures a stage is tried again for."""

import errno
import shutil
import sys
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest

from dagster_project import defs as tables
from synth_audit.dagster import outcomes
from synth_audit.dagster.assets import stage_assets
from synth_audit.dagster.entry import fits
from synth_audit.dagster.loading import load_tables
from synth_audit.dagster.outcomes import FAULT, INPUT, OUTAGE, without_values
from synth_audit.errors import DataError, Unavailable
from synth_audit.pipeline import stages

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
    pytest.mark.filterwarnings("ignore:.*parse_obj_as.*:DeprecationWarning"),
]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unavailable("the server does not answer"), OUTAGE),
        (OSError(errno.ENOSPC, "No space left on device"), OUTAGE),
        (DataError("a column is missing"), INPUT),
        (ValueError("a cell"), FAULT),
    ],
)
@pytest.mark.parametrize("fit", [True, False])
def test_only_what_may_pass_is_tried_again_and_never_a_fit(error, kind, fit):
    with pytest.raises(dg.Failure) as found, without_values("stage", lambda: fit):
        raise error
    assert found.value.allow_retries == (kind == OUTAGE and not fit)
    assert found.value.metadata["kind"].value == kind
    assert "a cell" not in found.value.description


def test_an_audit_is_tried_again_unless_it_fits_and_a_killed_run_unless_it_spends(component):
    table = component("shuffled").table()
    policies = {a.op.name.split("__")[-1]: a.op.retry_policy for a in stage_assets(table)}
    assert {name for name, policy in policies.items() if policy} == {"split", "audit", "release"}
    game = component("shuffled", audits=["membership_game"]).table()
    assert [fits(t, "audit") for t in (table, game)] == [False, True]
    [job] = component("shuffled", privacy={"epsilon": 1.0}).build_defs(None).jobs
    assert job.tags["dagster/max_retries"] == "0"


def test_an_outage_in_an_audit_ends_in_the_next_try(run, monkeypatch):
    """Without the wait between two tries."""
    audit, tries = stages.audit_synthetic, []

    def unsteady(*args):
        tries.append(1)
        if len(tries) == 1:
            raise Unavailable("the disk is full")
        return audit(*args)

    monkeypatch.setattr(stages, "audit_synthetic", unsteady)
    monkeypatch.setattr(outcomes, "RETRY", dg.RetryPolicy(max_retries=1))
    assert run("shuffled").success
    assert len(tries) == 2


def test_an_interrupted_stage_shows_no_trace_of_its_work() -> None:
    def work() -> None:
        raise dg.DagsterExecutionInterruptedError

    with pytest.raises(dg.DagsterExecutionInterruptedError) as found, without_values("audit"):
        work()
    assert "work" not in [step.name for step in found.traceback]
    assert found.value.__suppress_context__


BROKEN = {
    "no_yaml": "type: [nonsense\n",
    "no_plan": "type: synth_audit.dagster.AuditedTable\nattributes: {source: a.csv, generator: vin}\n",
    "no_type": "type: synth_audit.dagster.Nonsense\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package of tables like the one that ships, with broken ones among them."""
    folder = shutil.copytree(Path(tables.__file__).parent, tmp_path / "broken_tables")
    for name, text in BROKEN.items():
        (folder / name).mkdir()
        (folder / name / "defs.yaml").write_text(text)
    module = ModuleType("broken_tables")
    module.__path__, module.__file__ = [str(folder)], str(folder / "__init__.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.mark.parametrize("names", [[name] for name in BROKEN] + [list(BROKEN)])
def test_the_others_load_and_the_broken_ones_say_why(package: ModuleType, names: list[str]) -> None:
    for name in set(BROKEN) - set(names):
        shutil.rmtree(Path(package.__path__[0]) / name)
    with pytest.warns(UserWarning, match="does not load"):
        graph = load_tables(package).resolve_asset_graph()
    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert {key for key in keys if key.endswith("does_not_load")} == {f"{n}/does_not_load" for n in names}
    assert {"tumours_vine/release", "tumours_resample/release"} <= keys
    if "no_plan" in names:
        sign = graph.get(dg.AssetKey(["no_plan", "does_not_load"]))
        assert "unknown generator 'vin'" in (sign.description or "")


def test_a_broken_table_that_is_launched_fails_and_runs_no_other(package: ModuleType) -> None:
    with pytest.warns(UserWarning, match="does not load"):
        location = load_tables(package).get_repository_def()
    key = dg.AssetKey(["no_plan", "does_not_load"])
    job = location.get_implicit_global_asset_job_def()
    result = job.execute_in_process(asset_selection=[key], raise_on_error=False)
    assert not result.success
    (failed,) = result.filter_events(lambda event: event.is_step_failure)
    assert "unknown generator 'vin'" in str(failed.event_specific_data)
    assert {event.step_key for event in result.get_step_failure_events()} == {"no_plan__does_not_load"}


@pytest.mark.parametrize("variable", ["SYNTH_AUDIT_STRICT", "DAGSTER_IS_DEFS_VALIDATION_CLI"])
def test_a_strict_location_takes_none_of_it(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(Exception, match=r"(?i)nonsense|defs"):
        load_tables(package)
