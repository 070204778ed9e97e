"""Attribute game and attack against a slow twin, honest and leaky generators, and what tables can do."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

from synth_audit.audits.privacy.attribute_attack import AttributeAttack
from synth_audit.audits.privacy.attribute_game import AttributeGame
from synth_audit.dp.accountant import FitTerms
from synth_audit.dp.guarantee import Budget, Unit, most_advantage
from synth_audit.errors import NotApplicable, PluginError
from synth_audit.execution.context import Cache, RunContext
from synth_audit.generators.independent import Independent
from synth_audit.generators.resample import Resample
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.table import Table, assemble, load_table, save_table

QUICK = AttributeGame(iterations=5, reference=200, sets=10, rows=200)
ATTACK = AttributeAttack()
SECRET = {"secret": {"role": "sensitive"}}


@dataclass(frozen=True)
class Fixed:
    """Returns one table, whatever it is fitted to."""

    table: Table = field(repr=False)
    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Fixed", summary="One table.")

    def fit(self, train, context):
        return self

    def sample(self, n, rng):
        return self.table.released_only()


@dataclass(frozen=True)
class Drawn(Fixed):
    """Draws from one table, whatever it is fitted to."""

    def sample(self, n, rng):
        return self.table.released_only().take(rng.choice(self.table.n_rows, n, replace=False))


def numbers(n, seed, noise=1.0):
    """A secret that hangs on two of four columns, and another that hangs on nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    x[:, 3] += x[:, 0]
    return {
        "secret": 2 * x[:, 0] - x[:, 1] + noise * rng.normal(size=n),
        **{f"x{i}": x[:, i] for i in range(4)},
        "lone": rng.normal(size=n),
    }


@pytest.fixture
def played(subject_of, measure):
    """Play a generator on columns; its measurements and its notes."""

    def play(columns, generator, audit=QUICK, seed=0, suppression=10, **specs):
        subject = subject_of(columns, None, columns, suppression=suppression, **(specs or SECRET))
        made = Fixed(subject.train) if generator is Fixed else generator
        if isinstance(made, Fixed) and isinstance(audit, AttributeGame):
            audit = replace(audit, rows=made.table.n_rows)
        model = made.fit(subject.train.released_only(), FitContext(rng=np.random.default_rng(9)))
        subject = replace(subject, synthetic=model.sample(subject.train.n_rows, np.random.default_rng(9)))
        found, findings = measure(audit, replace(subject, generator=made), seed)
        return found, findings

    return play


def naive(columns, secret):
    """Coefficients of standardised columns and the adjusted R², by least squares with an intercept."""
    z = {name: (x - np.mean(x)) / np.std(x, ddof=1) for name, x in columns.items()}
    x = np.column_stack([np.ones(len(z[secret])), *(v for name, v in z.items() if name != secret)])
    beta, *_ = np.linalg.lstsq(x, z[secret], rcond=None)
    left = np.sum((z[secret] - x @ beta) ** 2) / np.sum(z[secret] ** 2)
    return beta[1:], 1 - left * (len(x) - 1) / (len(x) - x.shape[1])


def test_it_is_the_papers_definition_on_numbers(played):
    columns = numbers(300, 0)
    found, _ = played(columns, Fixed)
    beta, r_squared = naive(columns, "secret")
    for scope in ("", "secret"):
        name = ("mab", scope) if scope else "mab"
        assert found[name].value == pytest.approx(np.abs(beta).mean())
    assert found["wcab", "secret"].value == pytest.approx(np.abs(beta).max())
    assert found["mr2"].value == pytest.approx(r_squared)
    interval = found["mab", "secret"].interval
    assert interval.high - interval.low == pytest.approx(0, abs=1e-9)


