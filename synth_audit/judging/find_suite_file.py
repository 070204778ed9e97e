"""Finds a suite's file and reads its JSON or YAML strictly; what it means is not known here."""

from __future__ import annotations

import os
from pathlib import Path

from synth_audit.core.errors import GateError
from synth_audit.core.paths import read_text
from synth_audit.core.strict_yaml import Malformed, load_json, load_yaml
from synth_audit.resources import resource_folder

_SUFFIXES = ("", ".json", ".yaml", ".yml")


def locate(name: str, base: Path) -> Path:
    """The suite's file: relative to ``base``, else among those that ship.

    Raises:
        GateError: there is none.
    """
    own = base / name
    if os.path.isfile(own):  # unlike Path.is_file it takes a name that is too long or holds a null character
        return own
    shipped = resource_folder("expectations")
    inside = name.removeprefix(f"{shipped.name}/")
    for suffix in _SUFFIXES:
        if os.path.isfile(place := shipped / f"{inside}{suffix}"):
            return place
    raise GateError(
        f"there is no gate suite {name!r}",
        where=str(own),
        expected=f"a file, or one that ships: {', '.join(shipped_suites()) or 'none'}",
        fix="check `gates` in the plan",
    )


def shipped_suites() -> tuple[str, ...]:
    """Names of the suites that ship."""
    found = resource_folder("expectations").glob("*")
    return tuple(sorted(p.stem for p in found if p.suffix in _SUFFIXES[1:]))


def read(path: Path) -> object:
    """The plain values in a suite's file.

    Raises:
        GateError: it cannot be read, is damaged, or holds a key twice, of which the last would win.
    """
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise GateError(
            f"the gate suite cannot be read ({type(error).__name__})",
            where=str(path),
            expected="a JSON or YAML file in UTF-8",
            fix="check `gates` in the plan, and the permissions of the file",
        ) from None
    return _parse(text, path)


def _parse(text: str, path: Path) -> object:
    try:
        return load_json(text) if path.suffix.lower() == ".json" else load_yaml(text)
    except Malformed as error:
        raise GateError(
            "the gate suite is damaged" + (f": {error.reason}" if error.reason else ""),
            where=f"{path}, line {error.line}" if error.line else str(path),
            expected="valid JSON (or YAML) in which no key occurs twice",
            fix="correct the file, or start from a suite that ships",
        ) from None
