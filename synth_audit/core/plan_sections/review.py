"""The plan's key ``review``: what the release is for, and who answers for it."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

_Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class ReviewSpec(BaseModel):
    """The scope that a signature covers; it stands in the certificate and under the evidence's digest."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    purpose: _Line | None = Field(None, description="what the released table is to be used for")
    recipient: _Line | None = Field(None, description="who gets it")
    environment: _Line | None = Field(None, description="where it is used, and what protects it there")
    owner: _Line | None = Field(None, description="who answers for the sensitive table")
    contact: _Line | None = Field(None, description="whom to ask")
    valid_until: date | None = Field(
        None, description="last day, in UTC, on which the table may be released on this evidence"
    )

    reports: int | None = Field(
        None,
        ge=1,
        description="how many reports of mostly the same people may be made, candidates of sweeps included; "
        "one more is refused, and so is one of people of whom fewer than twenty differ from an earlier one's",
    )

    @model_validator(mode="after")
    def _says_something(self) -> ReviewSpec:
        if not self.model_dump(exclude_none=True):
            raise ValueError(
                "name at least one of purpose, recipient, environment, owner, contact, valid_until, reports"
            )
        return self
