"""What a long fit and a large draw are promised: batches, checkpoints, an end, a record."""

import itertools
import os
import signal
import weakref
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import DataError
from synth_audit.execution import executor
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import Deadline
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.making import fit_plan, real_tables
from synth_audit.plugins.generator import BATCH, GeneratorInfo
from synth_audit.report.chapters import guarantee_section
from synth_audit.store.files import read_parquet, write_parts
from synth_audit.store.salts import known_salt
from synth_audit.table.table import Table

STEPS = 5
LOG = "steps"
"""What every step of a fit is written to, in the plan's folder."""

DEATH = "killed-before"
"""A file there says before which step the process is killed; it is no part of the plan."""


@dataclass(frozen=True)
class Level:
    """Draws numbers of which the first is the level that the fit came to."""

    schema: object
    level: float

    def sample(self, n, rng):
        return Table(self.schema, pa.table({"x": np.append(self.level, rng.random(n - 1))}))


@dataclass(frozen=True)
class Stepwise:
    """Adds a draw in each of five steps, after each of which it could go on."""

    endless: bool = False
    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Stepwise", summary="Fits in steps.")

    def fit(self, train, context):
        context.accountant.void("a toy")
        place = context.checkpoint / "state.npz"
        done, level = 0, 0.0
        if place.exists():
            kept = np.load(place)
            done, level = int(kept["done"]), float(kept["level"])
        draws = context.rng.random(STEPS)
        death = context.base / DEATH
        while done < (2000 if self.endless else STEPS):  # so that even a failing test ends
            context.deadline.check()
            if death.exists() and done == int(death.read_text()):
                os.kill(os.getpid(), signal.SIGKILL)
            level, done = level + float(draws[done % STEPS]), done + 1
            with (context.base / LOG).open("a") as log:
                log.write(f"{done} ")
            part = place.with_name("part.npz")
            np.savez(part, done=done, level=level)
            part.replace(place)
            context.progress("step", done, STEPS)
        return Level(train.schema, level)


@pytest.fixture
def toy(tmp_path, make_case, plug_in):
    """Makes a split case whose generator takes five steps."""
    plug_in("toy", Stepwise)

    def make(folder="case", **settings):
        case = make_case(tmp_path / folder, columns={"x": {"bounds": [0, 10]}}, rules=[], **settings)
        x = np.random.default_rng(0).random(200)
        pq.write_table(pa.table({"x": x}), case.folder / "people.parquet")
        case.replan(**{"generator": "toy", **settings})
        pipeline.split_table(case.plan, case.workspace)
        return case

    return make


def steps(case):
    path = case.folder / LOG
    return path.read_text().split() if path.exists() else []


def made(case):
    pipeline.make_synthetic(case.plan, case.workspace)
    return case.synthetic.column("x").to_pylist()


def killed(case, before):
    """Make the candidate in a process that is killed before this step."""
    (case.folder / DEATH).write_text(str(before))
    child = os.fork()
    if not child:
        try:
            pipeline.make_synthetic(case.plan, case.workspace)
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    (case.folder / DEATH).unlink()


def test_a_fit_that_was_killed_goes_on_where_it_stood(toy):
    case, whole = toy(), toy("undisturbed")
    killed(case, before=3)
    assert steps(case) == ["1", "2", "3"]
    [kept] = case.workspace.checkpoints.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not case.workspace.synthetic.exists()
    assert made(case) == made(whole)
    assert steps(case) == steps(whole) == ["1", "2", "3", "4", "5"]
    assert not case.workspace.checkpoints.exists(), "nothing that was learnt lies about afterwards"


def test_what_another_plan_left_is_not_taken_up(toy):
    case = toy()
    killed(case, before=2)
    assert steps(case) == ["1", "2"]
    case.replan(rows=50)
    pipeline.split_table(case.plan, case.workspace)
    made(case)
    assert steps(case) == ["1", "2", "1", "2", "3", "4", "5"]


def test_out_of_time_ends_the_fit(toy, monkeypatch):
    case = toy(generator={"toy": {"endless": True}})
    looks = itertools.count()
    monkeypatch.setattr(executor, "time", SimpleNamespace(time=lambda: next(looks) / 100))
    with pytest.raises(DataError, match="ran out of time") as caught:
        pipeline.make_synthetic(case.plan, case.workspace, RunContext(deadline=Deadline.within(0.2)))
    assert "execution.deadline" in str(caught.value)
    assert 1 < len(steps(case)) <= 20, "each step looks at the clock, which then shows 10 ms more"
    assert not case.workspace.synthetic.exists()


