"""What a long fit and a large draw are promised: batches, a checkpoint, an end in time."""

from __future__ import annotations

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
