"""An audit as a run of MLflow, which shows candidates next to one another."""

import math
import re
from pathlib import Path

from synth_audit.errors import PluginError
from synth_audit.report import certificate_of
from synth_audit.store.locate import checked_evidence, locate_evidence

_NO_NAME = re.compile(r"[^\w./: -]")
"""What MLflow takes in no name."""


def log_to_mlflow(path: Path | str, experiment: str = "synth-audit") -> str:
    """Log an audit to MLflow: its measurements as metrics, and its certificate.

    Args:
        path: a workspace, or the evidence of one of its audits.
        experiment: name of the experiment, which is made if it is new.

    Returns:
        The identifier of the run, in the store that ``MLFLOW_TRACKING_URI`` names.

    Raises:
        PluginError: MLflow is not installed.
        DataError: there is no evidence, or it was altered.
    """
    try:
        import mlflow
    except ModuleNotFoundError:
        raise PluginError(
            "MLflow is not installed", expected="mlflow-skinny", fix="pip install 'synth-audit[mlflow]'"
        ) from None
    found = locate_evidence(Path(path))
    evidence = checked_evidence(found)
    client = mlflow.MlflowClient()
    known = client.get_experiment_by_name(experiment)
    place = known.experiment_id if known else client.create_experiment(experiment)
    run: str = client.create_run(place, run_name=f"{evidence.table} {evidence.digest[:12]}").info.run_id
    client.log_param(run, "generator", evidence.generator.name)
    client.log_param(run, "plan", evidence.plan_sha256)
    for name in ("verdict", "fitness", "digest"):
        client.set_tag(run, f"synth_audit.{name}", str(getattr(evidence, name)))
    for m in evidence.measurements:
        if math.isfinite(m.value):
            client.log_metric(run, _NO_NAME.sub("_", str(m.id)), m.value)
    client.log_text(run, certificate_of(found), "certificate.html")
    client.set_terminated(run)
    return run
