"""A synthetic table that was made elsewhere, or by a program that is run here."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from synth_audit import registry
from synth_audit.errors import PlanError
from synth_audit.generators._model_files import read_model, write_model
from synth_audit.generators.external.program import (
    PLACEHOLDERS,
    ColumnGroups,
    Format,
    PrivateFolder,
    Program,
    ProgramModel,
)
from synth_audit.generators.external.recipe import WHERE as RECIPE
from synth_audit.generators.external.recipe import (
    RecipeEnvironment,
    Setting,
    as_recipes_see,
    recipe_named,
    rows_of_recipe,
)
from synth_audit.plugins import source as sources
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.plugins.plugin_config import Location, PluginChoice
from synth_audit.plugins.source import Source
from synth_audit.table.schema import PublicDomain, Schema
from synth_audit.table.table import Table, read_table

_FINISHED = "the table was made elsewhere, and how is not known here"
_BY_PROGRAM = "the table was made by another program, and how is not known here"

_LONGEST = 10_000_000
"""Seconds that a program may be given: some four months."""

_REQUIRED = ("{train}", "{synthetic}", "{rows}")


@dataclass(frozen=True, eq=False)
class ExternalModel:
    """Where the table is, and what columns it must have.

    Attributes:
        schema: the features of train.
        source: where the table is read from.
        base: where relative paths start.
        column_groups: columns that were drawn together, apart from the others, as the plan says.
    """

    schema: Schema = field(repr=False)
    source: Source
    base: Path
    column_groups: ColumnGroups = ()

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Read the whole table, whatever ``n``, since that is what is up for release; see :meth:`read`."""
        return self.read()

    def batches(self, n: int, rng: np.random.Generator, size: int) -> Iterator[Table]:
        """The whole table in its own order, whatever ``n``.

        Raises:
            DataError: see :meth:`read`.
        """
        empty = True
        for batch in sources.batches(self.source, self.base):
            if batch.num_rows:
                rows, empty = pa.Table.from_batches([batch]), False
                yield from read_table(rows, self.schema, where="synthetic").parts(size)
        if empty:
            yield self.read()  # which says so

    def save(self, folder: Path) -> None:
        """Write what columns the table must have, and where its path starts."""
        write_model(folder, (self.schema, str(self.base)))

    def read(self) -> Table:
        """The table as it is there now.

        Raises:
            DataError: it cannot be read, or its columns or kinds differ from train's.
        """
        return read_table(sources.read(self.source, self.base), self.schema, where="synthetic")


