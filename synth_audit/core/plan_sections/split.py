"""The plan's key ``split``: who is set aside as control."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SplitSpec(BaseModel):
    """How control rows are set aside."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    control: float = Field(default=0.2, gt=0, lt=1, description="share of entities kept from the generator")
