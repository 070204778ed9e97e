"""The membership game on generators whose answer is known, and its intervals on games that are drawn."""

import dataclasses
import json
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy.membership_game import (
    FEWEST_GAMES,
    KINDS,
    MembershipGame,
    Played,
    area,
    gain,
    measured,
    true_positive_rate,
    worst_target,
)
from synth_audit.audits.privacy.membership_game.shadow_game import (
    FEATURE_SETS,
    Sizes,
    choose,
    outlier_columns,
)
from synth_audit.dp.accountant import FitTerms
from synth_audit.dp.guarantee import Budget, Unit, most_found
from synth_audit.errors import DataError, NotApplicable, PluginError
from synth_audit.examination.audit_runner import run_audits
from synth_audit.execution.context import Cache, RunContext
from synth_audit.generators.independent import Independent
from synth_audit.generators.resample import Resample
from synth_audit.plugins.audit import Status, Subject
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, load_table, read_table, save_table

pytestmark = pytest.mark.xdist_group("membership game")  # they share two games
SMALL = {
    "iterations": 3,
    "attacker_rows": 60,
    "evaluation_rows": 40,
    "set_rows": 40,
    "shadows": 2,
    "sets": 5,
    "evaluated": 8,
    "outlying": 1,
    "random": 1,
    "vulnerable": 0,
    "achilles": 0,
    "features": ("target_distance",),
    "classifier": "logistic",
}
INFO = GeneratorInfo(title="Test", summary="Test.")


