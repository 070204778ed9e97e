"""Which failures a stage is tried again for."""

from __future__ import annotations

import errno

import dagster as dg
import pytest

from synth_audit.dagster.outcomes import FAULT, INPUT, OUTAGE, without_values
from synth_audit.errors import DataError, Unavailable


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unavailable("the server does not answer"), OUTAGE),
        (OSError(errno.ENOSPC, "No space left on device"), OUTAGE),
        (DataError("a column is missing"), INPUT),
        (ValueError("a cell"), FAULT),
    ],
)
@pytest.mark.parametrize("stage", ["split", "synthetic"])
def test_only_what_may_pass_is_tried_again_and_never_a_fit(error, kind, stage):
    again = kind == OUTAGE and stage == "split"
    with pytest.raises(dg.RetryRequested if again else dg.Failure) as found, without_values(stage):
        raise error
    failure = found.value.__cause__ if again else found.value
    assert failure.metadata["kind"].value == kind
    assert "a cell" not in failure.description


def test_an_interrupted_stage_shows_no_trace_of_its_work() -> None:
    def work() -> None:
        raise dg.DagsterExecutionInterruptedError

    with pytest.raises(dg.DagsterExecutionInterruptedError) as found, without_values("audit"):
        work()
    assert "work" not in [step.name for step in found.traceback]
    assert found.value.__suppress_context__
