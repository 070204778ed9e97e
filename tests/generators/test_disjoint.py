"""Parts of the columns by generators of their own."""

import pickle
from concurrent.futures import Future

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.errors import DataError, PlanError, PluginError
from synth_audit.execution.executor import Executor
from synth_audit.generators.disjoint.join import JoinValidator, ValidatedJoin, calibration, sweep
from synth_audit.plugins.fitting import fit
from synth_audit.plugins.generator import FitContext, GeneratorInfo, column_groups
from synth_audit.plugins.plugin_config import build_generator
from synth_audit.table.schema import PublicDomain
from synth_audit.table.schema_inference import ColumnSpec


@pytest.fixture(autouse=True)
def _with_guarantees_on_the_coarse_grid():
    """Nothing: parts that spend pure epsilon use up a budget exactly, which the coarse grid overstates."""


NAMES = ("a", "b", "c", "d", "ill")


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    number = np.arange(n)  # of the row, from which every cell can be told
    data = {name: 1000 * (i + 1) + number for i, name in enumerate(NAMES[:4])}
    return pa.table(data | {"ill": np.where(rng.random(n) < 0.5, "yes", "no")})


@pytest.fixture(scope="module")
def train():
    data = rows()
    return table_of(data, {"ill": ColumnSpec(role="target")})


def disjoint(generators=("resample",), **settings):
    return build_generator({"disjoint": {"generators": list(generators), **settings}})


def halves(*of):
    return {"partition": "explicit", "columns": of or [["a", "b"], ["c", "d", "ill"]]}


def context(**more):
    return FitContext(rng=np.random.default_rng(0), **more)


def people(table, names):
    """Which training row a row of the table is, by each of these columns."""
    return [table.numbers(name) - 1000 * (NAMES.index(name) + 1) for name in names]


def test_parts_are_whole_within_and_apart_across(train):
    model = disjoint(**halves()).fit(train, context())
    made = model.sample(300, np.random.default_rng(1))
    a, b, c, d = people(made, "abcd")
    assert np.array_equal(a, b)
    assert np.array_equal(c, d)
    assert np.mean(a == c) < 0.05
    assert column_groups(model) == (("a", "b"), ("c", "d", "ill"))


def test_parts_that_come_in_the_order_of_train_are_not_joined_by_it(train):
    class InOrder:
        info = GeneratorInfo(title="in order", summary="")

        def fit(self, part, context):
            self.part = part
            return self

        def sample(self, n, rng):
            return self.part.take(np.arange(n))

    model = disjoint(**halves()).fit(train, context())
    object.__setattr__(model, "models", tuple(InOrder().fit(m.train, None) for m in model.models))
    a, c = people(model.sample(150, np.random.default_rng(0)), "ac")
    assert sorted(a) == sorted(c) == list(range(150)), "no row is used twice"
    assert np.mean(a == c) < 0.06


def test_a_part_may_be_divided_again(train):
    inner = {"disjoint": {"generators": ["resample"], **halves(["c"], ["d", "ill"])}}
    model = disjoint(["resample", inner], **halves()).fit(train, context())
    assert column_groups(model) == (("a", "b"), ("c",), ("d", "ill"))
    a, b, c, d = people(model.sample(200, np.random.default_rng(0)), "abcd")
    assert np.array_equal(a, b)
    assert np.mean(c == d) < 0.06


def test_a_choice_of_parts_is_the_tables(train):
    random = [disjoint(partition="random", parts=3).fit(train, context()).groups for _ in range(2)]
    assert random[0] == random[1]
    assert sorted(n for g in random[0] for n in g) == sorted(NAMES)
    assert {len(g) for g in random[0]} == {1, 2}
    assert ("ill",) not in random[0]
    assert len(disjoint(["resample", "independent"]).fit(train, context()).groups) == 2


def copied(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301  (its own)


class Travelling:
    """A pool in which whatever is sent away or comes back is pickled."""

    size, shares_files = 2, False

    def submit(self, call):
        done = Future()
        done.set_result(copied(copied(call)()))
        return done

    def result(self, made):
        return made.result()


def test_where_parts_are_fitted_changes_nothing(train):
    drawn, voids = [], []
    for executor in (Executor(), Executor(Travelling())):
        handed = context(executor=executor)
        model = disjoint(["independent", "resample"], **halves()).fit(train, handed)
        drawn.append(model.sample(50, np.random.default_rng(3)))
        voids.append(handed.accountant.voids)
    assert drawn[0].data.equals(drawn[1].data)
    assert voids[0] == voids[1] != ()


def test_whose_rows_they_are_travels_with_them(train):
    """Twenty rows of one person are no leaf of twenty people, wherever the leaf is grown."""
    drawn = []
    for executor in (Executor(), Executor(Travelling())):
        handed = context(executor=executor, entities=lambda: np.arange(train.n_rows) // 20)
        model = disjoint([{"cart": {"minimum_leaf": 5}}], **halves()).fit(train, handed)
        drawn.append(model.sample(50, np.random.default_rng(3)))
    assert drawn[0].data.equals(drawn[1].data)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (halves(["a", "b"], ["b", "c", "d", "ill"]), "'b' is named twice"),
        (halves(["a", "b"], ["c", "ill"]), "'d' is in no part"),
        (halves(["a", "b"], ["c", "d", "ill", "e"]), "names 'e'"),
        (halves(["a", "b", "c", "d"], ["ill"]), "target 'ill' alone"),
        (halves(["a", "b", "c", "d", "ill"], []), "no columns"),
        ({"partition": "explicit"}, "names no columns"),
        ({"columns": [["a"]]}, "chooses them itself"),
        ({"parts": 6}, "6 parts of 5 columns"),
        ({"parts": 5}, "target 'ill' alone"),
        ({"parts": 0}, "0 parts"),
        ({"parts": 3, "shares": [0.5, 0.5]}, "2 shares for 3 parts"),
        ({"parts": 2, "shares": [0.9, 0.9]}, "do not add up"),
    ],
)
def test_what_cannot_be_divided_is_told(train, settings, message):
    with pytest.raises(PlanError, match=message):
        disjoint(**settings).fit(train, context())