def test_guesses_at_targets_are_those_of_the_regression(played):
    """All of train is the reference: its outlying rows are known, if there are only four."""
    columns = numbers(100, 0)
    audit = replace(QUICK, reference=100, tail=0.04)
    found, findings = played(columns, Fixed, audit, suppression=4)
    z = {name: (x - np.mean(x)) / np.std(x, ddof=1) for name, x in columns.items()}
    rows = np.argsort(columns["secret"])[[0, 1, -2, -1]]
    beta, _ = naive(columns, "secret")
    guess = np.column_stack([z[name] for name in columns if name != "secret"])[rows] @ beta
    error = found["mse", "outlying targets of secret"]
    assert error.value == pytest.approx(np.mean((guess - z["secret"][rows]) ** 2))
    assert error.reference.value == pytest.approx(np.mean(z["secret"][rows] ** 2))
    assert (error.n_achieved, error.n_requested) == (20, 20)
    assert ("mse", "random targets of secret") in found
    assert not any("reference samples" in note for note in findings.notes)


def test_guesses_learnt_from_real_rows_stand_beside_whatever_the_generator_does(played):
    outlying = "outlying targets of secret"
    copied, _ = played(numbers(300, 0), Resample())
    apart, _ = played(numbers(300, 0), Independent())
    assert copied["real_mse", outlying].value == apart["real_mse", outlying].value
    assert copied["mse", outlying].value == pytest.approx(copied["real_mse", outlying].value, rel=0.1)
    assert apart["mse", outlying].value > 5 * apart["real_mse", outlying].value
    assert apart["real_mse", outlying].reference == apart["mse", outlying].reference


@dataclass(frozen=True)
class Claiming:
    """Copies rows and claims that this costs ε = 1."""

    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Claiming", summary="A false claim.")

    def fit(self, train, context):
        context.accountant.domain("declared")
        context.accountant.pure(0.99, what="nothing, in truth")
        return Drawn(train)


def test_rows_learnt_from_are_guessed_oftener_where_few_taught_the_attack(played):
    small = replace(QUICK, reference=50, rows=100)
    noise = np.random.default_rng(1).normal(size=(20, 300))
    columns = numbers(300, 0, noise=3.0) | {f"n{i}": x for i, x in enumerate(noise)}
    kept, _ = played(columns, Resample(), small)
    apart, _ = played(columns, Independent(), small)
    assert kept["advantage", "secret"].value > 0.1
    assert apart["advantage", "secret"].value == pytest.approx(0, abs=0.1)
    whole, _ = played(numbers(60, 0), Resample(), replace(QUICK, reference=60, rows=60))
    assert ("advantage", "secret") not in whole


def test_the_advantage_is_drawn_beside_what_two_steps_of_the_guarantee_allow(subject_of, measure):
    columns = numbers(300, 0)
    terms = FitTerms(total=Budget(1), fit=Budget(1), unit=Unit.ROW, drawn=50)
    subject = replace(subject_of(columns, None, columns, **SECRET), generator=Claiming(), terms=terms)
    found, findings = measure(replace(QUICK, reference=50, rows=50), subject)
    _, drawn = findings.series
    claimed, promised = drawn.lines.values()
    assert (drawn.x, claimed) == (("secret",), (found["advantage", "secret"].value,))
    assert promised == pytest.approx((most_advantage(1.98, 0),), abs=1e-6)


def test_the_most_isolated_people_are_guessed_at_where_asked_for(played):
    columns = numbers(100, 0)
    odd = np.arange(100) < 4
    columns |= {n: np.where(odd, 30.0 * (1 + np.arange(100)), columns[n]) for n in ("x2", "x3", "lone")}
    audit = replace(QUICK, reference=100, achilles=True)
    found, _ = played(columns, Fixed, audit, suppression=4)
    z = {name: (x - np.mean(x)) / np.std(x, ddof=1) for name, x in columns.items()}
    error = found["mse", "achilles targets of secret"]
    assert error.reference.value == pytest.approx(np.mean(z["secret"][:4] ** 2))
    assert (error.n_achieved, error.n_requested) == (20, 20)
    without, _ = played(columns, Fixed, replace(audit, achilles=False), suppression=4)
    assert ("mse", "achilles targets of secret") not in without


def test_errors_at_few_people_are_withheld(played):
    """The error of guessing the mean of one outlier would be the outlier."""
    audit = replace(QUICK, reference=100, tail=0.04)
    found, findings = played(numbers(100, 0), Resample(), audit)
    assert ("mse", "outlying targets of secret") not in found
    assert ("mse", "random targets of secret") in found
    assert any("outlying targets of secret are withheld" in note for note in findings.notes)


