"""Inference on tables whose answer is known, the traps other tools fell into, and a loop anyone can check."""

import datetime
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy import inference as questions
from synth_audit.audits.privacy._secrets import Equality, GuessTolerance
from synth_audit.audits.privacy.inference import Inference
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.stats.attack_success import corrected_level, risk
from synth_audit.stats.proportions import Proportion


def people(n, seed):
    """Two known numbers and a known label, and secrets that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=n),
        "y": rng.normal(size=n),
        "k": rng.choice(["a", "b", "c"], n),
        "wage": np.exp(rng.normal(10, 0.8, n)),
        "ill": rng.choice(["yes", "no"], n),
    }


def reordered(table):
    order = np.random.default_rng(0).permutation(len(table["x"]))
    return {name: values[order] for name, values in table.items()}


def numbers(*values):
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(
    ("secret", "disguise"),
    [
        *(("wage", dict), ("ill", reordered), ("k", dict)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("wage", reordered), ("ill", dict), ("k", reordered))
        ),
    ],
)
def test_a_copy_gives_everything_away(secret, disguise, subject_of, measure):
    train = people(600, 1)
    found, findings = measure(
        Inference(secrets=(secret,)), subject_of(train, people(300, 2), disguise(train))
    )
    assert found["train_rate", secret].value == 1.0
    assert found["control_rate", secret].value < 0.7
    assert found["worst_risk"].value > 0.95
    assert found["risk", secret].interval.low > 0.9
    assert findings.exposures[0].train_hit.tolist() == list(range(600))


def test_strangers_give_nothing_away(subject_of, measure):
    found, _ = measure(Inference(), subject_of(people(1500, 1), people(1500, 2), people(1500, 3)))
    assert {scope for name, scope in filter(lambda k: not isinstance(k, str), found) if name == "risk"} == {
        "x",
        "y",
        "k",
        "wage",
        "ill",
    }
    assert found["worst_risk"].interval.low <= 0 <= found["worst_risk"].interval.high


@pytest.mark.parametrize("factor", [1.01, 0.99])
def test_a_numeric_secret_times_1_01_is_as_good_as_the_secret(factor, subject_of, measure):
    train = people(600, 1)
    moved = train | {"wage": train["wage"] * factor}
    found, _ = measure(Inference(secrets=("wage",)), subject_of(train, people(300, 2), moved))
    assert found["train_rate", "wage"].value > 0.99
    assert found["worst_risk"].value > 0.95


def test_minus_100_is_no_guess_at_900():
    tolerance = GuessTolerance.from_train(np.linspace(0, 1000, 500), 0.05)
    secrets, guesses = numbers(900, 900, -900, -900, 0, 0), numbers(-100, 890, 100, -890, 60, 40)
    assert tolerance.right(guesses, secrets).tolist() == [False, True, False, True, False, True]


def test_negatives_zero_and_huge_numbers_behave():
    huge = 1.7e308
    tolerance = GuessTolerance.from_train(np.append(np.linspace(-10, 10, 500), [huge, -huge]), 0.05)
    secrets = numbers(huge, huge, -huge, huge, 0, 0, -5)
    guesses = numbers(huge, -huge, huge, 0.99 * huge, huge, 0.1, -5.1)
    assert tolerance.right(guesses, secrets).tolist() == [True, False, False, True, False, True, True]


def test_missing_is_neither_a_right_guess_nor_a_secret():
    nothing = numbers(np.nan, np.nan, 1.0)
    known = numbers(np.nan, 1.0, np.nan)
    assert not GuessTolerance.from_train(numbers(0, 1, 2), 0.05).right(nothing, known).any()
    assert not Equality().right(nothing, known).any()


@pytest.mark.parametrize(
    ("values", "near", "far"),
    [
        (np.arange(500) % 2, 0.0, 1.0),  # a range of one step: only the very number is right
        (np.arange(500) % 5, 0.0, 1.0),
        (1940 + np.arange(500) % 66, 2.0, 5.0),  # years: 5 % of 1980 would be a century
        (np.append(np.zeros(490), [*range(1000, 10_000, 1000), 99_999]), 40.0, 6000.0),
        (np.append(np.linspace(20, 60, 500), 1e9), 1.5, 5.0),  # one outlier sets the range
    ],
)
def test_what_is_right_follows_the_usual_range(values, near, far):
    values = values.astype(np.float64)
    tolerance = GuessTolerance.from_train(values, 0.05)
    usual = np.full(3, np.median(values))
    assert tolerance.right(usual + numbers(0, near, -near), usual).all()
    assert not tolerance.right(usual + numbers(far, -far, 2 * far), usual).any()


def test_an_outlying_secret_is_judged_relative_to_itself():
    values = np.append(np.zeros(490), np.linspace(1000, 99_999, 10))
    tolerance = GuessTolerance.from_train(values, 0.05)
    assert tolerance.right(numbers(96_000, 90_000), numbers(99_999, 99_999)).tolist() == [True, False]


def test_dates_are_numbers_and_no_labels(subject_of, measure):
    """Twenty days off in thirty years is right, which no comparison of labels would see."""
    day, epoch = datetime.timedelta(days=1), datetime.datetime(1990, 1, 1)

    def dated(n, seed, late=0):
        offsets = np.random.default_rng(seed).integers(0, 365 * 30, n)
        return people(n, seed) | {"since": pa.array([epoch + int(i + late) * day for i in offsets])}

    subject = subject_of(dated(600, 1), dated(300, 2), dated(600, 1, late=20))
    found, _ = measure(Inference(secrets=("since",)), subject)
    assert found["train_rate", "since"].value == 1.0
    assert found["control_rate", "since"].value < 0.2
    assert found["worst_risk"].value > 0.95


def test_a_continuous_secret_is_not_compared_for_equality(subject_of, measure):
    train = people(600, 1)
    noisy = train | {"wage": train["wage"] + np.random.default_rng(3).normal(0, 1.0, 600)}
    found, _ = measure(Inference(secrets=("wage",)), subject_of(train, people(300, 2), noisy))
    assert found["train_rate", "wage"].value > 0.99


def test_nobody_guesses_an_independent_coin(subject_of, measure):
    tables = people(2000, 1), people(2000, 2), people(2000, 3)
    found, _ = measure(Inference(secrets=("ill",)), subject_of(*tables))
    for name in ("naive_rate", "train_rate", "control_rate", "model_rate"):
        assert found[name, "ill"].value == pytest.approx(0.5, abs=0.06)


def test_the_naive_attackers_know_the_population(subject_of, measure):
    """A common label, and one that a known column tells: the model sees it, the constant guess does not."""

    def told(n, seed):
        table = people(n, seed)
        return table | {
            "rare": np.where(np.arange(n) % 10, "often", "seldom"),
            "told": np.sign(table["x"]) + 5,
        }

    found, _ = measure(
        Inference(secrets=("rare", "told")), subject_of(told(800, 1), told(800, 2), told(800, 3))
    )
    assert found["naive_rate", "rare"].value == pytest.approx(0.9, abs=0.01)
    assert found["naive_rate", "told"].value == pytest.approx(0.5, abs=0.07)
    assert found["model_rate", "told"].value > 0.97


def test_the_model_hits_a_number_that_many_share(subject_of, measure):
    def zeros(n, seed):
        table = people(n, seed)
        extra = np.where(np.random.default_rng(seed).random(n) < 0.8, 0.0, table["wage"])
        return table | {"gain": extra}

    found, _ = measure(Inference(secrets=("gain",)), subject_of(zeros(800, 1), zeros(800, 2), zeros(800, 3)))
    assert found["naive_rate", "gain"].value == pytest.approx(0.8, abs=0.04)
    assert found["model_rate", "gain"].value > 0.7


def test_hits_are_those_of_a_plain_loop(subject_of, measure):
    train, control, synthetic = people(60, 1), people(40, 2), people(80, 3)
    _, findings = measure(
        Inference(secrets=("ill",), known=("x", "k")), subject_of(train, control, synthetic)
    )
    [exposure] = findings.exposures
    span = np.ptp(train["x"])
    for table, hits in ((train, exposure.train_hit), (control, exposure.control_hit)):
        expected = []
        for i in range(len(table["x"])):
            distances = [
                min(1, abs(table["x"][i] - synthetic["x"][j]) / span) + (table["k"][i] != synthetic["k"][j])
                for j in range(80)
            ]
            if synthetic["ill"][int(np.argmin(distances))] == table["ill"][i]:
                expected.append(i)
        assert hits.tolist() == expected


def test_ties_among_equal_rows_are_broken_at_random(subject_of, measure):
    """All known values agree, so the first row of the release must not answer for everybody."""
    n = 400
    half = {"k": np.array(["a", "b"] * (n // 2)), "ill": np.array(["yes", "yes", "no", "no"] * (n // 4))}
    rates, guesses = set(), set()
    for seed in range(6):
        found, findings = measure(Inference(secrets=("ill",)), subject_of(half, half, half), seed=seed)
        rates.add(found["train_rate", "ill"].value)
        guesses.add(tuple(findings.exposures[0].train_hit.tolist()))
    assert rates == {0.5}
    assert len(guesses) > 1


def test_the_worst_secret_speaks_for_all_with_room_for_having_chosen_it(subject_of, measure):
    train, other = people(600, 1), people(600, 3)
    leaky = other | {name: train[name] for name in ("x", "y", "k", "ill")}
    subject = subject_of(train, people(300, 2), leaky)
    audit = Inference(secrets=("wage", "ill"), known=("x", "y", "k"))
    found, findings = measure(audit, subject)
    assert found["worst_risk"].value == found["risk", "ill"].value > 0.9
    assert found["risk", "wage"].value < 0.1
    exposure = {e.measurement.column: e for e in findings.exposures}["ill"]
    tallies = Proportion(len(exposure.train_hit), 600), Proportion(len(exposure.control_hit), 300)
    corrected = risk(*tallies, corrected_level(0.95, 2)).interval
    assert (found["worst_risk"].interval.low, found["worst_risk"].interval.high) == (
        corrected.low,
        corrected.high,
    )
    assert found["worst_risk"].interval.level == 0.95
    assert exposure.columns == ("ill",)


def test_sensitive_columns_are_the_secrets_where_the_plan_declares_some(subject_of, measure):
    tables = people(200, 1), people(200, 2), people(200, 3)
    found, _ = measure(Inference(), subject_of(*tables, wage={"role": "sensitive"}))
    assert {key[1] for key in found if not isinstance(key, str)} == {"wage"}


def test_of_many_columns_some_are_drawn_and_the_same_ones_for_every_stream(subject_of):
    subject = subject_of(people(100, 1), people(100, 2), people(100, 3))
    audit = Inference(max_secrets=2, n_attacks=30)
    attacked = []
    for stream in ("own", "planted"):
        findings = audit.run(subject, RunContext(seed=3).child(stream))
        attacked.append([m.id.column for m in findings.measurements if m.id.quantity == "risk"])
        assert any(note.startswith("2 of 5 columns were drawn") for note in findings.notes)
    assert attacked[0] == attacked[1]
    assert len(attacked[0]) == 2
    named = Inference(max_secrets=1, secrets=("ill", "wage"), n_attacks=30, known_sets=0).run(
        subject, RunContext().child("x")
    )
    assert sum(m.id.quantity == "risk" for m in named.measurements) == 2
    assert not named.notes


def many(n, seed):
    """More known columns than have a search for each secret."""
    rng = np.random.default_rng(seed)
    return people(n, seed) | {f"v{i}": rng.normal(size=n) for i in range(50)}


def test_over_many_columns_one_search_guesses_what_a_search_each_would(subject_of, measure, monkeypatch):
    train = many(150, 1)
    leaky = {name: np.where(np.arange(150) < 60, train[name], v) for name, v in many(150, 3).items()}
    subject = subject_of(train, many(120, 2), leaky)
    audit = Inference(secrets=("ill", "wage", "v7"), known_sets=0)
    _, together = measure(audit, subject)
    monkeypatch.setattr(questions, "MOST_SEARCHED", 1000)
    _, each = measure(audit, subject)
    monkeypatch.setattr(questions, "MOST_CELLS", 55 * 150)
    _, of_many_rows = measure(audit, subject)
    assert of_many_rows.measurements == each.measurements
    monkeypatch.setattr(questions, "MOST_CELLS", 1000)
    _, of_many_rows = measure(audit, subject)
    assert of_many_rows.measurements == together.measurements
    for one, other in zip(together.exposures, each.exposures, strict=True):
        assert one.train_hit.tolist() == other.train_hit.tolist()
        assert one.control_hit.tolist() == other.control_hit.tolist()
        assert set(range(60)) <= set(one.train_hit.tolist())
    assert not together.notes


def test_one_search_for_all_secrets_guesses_what_a_search_for_each_does(subject_of, measure, monkeypatch):
    """Also where records lack a secret, and where release rows repeat, of which a random one is taken."""
    tables = [people(n, seed) for n, seed in ((60, 1), (40, 2), (50, 3))]
    for table in tables:
        table["wage"][::5] = np.nan
    tables[2] = {name: np.tile(values, 2) for name, values in tables[2].items()}
    searches = []
    true_search = questions.nearest_without
    monkeypatch.setattr(
        questions, "nearest_without", lambda *a, **k: searches.append(len(a[0])) or true_search(*a, **k)
    )
    # Fewer are guessed at than there are, others for every secret.
    attack, subject = Inference(n_attacks=30, n_trees=2), subject_of(*tables)
    at_once = measure(attack, subject)[1]
    assert searches
    searches.clear()
    monkeypatch.setattr(questions, "_SHARED", np.inf)
    one_by_one = measure(attack, subject)[1]
    assert not searches
    assert at_once.measurements == one_by_one.measurements
    for mine, theirs in zip(at_once.exposures, one_by_one.exposures, strict=True):
        assert mine.train_tried.tolist() == theirs.train_tried.tolist()
        assert mine.train_hit.tolist() == theirs.train_hit.tolist()
        assert mine.control_hit.tolist() == theirs.control_hit.tolist()


def test_over_many_columns_the_work_is_bounded_and_said(subject_of, measure, monkeypatch):
    monkeypatch.setattr(questions, "MOST_LEARNT", 90)
    train = many(100, 1)
    train["wage"] = pa.array(train["wage"], mask=np.arange(100) % 2 == 0)
    subject = subject_of(train, many(100, 2), many(100, 3))
    found, findings = measure(Inference(secrets=("x", "y", "wage"), n_attacks=40, known_sets=0), subject)
    x, y, wage = (set(e.train_tried.tolist()) for e in findings.exposures)
    assert x == y
    assert len(x) == len(wage) == 40
    assert {row for row in x if row % 2} < wage
    assert not any(row % 2 == 0 for row in wage)
    assert found["model_rate", "x"].n_achieved == 40
    same, learnt = findings.notes
    assert "same 40 records" in same
    assert "learn from 90" in learnt


def test_on_planted_leaks_only_what_has_a_direction_is_measured(subject_of, measure):
    subject = subject_of(people(100, 1), people(100, 2), people(100, 3))
    own, _ = measure(Inference(), subject)
    planted, _ = measure(Inference(), replace(subject, planted=True))
    without = ("naive_rate", "model_rate", "reconstruction_risk", "reconstruction_rate")
    left_out = {key for key in own if key[0] in without}
    assert len(left_out) == 20
    assert planted == {key: m for key, m in own.items() if key not in left_out}


def test_records_without_the_secret_are_not_attacked(subject_of, measure):
    train = people(300, 1)
    wage = pa.array(train["wage"], mask=np.arange(300) % 3 == 0)
    found, findings = measure(
        Inference(secrets=("wage",), n_attacks=250),
        subject_of(train | {"wage": wage}, people(150, 2), train | {"wage": wage}),
    )
    assert found["train_rate", "wage"].n_achieved == 200
    assert found["train_rate", "wage"].value == 1.0
    assert not (findings.exposures[0].train_tried % 3 == 0).any()
    assert (found["risk", "wage"].n_requested, found["risk", "wage"].n_achieved) == (250, 150)


def test_a_release_that_hides_the_secret_hits_nobody(subject_of, measure):
    train = people(200, 1)
    hidden = train | {"wage": pa.nulls(200, pa.float64())}
    found, _ = measure(Inference(secrets=("wage",)), subject_of(train, people(200, 2), hidden))
    assert found["train_rate", "wage"].value == 0.0
    assert found["worst_risk"].value == 0.0


def test_a_secret_that_control_lacks_is_insufficient_evidence(subject_of, measure):
    train, control = people(200, 1), people(200, 2)
    control = control | {"wage": pa.nulls(200, pa.float64())}
    found, _ = measure(Inference(secrets=("wage", "ill")), subject_of(train, control, people(200, 3)))
    assert math.isnan(found["risk", "wage"].value)
    assert found["risk", "wage"].short
    assert found["worst_risk"].short
    assert not found["worst_risk"].finite
    assert ("naive_rate", "wage") not in found
    alone, _ = measure(Inference(secrets=("wage",)), subject_of(train, control, people(200, 3)))
    assert not alone["worst_risk"].finite


def test_few_control_rows_are_insufficient_evidence(subject_of, measure):
    train = people(300, 1)
    found, _ = measure(Inference(secrets=("ill",)), subject_of(train, people(60, 2), train))
    assert found["worst_risk"].short
    assert (found["worst_risk"].n_requested, found["worst_risk"].n_achieved) == (2000, 60)


def test_a_secret_that_everybody_shares_leaves_the_risk_open(subject_of, measure):
    """Nearly all guesses are right on both sides, so hardly anything can be said: the interval is wide."""

    def shared(n, seed):
        return people(n, seed) | {"s": np.where(np.arange(n) < 2, "odd", "same")}

    found, _ = measure(Inference(secrets=("s",)), subject_of(shared(400, 1), shared(400, 2), shared(400, 3)))
    assert found["worst_risk"].interval.high > 0.3


def test_a_secret_of_one_value_is_passed_over_with_a_note(subject_of, measure):
    def fixed(n, seed):
        return people(n, seed) | {"s": np.array(["same"] * n)}

    subject = subject_of(fixed(200, 1), fixed(200, 2), fixed(200, 3))
    found, findings = measure(Inference(secrets=("s", "ill")), subject)
    assert ("risk", "s") not in found
    assert any(note.startswith("s is not attacked") for note in findings.notes)
    with pytest.raises(NotApplicable, match="s is not attacked"):
        measure(Inference(secrets=("s",)), subject)


def test_nothing_known_is_nothing_to_attack_with(subject_of, measure):
    train = people(100, 1)
    subject = subject_of(train, train, train)
    with pytest.raises(NotApplicable, match="no known column"):
        measure(Inference(secrets=("ill",), known=("ill",)), subject)


def test_unknown_columns_and_identifiers_are_named(subject_of, measure):
    keyed = people(50, 1) | {"key": np.arange(50)}
    subject = subject_of(keyed, keyed, people(50, 1), key={"role": "identifier"})
    with pytest.raises(NotApplicable, match="secrets names column 'nowhere'"):
        measure(Inference(secrets=("nowhere",)), subject)
    with pytest.raises(NotApplicable, match="known names column 'key', an identifier"):
        measure(Inference(known=("x", "key")), subject)
    with pytest.raises(NotApplicable, match="secrets names column 'key', an identifier"):
        measure(Inference(secrets=("key",)), subject)


def test_a_secret_outside_the_known_columns_is_not_among_them(subject_of, measure):
    """The known columns decide: with the telling one the secret is found, without it only by luck."""

    def told(n, seed):
        table = people(n, seed)
        return table | {"told": np.where(table["x"] > 0, "plus", "minus")}

    subject = subject_of(told(500, 1), told(500, 2), told(500, 3))
    with_it, _ = measure(Inference(secrets=("told",), known=("x", "told")), subject)
    without, _ = measure(Inference(secrets=("told",), known=("y",)), subject)
    assert with_it["train_rate", "told"].value > 0.95
    assert without["train_rate", "told"].value == pytest.approx(0.5, abs=0.08)


def test_more_labels_than_the_model_tells_apart(subject_of, measure):
    def many(n, seed):
        return people(n, seed) | {"city": np.array([f"c{i % 150}" for i in range(n)])}

    train = many(600, 1)
    found, _ = measure(Inference(secrets=("city",)), subject_of(train, many(600, 2), train))
    assert found["risk", "city"].value > 0.95
    assert found["model_rate", "city"].value < 0.1


@pytest.mark.slow
def test_an_honest_release_is_rarely_blamed_for_its_worst_secret(subject_of, measure):
    """Choosing the worst of five secrets raises the rate of false alarms no further than one secret has."""
    lows = []
    for i in range(200):
        subject = subject_of(*(people(150, 1000 + 3 * i + part) for part in range(3)))
        lows.append(measure(Inference(n_trees=1), subject, seed=i)[0]["worst_risk"].interval.low)
    assert np.mean(np.array(lows) > 0) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 200)


def test_a_model_of_the_release_remembers_a_copy_and_no_strangers(subject_of, measure):
    train = people(600, 1)
    copied, _ = measure(Inference(secrets=("ill",)), subject_of(train, people(300, 2), train))
    assert copied["reconstruction_risk", "ill"].interval.low > 0.3
    assert copied["reconstruction_rate", "ill"].value > 0.7
    fresh, _ = measure(Inference(secrets=("ill",)), subject_of(train, people(300, 2), people(600, 3)))
    interval = fresh["reconstruction_risk", "ill"].interval
    assert interval.low < 0 < interval.high


def test_few_secrets_are_guessed_by_models_and_none_without_the_value(subject_of, measure):
    train, other = people(150, 1), people(150, 3)
    subject = subject_of(train, people(120, 2), other | {"wage": pa.nulls(150, pa.float64())})
    by_model = {key[1] for key in measure(Inference(), subject)[0] if key[0] == "reconstruction_risk"}
    assert by_model == {"x", "y", "k", "ill"}
    some, _ = measure(Inference(max_reconstructed=2), subject_of(train, people(120, 2), other))
    assert sum(key[0] == "reconstruction_risk" for key in some) == 2
    none, _ = measure(Inference(max_reconstructed=0), subject_of(train, people(120, 2), other))
    assert not any(key[0].startswith("reconstruction") for key in none)


def test_without_trees_there_is_no_model_of_control(subject_of, measure):
    subject = subject_of(people(150, 1), people(120, 2), people(150, 3))
    both, _ = measure(Inference(), subject)
    bare, _ = measure(Inference(n_trees=0), subject)
    assert bare == {key: m for key, m in both.items() if key[0] != "model_rate"}
