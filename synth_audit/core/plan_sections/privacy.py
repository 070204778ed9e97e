"""The plan's key ``privacy``: what generators may spend on this table."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synth_audit.core.accounting.guarantee import Budget, Neighbouring, Unit
from synth_audit.core.accounting.terms import FitTerms


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
