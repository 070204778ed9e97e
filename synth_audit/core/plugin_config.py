"""A plug-in as a plan names it: by name, by name with settings, or by the path of a file that it reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from synth_audit.core import registry
from synth_audit.core.errors import PlanError, problems_of
from synth_audit.core.paths import problem_of

if TYPE_CHECKING:
    from synth_audit.core.generator import Generator


class PluginChoice(BaseModel):
    """A plug-in by name with its configuration: ``name`` or ``{name: {field: value}}``."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    config: dict[str, Any] = Field(default_factory=dict)

    def with_settings(self, settings: Mapping[str, Any]) -> PluginChoice:
        """The same plug-in with these settings instead of, or beside, its own."""
        return PluginChoice(name=self.name, config={**self.config, **settings})


def combinations(vary: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of the values of each setting, the last setting running fastest."""
    for values in itertools.product(*vary.values()):
        yield dict(zip(vary, values, strict=True))


def _choice(value: object) -> object:
    match value:
        case str():
            return {"name": value}
        case Mapping() if len(value) == 1 and "name" not in value:
            [(name, config)] = value.items()
            return {"name": name, "config": {} if config is None else config}
    return value


def file_or_choice(value: object, key: ValidationInfo) -> object:
    """A bare path chooses the source that reads its suffix; a word is the name of a source."""
    if not isinstance(value, str):
        return _choice(value)
    where = key.field_name or "source"
    if problem := problem_of(value):
        raise PlanError(
            f"{value!r} cannot be used: {problem}",
            where=where,
            expected="the path of a file on this machine, or the name of a source",
            fix="`synth-audit list` shows every source",
        )
    path = Path(value)
    sources: dict[str, str] = {}
    for name, ref in registry.catalogue("source").items():
        info = getattr(ref.load(), "info")  # noqa: B009  (Protocol class attribute)
        sources |= dict.fromkeys(info.suffixes, name)
    if name := sources.get(path.suffix.lower(), ""):
        return {"name": name, "config": {"path": value}}
    if path.suffix or path.name != value:
        raise PlanError(
            f"no source reads the file {value!r}",
            where=where,
            expected=f"a file ending in {', '.join(sorted(sources))}",
            fix="convert the file, or name the source and its settings; `synth-audit list` shows all",
        )
    return {"name": value}


def build_generator(choice: object, where: str = "generator") -> Generator:
    """A generator named as in a plan.

    Raises:
        PlanError: there is no such generator, or it refuses its settings.
    """
    try:
        chosen: PluginChoice = TypeAdapter(PluginConfig).validate_python(choice)
    except ValidationError as error:
        raise PlanError(
            problems_of(error), where=where, expected="a name, or one name with settings"
        ) from None
    built: Generator = registry.build("generator", chosen.name, chosen.config, where=f"{where}.{chosen.name}")
    return built


PluginConfig = Annotated[PluginChoice, BeforeValidator(_choice)]
Location = Annotated[PluginChoice, BeforeValidator(file_or_choice)]
