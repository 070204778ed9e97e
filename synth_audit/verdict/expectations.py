"""Our own expectation on measurements: for a Great Expectations of the user's own on measurements.parquet.

The product itself calls :func:`~synth_audit.verdict.gate_decision.decide` directly. Importing this module
registers ``expect_measurement_to_be_within`` and takes seconds.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any, Optional

from synth_audit.findings.verdict import Result
from synth_audit.verdict.gate_decision import Limit, decide
from synth_audit.verdict.measurement_frame import judged_row

with warnings.catch_warnings():
    # Its own deprecated imports, about which a user of ours can do nothing.
    warnings.simplefilter("ignore")
    from great_expectations.execution_engine import PandasExecutionEngine
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

_ROWS = "table.synth_audit_measurements"


class _MeasurementRows(TableMetricProvider):  # type: ignore[misc]  # untyped base
    """Every row of the frame that claims to be one measurement."""

    metric_name = _ROWS
    value_keys = ("name",)

    @metric_value(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def _pandas(
        cls,  # noqa: N805  (the decorator makes it a class method)
        execution_engine: Any,
        metric_domain_kwargs: Any,
        metric_value_kwargs: Any,
        metrics: Any,
        runtime_configuration: Any,
    ) -> list[dict[str, Any]]:
        frame, _, _ = execution_engine.get_compute_domain(metric_domain_kwargs, domain_type="table")
        records: list[dict[str, Any]] = frame[frame["name"] == metric_value_kwargs["name"]].to_dict("records")
        return records


class ExpectMeasurementToBeWithin(BatchExpectation):  # type: ignore[misc]  # untyped base
    """Expect exactly one finite measurement of a name and scope, on the safe side of a limit.

    It applies to the frame of :func:`~synth_audit.verdict.measurement_frame.measurement_frame`. The arguments
    are those of `gate_decision.Limit`, and the decision, that of ``decide``, is in
    ``result["details"]``.
    """

    name: str
    scope: str = ""
    bound: str = "pessimistic"
    # Optional, not `| None`: the models of Great Expectations are of pydantic 1.
    minimum: Optional[float] = None  # noqa: UP045
    maximum: Optional[float] = None  # noqa: UP045
    strict: bool = False

    metric_dependencies = (_ROWS,)
    success_keys = ("name", "scope", "bound", "minimum", "maximum", "strict")
    args_keys = success_keys

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: Any = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        limit = Limit.read(**{key: getattr(self, key) for key in self.success_keys})
        rows = [row for record in metrics[_ROWS] if (row := judged_row(record)) is not None]
        decision = decide(limit, rows)
        return {
            "success": decision.result is Result.PASS,
            "result": {
                "observed_value": decision.value,
                "details": asdict(decision)
                | {"result": decision.result.value, "measurement": str(decision.measurement)},
            },
        }
