"""The parts of a plan that have keys of their own: split, privacy, known_answer, frontier.

``columns`` is in :mod:`synth_audit.core.column_spec`, and ``execution`` in
:mod:`synth_audit.core.plan_execution`.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synth_audit.core.accounting.guarantee import Budget, Neighbouring, Unit
from synth_audit.core.accounting.terms import FitTerms
from synth_audit.core.plugin_config import PluginConfig


class SplitSpec(BaseModel):
    """How control rows are set aside."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    control: float = Field(default=0.2, gt=0, lt=1, description="share of entities kept from the generator")


class PrivacySpec(BaseModel):
    """The privacy budget of the table: what all fits on it may spend together, ever."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    epsilon: float = Field(gt=0, le=1000, description="the most that all fits may spend together")
    delta: float = Field(default=0.0, ge=0, lt=1, description="well below one over the number of entities")
    per_fit: float | None = Field(
        default=None, gt=0, description="the most epsilon of one fit; all of it when left out"
    )
    rows_per_entity: int | None = Field(
        default=None,
        ge=1,
        le=10**6,
        description="train is cut down to so many rows of each entity; left out, single rows are protected",
    )
    neighbouring: Neighbouring = Field(
        default=Neighbouring.ADD_OR_REMOVE, description="how two tables differ that must look alike"
    )

    @model_validator(mode="after")
    def _within(self) -> PrivacySpec:
        if self.per_fit is not None and self.per_fit > self.epsilon:
            raise ValueError("per_fit must not exceed epsilon")
        return self

    def terms(self, drawn: int | None) -> FitTerms:
        """The terms of one fit; ``drawn`` is the plan's number of synthetic rows."""
        return FitTerms(
            total=Budget(self.epsilon, self.delta),
            fit=Budget(self.per_fit or self.epsilon, self.delta),
            unit=Unit.ROW if self.rows_per_entity is None else Unit.ENTITY,
            neighbouring=self.neighbouring,
            rows=self.rows_per_entity or 1,
            drawn=drawn,
        )


class KnownAnswerSpec(BaseModel):
    """How leaks are planted to see whether the audits would find them."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    small: float = Field(
        default=0.01, gt=0, lt=0.5, description="share of copied rows in the small planted leak"
    )
    max_rows: int = Field(default=10_000, ge=100, description="most rows of any table a leak is planted in")


class FrontierSpec(BaseModel):
    """Which candidates `synth-audit frontier` tries and how it chooses among those that pass."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    vary: dict[str, tuple[Any, ...]] = Field(
        default_factory=dict,
        description="settings of the generator with the values to try; several make a grid",
    )
    generators: tuple[PluginConfig, ...] = Field((), description="further generators to try, as they stand")
    privacy: str | None = Field(
        None, description="measurement to judge privacy by, `name` or `name[scope]`; chosen when left out"
    )
    utility: str | None = Field(None, description="measurement to judge usefulness by; chosen when left out")
    alpha: float = Field(default=0.5, ge=0, le=1, description="weight of privacy against usefulness")

    @model_validator(mode="after")
    def _something_to_try(self) -> FrontierSpec:
        if empty := [name for name, values in self.vary.items() if not values]:
            raise ValueError(f"vary.{empty[0]} needs at least one value")
        return self
