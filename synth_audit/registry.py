"""Finds plug-ins by file name or entry point, and imports one only when it is asked for."""

import dataclasses
import importlib
import pkgutil
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from synth_audit.errors import PlanError, PluginError, problems_of
from synth_audit.text import meant

PluginGroup = Literal["source", "generator", "audit", "view", "kind", "recipe"]

PRIVACY = "privacy"
"""Family of the audits that look for leaks, and that must show that they would see one."""

_PACKAGES: dict[PluginGroup, tuple[str, ...]] = {
    "source": ("synth_audit.sources",),
    "generator": ("synth_audit.generators",),
    "audit": (
        "synth_audit.audits.privacy",
        "synth_audit.audits.published",
        "synth_audit.audits.fidelity",
        "synth_audit.audits.utility",
    ),
    "view": ("synth_audit.audits.recognition.views",),
    "kind": ("synth_audit.column_kinds",),
    "recipe": ("synth_audit.generators.external.recipes",),
}

_ALONE: dict[PluginGroup, tuple[str, ...]] = {"audit": ("synth_audit.audits.recognition",)}
"""Packages that are one plug-in each."""

_FAMILIES = {"published": PRIVACY, "recognition": PRIVACY}
"""Family of the packages that are not named after theirs."""


@dataclass(frozen=True)
class PluginRef:
    """Where a plug-in is to be found, without importing it.

    Attributes:
        family: the package's last name, for example ``fidelity``; for an entry point the word before the
            first dot of its name, else ``privacy``. ``published`` and ``recognition`` are ``privacy``.
    """

    room: PluginGroup
    name: str
    family: str
    module: str
    attribute: str | None = None

    def load(self) -> type:
        """Import the plug-in's class.

        Raises:
            PluginError: it does not import, or holds none or several plug-in classes.
        """
        try:
            module = importlib.import_module(self.module)
        except Exception as error:  # a plug-in is others' code, which may fail in any way as it is imported
            raise PluginError(
                f"{self.room} plug-in {self.name!r} does not import",
                where=self.module,
                expected="an importable module",
                fix="".join(traceback.format_exception(error)),
            ) from error
        if self.attribute:
            found = [value for key, value in vars(module).items() if key == self.attribute]
        else:
            found = [
                value
                for value in vars(module).values()
                if isinstance(value, type)
                and value.__module__ == module.__name__
                and dataclasses.is_dataclass(value)
                and "info" in vars(value)
            ]
        if len(found) != 1:
            raise PluginError(
                f"{self.room} plug-in {self.name!r} must define exactly one dataclass with `info`",
                where=self.module,
                expected="one plug-in class",
                fix=f"found {len(found)}",
            )
        cls: type = found[0]
        return cls

    @property
    def info(self) -> Any:
        """What the plug-in says of itself; raises as :meth:`load` does."""
        return vars(self.load())["info"]


def catalogue(room: PluginGroup) -> dict[str, PluginRef]:
    """Every plug-in of a room by name, in alphabetical order, importing none of them.

    Raises:
        PluginError: two plug-ins have one name.
    """
    default = PRIVACY if room == "audit" else f"{room}s"
    refs = [*_built_in(room)]
    for point in _entry_points(room):
        family, _, name = point.name.rpartition(".")
        refs.append(PluginRef(room, name, _family(family) or default, point.module, point.attr or None))
    names = [ref.name for ref in refs]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        places = [ref.module for ref in refs if ref.name == twice[0]]
        raise PluginError(
            f"two {room} plug-ins are named {twice[0]!r}",
            where=", ".join(places),
            fix="rename one of the files or entry points",
        )
    return {ref.name: ref for ref in sorted(refs, key=lambda r: r.name)}


def find(room: PluginGroup, name: str, *, where: str = "") -> PluginRef:
    """The plug-in of that name.

    Raises:
        PlanError: there is none.
    """
    known = catalogue(room)
    if name not in known:
        raise PlanError(
            f"unknown {room} {name!r}{meant(name, known)}",
            where=where or f"{room}s",
            expected=f"one of {', '.join(known)}",
            fix=f"`synth-audit {'recipes list' if room == 'recipe' else 'list'}` shows each, described",
        )
    return known[name]


def build(room: PluginGroup, name: str, config: Mapping[str, object], *, where: str = "") -> Any:
    """Make a configured plug-in from plain values, validating every field.

    Raises:
        PlanError: unknown name, unknown field, or a value the plug-in refuses.
        PluginError: the plug-in does not import.
    """
    where = where or f"{room} {name!r}"
    cls = find(room, name, where=where).load()
    known = field_names(cls)
    problems = [f"unknown field {x!r}{meant(x, known)}" for x in sorted(set(config) - set(known))]
    try:
        built = _adapter(cls).validate_python({key: config[key] for key in config if key in known})
    except ValidationError as error:
        problems.append(problems_of(error))
    if problems:
        raise PlanError(
            "; ".join(problems),
            where=where,
            expected=f"fields: {', '.join(known) or 'none'}",
            fix=f"`synth-audit describe {name}` shows each field with its meaning",
        )
    return built


def default_audits() -> tuple[str, ...]:
    """Names of the audits that run when a plan names none."""
    refs = catalogue("audit")
    return tuple(name for name, ref in refs.items() if ref.info.default)


def config_of(plugin: object) -> dict[str, Any]:
    """The full configuration of a plug-in, defaults included, as plain JSON values."""
    cls: type = type(plugin)
    dumped = _adapter(cls).dump_python(plugin, mode="json")
    assert isinstance(dumped, dict)
    return dumped


def config_schema(ref: PluginRef) -> dict[str, Any]:
    """JSON Schema of a plug-in's configuration; like :func:`build` it takes no unknown field."""
    return _adapter(ref.load()).json_schema() | {"additionalProperties": False}


def field_names(cls: type) -> tuple[str, ...]:
    """Names of the configuration fields of a plug-in class."""
    return tuple(f.name for f in dataclasses.fields(cls))


@cache
def _adapter(cls: type) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


@cache
def _built_in(room: PluginGroup) -> tuple[PluginRef, ...]:
    refs = []
    for package in _ALONE.get(room, ()):
        name = package.rpartition(".")[2]
        refs.append(PluginRef(room, name, _family(name), package))
    for package in _PACKAGES[room]:
        family = _family(package.rpartition(".")[2])
        names = [m.name for m in pkgutil.iter_modules(importlib.import_module(package).__path__)]
        refs += [PluginRef(room, n, family, f"{package}.{n}") for n in names if not n.startswith("_")]
    return tuple(refs)


def _family(name: str) -> str:
    return _FAMILIES.get(name, name)


@cache  # reading what is installed takes milliseconds, and every look-up of a plug-in asks for it
def _entry_points(room: PluginGroup) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=f"synth_audit.{room}s"))
