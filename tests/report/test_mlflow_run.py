"""An audit in MLflow: its measurements and its certificate, in a local store."""

import sys

import pytest

from synth_audit.errors import PluginError
from synth_audit.report.mlflow_run import log_to_mlflow


def test_without_mlflow_the_message_says_what_to_install(case, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(PluginError, match="not installed"):
        log_to_mlflow(case.workspace.root)


def test_measurements_and_certificate_of_an_audit_are_logged(case, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'store'}")
    runs = [log_to_mlflow(place) for place in (case.workspace.root, case.workspace.newest.evidence)]
    found = mlflow.MlflowClient().get_run(runs[0])
    assert found.data.tags["synth_audit.verdict"] == case.evidence.verdict
    assert found.data.params["generator"] == "independent"
    values = [m.value for m in case.evidence.measurements]
    assert sorted(found.data.metrics.values()) == pytest.approx(sorted(values))
    [page] = (tmp_path / "store").glob(f"*/{runs[0]}/artifacts/certificate.html")
    assert case.evidence.digest in page.read_text()
    assert len({mlflow.MlflowClient().get_run(run).info.experiment_id for run in runs}) == 1
