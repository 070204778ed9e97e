"""What a recipe learned, and a recipe tried on a made-up table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Floats, Labels
from synth_audit.errors import DataError
from synth_audit.execution.seeds import as_int_seed
from synth_audit.generators.external.program import PrivateFolder, Program
from synth_audit.generators.external.recipe import Recipe, RecipeEnvironment, Setting
from synth_audit.table.schema import Column, Schema, quantitative, schema_to_plain
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, assemble, read_table

FILE = "model.json"
WHERE = "generator.external.recipe"

ROWS = 300

_LONGEST = 600.0

_ABOVE, _NOT_SHOWN = "see above for what it printed", "have it shown what it prints"

_LABELS = {"north": 0.5, "south": 0.3, "élan": 0.2}


@dataclass(frozen=True, eq=False)
class RecipeModel:
    """Training rows in a private folder, and the recipe's program that draws from what it learnt.

    Attributes:
        schema: the features of train.
        program: what is run; the folder goes when the model does.
    """

    schema: Schema = field(repr=False)
    program: Program

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Run the recipe for ``n`` rows with a seed drawn from ``rng``.

        Raises:
            DataError: it fails, takes too long, or gives other columns, another number of rows, or values
                that do not fit their columns.
        """
        made = self.program.run(n, as_int_seed(rng))
        if set(made.column_names) != set(self.schema.names) or made.num_rows != n:
            raise DataError(
                "the recipe drew other columns, or another number of rows, than it was asked for",
                where=WHERE,
                expected="the columns of train, and as many rows as were asked for",
                fix="correct the recipe",
            )
        numeric = {column.name for column in quantitative(self.schema)}
        try:
            read = {name: _plain(made.column(name), name in numeric) for name in self.schema.names}
            for name in numeric:
                _check_held(self.schema[name], np.asarray(read[name], dtype=np.float64))
            return assemble(self.schema, read)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise DataError(
                f"the recipe drew values that do not fit their columns ({type(error).__name__})",
                where=WHERE,
                expected="finite numbers that the column's type holds, and else text as train's labels",
                fix="correct the recipe",
            ) from None

    def batches(self, n: int, rng: np.random.Generator, size: int) -> Iterator[Table]:
        """The rows of one run of the recipe."""
        return self.sample(n, rng).parts(size)

    def save(self, folder: Path) -> None:
        """Write the schema, and the private folder with its training rows and what the recipe learnt."""
        plain = {"schema": schema_to_plain(self.schema)}
        (folder / FILE).write_text(json.dumps(plain), encoding="utf-8")
        self.program.copy_to(folder / "program")


def as_recipes_see(train: Table) -> Table:
    """The same rows with numbers as float64 and all else as text."""
    numeric = {column.name for column in quantitative(train.schema)}
    columns = {
        name: train.schema[name].kind.numbers(train.column(name)) if name in numeric else train.texts(name)
        for name in train.names
    }
    return Table(train.schema, pa.table(columns))


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
    model, rng = RecipeModel(train.schema, program), np.random.default_rng(0)
    model.sample(10, rng)
    return read_table(model.sample(ROWS, rng), train.schema, where="synthetic")
