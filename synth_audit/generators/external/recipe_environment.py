"""The virtual environment of a recipe: where it is, whether it is there, and how it is made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synth_audit.core.environment import for_other_programs
from synth_audit.core.errors import DataError, PlanError
from synth_audit.generators.external.recipe import Recipe

HOME = "SYNTH_AUDIT_RECIPES"
"""Environment variable of the folder in which environments are made."""

_DONE = "installed.json"
_WINDOWS = os.name == "nt"


@dataclass(frozen=True)
class RecipeEnvironment:
    """A folder with an interpreter and the packages of one recipe."""

    recipe: Recipe
    folder: Path

    @classmethod
    def of(cls, recipe: Recipe) -> RecipeEnvironment:
        """Where the environment of a recipe is, whether made or not; other packages, another folder."""
        return cls(recipe, _home() / f"{recipe.name}-{recipe.digest}")

    @property
    def interpreter(self) -> Path:
        """What runs the recipe."""
        return self.folder / ("Scripts/python.exe" if _WINDOWS else "bin/python")

    @property
    def installed(self) -> bool:
        """Whether it was made to the end."""
        return (self.folder / _DONE).is_file()

    @property
    def version(self) -> str:
        """Of the package that generates.

        Raises:
            DataError: the recipe is not installed.
        """
        try:
            found = json.loads((self.folder / _DONE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise self._absent() from None
        return str(found["version"])

    def checked(self) -> RecipeEnvironment:
        """Itself.

        Raises:
            DataError: the recipe is not installed.
        """
        if not self.installed:
            raise self._absent()
        return self

    def install(self, python: Path | None = None) -> None:
        """Make it anew, with what the recipe asks for; its licence is then the user's to keep.

        Args:
            python: the interpreter it is made from; the first fitting one if None.

        Raises:
            PlanError: no interpreter fits.
            DataError: the packages do not install.
        """
        base = python_for(self.recipe, python)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._run([str(base), "-I", "-m", "venv", str(self.folder)])  # nothing of where it is called goes in
        uv = shutil.which("uv")
        with_uv = [uv, "pip", "install", "--python", str(self.interpreter)] if uv else None
        with_pip = [str(self.interpreter), "-I", "-m", "pip", "install", "--disable-pip-version-check"]
        self._run([*(with_uv or with_pip), *self.recipe.dependencies])
        code = f"from importlib.metadata import version; print(version({self.recipe.info.package!r}))"
        version = self._run([str(self.interpreter), "-I", "-c", code]).strip()
        tried = f"import runpy; runpy.run_path({str(self.recipe.path)!r})"
        self._run([str(self.interpreter), "-I", "-c", tried])  # what installs need not go together
        (self.folder / _DONE).write_text(json.dumps({"version": version}), encoding="utf-8")

    def _run(self, words: Sequence[str]) -> str:
        """What a program prints; what it says of its work goes to standard error."""
        done = subprocess.run(  # noqa: S603  (words of a recipe, which is code like a plug-in)
            words, stdout=subprocess.PIPE, text=True, check=False, env=for_other_programs()
        )
        if done.returncode:
            raise DataError(
                f"the packages of the recipe {self.recipe.name!r} do not install",
                where=str(self.folder),
                expected=", ".join(self.recipe.dependencies),
                fix="see above for what the installer said; packages for another Python need --python",
            )
        return done.stdout

    def _absent(self) -> DataError:
        return DataError(
            f"the recipe {self.recipe.name!r} is not installed",
            where="generator.external.recipe",
            expected=f"an environment in {self.folder}",
            fix=f"`synth-audit recipes install {self.recipe.name}` ({self.recipe.info.licence}); "
            f"{HOME} names another folder",
        )


def python_for(recipe: Recipe, given: Path | None = None) -> Path:
    """An interpreter that the recipe's packages run on: the one given, this one, or the newest on the path.

    Raises:
        PlanError: none fits.
    """
    from packaging.specifiers import SpecifierSet

    named = [shutil.which(f"python3.{minor}") for minor in range(20, 7, -1)]
    required = SpecifierSet(recipe.python)
    tried = [given] if given else [Path(sys.executable), *(Path(name) for name in named if name)]
    for python in tried:
        version = _version(python)
        if version and version in required:
            return python
    raise PlanError(
        f"the recipe {recipe.name!r} needs another Python",
        where=str(given) if given else "the path",
        expected=f"Python {recipe.python}",
        fix="install one, and name it with --python",
    )


def _version(python: Path) -> str:
    code = "import platform; print(platform.python_version())"
    try:
        done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()


def _home() -> Path:
    if named := os.environ.get(HOME):
        return Path(named).absolute()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(data) / "synth-audit" / "recipes"
