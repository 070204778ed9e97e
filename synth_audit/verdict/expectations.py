"""Great Expectations: runs the checks of a table, quietly and without a cell value coming back, and our own
expectation on measurements, for a Great Expectations of the user's own on measurements.parquet.

The product itself judges measurements by :func:`~synth_audit.verdict.gate_decision.decide` directly.
Importing this module registers ``expect_measurement_to_be_within`` and takes seconds, so it is imported
inside the functions that need it.
"""

import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Optional

import pandas as pd

from synth_audit.errors import GateError
from synth_audit.findings.verdict import Result
from synth_audit.verdict.gate_decision import Limit, decide
from synth_audit.verdict.judge import judged_row

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

_NUMBER_KEY = "synth_audit"


def run(
    frames: Iterable[pd.DataFrame], expectations: Mapping[str, Mapping[str, Any]]
) -> dict[str, bool | None]:
    """Evaluate expectations on frames, booleans only, so that no cell value can be in a result.

    Args:
        frames: one, or the rows by batches for expectations that each row meets or not; at least one.

    Returns:
        Whether each is met on every frame, by the same keys in the same order; None where it could not be
        evaluated on some frame.

    Raises:
        GateError: an expectation cannot be built, or the results are not one for each.
    """
    built = [expectation_of(plain, i, where) for i, (where, plain) in enumerate(expectations.items())]
    met: list[bool | None] = [True] * len(built)
    with _quiet():
        for results in _validate(frames, built):
            # Results come in an order of their own.
            found = {_number_of(r): _met(r) for r in results}
            if len(results) != len(built) or set(found) != set(range(len(built))):
                raise GateError(
                    f"Great Expectations returned {len(results)} results for {len(built)} expectations, or "
                    "results that belong to none of them",
                    expected="one result for each",
                )
            met = [None if None in (was, found[i]) else was and found[i] for i, was in enumerate(met)]
    return dict(zip(expectations, met, strict=True))


def expectation_of(plain: Mapping[str, Any], number: int, where: str) -> Any:
    """Build one expectation; raises ``GateError`` for what Great Expectations itself refuses.

    Building each on its own raises where a suite made of mappings drops what it does not know.
    """
    try:
        return ExpectationConfiguration(
            type=plain["type"],
            kwargs=dict(plain["kwargs"]),
            meta={_NUMBER_KEY: number},
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


def _validate(frames: Iterable[pd.DataFrame], built: Sequence[Any]) -> Iterator[list[Any]]:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("gate").add_dataframe_asset("gate")
    definition = asset.add_batch_definition_whole_dataframe("gate")
    suite = gx.ExpectationSuite(name="gate", expectations=list(built))
    for frame in frames:
        rows = frame.copy(deep=False)
        try:
            batch = definition.get_batch({"dataframe": rows})
            yield list(batch.validate(suite, result_format="BOOLEAN_ONLY").results)
        finally:
            # The library keeps the last context, and with it the frame: let it keep one without rows.
            for name in list(rows.columns):
                del rows[name]


def _number_of(result: Any) -> int:
    number = (result.expectation_config.meta or {}).get(_NUMBER_KEY, -1)
    return number if isinstance(number, int) else -1


def _met(result: Any) -> bool | None:
    # Without an error the information is one flag; with errors, a mapping of one entry per metric.
    failed = (result.exception_info or {}).get("raised_exception", True) is not False
    return None if failed or result.success is None else bool(result.success)


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings and no log lines: what the library says of an error may quote a cell."""
    # Some of its modules set levels of their own, so lines are stopped on their way to whoever logs.
    logger = logging.getLogger("great_expectations")
    before = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.handlers, logger.propagate = before


_ROWS_METRIC = "table.synth_audit_measurements"


class _MeasurementRows(TableMetricProvider):  # type: ignore[misc]  # untyped base
    """Every row of the frame that claims to be one measurement, or that which counts its people."""

    metric_name = _ROWS_METRIC
    value_keys = ("name", "people_quantity")

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
        name = metric_value_kwargs["name"]
        people = f"{name.partition('.')[0]}.{metric_value_kwargs['people_quantity']}"
        records: list[dict[str, Any]] = frame[frame["name"].isin([name, people])].to_dict("records")
        return records


class ExpectMeasurementToBeWithin(BatchExpectation):  # type: ignore[misc]  # untyped base
    """Expect exactly one finite measurement of a name and scope, on the safe side of a limit.

    It applies to the frame of :func:`~synth_audit.verdict.judge.measurement_frame`. The arguments
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
    people: Optional[int] = None  # noqa: UP045
    people_quantity: str = ""

    metric_dependencies = (_ROWS_METRIC,)
    success_keys = ("name", "scope", "bound", "minimum", "maximum", "strict", "people", "people_quantity")
    args_keys = success_keys

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: Any = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        limit = Limit.read(**{key: getattr(self, key) for key in self.success_keys})
        rows = [row for record in metrics[_ROWS_METRIC] if (row := judged_row(record)) is not None]
        decision = decide(limit, rows)
        return {
            "success": decision.result is Result.PASS,
            "result": {
                "observed_value": decision.value,
                "details": asdict(decision)
                | {"result": decision.result.value, "measurement": str(decision.measurement)},
            },
        }