@pytest.mark.parametrize(
    ("generators", "message", "where"),
    [
        (["resample", "nothing"], "unknown generator 'nothing'", "generators[1]"),
        (["resample", {"vine": {"depth": 3}}], "unknown field 'depth'", "generators[1]"),
        (["resample", {"mst": {"bins": 0}}], "bins is 0", "generators[1]: generator.bins"),
        (["resample", {"external": {"source": "made.parquet"}}], "finished table", "generators[1]"),
        (["resample"] * 3, "3 generators for 2 parts", "generators"),
        ([], "no generator", "generators"),
    ],
)
def test_an_inner_generator_that_cannot_be_is_named_with_its_part(generators, message, where):
    with pytest.raises(PlanError, match=message) as caught:
        disjoint(generators, parts=2)
    assert where in caught.value.where


def test_what_fails_in_a_part_is_told_with_it(train, monkeypatch, tmp_path):
    monkeypatch.setenv("SYNTH_AUDIT_RECIPES", str(tmp_path))
    recipe = {"external": {"recipe": "sdv"}}
    with pytest.raises(DataError, match="recipe") as caught:
        disjoint(["resample", recipe], **halves()).fit(train, context())
    assert caught.value.where.startswith("part 2 (external)")
    assert "recipes install sdv" in str(caught.value)

    def lacking(self, rows, context):
        raise ModuleNotFoundError(name="torch")

    monkeypatch.setattr("synth_audit.generators.resample.Resample.fit", lacking)
    with pytest.raises(PluginError, match=r"part 1 \(resample\) needs the package 'torch'"):
        disjoint(**halves()).fit(train, context())


@pytest.fixture(scope="module")
def declared():
    rng = np.random.default_rng(0)
    data = pa.table({name: rng.choice(["x", "y"], 300) for name in "abcd"})
    specs = {name: ColumnSpec(kind="categorical", categories=("x", "y"), nullable=False) for name in "abcd"}
    return table_of(data, specs)


def accounted(budget=None):
    accountant = Accountant(budget or Budget(1.0, 1e-5), unit=Unit.ROW)
    accountant.draws(300)
    return accountant


def under_budget(declared, generators, accountant, **settings):
    handed = context(accountant=accountant, public_domain=PublicDomain.of(declared.schema))
    settings = {"partition": "explicit", "columns": [["a", "b"], ["c", "d"]]} | settings
    return fit(disjoint(generators, **settings), declared, handed)


@pytest.mark.parametrize("generators", [["mst", "priv_bayes"], ["priv_bayes"] * 2])
def test_parts_spend_from_one_account(declared, generators):
    accountant = accounted()
    fitted = under_budget(declared, generators, accountant)
    assert fitted.guarantee is not None
    assert 0.9 < fitted.guarantee.epsilon <= 1.0
    assert {m.what.split(":")[0] for m in accountant.mechanisms} == {
        f"part {i + 1} ({name})" for i, name in enumerate(generators)
    }


def test_shares_divide_the_budget(declared):
    spent = []
    for shares in ([0.8, 0.2], [0.2, 0.8]):
        accountant = accounted(Budget(1.0))
        under_budget(declared, ["priv_bayes"], accountant, shares=shares)
        first = [m for m in accountant.mechanisms if m.what.startswith("part 1")]
        spent.append(sum(m.epsilon_alone for m in first))
    assert spent == pytest.approx([0.8, 0.2], rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "generators", "reason"),
    [
        ({}, ["priv_bayes", "independent"], "spent nothing"),
        ({"partition": "correlated", "columns": []}, ["priv_bayes"], "correlations"),
        ({"partition": "random", "columns": []}, ["priv_bayes"], ""),
    ],
)
def test_what_ends_the_claim(declared, settings, generators, reason):
    accountant = accounted()
    fitted = under_budget(declared, generators, accountant, **settings)
    assert (fitted.guarantee is None) is bool(reason)
    assert reason in accountant.why_none


