"""A release that waits for people is no fault of the pipeline, and is told as such."""

from __future__ import annotations

import dagster as dg
import pytest

from dagster_project.failures import REFUSAL, WAITING, without_values
from synth_audit.core.errors import ApprovalMissing, ReleaseRefused


@pytest.mark.parametrize(("error", "kind"), [(ApprovalMissing, WAITING), (ReleaseRefused, REFUSAL)])
def test_it_is_told_apart_from_a_refusal(error: type[Exception], kind: str) -> None:
    with pytest.raises(dg.Failure) as caught, without_values("release"):
        raise error("release refused: waiting for approval, 1 of 2 are there.")
    assert caught.value.metadata["kind"].value == kind
