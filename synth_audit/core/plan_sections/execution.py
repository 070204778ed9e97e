"""The plan's key ``execution``: where the work is done, which decides no measurement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from synth_audit.core.errors import PlanError, problems_of
from synth_audit.core.workplace import Device, ExecutorName


class ExecutionSpec(BaseModel):
    """Where audits and games are computed, for how long, and on what.

    Left out of the plan's digest and of the evidence: the same plan gives the same numbers anywhere.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    executor: ExecutorName | None = Field(
        None, description="`serial`, `processes` or `dask`; what workers and scheduler imply if left out"
    )
    workers: int | None = Field(
        None, ge=1, le=256, description="processes on this machine; 1 if left out, 2 for a Dask cluster"
    )
    scheduler: str | None = Field(
        None, min_length=1, description="address of a Dask scheduler, such as `tls://10.0.0.5:8786`"
    )
    deadline: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="longest time in seconds of one candidate's audits, and of one fit of its generator; "
        "what has not ended by then is not applicable",
    )
    device: Device = Field(
        "cpu", description="what networks are computed on; `auto`: a GPU where there is one"
    )

    @model_validator(mode="after")
    def _consistent(self) -> ExecutionSpec:
        if self.scheduler is not None and self.name != "dask":
            raise ValueError("a scheduler goes with the executor dask")
        if self.executor == "serial" and (self.workers or 1) > 1:
            raise ValueError("the executor serial has one worker; take processes")
        return self

    @property
    def name(self) -> ExecutorName:
        """The executor asked for or implied."""
        if self.executor is not None:
            return self.executor
        if self.scheduler is not None:
            return "dask"
        return "processes" if (self.workers or 1) > 1 else "serial"

    @property
    def n_workers(self) -> int:
        """Processes on this machine."""
        return self.workers or (2 if self.name == "dask" else 1)

    def changed(self, settings: Mapping[str, Any]) -> ExecutionSpec:
        """The same with these settings instead, but for those that are None.

        Another executor than the plan's takes the plan's scheduler away, and its workers if it has one.

        Raises:
            PlanError: they do not go together.
        """
        given = {key: value for key, value in settings.items() if value is not None}
        kept = self.model_dump(exclude_none=True)
        if "executor" in given or "workers" in given:
            kept.pop("executor", None)
            kept.pop("scheduler", None)
        if given.get("executor") == "serial":
            kept.pop("workers", None)
        if "scheduler" in given:
            kept.pop("executor", None)
        try:
            return ExecutionSpec.model_validate(kept | given)
        except ValidationError as error:
            raise PlanError(
                problems_of(error),
                where="execution",
                expected=f"keys {', '.join(ExecutionSpec.model_fields)}",
                fix="`synth-audit schema` prints what each may be",
            ) from None
