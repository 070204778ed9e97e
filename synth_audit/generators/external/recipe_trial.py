"""A recipe tried on a made-up table, so that what it prints may be shown."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from synth_audit.core.column_spec import ColumnSpec
from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.table import Table, read_table
from synth_audit.generators.external.program import PrivateFolder, Program
from synth_audit.generators.external.recipe import Recipe, Setting
from synth_audit.generators.external.recipe_environment import RecipeEnvironment
from synth_audit.generators.external.recipe_model import RecipeModel, as_recipes_see

ROWS = 300
_LONGEST = 600.0
_ABOVE, _NOT_SHOWN = "see above for what it printed", "have it shown what it prints"
_LABELS = {"north": 0.5, "south": 0.3, "élan": 0.2}


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
