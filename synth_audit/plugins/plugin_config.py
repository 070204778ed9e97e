"""A plug-in as a plan names it, and what a plug-in says of itself."""

import inspect
import itertools
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
import yaml

from synth_audit import registry
from synth_audit.errors import PlanError, problems_of
from synth_audit.files import problem_of
from synth_audit.registry import PluginRef

if TYPE_CHECKING:
    from synth_audit.plugins.generator import Generator


_SECTION = re.compile(r"(Attributes|Fields|Raises):\n((?:[ ]{4}.*\n?|\n)*)")

_NAMED = re.compile(r"[ ]{4}([\w, ]+): ")

_MARKUP = re.compile(r":[a-z]+:`~?(?:[\w.]+\.)?([^`]+)`|``([^`]+)``")

_WORDS = {int: "whole number", float: "number", bool: "true or false", str: "text", type(None): "null"}

_KEYS = {"generator": "generator: {choice}", "audit": "audits: [{choice}]", "source": "source: {choice}"}

_UNSAID = "…"

_SHOWN = 3
"""Settings in an example: enough to see how they are written."""


class PluginChoice(pydantic.BaseModel):
    """A plug-in by name with its configuration: ``name`` or ``{name: {field: value}}``."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")
    name: str
    config: dict[str, Any] = pydantic.Field(default_factory=dict)

    def with_settings(self, settings: Mapping[str, Any]) -> "PluginChoice":
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


def file_or_choice(value: object, key: pydantic.ValidationInfo) -> object:
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
        sources |= dict.fromkeys(ref.info.suffixes, name)
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


def build_generator(choice: object, where: str = "generator") -> "Generator":
    """A generator named as in a plan.

    Raises:
        PlanError: there is no such generator, or it refuses its settings.
    """
    try:
        chosen: PluginChoice = pydantic.TypeAdapter(PluginConfig).validate_python(choice)
    except pydantic.ValidationError as error:
        raise PlanError(
            problems_of(error), where=where, expected="a name, or one name with settings"
        ) from None
    built: Generator = registry.build("generator", chosen.name, chosen.config, where=f"{where}.{chosen.name}")
    return built


PluginConfig = Annotated[PluginChoice, pydantic.BeforeValidator(_choice)]
Location = Annotated[PluginChoice, pydantic.BeforeValidator(file_or_choice)]


@dataclass(frozen=True)
class SettingDoc:
    """One setting of a plug-in.

    Attributes:
        name: with the settings that it is within, such as ``validation.threshold``.
        accepts: what a plan may say, in words. default: as a plan writes it; None where one must be named.
        meaning: from the docstring; empty where that is silent.
    """

    name: str
    accepts: str
    default: str | None
    meaning: str


@dataclass(frozen=True)
class PluginDoc:
    """A plug-in's docstring without its settings, and these.

    Attributes:
        example: how a plan names it, with a value for each setting.
    """

    text: str
    settings: tuple[SettingDoc, ...]
    example: str


def plugin_doc(ref: PluginRef) -> PluginDoc:
    """What ``describe`` and the docs tell of a plug-in."""
    cls = ref.load()
    settings = tuple(_settings(cls))
    text = _SECTION.sub("", (inspect.getdoc(cls) or "") + "\n")
    return PluginDoc(_unmarked(re.sub(r"\n{3,}", "\n\n", text).strip()), settings, _example(ref, cls))


def _unmarked(text: str) -> str:
    """Text without the markup of docstrings: quoted words and the last part of names referred to."""
    return _MARKUP.sub(lambda found: found[1] or found[2], text)


def _settings(cls: Any, within: str = "") -> typing.Iterator[SettingDoc]:
    hints, meanings = typing.get_type_hints(cls), _meanings(cls)
    for field in fields(cls):
        made = field.default if field.default_factory is MISSING else field.default_factory()
        if is_dataclass(made):
            yield from _settings(type(made), f"{within}{field.name}.")
            continue
        default = None if made is MISSING else _written(made)
        yield SettingDoc(
            within + field.name, accepted(hints[field.name]), default, _unmarked(meanings.get(field.name, ""))
        )


def _meanings(cls: type) -> dict[str, str]:
    """What the docstring says of each setting, in one line each.

    A line may tell of several, ``gaps: of this. values: of that.``, or name two at once, ``a, b: of both``.
    """
    found: dict[str, str] = {}
    docs = [inspect.cleandoc(base.__doc__ or "") + "\n" for base in reversed(cls.__mro__)]
    for _, body in (part for doc in docs for part in _SECTION.findall(doc)):
        for entry in re.split(r"\n(?=[ ]{4}\S)", body.rstrip()):
            head = _NAMED.match(entry)
            if head is None:
                continue
            names, told = head[1].split(", "), " ".join(entry[head.end() :].split())
            for name in names:
                found[name] = told
    for name, told in list(found.items()):
        for other in (f.name for f in fields(cls)):
            if (at := told.find(f". {other}: ")) >= 0 and other not in found:
                found[name], found[other] = told[: at + 1], told[at + len(other) + 4 :]
    return found


def accepted(hint: Any) -> str:
    """A type in words that somebody who writes a plan knows."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _either([str(p) for p in parts])
    if origin in (Union, types.UnionType):
        return _either([accepted(p) for p in parts])
    if origin is tuple:
        inside = [p for p in parts if p is not Ellipsis]
        if Ellipsis in parts:
            return (
                f"list of {accepted(inside[0])}" if inside[0] in _WORDS else f"list ({accepted(inside[0])})"
            )
        return f"[{', '.join(accepted(p) for p in inside)}]"
    if origin is not None and issubclass(origin, Mapping):
        return "mapping"
    if origin is typing.Annotated:
        return accepted(parts[0])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _either([str(member) for member in hint])
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def _either(words: list[str]) -> str:
    flat = list(dict.fromkeys(words))
    return flat[0] if len(flat) == 1 else f"{', '.join(flat[:-1])} or {flat[-1]}"


def _written(value: object) -> str:
    flow: dict[str, Any] = {"default_flow_style": True, "width": 10_000}
    text: str = yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True, **flow)
    return text.removesuffix("...\n").strip()


def _plain(value: object) -> object:
    if isinstance(value, (tuple, list, frozenset)):
        return [_plain(x) for x in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return str(value) if isinstance(value, str) else value


def _example(ref: PluginRef, cls: Any) -> str:
    """The plug-in in a plan, with its first settings at their defaults."""
    shown = {}
    for field in fields(cls):
        made = field.default if field.default_factory is MISSING else field.default_factory()
        if made is MISSING:
            shown[field.name] = _UNSAID
        elif not is_dataclass(made) and len(shown) < _SHOWN and made not in ((), None, {}):
            shown[field.name] = made
    choice: object = {ref.name: shown} if shown else ref.name
    return _KEYS[ref.room].format(choice=_written(choice))
