import gc
import pickle
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.errors import DataError, PlanError
from synth_audit.examination.audit_runner import run_audits
from synth_audit.execution.context import RunContext
from synth_audit.generators.external import External
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.generator import FitContext, batches, column_groups
from synth_audit.registry import build, config_of
from synth_audit.sources.duckdb import DuckDB
from synth_audit.sources.parquet import Parquet

from .conftest import make_table

TRAIN = make_table({"id": [1, 2, 3], "a": [1.0, 2.5, None]}, id={"role": "identifier"})
MADE = pa.table({"a": [0.5, 0.25, None, 4.0]})


def sample(generator, n=2, train=TRAIN, base=None):
    rng = np.random.default_rng(0)
    return generator.fit(train, FitContext(rng=rng, base=base or Path.cwd())).sample(n, rng)


def test_the_whole_table_is_read_whatever_n(tmp_path):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    got = sample(External(source="made.parquet"), base=tmp_path)
    assert got.data.equals(MADE)
    assert got.names == ("a",)


def test_a_source_with_settings(tmp_path):
    DuckDB(path="db.duckdb", table="made").write(MADE, tmp_path)
    generator = External(source={"duckdb": {"path": "db.duckdb", "table": "made"}})
    assert sample(generator, base=tmp_path).n_rows == 4


def test_relative_paths_start_at_the_working_folder_without_a_plan(tmp_path, monkeypatch):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert sample(External(source="made.parquet")).n_rows == 4


def test_relative_paths_start_at_the_plan(tmp_path):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    plan = parse_plan({"generator": {"external": {"source": "made.parquet"}}}).located(tmp_path)
    generator = plan.build_generator()
    assert sample(generator, base=plan.base).n_rows == 4
    assert sample(pickle.loads(pickle.dumps(generator)), base=plan.base).n_rows == 4  # noqa: S301
    assert config_of(generator)["source"] == "made.parquet"
    assert not generator.refits


def test_train_rows_are_not_looked_at(tmp_path):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    other = make_table({"id": [9], "a": [-7.0]}, id={"role": "identifier"})
    generator = External(source="made.parquet")
    assert sample(generator, train=other, base=tmp_path).data.equals(sample(generator, base=tmp_path).data)


def test_a_table_of_other_columns_is_refused(tmp_path):
    Parquet(path="made.parquet").write(pa.table({"b": [1.0]}), tmp_path)
    with pytest.raises(DataError, match="columns of synthetic differ"):
        sample(External(source="made.parquet"), base=tmp_path)


