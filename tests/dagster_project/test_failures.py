"""Which failures a stage is tried again for."""

from __future__ import annotations

import errno

import dagster as dg
import pytest

from synth_audit.dagster.assets import stage_assets
from synth_audit.dagster.entry import fits
from synth_audit.dagster.outcomes import FAULT, INPUT, OUTAGE, without_values
from synth_audit.errors import DataError, Unavailable
from synth_audit.pipeline import stages


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unavailable("the server does not answer"), OUTAGE),
        (OSError(errno.ENOSPC, "No space left on device"), OUTAGE),
        (DataError("a column is missing"), INPUT),
        (ValueError("a cell"), FAULT),
    ],
)
@pytest.mark.parametrize("fit", [True, False])
def test_only_what_may_pass_is_tried_again_and_never_a_fit(error, kind, fit):
    with pytest.raises(dg.Failure) as found, without_values("stage", lambda: fit):
        raise error
    assert found.value.allow_retries == (kind == OUTAGE and not fit)
    assert found.value.metadata["kind"].value == kind
    assert "a cell" not in found.value.description


def test_an_audit_is_tried_again_unless_it_fits_and_a_killed_run_unless_it_spends(component):
    table = component("shuffled").table()
    policies = {a.op.name.split("__")[-1]: a.op.retry_policy for a in stage_assets(table)}
    assert {name for name, policy in policies.items() if policy} == {"split", "audit", "release"}
    game = component("shuffled", audits=["membership_game"]).table()
    assert [fits(t, "audit") for t in (table, game)] == [False, True]
    [job] = component("shuffled", privacy={"epsilon": 1.0}).build_defs(None).jobs
    assert job.tags["dagster/max_retries"] == "0"


def test_an_outage_in_an_audit_ends_in_the_next_try(run, monkeypatch):
    """Without the wait between two tries."""
    audit, tries = stages.audit_synthetic, []

    def unsteady(*args):
        tries.append(1)
        if len(tries) == 1:
            raise Unavailable("the disk is full")
        return audit(*args)

    monkeypatch.setattr(stages, "audit_synthetic", unsteady)
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert run("shuffled").success
    assert len(tries) == 2


def test_an_interrupted_stage_shows_no_trace_of_its_work() -> None:
    def work() -> None:
        raise dg.DagsterExecutionInterruptedError

    with pytest.raises(dg.DagsterExecutionInterruptedError) as found, without_values("audit"):
        work()
    assert "work" not in [step.name for step in found.traceback]
    assert found.value.__suppress_context__
