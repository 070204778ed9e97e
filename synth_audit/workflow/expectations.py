"""The only place that imports Great Expectations: our expectation on measurements, and one way to run any.

Importing this module takes seconds, so it is imported inside the functions that judge.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Optional

import pandas as pd

from synth_audit.core.errors import GateError
from synth_audit.workflow.decision import Decision, Limit, Row, decide
from synth_audit.workflow.evidence import Result

# Read when the library is imported: an audit of sensitive data calls nobody.
os.environ["GX_ANALYTICS_ENABLED"] = "false"

with warnings.catch_warnings():
    # Its own deprecated imports, about which a user of ours can do nothing.
    warnings.simplefilter("ignore")
    import great_expectations as gx
    from great_expectations.exceptions import GreatExpectationsError
    from great_expectations.execution_engine import PandasExecutionEngine
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metrics.metric_provider import metric_value
    from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

_ROWS = "table.synth_audit_measurements"
_KEY = "synth_audit"


@dataclass(frozen=True)
class Ran:
    """What became of one expectation: ``met`` is None when it could not be evaluated."""

    met: bool | None
    details: Mapping[str, Any]


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

    The arguments are those of :class:`~synth_audit.workflow.decision.Limit`, whose ``decide`` it
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
        limit = Limit(**{key: getattr(self, key) for key in self.success_keys})
        decision = decide(limit, [Row(**record) for record in metrics[_ROWS]])
        return {
            "success": decision.result is Result.PASS,
            "result": {"observed_value": decision.value, "details": asdict(decision)},
        }


def measurement_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """One line per measurement; of objects, so that None stays None and NaN stays NaN."""
    return pd.DataFrame([vars(r) for r in rows], columns=list(Row.__dataclass_fields__), dtype=object)


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


def check_buildable(expectations: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ``GateError`` for any expectation (by name) that Great Expectations itself refuses."""
    for where, plain in expectations.items():
        _build(plain, 0, where)


def run(
    frame: pd.DataFrame, expectations: Mapping[str, Mapping[str, Any]], *, details: bool
) -> dict[str, Ran]:
    """Evaluate expectations on a frame; the answer has the same keys, in the same order.

    Args:
        details: return what our own expectation reports; without it results hold booleans only,
            so that no cell value can be in them.

    Raises:
        GateError: an expectation cannot be built, or the results are not one for each.
    """
    built = [_build(plain, i, where) for i, (where, plain) in enumerate(expectations.items())]
    with _quiet():
        results = _validate(frame, built, "BASIC" if details else "BOOLEAN_ONLY")
    if len(results) != len(built):
        raise GateError(
            f"Great Expectations returned {len(results)} results for {len(built)} expectations",
            expected="one result for each",
        )
    # Results come in an order of their own.
    found = {_number_of(r): r for r in results}
    if set(found) != set(range(len(built))):
        raise GateError("a result of Great Expectations belongs to no expectation of the suite")
    return {where: _ran(found[i], details) for i, where in enumerate(expectations)}


def _build(plain: Mapping[str, Any], number: int, where: str) -> Any:
    """Building each on its own raises where a suite made of mappings drops what it does not know."""
    try:
        return ExpectationConfiguration(
            type=plain["type"],
            kwargs=dict(plain["kwargs"]),
            meta={_KEY: number},
            severity=plain.get("severity", "critical"),
        ).to_domain_obj()
    except (GreatExpectationsError, ValueError, TypeError) as error:
        # Its text may repeat arguments at length, and a suite is public: the first line is enough.
        raise GateError(
            f"Great Expectations refuses {plain['type']} ({type(error).__name__})",
            where=where,
            expected="arguments that this expectation takes",
            fix="; ".join(str(error).splitlines()[1:3]).strip(),
        ) from None


def _validate(frame: pd.DataFrame, built: Sequence[Any], result_format: str) -> list[Any]:
    if not built:
        return []
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("gate").add_dataframe_asset("gate")
    batch = asset.add_batch_definition_whole_dataframe("gate").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(name="gate", expectations=list(built))
    return list(batch.validate(suite, result_format=result_format).results)


def _number_of(result: Any) -> int:
    number = (result.expectation_config.meta or {}).get(_KEY, -1)
    return number if isinstance(number, int) else -1


def _ran(result: Any, details: bool) -> Ran:
    # Without an error the information is one flag; with errors, a mapping of one entry per metric.
    failed = (result.exception_info or {}).get("raised_exception", True) is not False
    inside = dict(result.result.get("details") or {}) if details else {}
    return Ran(None if failed or result.success is None else bool(result.success), inside)


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings and no log lines: what the library says of an error may quote a cell."""
    logger = logging.getLogger("great_expectations")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
