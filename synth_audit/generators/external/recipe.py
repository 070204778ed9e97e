"""Recipes by name, the virtual environment of each, the rows that they draw, and a trial on made-up rows."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synth_audit import registry
from synth_audit.arrays import Floats, Labels
from synth_audit.errors import DataError, PlanError, PluginError, problems_of
from synth_audit.execution.context import for_other_programs
from synth_audit.generators.external.program import PLACEHOLDERS, PrivateFolder, Program, ProgramModel
from synth_audit.table.schema import Column, Schema, quantitative
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, assemble, read_table

Setting = bool | int | float | str

_HEADER = re.compile(r"^# /// script$\n(?P<lines>(?:^#(?: .*)?$\n)+)^# ///$", re.MULTILINE)
"""Metadata in a script, as PEP 723 has it."""

RUNNER = Path(__file__).with_name("run_recipe.py")

HOME = "SYNTH_AUDIT_RECIPES"
"""Environment variable of the folder in which environments are made."""

WHERE = "generator.external.recipe"

ROWS = 300
"""Of the made-up table."""

_LONGEST = 600.0
"""Seconds of a trial."""

_ABOVE, _NOT_SHOWN = "see above for what it printed", "have it shown what it prints"

_LABELS = {"north": 0.5, "south": 0.3, "élan": 0.2}
"""Of a column of the made-up table, with their shares."""

_DONE = "installed.json"

_WINDOWS = os.name == "nt"


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
    ref = registry.find("recipe", name, where=WHERE)
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


@dataclass(frozen=True)
class RecipeEnvironment:
    """A folder with an interpreter and the packages of one recipe."""

    recipe: Recipe
    folder: Path

    @classmethod
    def of(cls, recipe: Recipe) -> "RecipeEnvironment":
        """Where the environment of a recipe is, whether made or not; other packages, another folder."""
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
        home = Path(os.environ.get(HOME) or Path(data) / "synth-audit" / "recipes").absolute()
        return cls(recipe, home / f"{recipe.name}-{recipe.digest}")

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

    def checked(self) -> "RecipeEnvironment":
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
            where=WHERE,
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


def as_recipes_see(train: Table) -> Table:
    """The same rows with numbers as float64 and all else as text."""
    numeric = {column.name for column in quantitative(train.schema)}
    columns = {
        name: train.schema[name].kind.numbers(train.column(name)) if name in numeric else train.texts(name)
        for name in train.names
    }
    return Table(train.schema, pa.table(columns))


def rows_of_recipe(made: pa.Table, schema: Schema, n: int) -> Table:
    """What a recipe drew, in the types of train's columns.

    Raises:
        DataError: it drew other columns, another number of rows, or values that do not fit their columns.
    """
    if set(made.column_names) != set(schema.names) or made.num_rows != n:
        raise DataError(
            "the recipe drew other columns, or another number of rows, than it was asked for",
            where=WHERE,
            expected="the columns of train, and as many rows as were asked for",
            fix="correct the recipe",
        )
    numeric = {column.name for column in quantitative(schema)}
    try:
        read = {name: _plain(made.column(name), name in numeric) for name in schema.names}
        for name in numeric:
            _check_held(schema[name], np.asarray(read[name], dtype=np.float64))
        return assemble(schema, read)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(
            f"the recipe drew values that do not fit their columns ({type(error).__name__})",
            where=WHERE,
            expected="finite numbers that the column's type holds, and else text as train's labels",
            fix="correct the recipe",
        ) from None


def _plain(values: pa.ChunkedArray, numeric: bool) -> Floats | Labels:
    """As :func:`assemble` takes them."""
    if numeric:
        return np.asarray(values.cast(pa.float64()).to_numpy(), dtype=np.float64)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return np.asarray(values.cast(pa.string()).to_numpy(), dtype=object)


def _check_held(column: Column, numbers: Floats) -> None:
    """Refuse what would be another number in the column's type.

    Raises:
        ValueError: a number is infinite, or beyond what the type holds and the plan does not cut it off.
    """
    if np.isinf(numbers).any():
        raise ValueError("infinite")
    if column.resolution is not None and column.declared_bounds is not None:  # then they are cut off there
        numbers = np.clip(numbers, *column.declared_bounds)
    known = np.rint(numbers[~np.isnan(numbers)])
    low, after = _ends_of(column.storage)
    if ((known < low) | (known >= after)).any():
        raise ValueError("too large or too small")


def _ends_of(storage: pa.DataType) -> tuple[float, float]:
    """The least number of a type, and the first beyond the largest; of times in microseconds."""
    if pa.types.is_integer(storage):
        ends = np.iinfo(storage.to_pandas_dtype())
        return float(ends.min), float(min(int(ends.max) + 1, 2**63))  # they go through int64
    if pa.types.is_floating(storage):
        largest = float(np.finfo(storage.to_pandas_dtype()).max)
        return -largest, largest
    if pa.types.is_temporal(storage):
        nanoseconds = pa.types.is_timestamp(storage) and storage.unit == "ns"
        return (-(2.0**63) / 1000, 2.0**63 / 1000) if nanoseconds else (-(2.0**63), 2.0**63)
    return -np.inf, np.inf


def made_up_table() -> Table:
    """Whole and broken numbers, labels, truth values and dates, some of them missing; domains declared."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 91, ROWS)
    income = np.round(rng.gamma(2.0, 400.0, ROWS).clip(max=9000) + 10 * age, 2)
    region = rng.choice(list(_LABELS), ROWS, p=list(_LABELS.values()))
    days = rng.integers(18_000, 19_000, ROWS).astype("datetime64[D]")
    data = pa.table(
        {
            "age": pa.array(age.astype(np.int16)),
            "income": pa.array(income, mask=rng.random(ROWS) < 0.1),
            "region": pa.array(region.tolist(), mask=rng.random(ROWS) < 0.1),
            "owner": pa.array((rng.random(ROWS) < age / 100).tolist()),
            "since": pa.array(days),
        }
    )
    declared = {
        "age": {"kind": "integer", "bounds": (18, 90)},
        "income": {"kind": "continuous", "bounds": (0, 10_000)},
        "region": {"kind": "categorical", "categories": tuple(_LABELS)},
        "owner": {"kind": "boolean"},
        "since": {"kind": "datetime", "bounds": ("2019-01-01", "2022-12-31")},
    }
    specs = {name: ColumnSpec.model_validate(spec) for name, spec in declared.items()}
    return read_table(data, infer_schema(data, specs), where="train")


def trial(recipe: Recipe, settings: Mapping[str, Setting] | None = None, *, shown: bool = False) -> Table:
    """Fit a recipe to a made-up table and draw twice from one fit, as games do; the second draw.

    Args:
        settings: those that the recipe names for a trial if None.
        shown: what its program prints goes to standard error.

    Raises:
        DataError: it is not installed, fails, or does not draw what it was asked for.
    """
    train = made_up_table()
    interpreter = RecipeEnvironment.of(recipe).checked().interpreter
    command = recipe.command(interpreter, recipe.info.trial if settings is None else settings)
    told = {"where": f"recipe {recipe.name!r}", "fix": _ABOVE if shown else _NOT_SHOWN}
    program = Program(command, None, PrivateFolder(), "parquet", _LONGEST, shown=shown, **told)
    program.lay_out(as_recipes_see(train))
    model, rng = ProgramModel(train.schema, program, read=rows_of_recipe), np.random.default_rng(0)
    model.sample(10, rng)
    return read_table(model.sample(ROWS, rng), train.schema, where="synthetic")
