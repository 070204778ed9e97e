from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.utility import _prediction_task as prediction
from synth_audit.execution.context import RunContext
from synth_audit.plugins.audit import Subject
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table


@pytest.fixture(autouse=True)
def _with_small_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forests of fewer trees predict nearly as well, and their time goes with their trees."""
    monkeypatch.setattr(prediction, "TREES", 20)


@pytest.fixture(scope="session")
def subject_of():
    """A subject from plain columns; ``specs`` are the plan's declarations."""

    def make(train, control, synthetic, *, suppression=10, **specs: Mapping[str, object]):
        data = pa.table(train)
        schema = infer_schema(data, {name: ColumnSpec(**spec) for name, spec in specs.items()})

        def read(columns, where):
            return read_table(pa.table(columns), schema, where=where, partial=where == "synthetic")

        other = None if control is None else read(control, "control")
        candidate = read(synthetic, "synthetic")
        return Subject(read(train, "train"), other, candidate, suppression=suppression)

    return make


@pytest.fixture(scope="session")
def measure():
    """Run an audit; its measurements by quantity, or by quantity and setting or column, and its findings."""

    def run(audit, subject, seed=0, shared=0):
        """``shared`` is the plan's seed, ``seed`` that of the audit's own draws."""
        findings = audit.run(subject, RunContext(seed=shared, draws=np.random.default_rng(seed)))
        return {key(m.id): m for m in findings.measurements}, findings

    def key(x):
        place = f"{x.setting} of {x.column}" if x.setting and x.column else x.setting or x.column
        return (x.quantity, place) if place else x.quantity

    return run