@dataclass(frozen=True, kw_only=True)
class External:
    """Audit a table that another program made: a finished one as it is, or one made here by running it.

    A finished table cannot be made again from other rows, so the games that judge a generator do not apply to
    it; to a program they do. In its arguments ``{train}`` becomes a file of training rows without
    identifiers, ``{synthetic}`` the file it must write, ``{rows}`` the rows it must write, ``{seed}`` an
    integer that the same salt and training rows always give, and ``{model}`` a private folder that stays as
    it is while more tables are drawn from one fit, so that only the first run need learn. ``{columns}``
    becomes a JSON file of what the plan declares of the columns. No shell reads the arguments, the program
    starts in the plan's folder, and what it prints is not shown: it may quote rows. The arguments stand in
    the evidence, and while the program runs every user of the machine can list them: keys and passwords
    belong in its environment, which it inherits.

    A recipe is such a program for somebody else's generator, with packages and an interpreter of its own; it
    starts in an empty folder, since libraries write where they are:
    ``synth-audit recipes list`` shows them, ``synth-audit recipes install NAME`` fetches one's packages under
    their own licence. What a recipe says of its privacy is its word: it is told, and no gate passes by it.

    Attributes:
        source: where the finished table is: a path such as ``synthetic.parquet``, or a source with its
            settings such as ``{duckdb: {path: db.duckdb, table: synthetic}}``. Relative paths start at the
            plan's folder, or at the working folder when there is no plan.
        command: instead of ``source``, the program and its arguments.
        recipe: instead of either, the name of a recipe.
        settings: of the recipe, where they are not its defaults.
        format: of the files that the program reads and writes; a recipe has its own.
        timeout: longest run of the program, in seconds.
        column_groups: of a table or program, names of columns that are drawn together, apart from the others:
            attacks try them by themselves, as whoever knows the parts would.

    Raises:
        PlanError: not exactly one of source, command and recipe is given, the source or the recipe is unknown
            or refuses its settings, the command has no place for the rows it gets and gives, or a column is
            in two groups.
    """

    source: str | Mapping[str, Any] | None = None
    command: tuple[str, ...] | None = None
    recipe: str | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    format: Format = "parquet"
    timeout: float = 3600.0
    column_groups: ColumnGroups = ()
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Table made elsewhere",
        summary="Reads a finished synthetic table or runs the program that makes one, to audit and release.",
        cost="instant",
    )
    minimum_people: ClassVar[int] = 1
    """A program is handed the rows as they are."""

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.source, self.command, self.recipe)) != 1:
            raise ValueError(
                "give either source, a finished table, or command, a program that makes one, or recipe"
            )
        if not 0 < self.timeout <= _LONGEST:
            raise ValueError(f"timeout must be a positive number of seconds, at most {_LONGEST:,}")
        named = [name for group in self.column_groups for name in group]
        if len(set(named)) < len(named) or not all(self.column_groups):
            raise ValueError("column_groups must name columns, each in one group")
        if named and self.recipe is not None:
            raise ValueError("a recipe draws all columns together; column_groups are for tables and programs")
        if self.settings and self.recipe is None:
            raise ValueError("settings are those of a recipe")
        if self.recipe is not None:
            recipe_named(self.recipe).settled(self.settings)
        elif self.command is None:
            self._source()
        elif lacking := [p for p in _REQUIRED if not any(p in word for word in self.command[1:])]:
            raise ValueError(f"command has no {lacking[0]}; its arguments may hold {', '.join(PLACEHOLDERS)}")

    @property
    def refits(self) -> bool:
        """False for a finished table, which cannot be made again from other rows."""
        return self.source is None

    @property
    def repeats(self) -> bool:
        """False for a finished table, and for a program or a recipe that is given no seed."""
        if self.recipe is not None:
            return recipe_named(self.recipe).info.repeats
        return any("{seed}" in word for word in self.command or ())

    def finished(self, schema: Schema, base: Path) -> Table | None:
        """The finished table as it is there now; None for a program."""
        return None if self.refits else ExternalModel(schema, self._source(), base).read()

    def fit(self, train: Table, context: FitContext) -> ExternalModel | ProgramModel:
        """Take column names and kinds of ``train``; lay its rows out for the program, if there is one.

        Raises:
            DataError: the recipe is not installed.
            PlanError: a group names a column that train does not release.
        """
        train = train.released_only()
        unknown = [name for group in self.column_groups for name in group if name not in train.names]
        if unknown:
            raise PlanError(
                f"a group names {unknown[0]!r}, which is no column that may be released",
                where="generator.external.column_groups",
                expected=f"among {', '.join(train.names)}",
            )
        if not self.refits:
            context.accountant.void(_FINISHED)
            return ExternalModel(train.schema, self._source(), context.base, self.column_groups)
        context.accountant.void(self._origin(context.public_domain))
        model = self._program(train.schema, context.base, PrivateFolder(context.scratch))
        model.program.lay_out(train if self.recipe is None else as_recipes_see(train))
        return model

    def load(self, folder: Path) -> ExternalModel | ProgramModel:
        """The model that was saved there."""
        schema, base = read_model(folder, tuple)
        if not self.refits:
            return ExternalModel(schema, self._source(), Path(base), self.column_groups)
        own = PrivateFolder()
        shutil.copytree(folder / "program", own.path, dirs_exist_ok=True)
        return self._program(schema, Path(base), own)

    def _program(self, schema: Schema, base: Path, folder: PrivateFolder) -> ProgramModel:
        if self.recipe is None:
            assert self.command is not None
            program = Program(self.command, base, folder, self.format, self.timeout)
            return ProgramModel(schema, program, self.column_groups)
        recipe = recipe_named(self.recipe)
        command = recipe.command(RecipeEnvironment.of(recipe).checked().interpreter, self.settings)
        fix = (
            f"`synth-audit recipes try {recipe.name}` shows what it prints on made-up rows; 3 is the exit "
            "status of an import that failed, 4 of a fit, 5 of a draw"
        )
        program = Program(command, None, folder, "parquet", self.timeout, where=RECIPE, fix=fix)
        return ProgramModel(schema, program, read=rows_of_recipe)

    def _origin(self, domain: PublicDomain) -> str:
        """Why nothing is claimed; what a recipe claims is told as its word."""
        if self.recipe is None:
            return _BY_PROGRAM
        recipe = recipe_named(self.recipe)
        info, version = recipe.info, RecipeEnvironment.of(recipe).version
        claim = recipe.claim(self.settings)
        if claim and domain.unknown:
            claim = f"{claim}, where bounds and labels are declared, and they are not"
        said = f"; claimed by the recipe, checked by nobody: {claim}" if claim else ""
        return (
            f"the table was made by the recipe {recipe.name} ({info.package} {version}, {info.licence}){said}"
        )

    def _source(self) -> Source:
        try:
            choice: PluginChoice = TypeAdapter(Location).validate_python(self.source)
        except ValidationError:
            raise ValueError("source must be a path, or one source with its settings") from None
        where = f"generator.external.source.{choice.name}"
        built: Source = registry.build("source", choice.name, choice.config, where=where)
        return built
