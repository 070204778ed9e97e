"""Our own expectation on measurements, for Great Expectations to run as it runs any other.

Importing this module takes seconds, so it is imported inside the functions that judge.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Optional

import pandas as pd

from synth_audit.core.errors import GateError
from synth_audit.core.verdict import Result
from synth_audit.judging.decide import Decision, Limit, Row, decide
from synth_audit.judging.great_expectations_runner import Ran, check_buildable, run

with warnings.catch_warnings():
    # Its own deprecated imports, about which a user of ours can do nothing.
    warnings.simplefilter("ignore")
    from great_expectations.execution_engine import PandasExecutionEngine
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

__all__ = ["ExpectMeasurementToBeWithin", "check_buildable", "decision_of", "measurement_frame", "run"]

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

    The arguments are those of :class:`~synth_audit.judging.decide.Limit`, whose ``decide`` it
    calls; the decision is in ``result["details"]``.
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
        decision = decide(limit, [Row(**{k: v for k, v in r.items() if k != "name"}) for r in metrics[_ROWS]])
        return {
            "success": decision.result is Result.PASS,
            "result": {"observed_value": decision.value, "details": asdict(decision)},
        }


def measurement_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """One line per measurement; of objects, so that None stays None and NaN stays NaN."""
    records = [{"name": r.id.name, **vars(r)} for r in rows]
    return pd.DataFrame(records, columns=["name", *Row.__dataclass_fields__], dtype=object)


def decision_of(ran: Ran, where: str) -> Decision:
    """The decision inside a result of :class:`ExpectMeasurementToBeWithin`.

    Raises:
        GateError: there is none, or the library and the decision disagree.
    """
    try:
        decision = Decision.from_plain(ran.details)
    except (KeyError, TypeError, ValueError):
        raise GateError(
            "Great Expectations could not evaluate a gate, so nothing is decided", where=where
        ) from None
    if ran.met is not (decision.result is Result.PASS):
        raise GateError(
            "Great Expectations and the decision it carries disagree",
            where=where,
            expected=f"success to be {decision.result is Result.PASS}",
        )
    return decision
