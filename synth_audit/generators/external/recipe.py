"""Recipes by name: what each says of itself, which packages it takes, and what runs it."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synth_audit.core import registry
from synth_audit.core.errors import PluginError, problems_of
from synth_audit.generators.external.program import PLACEHOLDERS

Setting = bool | int | float | str

_HEADER = re.compile(r"^# /// script$\n(?P<lines>(?:^#(?: .*)?$\n)+)^# ///$", re.MULTILINE)
"""Metadata in a script, as PEP 723 has it."""

RUNNER = Path(__file__).with_name("run_recipe.py")


class RecipeInfo(BaseModel):
    """What ``[tool.synth-audit]`` of a recipe says."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    title: str
    package: str = Field(description="the distribution that generates, whose version is told")
    licence: str = Field(description="of that package, by its SPDX name")
    terms: str = Field("", description="what a user must know of the licence")
    source: str = ""
    claims: str = Field("", description="what it says of its privacy, with settings in braces; nobody checks")
    repeats: bool = Field(True, description="takes a seed; false for what buys privacy by noise")
    settings: dict[str, Setting] = Field(default_factory=dict, description="each with its default")
    trial: dict[str, Setting] = Field(
        default_factory=dict, description="settings that show fast that it runs"
    )


class _Tools(BaseModel):
    ours: RecipeInfo = Field(alias="synth-audit")


class _Header(BaseModel):
    requires: str = Field(">=3.10", alias="requires-python")
    dependencies: tuple[str, ...]
    tool: _Tools


@dataclass(frozen=True)
class Recipe:
    """One recipe.

    Attributes:
        name: the file's, or the entry point's.
        path: the script.
        python: versions of Python that its packages run on.
        dependencies: packages as ``pip`` takes them.
    """

    name: str
    path: Path
    info: RecipeInfo
    python: str
    dependencies: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What an environment for it must have been made from."""
        text = json.dumps([self.python, *self.dependencies])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def settled(self, given: Mapping[str, Setting]) -> dict[str, Setting]:
        """All settings, those left out by their defaults.

        Raises:
            ValueError: one is unknown, or of another type than its default.
        """
        known = self.info.settings
        for name, value in given.items():
            if name not in known:
                raise ValueError(
                    f"the recipe {self.name!r} has no setting {name!r}, but {', '.join(known) or 'none'}"
                )
            if not _alike(value, known[name]):
                raise ValueError(f"setting {name!r} must be like {known[name]!r}")
        return {**known, **given}

    def claim(self, given: Mapping[str, Setting]) -> str:
        """What the recipe says of its privacy under these settings; empty for nothing."""
        return self.info.claims.format_map(self.settled(given))

    def command(self, interpreter: Path, given: Mapping[str, Setting]) -> tuple[str, ...]:
        """The words that run it: in isolation, so that no package of ours is in its way."""
        settings = json.dumps(self.settled(given))
        for mark in PLACEHOLDERS:  # in a setting it is text: a seed must not get in that way
            settings = settings.replace(mark, rf"\u007b{mark[1:]}")
        files = ("{train}", "{synthetic}", "{rows}", "{model}", *(("{seed}",) if self.info.repeats else ()))
        return (str(interpreter), "-I", str(RUNNER), str(self.path), "{columns}", settings, *files)


def recipes() -> dict[str, Recipe]:
    """Every recipe by name, in alphabetical order.

    Raises:
        PluginError: see :func:`recipe_named`.
    """
    return {name: recipe_named(name) for name in registry.catalogue("recipe")}


def recipe_named(name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        PlanError: there is none.
        PluginError: its file cannot be found or read, or has no metadata as they must be.
    """
    ref = registry.find("recipe", name, where="generator.external.recipe")
    return _read(name, ref.module)


@cache
def _read(name: str, module: str) -> Recipe:
    try:
        spec = find_spec(module)
    except Exception as error:  # a package of others is imported to find what is in it
        raise _faulty(module, f"cannot be found ({type(error).__name__})") from None
    if spec is None or spec.origin is None:
        raise _faulty(module, "cannot be found")
    path = Path(spec.origin)
    try:
        found = _HEADER.search(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:  # such as a compiled module
        raise _faulty(module, f"cannot be read ({type(error).__name__})") from None
    if found is None:
        raise _faulty(module, "has no `# /// script` on top")
    text = re.sub(r"^# ?", "", found["lines"], flags=re.MULTILINE)
    try:
        header = _Header.model_validate(tomllib.loads(text))
        recipe = Recipe(name, path, header.tool.ours, header.requires, header.dependencies)
        recipe.claim(recipe.info.trial)
    except ValidationError as error:
        raise _faulty(module, problems_of(error)) from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # no TOML, or a claim of no setting
        raise _faulty(module, f"has metadata that cannot be read ({type(error).__name__})") from None
    return recipe


def _faulty(module: str, what: str) -> PluginError:
    return PluginError(
        f"the recipe {what}",
        where=module,
        expected="a script with metadata (PEP 723), and a title, package and licence in [tool.synth-audit]",
        fix="see the recipes that ship",
    )


def _alike(value: Setting, default: Setting) -> bool:
    """Whole numbers go for numbers; true and false are none."""
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    return isinstance(value, (int, float) if isinstance(default, float) else type(default))