def test_a_missing_file_shows_when_it_is_read(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        sample(External(source="none.parquet"), base=tmp_path)


@pytest.mark.parametrize("source", ["made.unknown", {"duckdb": {"path": "x"}}, {"nowhere": {}}, {}])
def test_a_source_that_cannot_be_built_is_refused_in_the_plan(source):
    with pytest.raises(PlanError):
        build("generator", "external", {"source": source})


def test_which_columns_were_drawn_together_is_the_plans_word(tmp_path):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    train, handed = make_table({"a": [1.0, 2.5], "b": [1, 2]}), FitContext(rng=np.random.default_rng(0))
    apart = External(source="made.parquet", column_groups=(("a",), ("b",)))
    model = apart.fit(train, handed)
    assert column_groups(model) == (("a",), ("b",))
    model.save(tmp_path)
    assert column_groups(apart.load(tmp_path)) == (("a",), ("b",))
    assert column_groups(External(source="made.parquet").fit(train, handed)) == ()
    with pytest.raises(PlanError, match="names 'c'"):
        External(source="made.parquet", column_groups=(("a", "c"),)).fit(train, handed)


def test_there_is_no_formal_claim(tmp_path):
    context = FitContext(rng=np.random.default_rng(0))
    External(source="made.parquet").fit(TRAIN, context)
    assert context.accountant.guarantee() is None
    assert "made elsewhere" in context.accountant.why_none


def test_a_finished_table_comes_by_batches_in_its_own_order(tmp_path):
    Parquet(path="made.parquet").write(MADE, tmp_path)
    rng = np.random.default_rng(0)
    model = External(source="made.parquet").fit(TRAIN, FitContext(rng=rng, base=tmp_path))
    parts = list(batches(model, 100, rng, size=3))
    assert [part.n_rows for part in parts] == [3, 1]
    assert pa.concat_tables([part.data for part in parts]).equals(MADE)


PROGRAM = """
import sys, time
way, train, made, rows, seed, model = sys.argv[1:]
rows = int(rows)
print("canary")
if way == "fails":
    sys.exit(7)
if way == "hangs":
    time.sleep(60)
if way == "leaves a child":
    import subprocess
    child = subprocess.Popen(["sleep", "60"])
    open("child", "w").write(str(child.pid))
if way == "kills itself":
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
if train.endswith(".csv"):
    import csv
    (*names,), (first,), *_ = csv.reader(open(train))
else:
    import pyarrow as pa, pyarrow.parquet as pq
    known = pq.read_table(train)
    names, first = known.column_names, known["a"][0].as_py()
assert names == ["a"], names
fits = open(model + "/fits", "a+")
fits.seek(0)
number = float(len(fits.read()))
fits.write("x")
fits.close()
if way == "writes nothing":
    sys.exit()
if way == "writes nonsense":
    open(made, "w").write("canary")
    sys.exit()
name = "b" if way == "names another column" else "a"
rows += {"writes fewer": -1, "writes more": 1}.get(way, 0)
values = [float(seed), number, float(first)]
if made.endswith(".csv"):
    values += [0.5] * rows
    open(made, "w").write("\\n".join([name, *map(str, values[:rows])]))
else:
    values += [None] * rows
    pq.write_table(pa.table({name: values[:rows]}), made)
"""
MARKS = ("{train}", "{synthetic}", "{rows}", "{seed}", "{model}")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes a generator that runs a small program; its temporary folders are under ``tmp``.

    A table of text takes the program a fraction of the time that loading a library to read another takes.
    """
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))

    def make(way="works", form="csv", **settings):
        command = (sys.executable, "program.py", way, *MARKS)
        return External(command=command, format=form, **settings)

    monkeypatch.chdir(tmp_path)
    return make


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_program_sees_the_features_and_is_asked_for_rows(program, form):
    rng = np.random.default_rng(3)
    context = FitContext(rng=rng)
    model = program(form=form).fit(TRAIN, context)
    assert "made by another program" in context.accountant.why_none
    first, second = model.sample(3, rng), model.sample(2, rng)
    assert (first.n_rows, second.n_rows) == (3, 2)
    seeds = [int(t.labels("a")[0]) for t in (first, second)]
    assert seeds[0] != seeds[1]
    assert [t.labels("a")[1] for t in (first, second)] == ["0", "1"], "the model's folder stays"
    assert first.labels("a")[2] == "1", "the first training row"


def test_the_same_generator_state_gives_the_program_the_same_seed(program):
    assert sample(program(), 5).data.equals(sample(program(), 5).data)


def test_a_program_can_be_run_again_and_a_finished_table_cannot(program):
    assert program().refits
    assert config_of(program())["command"][-1] == "{model}"


def test_games_are_for_what_can_be_run_again(program):
    table = make_table({"a": [1.0, 2.5, 4.0] * 20}, a={"role": "sensitive"})
    audits = {"attribute_game": build("audit", "attribute_game", {})}

    def reason(generator):
        subject = Subject(table, None, table, generator)
        [outcome], _ = run_audits(audits, subject, RunContext(seed=0))
        return outcome.reason

    again = "a generator that can be run again"
    assert again in reason(External(source="made.parquet"))
    assert again not in reason(program())


def test_a_program_runs_once_for_all_batches_and_is_saved_with_what_it_learnt(program, tmp_path):
    rng = np.random.default_rng(0)
    generator = program()
    model = generator.fit(TRAIN, FitContext(rng=rng))
    parts = list(batches(model, 5, rng, size=2))
    assert [part.n_rows for part in parts] == [2, 2, 1]
    assert [part.labels("a")[0] for part in parts][1] == "1", "the third row of the one run"
    (tmp_path / "kept").mkdir()
    model.save(tmp_path / "kept")
    again = generator.load(tmp_path / "kept")
    assert again.sample(3, rng).labels("a")[1] == "1", "it ran once before"
    assert model.sample(3, rng).labels("a")[1] == "1", "each has a folder of its own"


def test_its_private_folder_is_where_the_context_says(program, tmp_path):
    context = FitContext(rng=np.random.default_rng(0), scratch=tmp_path)
    model = program().fit(TRAIN, context)
    assert model.program.folder.path.parent == tmp_path
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_folder_is_private_and_goes_with_the_model(program, tmp_path):
    model = program(form="parquet").fit(TRAIN, FitContext(rng=np.random.default_rng(0)))
    [folder] = (tmp_path / "tmp").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    model.sample(3, np.random.default_rng(0))
    assert sorted(p.name for p in folder.iterdir()) == ["columns.json", "model", "train.parquet"]
    assert (folder / "train.parquet").stat().st_mode & 0o777 == 0o600
    del model
    gc.collect()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("fails", "exit status 7"),
        ("kills itself", "exit status -9"),
        ("writes nothing", "wrote no table"),
        ("writes nonsense", "cannot be read"),
        ("names another column", "columns of synthetic differ"),
        ("writes fewer", "wrote 3 rows instead of 4"),
        ("writes more", "wrote 5 rows instead of 4"),
    ],
)
def test_what_a_program_does_wrong_is_named_without_what_it_said(program, way, message, capfd):
    with pytest.raises(DataError, match=message) as caught:
        sample(program(way), 4)
    assert "canary" not in str(caught.value)
    assert "canary" not in "".join(capfd.readouterr())


def test_a_program_that_hangs_is_ended(program):
    start = time.monotonic()
    with pytest.raises(DataError, match="had not ended after 1 s"):
        sample(program("hangs", timeout=1))
    assert time.monotonic() - start < 30


def test_what_a_program_leaves_running_ends_with_it(program, tmp_path):
    sample(program("leaves a child"), 3)
    child = int((tmp_path / "child").read_text())
    for _ in range(600):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("the child still runs")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_when_we_are_killed_the_program_ends(tmp_path):
    log = tmp_path / "pid"
    naps = f"import os, time; open({str(log)!r}, 'w').write(str(os.getpid()) + ' '); time.sleep(600)"
    words = [sys.executable, "-c", naps]
    code = (
        f"from pathlib import Path; from synth_audit.generators.external.program import _run; "
        f"_run({words!r}, Path({str(tmp_path)!r}), 600, shown=False, where='')"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 60
    while time.monotonic() < until and not (log.exists() and log.read_text().endswith(" ")):
        time.sleep(0.05)
    child = Path(f"/proc/{log.read_text().strip()}/stat")
    assert child.exists()
    parent.kill()
    parent.wait(30)
    for _ in range(600):
        if not child.exists() or child.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("the program still runs")


def test_a_program_that_does_not_exist(tmp_path):
    with pytest.raises(DataError, match="cannot be started"):
        sample(External(command=("no-such-program", *MARKS)))


def test_an_old_table_is_not_taken_for_a_new_one(program, tmp_path):
    rng = np.random.default_rng(0)
    generator = program("works")
    model = generator.fit(TRAIN, FitContext(rng=rng))
    model.sample(3, rng)
    (tmp_path / "program.py").write_text("")
    with pytest.raises(DataError, match="wrote no table"):
        model.sample(3, rng)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "give either source"),
        ({"source": "made.parquet", "command": ["x", *MARKS]}, "give either source"),
        ({"command": ["x", "{synthetic}", "{rows}"]}, "no {train}"),
        ({"command": ["x", "{train}", "{rows}"]}, "no {synthetic}"),
        ({"command": ["{rows}", "{train}", "{synthetic}"]}, "no {rows}"),
        ({"command": []}, "no {train}"),
        ({"command": ["x", *MARKS], "timeout": 0}, "timeout must be"),
        ({"source": "made.parquet", "column_groups": [["a", "b"], ["b"]]}, "each in one group"),
        ({"source": "made.parquet", "column_groups": [[]]}, "each in one group"),
        ({"recipe": "dpmm", "column_groups": [["a"]]}, "a recipe draws all columns together"),
    ],
)
def test_settings_that_make_no_sense(config, message):
    with pytest.raises(PlanError, match=re.escape(message)):
        build("generator", "external", config)
