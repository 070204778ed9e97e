"""The plan's key ``split``: who is set aside as control."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class SplitSpec(BaseModel):
    """How control rows are set aside."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    control: float = Field(default=0.2, gt=0, lt=1, description="share of entities kept from the generator")
    made_elsewhere: Literal["random"] | None = Field(
        default=None,
        description="of train and control that come as files: `random` states that chance alone, entity by "
        "entity, decided which is which, and that nobody who made the release knew control",
    )