def people(n=200, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return pa.table(
        {
            "who": np.arange(n) + 0.5,
            "size": z,
            "cost": np.exp(z + rng.normal(size=n)),
            "kind": rng.choice(list("aabc"), n),
        }
    )


def subject(generator, data=None, sensitive=("cost",), **more):
    data = people() if data is None else data
    schema = infer_schema(data, {name: ColumnSpec(role="sensitive") for name in sensitive})
    train = read_table(data, schema, where="train")
    return Subject(train, None, train, generator, **more)


def found(generator, data=None, seed=0, more=None, **changed):
    game = MembershipGame(**{**SMALL, **changed})
    return game.run(subject(generator, data), RunContext(draws=np.random.default_rng(seed), **(more or {})))


def at(findings, name, scope=""):
    [m] = [m for m in findings.measurements if (m.id.quantity, m.id.setting) == (name, scope)]
    return m


@dataclass(frozen=True)
class Fixed:
    """Draws rows with replacement from those it holds."""

    rows: Table = field(repr=False)

    def sample(self, n, rng):
        return self.rows.take(rng.integers(0, self.rows.n_rows, n))


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Copies its rows and notes them."""

    fits: list = field(default_factory=list)
    truncation: int | None = None
    info = INFO

    def fit(self, train, context):
        self.fits.append((sorted(train.numbers("who").tolist()), int(context.rng.integers(2**31))))
        return Fixed(train)


@dataclass(frozen=True)
class Shown:
    """All dear rows it saw, and strangers."""

    dear: Table = field(repr=False)
    strangers: Table = field(repr=False)

    def sample(self, n, rng):
        others = self.strangers.take(rng.integers(0, self.strangers.n_rows, n - self.dear.n_rows))
        return Table(others.schema, pa.concat_tables([self.dear.data, others.data]))


@dataclass(frozen=True)
class KeepsTheDear:
    """A generator that betrays outliers alone."""

    strangers: Table = field(repr=False)
    column: str = "cost"
    above: float = 1.0
    info = INFO

    def fit(self, train, context):
        return Shown(train.take(train.numbers(self.column) > self.above), self.strangers)


@dataclass(frozen=True)
class Faulty:
    """Fits, and then returns what it should not."""

    change: object
    info = INFO

    def fit(self, train, context):
        if self.change is None:
            raise DataError("cannot learn these rows")
        return Twisted(train, self.change)


@dataclass(frozen=True)
class Twisted:
    train: Table
    change: object

    def sample(self, n, rng):
        return self.change(self.train.take(np.resize(np.arange(self.train.n_rows), n)))


def without_a_column(table):
    return Table(table.schema, table.data.drop_columns(["size"]))


def with_a_column(table):
    return Table(table.schema, table.data.append_column("more", table.data["size"]))


def one_row_short(table):
    return Table(table.schema, table.data.slice(1))


@dataclass(frozen=True)
class Strangers:
    """Learns nothing: the exact null."""

    info = INFO

    def fit(self, train, context):
        return Fixed(subject(None, people(seed=9)).train)


@pytest.fixture(scope="module")
def honest():
    return found(Strangers(), iterations=5, outlying=2, random=2)


@pytest.fixture(scope="module")
def copying():
    """A resampled set as large as the sample holds the target with probability 1 − 1/e."""
    return found(
        Resample(),
        iterations=5,
        shadows=3,
        evaluated=20,
        outlying=2,
        random=2,
        classifier="random_forest",
        features=("target_distance",),
    )


@pytest.mark.parametrize("scope", ["", "outlying", "random"])
def test_copies_are_found_out(copying, scope):
    assert at(copying, "privacy_gain", scope).value == pytest.approx(np.exp(-1), abs=0.25)
    assert at(copying, "privacy_gain", scope).interval.high < 0.9
    assert at(copying, "auc", scope).interval.low > 0.5
    assert at(copying, "tpr_at_fpr_1pct", "").value > 0.2


@pytest.mark.parametrize("scope", ["", "outlying", "random"])
def test_independent_columns_are_not(honest, scope):
    for name, null in (("privacy_gain", 1.0), ("auc", 0.5)):
        interval = at(honest, name, scope).interval
        assert interval.low < null < interval.high


def test_exposed_are_targets_that_were_found_out(copying, honest):
    assert [e.measurement.setting for e in copying.exposures] == ["outlying", "random"]
    assert all(len(e.train_tried) == 2 and not len(e.control_tried) for e in copying.exposures)
    assert sum(len(e.train_hit) for e in copying.exposures) >= 3
    assert not any(len(e.train_hit) for e in honest.exposures)


def test_a_generator_that_betrays_outliers_does_so_for_outliers_only():
    data = people(300).drop_columns(["who"])
    costs = data["cost"].to_numpy()
    dear = costs > np.quantile(costs, 0.98)
    data = data.set_column(1, "cost", pa.array(np.where(dear, costs, 1.0)))  # without a lower tail
    strangers = subject(None, data.filter(pa.array(~dear))).train
    more = {"classifier": "random_forest", "outlying": 2, "random": 2}
    played = found(KeepsTheDear(strangers), data, **more)
    assert at(played, "privacy_gain", "outlying").value < 0.3
    assert at(played, "privacy_gain", "random").value == pytest.approx(1.0, abs=0.3)
    assert at(played, "privacy_gain").value == at(played, "privacy_gain", "outlying").value


def test_copies_of_outliers_outside_the_sensitive_columns_are_found_by_default():
    assert MembershipGame().achilles
    data = people(300).drop_columns(["who"])
    size = data["size"].to_numpy().copy()
    size[[17, 230]] = [40.0, 45.0]
    data = data.set_column(0, "size", pa.array(size))
    keeper = KeepsTheDear(subject(None, data.filter(pa.array(size < 30))).train, "size", 30.0)
    more = {"classifier": "random_forest"}
    assert at(found(keeper, data, **more), "privacy_gain").value > 0.7
    played = found(keeper, data, **more, achilles=2)
    assert at(played, "privacy_gain").value == at(played, "privacy_gain", "achilles").value < 0.2
    assert at(played, "worst_target_gain").value < 0.2


def test_reference_samples_hold_no_target_and_the_others_exactly_one():
    generator = Recording()
    game = MembershipGame(**SMALL)
    train = subject(generator).train
    game.run(subject(generator), RunContext(draws=np.random.default_rng(0)))
    chosen = targets_of(train, game)
    assert len(chosen) == 2
    assert len(generator.fits) == 3 * (2 + 1) * (1 + 2)
    rows = [set(fitted) for fitted, _ in generator.fits]
    for without, *held in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert len(without) == 40
        assert not without & chosen
        assert {frozenset(h - without) for h in held} == {frozenset({t}) for t in chosen}
        assert all(without < h for h in held)
    assert len({seed for _, seed in generator.fits}) == len(generator.fits)


def targets_of(train, game, seed=0):
    from synth_audit.execution.seeds import child_rng

    wanted = {kind: getattr(game, kind) for kind in KINDS}
    rng = child_rng(seed, "membership_game", "targets")
    kinds = choose(Subject(train, None, train), (train.schema["cost"],), wanted, game.tail, rng)
    return {float(x) for rows in kinds.values() for x in train.numbers("who")[rows]}


def test_shadow_samples_differ_and_belong_to_the_attacker():
    generator = Recording()
    found(generator)
    rows = [set(fitted) for fitted, _ in generator.fits[::3]]  # of two shadows, then of the challenge
    for one, other, challenge in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert one != other
        assert len(one | other) <= 60
        assert challenge not in (one, other)


def test_fits_do_not_depend_on_the_draws_but_the_sets_do():
    one, other, again = Recording(), Recording(), Recording()
    first, second, third = found(one), found(other, seed=1), found(again)
    assert one.fits == other.fits
    assert first.measurements == third.measurements
    assert first.measurements != second.measurements
    moved = Recording()
    found(moved, more={"seed": 1})
    assert moved.fits[0] != one.fits[0]


@dataclass(frozen=True)
class Cut:
    """A model whose truncation is noted; copies above level 1, and strangers at level 1."""

    rows: Table = field(repr=False)
    level: int | None = None

    def sample(self, n, rng):
        if self.level == 1:
            return Independent().fit(self.rows, FitContext(rng=rng)).sample(n, rng)
        return self.rows.take(rng.integers(0, self.rows.n_rows, n))

    def truncated(self, level):
        return dataclasses.replace(self, level=level)

    def save(self, folder):
        save_table(self.rows, folder, "rows")


COUNTED: list[int] = []


@dataclass(frozen=True, kw_only=True)
class Levels:
    """A generator of which one fit holds all levels."""

    truncation: int | None = None
    info = INFO

    def untruncated(self):
        return dataclasses.replace(self, truncation=None)

    def fit(self, train, context):
        COUNTED.append(1)
        return Cut(train)

    def load(self, folder):
        return Cut(load_table(folder, "rows"))


def test_levels_of_one_generator_share_all_fits_and_differ_in_result(tmp_path):
    COUNTED.clear()
    gains = {}
    for level in (1, 2, None):
        played = found(Levels(truncation=level), more={"cache": Cache(tmp_path)}, iterations=2)
        gains[level] = at(played, "privacy_gain", "random").value
    assert len(COUNTED) == 2 * (2 + 1) * (1 + 2)
    assert gains[2] == gains[None] < gains[1]


def endless(table):
    sizes = np.append(table.numbers("size")[1:], np.inf)
    return Table(table.schema, table.data.set_column(1, "size", pa.array(sizes)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (endless, "infinite"),
        *((change, "other columns") for change in (without_a_column, with_a_column, one_row_short)),
    ],
)
def test_a_generator_that_returns_another_table_is_an_error(change, words):
    with pytest.raises(PluginError, match=words):
        found(Faulty(change))


def refusing(table):
    raise NotApplicable(f"row 17 has cost {SECRET}")


def failing(table):
    raise ValueError(f"row 17 has cost {SECRET}")


SECRET = "123456"


@pytest.mark.parametrize("change", [refusing, failing])
def test_a_model_that_fails_is_a_fault_of_the_generator_and_its_words_are_not_repeated(change):
    with pytest.raises(PluginError) as caught:
        found(Faulty(change))
    assert SECRET not in str(caught.value)
    [outcome], _ = run_audits(
        {"membership_game": MembershipGame(**SMALL)}, subject(Faulty(change)), RunContext(seed=0)
    )
    assert outcome.status is Status.ERROR
    assert SECRET not in json.dumps([outcome.reason, outcome.notes], default=repr)


@pytest.mark.parametrize(
    ("generator", "status"), [(Faulty(None), Status.ERROR), (None, Status.NOT_APPLICABLE)]
)
def test_without_a_generator_that_works_nothing_is_measured(generator, status):
    game = {"membership_game": MembershipGame(**SMALL)}
    [outcome], _ = run_audits(game, subject(generator), RunContext(seed=0))
    assert outcome.status is status
    assert not outcome.measurements


def test_samples_shrink_with_the_table_and_say_so():
    played = found(Resample(), attacker_rows=500, evaluation_rows=400)
    assert played.notes == ("the table has too few rows for samples of 500 and 400: 198 and 158 were drawn",)
    assert at(played, "privacy_gain").finite


def test_sizes_keep_samples_apart_and_shadows_like_the_model_under_attack():
    asked = Sizes(attacker=500, evaluation=400, shadows=1, sets=1, evaluated=1, rows=1)
    paper = asked.within(876)
    assert (paper.attacker, paper.evaluation, paper.shadow) == (500, 400, 400)
    few = asked.within(100)
    assert (few.attacker, few.evaluation, few.shadow) == (100, 80, 80)
    with pytest.raises(NotApplicable, match="too few"):
        asked.within(31)


def test_a_table_of_few_rows_is_not_applicable():
    with pytest.raises(NotApplicable, match="too few"):
        found(Resample(), people(30))


def test_few_games_fall_short_of_the_minimum(honest):
    assert at(found(Independent(), iterations=2, outlying=0), "privacy_gain").short
    enough = at(honest, "privacy_gain", "random")
    assert (enough.n_requested, enough.n_achieved, enough.n_minimum) == (10, 10, FEWEST_GAMES)
    assert not enough.short


def test_constant_tables_have_no_outliers_and_say_so():
    flat = pa.table({"a": np.ones(100), "b": ["x"] * 100})
    game = MembershipGame(**{**SMALL, "features": ("all",)})
    findings = game.run(subject(Resample(), flat, sensitive=()), RunContext(draws=np.random.default_rng(0)))
    assert findings.notes == ("no row is an outlying target",)
    assert at(findings, "privacy_gain").value == 1.0
    assert at(findings, "privacy_gain").interval.low < 1.0
    with pytest.raises(NotApplicable, match="outlying"):
        MembershipGame(**{**SMALL, "random": 0}).run(
            subject(Resample(), flat, sensitive=()), RunContext(draws=np.random.default_rng(0))
        )


def test_targets_come_from_the_named_else_the_sensitive_else_the_numeric_columns():
    base = subject(None)
    assert [c.name for c in outlier_columns(base, ("kind",))] == ["kind"]
    assert [c.name for c in outlier_columns(base, ())] == ["cost"]
    assert [c.name for c in outlier_columns(subject(None, sensitive=()), ())] == ["who", "size", "cost"]
    labels = people().select(["kind"])
    assert [c.name for c in outlier_columns(subject(None, labels, sensitive=()), ())] == ["kind"]
    with pytest.raises(NotApplicable, match="does not have"):
        outlier_columns(base, ("nothing",))


def test_outlying_targets_lie_beyond_the_tails_and_random_ones_are_others():
    data = people(400)
    costs = data["cost"].to_pylist()
    gaps = data.set_column(2, "cost", pa.array([None if i % 3 == 0 else x for i, x in enumerate(costs)]))
    train = subject(None, gaps).train
    who = Subject(train, None, train)
    wanted = {"outlying": 6, "random": 6, "vulnerable": 3, "achilles": 3}
    columns = (train.schema["cost"], train.schema["size"])
    kinds = choose(who, columns, wanted, 0.05, np.random.default_rng(0))
    assert {kind: len(rows) for kind, rows in kinds.items()} == wanted
    beyond = [
        (x < np.nanquantile(x, 0.025)) | (x > np.nanquantile(x, 0.975))
        for x in (train.numbers("cost"), train.numbers("size"))
    ]
    assert all(beyond[0][i] or beyond[1][i] for i in kinds["outlying"])
    assert min(b[kinds["outlying"]].sum() for b in beyond) >= 3
    assert not set(kinds["random"]) & set(np.concatenate([kinds[k] for k in kinds if k != "random"]))


def test_vulnerable_targets_are_the_loneliest_rows():
    data = people(300).drop_columns(["who"])
    size = data["size"].to_numpy().copy()
    size[[17, 230]] = [40.0, -40.0]
    train = subject(None, data.set_column(0, "size", pa.array(size))).train
    wanted = {"outlying": 0, "random": 0, "vulnerable": 2, "achilles": 2}
    kinds = choose(Subject(train, None, train), (), wanted, 0.05, np.random.default_rng(0))
    assert kinds["vulnerable"].tolist() == kinds["achilles"].tolist() == [17, 230]


def test_a_twin_hides_nobody_from_the_search_for_achilles_heels():
    """Two equal rows far from all others are at no distance from their nearest row."""
    data, far = people(300).drop_columns(["who"]), (40.0, 4000.0, "c")
    data = pa.concat_tables(
        [data, pa.table({n: [v, v] for n, v in zip(data.column_names, far, strict=True)})]
    )
    train = subject(None, data).train
    wanted = {"outlying": 0, "random": 0, "vulnerable": 2, "achilles": 2}
    kinds = choose(Subject(train, None, train), (), wanted, 0.05, np.random.default_rng(0))
    assert kinds["achilles"].tolist() == [300, 301]
    assert not {300, 301} & set(kinds["vulnerable"].tolist())


def test_nothing_of_a_target_is_said():
    data = people(300)
    played = found(Resample(), data)
    said = json.dumps([played.measurements, played.series, played.notes], default=repr)
    chosen = targets_of(subject(None, data).train, MembershipGame(**SMALL))
    costs = dict(zip(data["who"].to_pylist(), data["cost"].to_pylist(), strict=True))
    for who in chosen:
        assert f"{who}" not in said
        assert f"{costs[who]:.4f}"[:5] not in said


def test_boxes_stand_for_enough_games_or_are_left_out(honest):
    box, curve = honest.series
    assert (box.kind, curve.kind) == ("box", "line")
    assert set(curve.lines) == {"target distance"}
    assert box.x == ("outlying, target distance", "random, target distance")
    assert not found(Resample()).series  # three games of a kind


@dataclass(frozen=True)
class Whole(Fixed):
    """Each row once."""

    def sample(self, n, rng):
        return self.rows.take(np.resize(rng.permutation(self.rows.n_rows), n))


@dataclass(frozen=True)
class Claims:
    """Copies, and spends as if it had added noise."""

    epsilon: float
    info = INFO

    def fit(self, train, context):
        context.accountant.domain("declared")
        context.accountant.pure(self.epsilon, what="nothing, in truth")
        return Whole(train)


@pytest.mark.parametrize(("epsilon", "bound"), [(0.5, 0.755), (9.0, 0.000)])
def test_a_guarantee_is_held_against_the_game(epsilon, bound):
    more = {"set_rows": 41, "classifier": "random_forest", "iterations": 5}
    game = MembershipGame(**{**SMALL, **more})
    terms = FitTerms(total=Budget(20), fit=Budget(20), unit=Unit.ROW, drawn=41)
    context = RunContext(draws=np.random.default_rng(0))
    outcome = game.run(subject(Claims(epsilon), terms=terms), context)
    notes = outcome.notes
    [refuted] = [m for m in outcome.measurements if m.id.quantity == "epsilon_refuted"]
    assert refuted.interval.low <= refuted.value <= refuted.interval.high
    assert (refuted.interval.low > 0) == (epsilon < 1)
    assert f"at least {bound:.3f}" in notes[0]
    assert (len(notes) == 2) == (epsilon < 1)
    drawn = {s.id.quantity: s for s in outcome.series}["attackers_curve"]
    found, most = (np.array(line) for line in drawn.lines.values())
    assert list(drawn.lines)[1] == f"most that ε = {epsilon:g} allows"
    assert most == pytest.approx([most_found(x, epsilon, 0) for x in drawn.x], abs=1e-6)
    assert (found > most + 0.1).any() == (epsilon < 1)


def scored(inside, outside, kind="random", features="naive"):
    inside, outside = (np.asarray(scores, dtype=float) for scores in (inside, outside))
    return Played(kind, features, inside[..., 0].size, inside, outside)


def test_the_gain_is_one_less_the_advantage():
    inside = [[[0.9, 0.9, 0.4, 0.6]], [[0.1, 0.9, 0.9, 0.9]]]
    outside = [[[0.1, 0.6, 0.4, 0.5]], [[0.2, 0.2, 0.2, 0.2]]]
    estimate = gain(scored(inside, outside), 0.95)
    assert estimate.value == pytest.approx(1 - ((0.75 - 0.25) + (0.75 - 0.0)) / 2)
    assert estimate.interval.low < estimate.value < estimate.interval.high


def test_iterations_that_agree_are_no_surer_than_counts():
    game = scored(np.ones((4, 2, 30)), np.zeros((4, 2, 30)))
    for estimate, end in (
        (gain(game, 0.95), 0.0),
        (area(game, 0.95), 1.0),
        (true_positive_rate(game, 0.95, 0.01), 1.0),
    ):
        assert estimate.value == end
        assert 0.01 < estimate.interval.high - estimate.interval.low < 0.05


def test_the_rate_at_few_false_alarms_is_its_own_null():
    rng = np.random.default_rng(0)
    values = [true_positive_rate(scored(*rng.random((2, 10, 4, 50))), 0.95, 0.01).value for _ in range(40)]
    assert np.mean(values) == pytest.approx(0.01, abs=0.0015)


def test_the_worst_has_the_worst_ends_of_intervals_that_hold_for_all():
    rng = np.random.default_rng(1)
    noise = [scored(*rng.random((2, 10, 2, 20)), features=f) for f in ("naive", "histogram")]
    bad = scored(0.4 + 0.6 * rng.random((10, 2, 20)), 0.7 * rng.random((10, 2, 20)), features="all")
    found_all = measured([*noise, bad], 0.95)
    by = {(m.id.quantity, m.id.setting): m for m in found_all}
    assert by["privacy_gain", ""].value == by["privacy_gain", "random, all"].value
    assert by["privacy_gain", ""].interval.high >= by["privacy_gain", "random, all"].interval.high
    assert by["privacy_gain", ""].interval.low < by["privacy_gain", "random, all"].interval.low
    assert {m.interval.level for m in found_all} == {0.95}
    assert ("tpr_at_fpr_01pct", "") not in by
    assert by["tpr_at_fpr_1pct", "random"].n_achieved == 20
    pooled = np.concatenate([game.gains for game in (*noise, bad)])
    assert by["median_gain", ""].value == pytest.approx(np.median(pooled))
    assert by["median_gain", "random, all"].value == pytest.approx(np.median(bad.gains))


def one_of_four(rng, always):
    """Ten iterations of four outlying, two random and four lonely targets, one of the first four given away
    in this share of the sets, and one guessed wrongly every time."""
    games = []
    for kind, t in (("outlying", 4), ("random", 2), ("vulnerable", 4)):
        for name in FEATURE_SETS:
            inside, outside = rng.random((2, 10, t, 50))
            if kind == "outlying" and name in ("target_distance", "all"):
                inside[:, 0] = np.where(rng.random((10, 50)) < always, 1.0, 0.0)
                outside[:, 0] = 0.0
                inside[:, 1], outside[:, 1] = 0.0, 1.0
            games.append(scored(inside, outside, kind, name))
    return measured(games, 0.95)


@pytest.mark.parametrize("always", [1.0, 0.97])
def test_one_target_who_is_always_found_is_not_hidden_by_others(always):
    by = {(m.id.quantity, m.id.setting): m for m in one_of_four(np.random.default_rng(0), always)}
    assert by["privacy_gain", ""].value > 0.8
    worst = by["worst_target_gain", ""]
    assert worst.value == pytest.approx(1 - always, abs=0.02)
    assert worst.interval.low < MET_BY_HONEST
    assert worst.interval.high < 0.3
    assert (worst.n_requested, worst.n_achieved, worst.short) == (100, 100, False)


MET_BY_HONEST = 0.05
"""A lower limit on the gain of the worst target that tells the two sides apart."""


def test_an_honest_generator_meets_a_limit_on_the_worst_target():
    """A target's gains vary over iterations as those of independent columns do: by 0.13 to 0.25."""
    lows = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        games = [drawn(rng, 0.0, t=12, spread=0.25) for _ in FEATURE_SETS]
        games = [dataclasses.replace(g, features=f) for g, f in zip(games, FEATURE_SETS, strict=True)]
        worst = worst_target(games, 0.95)
        assert worst.interval.low <= 1 <= worst.interval.high
        lows.append(worst.interval.low)
    assert min(lows) > MET_BY_HONEST


def drawn(rng, truth, m=10, t=4, e=50, spread=0.5):
    """Games in which iterations, and targets within them, shift the attacker's scores together."""
    shared = spread * (rng.normal(size=(2, m, 1, 1)) + rng.normal(size=(2, m, t, 1)))
    inside = truth + shared[0] + rng.normal(size=(m, t, e))
    outside = shared[1] + rng.normal(size=(m, t, e))
    squashed = [1 / (1 + np.exp(-(x - truth / 2))) for x in (inside, outside)]
    return scored(*squashed)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.0, 1.0])
