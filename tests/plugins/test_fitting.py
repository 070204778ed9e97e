"""Fits that games share: what tells two of them apart, and generators that misbehave."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.dp.accountant import NO_BUDGET, FitTerms
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.errors import DataError, NotApplicable, OutOfTime, PlanError, PluginError
from synth_audit.execution.context import Cache, RunContext
from synth_audit.execution.executor import Deadline
from synth_audit.plugins import generator as generator_needs
from synth_audit.plugins.fitting import FitRecipe, draw, fit, fit_context, fit_shared
from synth_audit.plugins.generator import FitContext, GeneratorInfo, Needs, batches, needs_of
from synth_audit.table.schema_inference import ColumnSpec
from synth_audit.table.table import Table, read_table

FITS: list[int] = []


@dataclass(frozen=True)
class Ladder:
    """Counts its fits; a model is the number of rows it saw, and the level it keeps."""

    truncation: int | None = None
    weight: float = 1.0
    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Ladder", summary="Counts its fits.")

    def untruncated(self):
        return replace(self, truncation=None)

    def fit(self, train, context):
        FITS.append(train.n_rows)
        return Rung(train.n_rows)

    def load(self, folder):
        return Rung(int((folder / "n").read_text()))


@dataclass(frozen=True)
class Rung:
    n: int
    level: int | None = None

    def truncated(self, level):
        return replace(self, level=level)

    def save(self, folder):
        (folder / "n").write_text(str(self.n))


@pytest.fixture(autouse=True)
def no_fits():
    FITS.clear()


def table(n=5, **roles):
    data = pa.table({"a": np.arange(n) + 0.5, "b": np.arange(n) * 2.0})
    specs = {name: ColumnSpec(role=role) for name, role in roles.items()}
    return table_of(data, specs)


def paired_otherwise():
    """The values of ``table()`` column by column, so that the schema is the same, in other rows."""
    known = table()
    data = known.data.set_column(1, "b", known.data.column("b").take(pa.array(range(known.n_rows))[::-1]))
    return read_table(data, known.schema, where="train")


def test_rows_weigh_one_by_person_and_weights_of_other_rows_are_refused():
    handed = FitContext(rng=np.random.default_rng(0), entities=lambda: np.array([0, 1, 1, 0, 0]))
    assert handed.weights(5) == pytest.approx([1 / 3, 1 / 2, 1 / 2, 1 / 3, 1 / 3])
    for n in (0, 4, 6):
        with pytest.raises(PluginError, match="other rows"):
            handed.weights(n)
    assert FitContext(rng=np.random.default_rng(0)).weights(3).tolist() == [1, 1, 1]


def test_levels_share_one_fit_and_each_is_cut_to_its_own(tmp_path):
    context = RunContext(cache=Cache(tmp_path))
    models = [fit_shared(FitRecipe(Ladder(level)), table(), 1, context).model for level in (None, 1, 2)]
    assert [m.level for m in models] == [None, 1, 2]
    assert len(FITS) == 1


@pytest.mark.parametrize(
    ("generator", "train", "seed"),
    [
        (Ladder(weight=2.0), table(), 1),
        (Ladder(), table(6), 1),
        (Ladder(), paired_otherwise(), 1),
        (Ladder(), table(b="target"), 1),
        (Ladder(), table(), 2),
    ],
    ids=["setting", "rows", "the same columns in other rows", "roles", "seed"],
)
def test_whatever_a_fit_depends_on_makes_it_another(tmp_path, generator, train, seed):
    context = RunContext(cache=Cache(tmp_path))
    fit_shared(FitRecipe(Ladder()), table(), 1, context)
    fit_shared(FitRecipe(generator), train, seed, context)
    assert len(FITS) == 2


@dataclass(frozen=True)
class Steps:
    """A generator whose model is the step of a column that it was told of."""

    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Steps", summary="Looks at digits.")

    def fit(self, train, context):
        return {c.name: c.resolution and c.resolution.grid.numerator for c in train.schema}


def test_under_a_budget_digits_are_the_plan_s_and_never_train_s():
    train = table_of({"a": np.arange(30) * 100, "b": np.arange(30) * 100}, {"b": ColumnSpec(precision=5)})
    terms = FitTerms(total=Budget(1.0, 1e-6), fit=Budget(1.0, 1e-6), unit=Unit.ROW)
    for recipe, expected in (
        (FitRecipe(Steps()), {"a": 100, "b": 100}),
        (FitRecipe(Steps(), terms), {"a": None, "b": 5}),
    ):
        assert fit_shared(recipe, train, 1, RunContext()).model == expected


@pytest.mark.parametrize("fault", [ValueError("income 123456"), NotApplicable("row 17"), SystemExit(0)])
def test_a_generator_that_fails_is_an_error_without_its_words(fault):
    def fail(*_):
        raise fault

    broken = SimpleNamespace(fit=fail, sample=fail)
    for attempt in (
        lambda: fit_shared(FitRecipe(broken), table(), 1, RunContext()),
        lambda: draw(broken, 3, table().schema, np.random.default_rng(0)),
    ):
        with pytest.raises(PluginError) as caught:
            attempt()
        assert not isinstance(caught.value, NotApplicable)
        assert "123456" not in str(caught.value)
        assert "17" not in str(caught.value)


@pytest.mark.parametrize("what", ["rows", "columns", "infinite"])
def test_a_release_of_another_shape_or_without_bounds_is_refused(what):
    real = table()
    bad = real.data.set_column(1, "b", pa.array([np.inf, 1, 2, 3, 4]))
    made = {
        "rows": real.take(np.arange(3)),
        "columns": Table(real.schema, real.data.select(["a"])),
        "infinite": Table(real.schema, bad),
    }[what]
    model = SimpleNamespace(sample=lambda n, rng: made)
    with pytest.raises(PluginError, match="the generator drew"):
        draw(model, 5, real.schema, np.random.default_rng(0))


@dataclass(frozen=True)
class Paying(Ladder):
    """Spends on every fit."""

    def fit(self, train, context):
        context.accountant.domain("declared")
        context.accountant.pure(0.5, what="a test")
        return super().fit(train, context)

    def untruncated(self):
        return replace(self, truncation=None)


def test_a_fit_that_spent_is_never_kept_or_met_again(tmp_path):
    context = RunContext(cache=Cache(tmp_path))
    terms = FitTerms(total=Budget(1.0), fit=Budget(1.0), unit=Unit.ROW, drawn=5)
    fits = [fit_shared(FitRecipe(Paying(level), terms), table(), 1, context) for level in (1, 2)]
    assert len(FITS) == 2
    assert [f.guarantee.epsilon for f in fits] == [0.5, 0.5], "each had a budget of its own"
    assert not [p for p in tmp_path.iterdir() if p.is_dir() and p.suffix != ".new"]
    with pytest.raises(PluginError, match="failed"):
        fit_shared(FitRecipe(Paying()), table(), 1, context)


@dataclass(frozen=True)
class Demanding:
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Demanding", summary="Needs much.", needs=Needs(gpu=True, rows=5)
    )

    def fit(self, train, context):
        return context


@pytest.fixture
def gpu(monkeypatch):
    """Says whether this machine has a GPU."""
    return lambda found: monkeypatch.setattr(generator_needs, "gpu_found", lambda: found)


def test_what_a_fit_needs_is_asked_before_it_begins(gpu):
    rng = np.random.default_rng(0)
    gpu(True)
    with pytest.raises(DataError, match="4 rows, too few"):
        fit(Demanding(), table(4), FitContext(rng=rng, device="cuda"))
    for device in ("auto", "cuda"):
        assert fit(Demanding(), table(5), FitContext(rng=rng, device=device)).model.device == device


def test_a_gpu_that_is_needed_and_missing_is_told_of_with_what_to_do(gpu):
    rng = np.random.default_rng(0)
    gpu(True)
    with pytest.raises(PluginError, match="needs a GPU, and the plan computes on the processor") as caught:
        fit(Demanding(), table(5), FitContext(rng=rng))
    assert "--device cuda" in caught.value.fix
    gpu(False)
    with pytest.raises(PluginError, match="needs a GPU, and none was found") as caught:
        fit(Demanding(), table(5), FitContext(rng=rng, device="auto"))
    assert "pool `gpu`" in caught.value.fix
    with pytest.raises(PluginError, match="needs a GPU, and none was found"):  # in a game too
        fit_shared(FitRecipe(Demanding()), table(5), 1, RunContext(device="cuda"))


def test_needs_may_follow_from_the_settings(gpu):
    @dataclass(frozen=True)
    class Around(Ladder):
        of: str = "demanding"

        @property
        def needs(self):
            return Ladder.info.needs | Demanding.info.needs

    gpu(False)
    assert needs_of(Around()) == Needs(gpu=True, rows=5)
    with pytest.raises(PluginError, match="needs a GPU"):
        fit(Around(), table(5), FitContext(rng=np.random.default_rng(0), device="cuda"))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Needs(), Needs(memory=2.0, rows=7), Needs(memory=2.0, rows=7)),
        (Needs(gpu=True, memory=3.0), Needs(memory=2.0, rows=7), Needs(gpu=True, memory=3.0, rows=7)),
    ],
)
def test_what_two_need_is_what_the_needier_needs(one, other, both):
    assert one | other == other | one == both


def test_needs_are_told_in_words():
    assert Needs(gpu=True, memory=24, rows=1000).words == "a GPU, about 24 GiB of memory, 1,000 rows"
    assert Needs().words == "nothing beside train"


def test_what_a_run_knows_reaches_the_fit(tmp_path):
    specs = {"a": ColumnSpec(bounds=(0, 9))}
    train = table_of({"a": [0.5, 1.5], "b": ["x", "y"]}, specs)
    said = []
    run = RunContext(
        device="auto", deadline=Deadline.within(60), scratch=tmp_path, progress=lambda *x: said.append(x)
    )
    accountant = NO_BUDGET.detached()
    handed = fit_context(train, np.random.default_rng(0), accountant, run, tmp_path, tmp_path / "c")
    assert (handed.device, handed.deadline, handed.scratch, handed.base) == (
        "auto", run.deadline, tmp_path, tmp_path,
    )  # fmt: skip
    assert handed.accountant is accountant
    assert handed.public_domain.columns["a"].bounds == (0, 9)
    assert handed.public_domain.columns["b"].categories is None
    assert handed.public_domain.unknown == ("b",)
    inner = handed.inner("part")
    assert inner.accountant is accountant
    assert inner.checkpoint == tmp_path / "c" / "part"
    assert inner.rng.random() != handed.inner("part").rng.random(), "draws of its own each time"
    handed.progress("epoch", 1, 3)
    assert said == [("epoch", 1, 3)]


def test_inner_generators_are_built_as_a_plan_names_them():
    handed = FitContext(rng=np.random.default_rng(0))
    assert handed.build({"vine": {"truncation": 2}}).truncation == 2
    assert type(handed.build("resample")).__name__ == "Resample"
    for wrong in ("no_such", {"vine": {"trees": 1}}, {"a": {}, "b": {}}, 3):
        with pytest.raises(PlanError):
            handed.build(wrong)


def test_noise_is_the_systems_and_cannot_be_exchanged():
    handed = FitContext(rng=np.random.default_rng(0))
    one, other = (handed.noise.gaussian(1.0, 5) for _ in range(2))
    assert not np.array_equal(one, other)
    with pytest.raises(AttributeError):
        handed.noise = None


def test_a_fit_that_fails_when_time_is_up_ran_out_of_time():
    class Slow(Ladder):
        def fit(self, train, context):
            context.deadline.check()

    late = RunContext(deadline=Deadline.within(1e-9))
    with pytest.raises(OutOfTime):
        fit_shared(FitRecipe(Slow()), table(), 1, late)


class Counter:
    def sample(self, n, rng):
        return table(n)


def test_a_model_without_batches_of_its_own_draws_them_one_by_one():
    assert [part.n_rows for part in batches(Counter(), 7, np.random.default_rng(0), size=3)] == [3, 3, 1]
    assert list(batches(Counter(), 0, np.random.default_rng(0), size=3)) == []
