"""Finds a suite's file and reads its JSON or YAML strictly; what it means is not known here."""

from __future__ import annotations

from pathlib import Path

import yaml

from synth_audit.core.errors import GateError
from synth_audit.core.strict_yaml import load_json, load_yaml
from synth_audit.resources import resource_folder

_SUFFIXES = ("", ".json", ".yaml", ".yml")


def locate(name: str, base: Path) -> Path:
    """The suite's file: relative to ``base``, else among those that ship.

    Raises:
        GateError: there is none.
    """
    own = base / name
    if own.is_file():
        return own
    shipped = resource_folder("expectations")
    inside = name.removeprefix(f"{shipped.name}/")
    for suffix in _SUFFIXES:
        if (place := shipped / f"{inside}{suffix}").is_file():
            return place
    names = sorted(p.stem for p in shipped.glob("*") if p.suffix in _SUFFIXES[1:])
    raise GateError(
        f"there is no gate suite {name!r}",
        where=str(own),
        expected=f"a file, or one that ships: {', '.join(names) or 'none'}",
        fix="check `gates` in the plan",
    )


def read(path: Path) -> object:
    """The plain values in a suite's file.

    Raises:
        GateError: it cannot be read, is damaged, or holds a key twice, of which the last would win.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GateError(
            f"the gate suite cannot be read ({type(error).__name__})",
            where=str(path),
            expected="a JSON or YAML file in UTF-8",
        ) from None
    return _parse(text, path)


def _parse(text: str, path: Path) -> object:
    try:
        return load_json(text) if path.suffix.lower() == ".json" else load_yaml(text)
    except (yaml.YAMLError, ValueError, TypeError):
        raise GateError(
            "the gate suite is damaged",
            where=str(path),
            expected="valid JSON (or YAML) in which no key occurs twice",
        ) from None
