"""One table's broken file takes no other down, and a check in CI still fails of it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType

import dagster as dg
import pytest

from dagster_project import defs as tables
from synth_audit.dagster.loading import load_tables

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
    pytest.mark.filterwarnings("ignore:.*parse_obj_as.*:DeprecationWarning"),
]

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


def test_a_strict_location_takes_none_of_it(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTH_AUDIT_STRICT", "1")
    with pytest.raises(Exception, match=r"(?i)nonsense|defs"):
        load_tables(package)