@pytest.mark.parametrize("estimator", [gain, area, lambda g, level: true_positive_rate(g, level, 0.01)])
def test_intervals_cover_when_sets_share_their_models(truth, estimator):
    rng = np.random.default_rng(3)
    level, repeats = 0.9, 300
    expected = np.mean([estimator(drawn(rng, truth, m=40), level).value for _ in range(60)])
    hits = [
        i.low <= expected <= i.high
        for i in (estimator(drawn(rng, truth), level).interval for _ in range(repeats))
    ]
    assert np.mean(hits) >= level - 3 * np.sqrt(level * (1 - level) / repeats)


@pytest.mark.slow
def test_the_worst_of_many_honest_games_still_covers_one():
    rng = np.random.default_rng(4)
    hits = []
    for _ in range(200):
        games = [drawn(rng, 0.0) for _ in range(5)]
        games = [dataclasses.replace(g, features=name) for g, name in zip(games, FEATURE_SETS, strict=True)]
        headline = measured(games, 0.95)[0]
        hits.append(headline.interval.low <= 1 <= headline.interval.high)
    assert np.mean(hits) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)


def one_given_away(rng, truth, spread, e=50):
    """Games about ten targets with every feature set; one target alone leaves a trace, of this size."""
    games = []
    for name in FEATURE_SETS:
        honest = drawn(rng, 0.0, t=9, e=e, spread=spread)
        betrayed = drawn(rng, truth, t=1, e=e, spread=spread)
        both = [np.hstack([getattr(g, side) for g in (honest, betrayed)]) for side in ("inside", "outside")]
        games.append(scored(*both, features=name))
    return games


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("truth", [0.0, 1.0, 3.0, 8.0])
def test_the_gain_of_the_worst_target_errs_no_more_often_than_said_to_either_side(truth, spread):
    """Its expected gain is below that of all others; claiming more is the error that would harm somebody."""
    rng = np.random.default_rng(5)
    level, repeats = 0.9, 300
    expected = gain(drawn(rng, truth, m=20_000, t=1, spread=spread), level).value
    safer = riskier = 0
    for _ in range(repeats):
        worst = worst_target(one_given_away(rng, truth, spread), level)
        safer += worst.interval.low > expected
        riskier += worst.interval.high < expected
    tail = (1 - level) / 2
    most = repeats * tail + 3 * np.sqrt(repeats * tail * (1 - tail))
    assert safer <= most
    assert riskier <= most