def test_the_attack_keeps_all_of_a_copy_and_nothing_of_independent_columns(played):
    copy, findings = played(numbers(600, 1), Resample(), ATTACK)
    assert set(copy) == {"retained", ("retained", "secret")}
    assert 0.9 < copy["retained"].interval.low < copy["retained"].interval.high < 1.1
    assert copy["retained"].value == copy["retained", "secret"].value
    assert not findings.notes
    clean, _ = played(numbers(600, 1), Independent(), ATTACK)
    assert clean["retained"].value == 0
    assert clean["retained"].interval.high < 0.25


def test_the_attack_needs_no_generator(subject_of, measure):
    columns = numbers(600, 1)
    subject = subject_of(columns, None, columns, **SECRET)
    assert subject.generator is None
    found, _ = measure(ATTACK, subject)
    assert found["retained"].interval.low > 0.9


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_a_copy_keeps_all_and_independent_columns_keep_nothing(order, played):
    columns = {name: x[order] for name, x in numbers(600, 1).items()}
    copy, _ = played(columns, Resample())
    assert 0.9 < copy["retained"].interval.low < copy["retained"].interval.high < 1.1
    clean, _ = played(columns, Independent())
    assert abs(clean["retained"].value) < 0.03
    assert clean["retained"].interval.high < 0.25
    assert clean["mab"].interval.low <= clean["mab"].reference.interval.high
    assert copy["mab"].interval.low > clean["mab"].interval.high
    assert copy["mab"].value == pytest.approx(copy["real_mab", "secret"].value, rel=0.05)