class Watched:
    """Draws rows that hold their number; counts the draws that somebody still holds whenever it is asked."""

    def __init__(self, schema):
        self.schema, self.sizes, self.drawn, self.held, self.memory = schema, [], [], [], []

    def sample(self, n, rng):
        self.held.append(sum(values() is not None for values in self.drawn))
        self.memory.append(pa.total_allocated_bytes())
        start = sum(self.sizes)
        values = np.arange(start, start + n) / 1e6
        self.sizes.append(n)
        self.drawn.append(weakref.ref(values))
        return Table(self.schema, pa.table({"x": values}))


def test_a_large_draw_holds_one_batch_at_a_time(toy, tmp_path):
    case = toy(rows=250_000)
    train = real_tables(case.plan, case.workspace)[0]
    fitted = fit_plan(case.plan, train, known_salt(case.workspace), checkpoint=tmp_path)
    model = Watched(train.schema)
    write_parts(tmp_path / "big.parquet", replace(fitted, model=model).batches())
    assert model.sizes == [BATCH, BATCH, 50_000]
    assert max(model.held) == 1, "the batch before, until the next one is there"
    assert model.memory[2] - model.memory[1] < 8 * BATCH / 2, "the writer does not collect them either"
    x = read_parquet(tmp_path / "big.parquet", made_by="a test").column("x")
    assert np.array_equal(x.to_numpy(), np.arange(250_000) / 1e6)
    assert (tmp_path / "big.parquet").stat().st_mode & 0o777 == 0o600


def test_the_candidate_is_drawn_by_batches(toy):
    case = toy(rows=BATCH + 7)
    values = made(case)
    assert len(values) == BATCH + 7
    assert values[0] == values[BATCH], "the first of each batch"


SMALL = {"steps": 4, "levels": 2, "hidden": 8, "blocks": 1}
BUDGET = {"epsilon": 1.0, "delta": 1e-5}


@pytest.fixture
def record(fitted):
    """The record of a fit with these settings."""
    return lambda **settings: fitted(**settings).record


@pytest.fixture
def fitted(tmp_path, make_case):
    """A fit with these settings, of one column or of four."""

    def make(n_columns=1, **settings):
        names = "xyzw"[:n_columns]
        columns = {name: {"bounds": [0, 1]} for name in names}
        case = make_case(tmp_path / "case", columns=columns, rules=[], rows=20, **settings)
        x = np.random.default_rng(0).random((n_columns, 120))
        pq.write_table(pa.table(dict(zip(names, x, strict=True))), case.folder / "people.parquet")
        pipeline.split_table(case.plan, case.workspace)
        train = real_tables(case.plan, case.workspace)[0]
        return fit_plan(case.plan, train, known_salt(case.workspace))

    return make


@pytest.mark.parametrize(
    "generator", [{"tvae": {"epochs": 3, "hidden": 8, "latent": 2}}, {"table_diffusion": SMALL}]
)
def test_a_fit_without_protection_shows_its_loss(record, generator):
    [curve] = record(generator=generator).training
    assert curve.id.quantity == "loss"
    assert len(curve.lines["train"]) == len(curve.x) == curve.x[-1] > 1


def test_a_private_fit_shows_what_it_spent_and_no_loss(record):
    found = record(generator={"table_diffusion": {**SMALL, "margins": 0}}, privacy=BUDGET)
    [curve] = found.training
    assert curve.id.quantity == "epsilon"
    assert curve.x == (0, 1, 2, 3, 4)
    assert curve.lines["spent at most"][-1] == found.privacy.guarantee.epsilon


def test_a_generator_without_steps_has_no_curve(record):
    assert record(generator="independent").training == ()


def test_pictures_of_draws_and_what_is_drawn_together_are_in_the_record(fitted, tmp_path):
    validation = {"validator": "gradient_boosting", "tuned": False}
    settings = {"generators": ["independent"], "join": "validated", "validation": validation}
    made = fitted(4, generator={"disjoint": settings})
    before = {s.id.quantity for s in made.record.training}
    assert made.table(tmp_path).n_rows == 20
    shown = {s.id.quantity for s in made.record.training}
    assert shown - before == {"admitted", "thresholds"}
    assert sorted(n for group in made.record.column_groups for n in group) == ["w", "x", "y", "z"]
    assert [len(group) for group in made.record.column_groups] == [2, 2]
    page = guarantee_section(made.record.privacy, (), made.record.training)
    assert len(page["curves"]) == 5
    assert len(page["curves"][0].panels) == 1, "the relations are drawn as a matrix"
