import importlib
import json
import re
import sys
import types
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import EntryPoint, requires
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import api, registry
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.errors import DataError, PlanError, PluginError
from synth_audit.generators.external import External
from synth_audit.generators.external import recipe as recipe_environment
from synth_audit.generators.external.program import PLACEHOLDERS, ProgramModel
from synth_audit.generators.external.recipe import (
    HOME,
    ROWS,
    RecipeEnvironment,
    _read,
    made_up_table,
    python_for,
    recipe_named,
    recipes,
    rows_of_recipe,
    trial,
)
from synth_audit.plugins.generator import FitContext, refits, repeats
from synth_audit.registry import build, config_of
from synth_audit.table.schema import PublicDomain
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

from .conftest import make_table

BUILT_IN = tuple(recipes())
OPEN = {"Apache-2.0", "MIT", "BSD-3-Clause"}

HEADER = """# /// script
# requires-python = ">=3.11"
# dependencies = ["pandas", "pyarrow"]
#
# [tool.synth-audit]
# title = "Copies"
# package = "pandas"
# licence = "MIT"
# claims = "ε = {epsilon:g}"
#
# [tool.synth-audit.settings]
# epsilon = 2.0
# way = "works"
# ///
"""
BODY = '''
"""Hands out the first rows again and again."""
import json
import os
import numpy as np
import pandas as pd

def fit(train, columns, folder, seed, settings):
    if settings["way"] == "writes where it is":
        train.to_csv("train.csv")
        open(folder / "place", "w").write(os.getcwd())
    if settings["way"] == "does not fit":
        train.to_csv("train.csv")
        raise RuntimeError("canary")
    train.to_pickle(folder / "train.pickle")
    types = {n: str(t) for n, t in train.dtypes.items()}
    seen = {"columns": columns, "types": types, "seed": seed, "way": settings["way"]}
    (folder / "seen.json").write_text(json.dumps(seen))
    with open(folder / "fits", "a") as fits:
        fits.write("x")

def sample(folder, rows, seed, settings):
    if settings["way"] == "leaves":
        raise SystemExit(0)
    train = pd.read_pickle(folder / "train.pickle")
    rng = np.random.default_rng(seed)
    drawn = train.iloc[rng.integers(len(train), size=rows - (settings["way"] == "too few"))]
    if settings["way"] == "nonsense":
        drawn = drawn.assign(owner="canary")
    return drawn.reset_index(drop=True)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that belongs to the recipes; what it holds is installed once it is looked at."""
    package = importlib.import_module("synth_audit.generators.external.recipes")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.setenv(HOME, str(tmp_path / "environments"))
    for cached in (registry._built_in, _read):
        cached.cache_clear()
    yield tmp_path
    for cached in (registry._built_in, _read):
        cached.cache_clear()


def stand_in(name: str) -> RecipeEnvironment:
    """An environment that is this one."""
    place = RecipeEnvironment.of(recipe_named(name))
    place.interpreter.parent.mkdir(parents=True)
    place.interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    place.interpreter.chmod(0o755)
    (place.folder / "installed.json").write_text('{"version": "9.9"}')
    return place


@pytest.fixture
def copies(folder):
    """A recipe in one new file, installed."""
    (folder / "copies.py").write_text(HEADER + BODY, encoding="utf-8")
    stand_in("copies")
    return folder


def context(table=None, budget=None):
    known = PublicDomain() if table is None else PublicDomain.of(table.schema)
    accountant = Accountant(budget, unit=Unit.ROW)
    return FitContext(rng=np.random.default_rng(0), public_domain=known, accountant=accountant)


def test_a_new_file_is_a_recipe(copies):
    """It learns once, and its settings are handed over as they are written."""
    train, rng = made_up_table(), np.random.default_rng(0)
    way = "".join(f'"{mark} {{' for mark in PLACEHOLDERS)
    generator = build("generator", "external", {"recipe": "copies", "settings": {"way": way}})
    model = generator.fit(train, context(train))
    one, two = model.sample(40, rng), model.sample(50, rng)
    assert one.data.schema.types == train.data.schema.types
    assert (one.n_rows, two.n_rows) == (40, 50)
    real = set(map(str, train.data.to_pylist()))
    assert {str(row) for row in two.data.to_pylist()} <= real, (
        "dates, gaps and small integers come back exactly"
    )
    inside = model.program.folder.path / "model"
    assert (inside / "fits").read_text() == "x", "it learns once"
    seen = json.loads((inside / "seen.json").read_text())
    assert seen["way"] == way, "no seed gets in by way of a setting"
    assert seen["types"]["age"] == "int64"
    assert seen["columns"]["age"] == {"numeric": True, "nullable": True, "bounds": [18.0, 90.0]}
    assert seen["columns"]["owner"]["labels"] == ["false", "true"]


@pytest.mark.parametrize(("way", "fails"), [("writes where it is", False), ("does not fit", True)])
def test_what_a_recipe_writes_where_it_starts_is_not_left_with_the_plan(copies, way, fails, tmp_path, capfd):
    plan = tmp_path / "plan"
    plan.mkdir()
    train = made_up_table()
    handed = replace(context(train), base=plan, scratch=tmp_path)
    model = External(recipe="copies", settings={"way": way}).fit(train, handed)
    with pytest.raises(DataError, match="exit status 4") if fails else nullcontext() as caught:
        model.sample(5, np.random.default_rng(0))
    assert not [*plan.iterdir()]
    assert not [*tmp_path.rglob("train.csv")]
    if fails:
        assert "canary" not in f"{caught.value}{capfd.readouterr()}"
        assert "synth-audit recipes try copies" in caught.value.fix
    else:
        started = Path((model.program.folder.path / "model/place").read_text())
        assert started.parent == model.program.folder.path, "it started where nobody else looks"


def test_what_a_plan_does_not_declare_is_not_told(copies):
    train = make_table({"a": [1.5, 2.5, 3.5], "b": ["x", "y", "x"]})
    model = External(recipe="copies").fit(train, context())
    described = json.loads((model.program.folder.path / "columns.json").read_text())
    assert described == {"a": {"numeric": True, "nullable": True}, "b": {"numeric": False, "nullable": True}}


def test_a_saved_recipe_draws_the_same_rows(copies, tmp_path):
    train = made_up_table()
    generator = External(recipe="copies")
    model = generator.fit(train, context(train))
    first = model.sample(20, np.random.default_rng(1))
    (tmp_path / "kept").mkdir()
    model.save(tmp_path / "kept")
    again = [*generator.load(tmp_path / "kept").batches(20, np.random.default_rng(1), 7)]
    assert [part.n_rows for part in again] == [7, 7, 6]
    assert pa.concat_tables([part.data for part in again]).equals(first.data)


def test_what_a_recipe_claims_is_its_word_and_buys_nothing(copies):
    train = made_up_table()
    with_budget = context(train, Budget(3.0, 1e-5))
    External(recipe="copies").fit(train, with_budget)
    assert with_budget.accountant.guarantee() is None
    assert not with_budget.accountant.mechanisms
    why = with_budget.accountant.why_none
    assert (
        "made by the recipe copies (pandas 9.9, MIT); claimed by the recipe, checked by nobody: ε = 2" in why
    )
    unknown = context(make_table({"a": [1.0, 2.5, 3.0]}))
    External(recipe="copies").fit(train, unknown)
    assert "where bounds and labels are declared, and they are not" in unknown.accountant.why_none


def test_a_recipe_without_a_seed_never_repeats(folder):
    unseeded = HEADER.replace("# claims", "# repeats = false\n# claims")
    (folder / "noisy.py").write_text(unseeded + BODY, encoding="utf-8")
    (folder / "copies.py").write_text(HEADER + BODY, encoding="utf-8")
    stand_in("noisy")
    assert not repeats(External(recipe="noisy"))
    assert repeats(External(recipe="copies"))
    assert refits(External(recipe="noisy"))
    train = made_up_table()
    model = External(recipe="noisy").fit(train, context(train))
    model.sample(2, np.random.default_rng(0))
    assert json.loads((model.program.folder.path / "model/seen.json").read_text())["seed"] is None


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("leaves", "exit status 5"),
        ("too few", "another number of rows"),
        ("nonsense", "do not fit their columns"),
    ],
)
def test_what_a_recipe_does_wrong_is_named_without_what_it_said(copies, way, message, capfd):
    train = made_up_table()
    model = External(recipe="copies", settings={"way": way}).fit(train, context(train))
    with pytest.raises(DataError, match=message) as caught:
        model.sample(20, np.random.default_rng(0))
    assert "canary" not in str(caught.value)
    assert caught.value.where == "generator.external.recipe"
    assert "status" not in message or "synth-audit recipes try copies" in caught.value.fix
    assert "canary" not in "".join(capfd.readouterr())


def test_a_recipe_that_draws_another_column_is_refused():
    train = make_table({"age": [1.5, 2.5]})
    program = types.SimpleNamespace(run=lambda n, seed: pa.table({"canary": [1.5, 2.5]}))
    with pytest.raises(DataError, match="drew other columns") as caught:
        ProgramModel(train.schema, program, read=rows_of_recipe).sample(2, np.random.default_rng(0))
    assert "canary" not in str(caught.value)
    assert caught.value.where == "generator.external.recipe"


@pytest.mark.parametrize(
    ("kind", "drawn"),
    [
        (pa.uint8(), -1.0),
        (pa.int8(), 127.6),
        (pa.int64(), 2.0**63),
        (pa.int64(), np.inf),
        (pa.float32(), 1e39),
        (pa.float64(), -np.inf),
        (pa.timestamp("ns"), 1e16),
        (pa.date32(), 1e19),
    ],
)
def test_a_number_that_a_column_cannot_hold_is_not_made_another(kind, drawn):
    whole = pa.array([0, 1000, 2000, 3000], pa.int32() if kind == pa.date32() else pa.int64())
    if pa.types.is_integer(kind):
        whole = pa.array([1, 2, 3, 5])
    data = pa.table({"x": whole.cast(kind)})
    model = drawing(read_table(data, infer_schema(data), where="train"), [1.0, drawn, 3.0, None])
    with pytest.raises(DataError, match="do not fit their columns"):
        model.sample(4, np.random.default_rng(0))


def test_what_a_plan_cuts_off_needs_not_fit():
    data = pa.table({"age": pa.array([21, 33, 47, 50], pa.int8())})
    bounds = {"age": ColumnSpec(kind="integer", bounds=(18, 90))}
    train = read_table(data, infer_schema(data, bounds), where="train")
    drawn = drawing(train, [-5.0, 1e6, 33.0, None]).sample(4, np.random.default_rng(0))
    assert drawn.data.column("age").to_pylist() == [18, 90, 33, None]


def drawing(train, numbers):
    """A model whose recipe draws these numbers for the one column."""
    drawn = pa.table({train.names[0]: pa.array(numbers, pa.float64())})
    program = types.SimpleNamespace(run=lambda n, seed: drawn)
    return ProgramModel(train.schema, program, read=rows_of_recipe)


def test_a_trial_shows_what_a_recipe_prints(copies, capfd):
    assert trial(recipe_named("copies")).n_rows == ROWS
    with pytest.raises(DataError, match="exit status 4") as caught:
        api.try_recipe("copies", {"way": "does not fit"}, shown=True)
    assert "RuntimeError: canary" in capfd.readouterr().err
    assert caught.value.fix == "see above for what it printed"
    with pytest.raises(PlanError, match="no setting 'wya'"):
        api.try_recipe("copies", {"wya": "works"})


def test_a_recipe_of_another_package_joins_by_entry_point(folder, monkeypatch):
    (folder / "theirs_recipe.py").write_text(HEADER + BODY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    point = EntryPoint("theirs", "theirs_recipe", "synth_audit.recipes")
    monkeypatch.setattr(registry, "_entry_points", lambda room: (point,) if room == "recipe" else ())
    assert recipe_named("theirs").info.title == "Copies"
    assert "theirs_recipe" not in sys.modules, "its packages are not here"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"recipe": "none"}, "unknown recipe 'none'"),
        ({"recipe": "dpmm", "source": "made.parquet"}, "give either source"),
        ({"source": "made.parquet", "settings": {"epsilon": 1}}, "settings are those of a recipe"),
        ({"recipe": "dpmm", "settings": {"epsilom": 1}}, "no setting 'epsilom'"),
        ({"recipe": "dpmm", "settings": {"epsilon": "1"}}, "must be like 1.0"),
        ({"recipe": "dpmm", "settings": {"bins": True}}, "must be like 20"),
    ],
)
def test_settings_that_make_no_sense(config, message):
    with pytest.raises(PlanError, match=re.escape(message)):
        build("generator", "external", config)


def test_who_names_an_unknown_recipe_is_told_where_they_are_listed():
    with pytest.raises(PlanError, match="one of dpmm") as caught:
        recipe_named("../dpmm")
    assert "synth-audit recipes list" in caught.value.fix


def test_a_plan_with_a_recipe_is_read_where_it_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setenv(HOME, str(tmp_path))
    generator = build("generator", "external", {"recipe": "dpmm", "settings": {"epsilon": 3}})
    assert config_of(generator)["settings"] == {"epsilon": 3}
    with pytest.raises(DataError, match="'dpmm' is not installed") as caught:
        generator.fit(made_up_table(), context())
    assert "synth-audit recipes install dpmm" in caught.value.fix


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BODY, "no `# /// script`"),
        (HEADER.replace("licence", "license") + BODY, "licence"),
        (HEADER.replace("{epsilon:g}", "{epsilom:g}") + BODY, "cannot be read (KeyError)"),
        (HEADER.replace("{epsilon:g}", "{epsilon.x}") + BODY, "cannot be read (AttributeError)"),
        (HEADER.replace("{epsilon:g}", "{epsilon[0]}") + BODY, "cannot be read (TypeError)"),
        (HEADER + BODY + "\udcff", "cannot be read (UnicodeDecodeError)"),
        (HEADER.replace('"MIT"', "MIT") + BODY, "cannot be read (TOMLDecodeError)"),
    ],
)
def test_a_faulty_recipe_is_named(folder, text, message):
    (folder / "faulty.py").write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(PluginError, match=re.escape(message)) as caught:
        recipe_named("faulty")
    assert "recipes.faulty" in caught.value.where


def test_an_interpreter_that_fits_is_taken(monkeypatch, tmp_path):
    versions = {sys.executable: "3.11.7", "/usr/bin/python3.10": "3.10.2", "/usr/bin/python3.12": "3.12.0"}
    monkeypatch.setattr(recipe_environment, "_version", lambda python: versions.get(str(python), ""))
    monkeypatch.setattr(
        recipe_environment.shutil,
        "which",
        lambda name: f"/usr/bin/{name}" if f"/usr/bin/{name}" in versions else None,
    )
    recipe = recipe_named("dpmm")
    assert python_for(recipe) == Path(sys.executable)
    versions[sys.executable] = "3.13.1"
    assert python_for(recipe) == Path("/usr/bin/python3.10")
    with pytest.raises(PlanError, match="needs another Python"):
        python_for(recipe, Path(sys.executable))


def test_an_interrupted_installation_is_none(folder, monkeypatch):
    (folder / "copies.py").write_text(HEADER + BODY, encoding="utf-8")
    place = RecipeEnvironment.of(recipe_named("copies"))
    said = []

    def run(words, **settings):
        said.append(words)
        if "venv" in words:
            place.interpreter.parent.mkdir(parents=True)
        status = 1 if len(said) == 2 else 0
        return types.SimpleNamespace(returncode=status, stdout="3.0.1\n")

    monkeypatch.setattr(recipe_environment.subprocess, "run", run)
    monkeypatch.setattr(recipe_environment, "_version", lambda python: "3.11.7")
    with pytest.raises(DataError, match="do not install"):
        place.install()
    assert not place.installed
    assert api.install_recipe("copies").version == "3.0.1"
    assert said[-3][-2:] == ["pandas", "pyarrow"]
    ran = [words for words in said if "uv" not in Path(words[0]).name]
    assert all(words[1] == "-I" for words in ran), "packages of whoever calls it are not taken for its own"
    assert RecipeEnvironment.of(recipe_named("copies")).installed


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_recipe_says_whose_it_is_under_which_licence(name):
    recipe = recipe_named(name)
    assert recipe.info.licence in OPEN or recipe.info.terms
    assert recipe.info.package in " ".join(recipe.dependencies)
    assert all("==" in d or ">=" in d for d in recipe.dependencies), "an environment can be made again"
    assert not (recipe.info.claims and recipe.info.repeats), "noise must not follow from a seed"
    assert recipe.info.package not in {re.split(r"[^\w-]", r)[0] for r in requires("synth-audit") or ()}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_recipe_installs_and_draws_in_the_types_of_train(name):
    place = RecipeEnvironment.of(recipe_named(name))
    if not place.installed:
        try:
            place.install()
        except (DataError, PlanError) as error:
            pytest.skip(f"not to be had here: {error.what}")
    made = trial(place.recipe, shown=True)
    train = made_up_table()
    assert made.data.schema.types == train.data.schema.types
    assert made.n_rows == ROWS
    assert set(made.labels("region")) <= {*train.labels("region")}
    assert abs(np.nanmean(made.numbers("age")) - train.numbers("age").mean()) < 15