def test_a_secret_that_is_explained_almost_wholly_is_not_taken_for_safe(played):
    """Its coefficients are smaller than those of a shuffled secret: MAB alone would call it safe."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=600)
    columns = {f"x{i}": common + 0.05 * rng.normal(size=600) for i in range(12)}
    columns["secret"] = np.mean(list(columns.values()), axis=0)
    found, _ = played(columns, Resample())
    assert found["mab"].value < found["mab"].reference.value
    assert found["retained"].interval.low > 0.9


def test_a_secret_without_associations_is_left_out(played):
    roles = {**SECRET, "lone": {"role": "sensitive"}}
    found, findings = played(numbers(600, 0), Resample(), **roles)
    assert ("retained", "lone") not in found
    assert found["retained"].value == found["retained", "secret"].value
    assert ("mab", "lone") in found
    assert any("lone" in note and "beyond chance" in note for note in findings.notes)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("audit", [QUICK, ATTACK])
def test_where_no_secret_has_associations_nothing_is_judged(audit, seed, played):
    rng = np.random.default_rng(0)
    columns = {"secret": rng.normal(size=400), "x0": rng.normal(size=400), "x1": rng.normal(size=400)}
    found, findings = played(columns, Independent(), audit, seed=seed)
    assert not [name for name in found if "retained" in name]
    assert any("linear association" in note for note in findings.notes)


def test_the_worst_secret_is_the_headline_and_allows_for_their_number(played):
    columns = numbers(600, 0) | {"other": numbers(600, 0)["x2"] + numbers(600, 9)["lone"]}
    roles = {**SECRET, "other": {"role": "sensitive"}}
    found, _ = played(columns, Resample(), **roles)
    for quantity in ("mab", "mr2", "retained"):
        parts = [found[quantity, scope] for scope in roles]
        worst = max(parts, key=lambda m: m.value)
        assert found[quantity].value == worst.value
        assert found[quantity].interval.high > max(m.interval.high for m in parts)
        assert "numbers" in found[quantity].interval.method


def test_a_label_counts_by_what_it_says_and_not_by_its_place_in_the_alphabet(played):
    rng = np.random.default_rng(0)
    region = rng.choice(list("abc"), 600)
    secret = np.where(region == "b", 2.0, 0.0) + rng.normal(size=600)
    columns = {"region": region, "x": rng.normal(size=600), "secret": secret}
    found, _ = played(columns, Fixed)
    assert found["mr2"].value == pytest.approx(np.corrcoef(region == "b", secret)[0, 1] ** 2, abs=0.02)
    renamed = {**columns, "region": np.array([{"a": "z", "b": "a", "c": "m"}[x] for x in region])}
    again, _ = played(renamed, Fixed)
    for name in ("mab", "mr2", ("wcab", "secret")):
        assert again[name].value == pytest.approx(found[name].value)


def test_a_secret_of_two_labels_is_one_number(played):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    ill = x + rng.normal(size=400) > 0
    columns = {"secret": np.where(ill, "yes", "no"), "x": x, "y": rng.normal(size=400)}
    found, _ = played(columns, Fixed)
    beta, r_squared = naive({"secret": ill.astype(float), "x": columns["x"], "y": columns["y"]}, "secret")
    assert found["mab"].value == pytest.approx(np.abs(beta).mean())
    assert found["mr2"].value == pytest.approx(r_squared)


def test_a_secret_of_several_labels_is_one_number_each_weighted_by_frequency(played):
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    labels = np.where(x > 1, "high", np.where(x > -0.5, "middle", "low"))
    labels[:3] = "seldom"  # gets no number of its own
    found, _ = played({"secret": labels, "x": x, "y": rng.normal(size=600)}, Fixed)
    y = rng.normal(size=600)
    expected = [
        (np.mean(labels == name), naive({"s": (labels == name) * 1.0, "x": x, "y": y}, "s")[1])
        for name in ("high", "middle", "low")
    ]
    shares, r_squared = np.array(expected).T
    assert found["mr2"].value == pytest.approx(np.average(r_squared, weights=shares), abs=0.01)
    copy, _ = played({"secret": labels, "x": x, "y": y}, Resample())
    assert copy["retained"].interval.low > 0.8


def test_where_a_value_is_missing_may_tell_of_the_secret(played):
    rng = np.random.default_rng(0)
    gap = rng.random(600) < 0.3
    secret = gap + 0.3 * rng.normal(size=600)
    columns = {
        "tested": pa.array(rng.normal(size=600), mask=gap),
        "x": rng.normal(size=600),
        "secret": secret,
    }
    found, _ = played(columns, Fixed)
    assert found["mr2"].value == pytest.approx(np.corrcoef(gap, secret)[0, 1] ** 2, abs=0.03)


def test_a_target_that_lacks_its_secret_is_none(played):
    columns = numbers(400, 0)
    gaps = np.random.default_rng(1).random(400) < 0.6
    found, _ = played({**columns, "secret": pa.array(columns["secret"], mask=gaps)}, Resample())
    for kind in ("outlying", "random"):
        error = found["mse", f"{kind} targets of secret"]
        assert error.finite
        assert error.n_achieved == 20
    assert found["retained"].interval.low > 0.8


def test_a_generator_that_blanks_or_freezes_the_secret_keeps_nothing(played, subject_of):
    columns = numbers(300, 0)
    schema = subject_of(columns, None, columns, **SECRET).schema
    for frozen in (np.full(300, 7.0), pa.nulls(300, pa.float64())):
        found, _ = played(columns, Fixed(Table(schema, pa.table({**columns, "secret": frozen}))))
        assert found["mab"].value == 0
        assert found["retained"].value < 0.01
        attacked, _ = played(columns, Fixed(Table(schema, pa.table({**columns, "secret": frozen}))), ATTACK)
        assert attacked["retained"].value == 0


def test_collinear_columns_are_told_of_and_measured(played):
    columns = numbers(300, 0)
    found, findings = played({**columns, "twin": columns["x0"], "sum": columns["x0"] + columns["x1"]}, Fixed)
    assert found["mab"].finite
    assert found["retained"].finite
    assert any("collinear" in note and "50 of 50" in note for note in findings.notes)


@pytest.mark.parametrize(
    ("width", "enough"), [pytest.param(60, False, marks=pytest.mark.slow), (21, False), (20, True)]
)
def test_too_many_columns_for_the_rows_give_no_share(width, enough, played):
    """A set drawn with replacement holds some 50 of 80 rows: sixty columns explain it wholly, by chance."""
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=200) for i in range(width)} | {"secret": rng.normal(size=200)}
    found, findings = played(columns, Resample(), replace(QUICK, rows=80, reference=80))
    assert found["mab"].finite
    assert ("mr2" in found) == enough
    assert "retained" not in found
    assert any("rows are needed" in note for note in findings.notes) != enough


def test_a_reference_larger_than_train_is_all_of_it_and_said(played):
    found, findings = played(numbers(120, 0), Resample(), replace(QUICK, reference=500))
    assert found["retained"].finite
    assert any("all 120 training rows" in note for note in findings.notes)


@pytest.mark.parametrize(
    ("columns", "specs", "audit", "words"),
    [
        (numbers(49, 0), SECRET, QUICK, "49 rows"),
        (
            numbers(60, 0),
            {"secret": {"role": ("sensitive", "target")}},
            QUICK,
            "both a secret and the target",
        ),
        (numbers(60, 0), {"secret": {"role": "target"}}, QUICK, "needs a sensitive column"),
        (numbers(60, 0), {"lone": {"role": "target"}}, replace(QUICK, columns=("lone",)), "both a secret"),
        (numbers(60, 0), SECRET, replace(QUICK, columns=("absent",)), "which the table does not have"),
        ({**numbers(60, 0), "secret": np.ones(60)}, SECRET, QUICK, "no value or label of it is frequent"),
        ({"secret": np.arange(60.0), "x": np.ones(60)}, SECRET, QUICK, "no other column varies"),
        ({"secret": [f"v{i}" for i in range(60)], "x": np.arange(60.0)}, SECRET, QUICK, "is frequent"),
    ],
)
def test_what_cannot_be_asked_is_refused(columns, specs, audit, words, played):
    with pytest.raises(NotApplicable, match=words):
        played(columns, Resample(), audit, **specs)


def test_a_constant_secret_beside_another_is_noted(played):
    columns = {**numbers(300, 0), "same": np.ones(300)}
    found, findings = played(columns, Resample(), **SECRET, same={"role": "sensitive"})
    assert found["retained"].finite
    assert any(note.startswith("same is not attacked") for note in findings.notes)


def test_few_iterations_are_too_few_to_judge(played):
    found, _ = played(numbers(300, 0), Resample(), replace(QUICK, iterations=2))
    assert all(m.short for m in found.values() if m.n_minimum and m.id == m.id.whole)
    assert not played(numbers(300, 0), Resample())[0]["mab"].short


@dataclass(frozen=True, kw_only=True)
class Layered:
    """Truncatable, and keeps a list of its fits beside the tests."""

    truncation: int | None = None
    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Layered", summary="Counts its fits.")
    fits: ClassVar[list[tuple[str, int]]] = []

    def untruncated(self):
        return Layered()

    def fit(self, train, context):
        assert self.truncation is None
        self.fits.append((train.fingerprint, int(context.rng.integers(2**60))))
        return LayeredModel(train)

    def load(self, folder):
        return LayeredModel(load_table(folder, "train"))


@dataclass(frozen=True)
class LayeredModel:
    train: Table

    def truncated(self, level):
        return self

    def sample(self, n, rng):
        return self.train.take(rng.integers(0, self.train.n_rows, n))

    def save(self, folder):
        save_table(self.train, folder, "train")


def test_levels_of_truncation_share_their_fits(tmp_path, subject_of):
    columns = numbers(300, 0)
    subject = subject_of(columns, None, columns, **SECRET)
    Layered.fits.clear()
    for level in (1, 2, None):
        generator = Layered(truncation=level)
        draws = np.random.default_rng(level or 0)
        context = RunContext(seed=3, draws=draws, cache=Cache(tmp_path))
        QUICK.run(replace(subject, generator=generator), context)
    assert len(Layered.fits) == QUICK.iterations
    assert len({rows for rows, _ in Layered.fits}) == QUICK.iterations
    other = RunContext(seed=4, draws=np.random.default_rng(0), cache=Cache(tmp_path))
    QUICK.run(replace(subject, generator=Layered()), other)
    assert len(set(Layered.fits)) == 2 * QUICK.iterations


def test_the_yardstick_depends_on_the_seed_of_the_plan_alone(played):
    """Candidates of a sweep are measured by the same real rows, whatever they draw."""
    one, _ = played(numbers(300, 0), Resample(), seed=1)
    other, _ = played(numbers(300, 0), Independent(), seed=2)
    for name in (("real_mab", "secret"), ("real_mr2", "secret")):
        assert one[name] == other[name]


def test_numbers_do_not_depend_on_threads_or_runs(played):
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(played(numbers(300, 0), Resample())[1])
    assert results[0] == results[1]
    assert played(numbers(300, 0), Resample(), seed=1)[1] != results[0]


def test_boxes_show_iterations_beside_chance_and_reality(played):
    found, findings = played(numbers(300, 0), Resample())
    [series] = findings.series
    assert (series.kind, series.id.column, len(series.x)) == ("box", "secret", 3)
    release, chance, real = (
        dict(zip(series.lines, box, strict=True)) for box in zip(*series.lines.values(), strict=True)
    )
    assert release["low"] <= found["mab", "secret"].value <= release["high"]
    assert chance["high"] < real["low"]


@dataclass(frozen=True)
class Changed:
    """Real rows drawn again, with what ``change`` makes of their columns."""

    change: object
    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Changed", summary="Rows drawn again and spoilt.")

    def fit(self, train, context):
        return ChangedModel(self.change, train)


@dataclass(frozen=True)
class ChangedModel:
    change: object
    train: Table

    def sample(self, n, rng):
        drawn = self.train.take(rng.integers(0, self.train.n_rows, n))
        columns = {name: drawn.plain(name).copy() for name in drawn.schema.names}
        self.change(columns, n, rng)
        return assemble(drawn.schema, columns)


def sentinels(columns, n, rng):
    columns["secret"][:3] = -999


def blanks(columns, n, rng):
    columns["secret"][rng.random(n) < 0.6] = np.nan


def a_third_shuffled(columns, n, rng):
    some = rng.random(n) < 0.35
    columns["secret"][some] = rng.permutation(columns["secret"][some])


def all_shuffled(columns, n, rng):
    columns["secret"][:] = rng.permutation(columns["secret"])


def test_a_shuffled_secret_keeps_nothing_of_itself(played):
    found, _ = played(numbers(600, 1), Changed(all_shuffled), replace(QUICK, sets=50))
    assert abs(found["retained"].value) < 0.15
    found, _ = played(numbers(600, 1), Changed(all_shuffled), ATTACK)
    assert found["retained"].value == 0


def only_in_games(columns, n, rng):
    if n > 300:
        columns["secret"][:] = rng.permutation(columns["secret"])


def only_in_releases(columns, n, rng):
    if n <= 300:
        columns["secret"][:] = rng.permutation(columns["secret"])


@pytest.mark.parametrize("audit", [QUICK, ATTACK])
@pytest.mark.parametrize("change", [sentinels, blanks, a_third_shuffled])
def test_what_leaves_the_attack_intact_does_not_help(change, audit, played):
    """Each halves R² within sets."""
    found, _ = played(numbers(600, 0), Changed(change), audit)
    assert found["retained"].value > 0.75


@pytest.mark.parametrize(("change", "audit"), [(only_in_games, QUICK), (only_in_releases, ATTACK)])
def test_what_hides_in_one_of_games_and_release_shows_in_the_other(change, audit, played):
    found, _ = played(numbers(600, 0), Changed(change), audit)
    assert found["retained"].value > 0.75


def test_an_association_that_no_line_shows_is_measured_by_groups(played):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(300, 2))
    x = np.vstack([half, half * [-1, 1]])  # symmetric, so that not even chance makes it linear
    columns = {"secret": np.abs(x[:, 0]), "x0": x[:, 0], "x1": x[:, 1]}
    clean, _ = played(columns, Independent(), ATTACK)
    assert clean["retained"].interval.high < 0.2
    copy, _ = played(columns, Resample(), ATTACK)
    assert copy["retained"].value == copy["retained", "secret"].value > 0.9
    games, _ = played(columns, Resample())
    assert not [name for name in games if "retained" in name]


def test_a_tie_of_spread_alone_is_not_called_safe(played):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(300, 2))
    x = np.vstack([half, half * [-1, 1]])
    columns = {"secret": x[:, 0], "x0": np.abs(x[:, 0]), "x1": x[:, 1]}
    assert "retained" not in played(columns, Independent())[0]
    found, findings = played(columns, Independent(), ATTACK)
    assert "retained" not in found
    assert any("not linear" in note for note in findings.notes)


def bent(n, rng, weight=0.2):
    """A secret that hangs on the size of one number, and a little, by a line, on another."""
    x = rng.normal(size=(n, 3))
    secret = np.abs(x[:, 0]) + weight * x[:, 1]
    return {"secret": secret, **{f"x{i}": x[:, i] for i in range(3)}}


def clinics(n, rng, weight=0.3):
    """Eighty clinics of which one alone is frequent tell nearly all; a number tells a little."""
    clinic = np.where(rng.random(n) < 0.05, 0, rng.integers(1, 80, n))
    x = rng.normal(size=n)
    return {
        "secret": (clinic % 2) + weight * x + 0.1 * rng.normal(size=n),
        "clinic": np.array([f"c{k}" for k in clinic], dtype=object),
        "x": x,
    }


def drugs(n, rng, weight=1.0):
    """Half are well; of the ill, forty rare diseases have a drug each; a number tells who is ill."""
    code = rng.integers(0, 40, n)
    ill = rng.random(n) < 0.5
    drug = np.where(ill, code, rng.integers(0, 40, n))
    return {
        "secret": np.array([f"d{k}" if i else "well" for k, i in zip(code, ill, strict=True)], dtype=object),
        "drug": np.array([f"g{k}" for k in drug], dtype=object),
        "x": weight * ill + rng.normal(size=n),
    }


@pytest.mark.parametrize("people", [bent, clinics, pytest.param(drugs, marks=pytest.mark.slow)])
def test_what_a_line_cannot_see_is_not_hidden_by_what_it_can(people, played):
    """The generator draws new people and drops what the line sees; independent columns drop the rest too."""
    columns = people(2000 if people is clinics else 1500, np.random.default_rng(0))
    few = QUICK if people is clinics else replace(QUICK, sets=4)

    def without_the_line(drawn, n, rng):
        drawn.update(people(n, rng, 0.0))

    leaky, _ = played(columns, Changed(without_the_line), ATTACK)
    assert leaky["retained"].interval.low > 0.5
    assert played(columns, Changed(without_the_line), few)[0]["retained"].value < 0.5
    for audit in (few, ATTACK):
        clean, _ = played(columns, Independent(), audit)
        assert clean["retained"].interval.high < 0.5


def test_rare_labels_of_a_secret_are_judged_apart_where_something_tells_of_them(played):
    columns = drugs(1500, np.random.default_rng(0))
    found, _ = played(columns, Resample(), ATTACK)
    assert found["retained", "rare labels of secret"].interval.low > 0.9
    lone = {**columns, "drug": np.random.default_rng(1).permutation(columns["drug"])}
    found, _ = played(lone, Resample(), ATTACK)
    assert ("retained", "rare labels of secret") not in found
    assert found["retained"].finite


def test_rare_labels_that_real_rows_hardly_explain_leave_a_release_decided(played):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 3))
    seldom = rng.random(1000) < np.where(x[:, 0] > 1.3, 0.3, 0.012)
    usual = np.where(x[:, 1] + rng.normal(size=1000) > 0, "a", "b")
    secret = np.where(seldom, rng.choice(["u", "v"], 1000), usual).astype(object)
    columns = {"secret": secret, **{f"x{i}": x[:, i] for i in range(3)}}
    found, _ = played(columns, Independent(), ATTACK)
    assert ("retained", "rare labels of secret") not in found
    assert found["retained"].interval.high < 0.5


def test_a_secret_of_rare_labels_only_leaves_the_whole_unjudged(played):
    columns = clinics(1600, np.random.default_rng(0), weight=1.0)
    columns["clinic"] = [f"c{k}" for k in np.resize(np.arange(80), 1600)]
    for audit in (QUICK, ATTACK):
        found, findings = played(columns, Independent(), audit, **SECRET, clinic={"role": "sensitive"})
        assert "retained" not in found
        assert any(note.startswith("clinic varies and is not attacked") for note in findings.notes)


def turned_round(columns, n, rng):
    columns["secret"] *= -1


@pytest.mark.parametrize("audit", [QUICK, ATTACK])
def test_guesses_that_are_wrong_throughout_tell_as_much(audit, played):
    found, _ = played(numbers(600, 0), Changed(turned_round), audit)
    assert found["retained"].interval.low > 0.9


def test_a_release_of_few_rows_is_not_certain_to_tell_nothing(subject_of, measure):
    """A test on 60 rows finds nothing: that is no proof that nothing is there."""
    columns = numbers(2000, 0, noise=5.0)
    subject = replace(subject_of(columns, None, columns, **SECRET), generator=Independent())
    ends = []
    for n in (60, 2000):
        model = Independent().fit(subject.train.released_only(), FitContext(rng=np.random.default_rng(9)))
        few = replace(subject, synthetic=model.sample(n, np.random.default_rng(9)))
        found, _ = measure(ATTACK, few)
        assert found["retained", "secret"].value == 0
        ends.append(found["retained"].interval.high)
    assert ends[0] > 1
    assert ends[1] < 0.5


@pytest.mark.parametrize("n", [100, pytest.param(200, marks=pytest.mark.slow)])
def test_without_outsiders_real_rows_are_not_scored_on_what_they_taught(n, subject_of, measure):
    """A generator that knows the truth is as good as real rows, with control or without."""
    rng = np.random.default_rng(0)

    def people(n):
        x = rng.normal(size=(n, 15))
        secret = x[:, :5].sum(axis=1) + 2 * rng.normal(size=n)
        return {"secret": secret, **{f"x{i}": x[:, i] for i in range(15)}}

    audits = (replace(QUICK, reference=n, rows=n), ATTACK)
    retained = {audit: [] for audit in audits}
    for seed in range(5):
        columns = people(n)
        subject = subject_of(columns, None, people(n), **SECRET)
        fresh = subject_of(columns, None, people(3000), **SECRET).synthetic
        subject = replace(subject, generator=Drawn(fresh))
        for audit in audits:
            found, _ = measure(audit, subject, shared=seed)
            if ("retained", "secret") in found:
                retained[audit].append(found["retained", "secret"].value)
    for values in retained.values():
        assert len(values) > 2
        assert np.mean(values) > 0.85


def test_a_named_secret_beside_an_unnamed_one_is_not_the_whole(played):
    for audit in (QUICK, ATTACK):
        found, _ = played(numbers(600, 0), Resample(), replace(audit, columns=("x3",)), **SECRET)
        assert "retained" not in found
        assert ("retained", "x3") in found


def infinite(columns, n, rng):
    columns["secret"][0] = np.inf


def refuses(columns, n, rng):
    raise NotApplicable("41.7")


@pytest.mark.parametrize(
    ("change", "words"), [(infinite, "infinite"), (refuses, "failed"), (None, "number of rows")]
)
def test_a_generator_that_breaks_its_contract_is_an_error_without_values(change, words, subject_of):
    columns = numbers(300, 0)
    subject = subject_of(columns, None, columns, **SECRET)
    generator = Changed(change) if change else Fixed(subject.train)  # which has too many rows
    with pytest.raises(PluginError, match=words) as caught:
        QUICK.run(replace(subject, generator=generator), RunContext(draws=np.random.default_rng(0)))
    assert "41.7" not in str(caught.value)


@pytest.mark.slow
def test_intervals_cover_the_mean_of_all_games(subject_of, measure):
    """The mean over many games on one table, against intervals from ten of them each."""
    columns = numbers(1000, 0)
    subject = replace(subject_of(columns, None, columns, **SECRET), generator=Resample())
    audit = replace(QUICK, iterations=10, sets=2)
    truth, _ = measure(replace(audit, iterations=400), subject, shared=10_000)
    held = dict.fromkeys((("mab", "secret"), ("mr2", "secret"), ("retained", "secret")), 0)
    for seed in range(200):
        found, _ = measure(audit, subject, seed, shared=seed)
        for name in held:
            held[name] += found[name].interval.low <= truth[name].value <= found[name].interval.high
    assert all(180 <= n <= 199 for n in held.values())