@pytest.fixture(scope="module")
def related():
    rng = np.random.default_rng(0)
    z = rng.normal(size=400)
    data = {name: np.round(z + 0.4 * rng.normal(size=400), 2) for name in "abcd"}
    return table_of(data | {"ill": np.where(z > 0, "yes", "no")}, {"ill": ColumnSpec(role="target")})


QUICK = {"validator": "gradient_boosting", "tuned": False}


def validated(**validation):
    return disjoint(["independent"], **halves(), join="validated", validation=QUICK | validation)


def test_a_validated_join_keeps_relations_across_parts(related, tmp_path):
    handed = context()
    generator = validated()
    model = generator.fit(related, handed)
    made = model.sample(200, np.random.default_rng(1))
    assert made.n_rows == 200
    assert "seen real rows" in handed.accountant.why_none
    apart = (
        disjoint(["independent"], **halves()).fit(related, context()).sample(200, np.random.default_rng(1))
    )
    across = [np.corrcoef(t.numbers("a"), t.numbers("c"))[0, 1] for t in (made, apart)]
    assert across[0] > across[1] + 0.3

    model.save(tmp_path)
    again = generator.load(tmp_path).sample(200, np.random.default_rng(1))
    assert again.data.equals(made.data)
    assert model.sample(0, np.random.default_rng(1)).n_rows == 0
    parts = [*model.batches(200, np.random.default_rng(1), 150)]
    assert [p.n_rows for p in parts] == [150, 50]

    pictures = {str(s.id): s for s in handed.course.pictures}
    assert sum(pictures["generator.admitted"].lines["admitted"]) == 200
    assert set(pictures) == {
        "generator.partition[relations]", "generator.relations", "generator.calibration",
        "generator.admitted", "generator.thresholds",
    }  # fmt: skip
    strengths = pictures["generator.relations"].lines
    assert min(*strengths["inside"], *strengths["across"]) > 0.5


@pytest.mark.parametrize(("few", "least"), [(3, 10), (12, 10), (3, 3), (12, 20)])
def test_pictures_of_a_validator_give_no_few_rows_away(few, least):
    """Neither by the one bin that is left out, nor by how many lie between two thresholds."""
    scores = np.concatenate([np.full(few, 0.05), np.full(40, 0.65), np.full(45, 0.95)])
    validator = JoinValidator(None, 1.0, 0.0, real=scores, joined=np.tile(scores, 4), settings={})
    lines = calibration(validator, least).lines
    shown = [x for x in lines["of all real rows"] if x > 0]
    assert len(shown) == (1 if few < least else 3)
    assert len([x for x in lines["held-out rows"] if not np.isnan(x)]) == len(shown)
    join = ValidatedJoin(np.zeros((0, 2), dtype=int), (), scores)
    above = np.array(sweep(join, validator, least).lines["real, held out"])
    groups = above[above < 1] * len(scores) / least
    assert np.abs(groups - np.rint(groups)).max() <= 0.005 * len(scores) / least + 1e-9


def test_validated_rows_are_used_once(train):
    generator = disjoint(["resample"], **halves(), join="validated", validation=QUICK | {"oversampling": 1})
    model = generator.fit(train, context())
    object.__setattr__(model, "drawn", lambda n, rng: [m.train.take(np.arange(n)) for m in model.models])
    a, b, c, _ = people(model.sample(150, np.random.default_rng(0)), "abcd")
    assert np.array_equal(a, b)
    assert sorted(a) == sorted(c) == list(range(150))


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"threshold": 1.0, "decay": 0.0}, "admitted none of 300"),
        ({"rounds": 1}, r"gave 3. rows instead of 100"),
    ],
)
def test_a_shortfall_is_told_with_what_to_do(related, validation, message):
    model = validated(**validation).fit(related, context())
    with pytest.raises(DataError, match=message) as caught:
        model.sample(100, np.random.default_rng(0))
    assert "concatenate" in caught.value.fix


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"validation": {"share": 0.2}}, "nothing to validate"),
        ({"join": "validated", "validation": {"share": 0}}, "share is 0"),
        ({"join": "validated", "validation": {"oversampling": 0.5}}, "oversampling is 0.5"),
        ({"join": "validated", "validation": {"treshold": 0.5}}, "treshold"),
        ({"join": "validated", "validation": {"validator": "oracle"}}, "validator"),
        ({"join": "sorted"}, "join"),
    ],
)
def test_what_cannot_be_validated_is_told(settings, message):
    with pytest.raises(PlanError, match=message):
        disjoint(**settings)


def test_too_few_rows_for_a_validator_are_refused(related):
    with pytest.raises(DataError, match="too few"):
        fit(validated(), related.take(np.arange(30)), context())


def test_a_validated_join_of_private_parts_guarantees_nothing(declared):
    accountant = accounted()
    validation = QUICK | {"threshold": 0.0}
    fitted = under_budget(declared, ["priv_bayes"], accountant, join="validated", validation=validation)
    assert fitted.guarantee is None
    assert "seen real rows" in accountant.why_none
    assert accountant.mechanisms, "what was bought stays bought"
