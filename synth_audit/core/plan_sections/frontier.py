"""The plan's key ``frontier``: the candidates of a sweep, and how one is chosen."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synth_audit.core.plugin_config import PluginConfig


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
