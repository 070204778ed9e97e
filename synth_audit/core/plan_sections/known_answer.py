"""The plan's key ``known_answer``: the leaks that audits are tried on."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class KnownAnswerSpec(BaseModel):
    """How leaks are planted to see whether the audits would find them."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    small: float = Field(
        default=0.01, gt=0, lt=0.5, description="share of copied rows in the small planted leak"
    )
    max_rows: int = Field(default=5_000, ge=100, description="most rows of any table a leak is planted in")
