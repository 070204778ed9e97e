"""The demo: its warehouse, what it releases, and the whole of it once in a while."""

import os
from pathlib import Path

import pytest

from synth_audit.audits import recognition
from synth_audit.audits.recognition import detection_limit
from synth_audit.audits.recognition.detection_limit import DetectionLimit, classes_of
from synth_audit.audits.recognition.people import PooledPeople
from synth_audit.audits.utility import _prediction_task as prediction
from synth_audit.dagster import demo
from synth_audit.dagster.assets import WORKERS
from synth_audit.pipeline import stages
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import Audit
from synth_audit.registry import build
from synth_audit.store.workspace import Workspace
from synth_audit.verdict.suite import Suite


def test_the_warehouse_holds_the_sensitive_table_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / demo.WAREHOUSE
    assert demo.build_warehouse(path) == demo.build_warehouse(path) == 569
    table = build("source", "duckdb", {"path": demo.WAREHOUSE, "table": "clinical.tumours"}).read(path.parent)
    assert table.num_rows == 569
    assert table.column_names[:3] == ["patient_id", "diagnosis", "radius_mean"]
    assert "area_worst" in table.column_names
    assert "concave_points_error" in table.column_names
    assert len(set(table.column("patient_id").to_pylist())) == 569
    assert demo.released_rows(path, "released.tumours") is None


QUICK = {
    "closest_record": {"n_bootstrap": 100},
    "coverage": {"n_bootstrap": 100},
    "inference": {"n_trees": 4},
    "marginals": {"n_bootstrap": 100},
    "partial_knowledge": {"max_sets": 40},
    "prediction": {"models": ["logistic"], "repeats": 1, "n_bootstrap": 100},
    "projection": {"n_bootstrap": 50},
    "propensity": {"trees": 20, "folds": 3},
    "recognition": {"draws": 1},
}
"""Settings that only save time; every other audit, and every gate, is as the demo ships."""


PLANTINGS = detection_limit.PLANTINGS
"""As they ship: conftest.py plants fewer, which establishes no limit, so that no table would be released."""


def stated(pool: PooledPeople, *rest: object) -> list[DetectionLimit]:
    """Limits as a larger table would have them: to measure them takes a minute."""
    return [DetectionLimit(leak, 0.05, (0.05,)) for leak in classes_of(pool)]


@pytest.fixture(params=["quick", pytest.param("as it ships", marks=pytest.mark.slow)])
def _demo(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo with the settings above and a third of its measured columns, which cost with their square, and
    with the one attack that copies cannot pass for those."""
    if request.param == "quick":
        monkeypatch.setenv(WORKERS, "1")  # other processes do not see what is patched here
        whole = demo.tumours()
        kept = ["patient_id", "diagnosis", "area_worst", *(n for n in whole.column_names if "_mean" in n)]
        monkeypatch.setattr(demo, "tumours", lambda: whole.select(kept))
        usual = stages.audits_of  # with those that a gate brings along

        def quickly(plan: Plan, suite: Suite) -> dict[str, Audit]:
            if plan.generator.name == "resample":
                return {"exact_match": build("audit", "exact_match", {})}
            return usual(plan, suite) | {name: build("audit", name, config) for name, config in QUICK.items()}

        monkeypatch.setattr(stages, "audits_of", quickly)
        monkeypatch.setattr(prediction, "TREES", 20)
        monkeypatch.setattr(recognition, "detection_limits", stated)
    else:
        monkeypatch.setattr(detection_limit, "PLANTINGS", PLANTINGS)


@pytest.mark.usefixtures("_demo")
@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
@pytest.mark.filterwarnings("ignore:.*parse_obj_as.*:DeprecationWarning")
def test_one_table_is_released_and_one_is_refused(tmp_path: Path) -> None:
    lines: list[str] = []
    before = [os.environ.get(name) for name in ("SYNTH_AUDIT_HOME", "DAGSTER_HOME")]
    assert demo.run_demo(tmp_path, lines.append)
    said = "\n".join(lines)
    assert "released.tumours, 395 rows" in said
    assert "no released.tumours_resample exists" in said
    assert "release refused" in said
    assert "verdict   FAIL" in said
    for table in demo.TABLES:
        assert Workspace(tmp_path / f"{table}-audit").report.is_file()
    assert [os.environ.get(name) for name in ("SYNTH_AUDIT_HOME", "DAGSTER_HOME")] == before
