"""The plan's key `execution`: what is implied, what does not go together, and what it leaves alone."""

from __future__ import annotations

import pytest

from synth_audit.errors import PlanError
from synth_audit.plan.plan import parse_plan
from synth_audit.plan.sections import ExecutionSpec


@pytest.mark.parametrize(
    ("settings", "name", "workers"),
    [
        ({}, "serial", 1),
        ({"workers": 1}, "serial", 1),
        ({"workers": 8}, "processes", 8),
        ({"executor": "processes", "workers": 3}, "processes", 3),
        ({"executor": "dask"}, "dask", 2),
        ({"executor": "dask", "workers": 5}, "dask", 5),
        ({"scheduler": "tcp://10.0.0.5:8786"}, "dask", 2),
    ],
)
def test_what_is_left_out_is_implied(settings, name, workers):
    spec = ExecutionSpec.model_validate(settings)
    assert (spec.name, spec.n_workers) == (name, workers)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"executor": "serial", "workers": 2}, "one worker"),
        ({"executor": "processes", "scheduler": "tcp://a:1"}, "goes with the executor dask"),
        ({"executor": "threads"}, "executor"),
        ({"workers": 0}, "workers"),
        ({"deadline": 0}, "deadline"),
        ({"deadline": float("inf")}, "deadline"),
        ({"device": "tpu"}, "device"),
        ({"nodes": 3}, "unknown key 'execution.nodes'"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, says):
    with pytest.raises(PlanError, match=says):
        parse_plan({"execution": settings})


@pytest.mark.parametrize(
    ("plan", "given", "expected"),
    [
        ({"workers": 4}, {}, ("processes", 4, None)),
        ({"workers": 4}, {"workers": None, "executor": None}, ("processes", 4, None)),
        ({"workers": 4}, {"workers": 1}, ("serial", 1, None)),
        ({"workers": 4}, {"executor": "serial"}, ("serial", 1, None)),
        ({"scheduler": "tcp://a:1"}, {"workers": 3}, ("processes", 3, None)),
        ({"scheduler": "tcp://a:1"}, {"executor": "dask"}, ("dask", 2, None)),
        ({"scheduler": "tcp://a:1"}, {"scheduler": "tcp://b:2"}, ("dask", 2, "tcp://b:2")),
        ({"executor": "processes", "workers": 4}, {"scheduler": "tcp://b:2"}, ("dask", 4, "tcp://b:2")),
    ],
)
def test_what_is_given_stands_above_the_plan(plan, given, expected):
    spec = ExecutionSpec.model_validate({"deadline": 60, **plan}).changed(given)
    assert (spec.name, spec.n_workers, spec.scheduler) == expected
    assert spec.deadline == 60


def test_what_is_given_must_go_together_too():
    with pytest.raises(PlanError, match="one worker") as caught:
        ExecutionSpec().changed({"executor": "serial", "workers": 2})
    assert caught.value.where == "execution"


def test_it_is_no_part_of_the_plans_digest():
    plain, other = (parse_plan({"seed": 3, **more}) for more in ({}, {"execution": {"workers": 8}}))
    assert other.execution.n_workers == 8
    assert other.digest == plain.digest
    assert other.plain() == plain.plain()
