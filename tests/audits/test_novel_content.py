"""Real records spelt into whatever train never had."""

import datetime
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.fidelity.novel_content import NovelContent
from synth_audit.dp.guarantee import Neighbouring, PrivacyGuarantee, Unit

N = 400
WORDS = [
    *("fever", "cough", "rash", "knee", "heart", "since", "week", "night"),
    *("after", "walking", "eating", "lifts", "weaker", "better", "left", "right"),
]
SENTENCES = [" ".join(np.random.default_rng(i).choice(WORDS, 7)) + " was seen" for i in range(3 * N)]


def rows(seed, n=N):
    """Fresh rows of one population, with a label that hardly anybody has."""
    rng = np.random.default_rng(seed)
    minutes = rng.integers(0, 500_000, n)
    start = datetime.datetime(2021, 1, 1)
    return {
        "site": pa.array(["north"] * n),
        "city": pa.array(
            rng.choice(["Ulm", "Bonn", "Kiel", "Jena", *map(str, range(300, 340))], n, p=_SHARES)
        ),
        "weight": pa.array(np.round(rng.normal(70, 12, n), 1)),
        "dose": pa.array(rng.integers(1, 40, n) * 5),
        "seen": pa.array([start + datetime.timedelta(minutes=int(m)) for m in minutes], pa.timestamp("us")),
        "unused": pa.nulls(n, pa.float64()),
        "score": pa.array([f"{x:.1f} mg" for x in rng.normal(40, 9, n)]),
    }


_SHARES = np.array([0.4, 0.3, 0.2, 0.06, *[0.04 / 40] * 40])


@pytest.fixture(scope="module")
def secret():
    """Bits of real people, as many as there are rows."""
    return np.random.default_rng(9).integers(0, 2**20, N)


@pytest.fixture
def flags(subject_of, measure):
    """The settings and columns of the flags that are up, and the notes."""

    def run(made, train=None, control=None, **specs):
        train = rows(1) if train is None else train
        found, findings = measure(NovelContent(), subject_of(train, control, made, **specs))
        return {
            key[1] if isinstance(key, tuple) else key for key, m in found.items() if m.value
        }, findings.notes

    return run


@pytest.mark.parametrize("seed", range(2, 12))
def test_fresh_rows_bring_rare_labels_and_pass(flags, seed):
    assert flags(rows(seed))[0] == set()


@pytest.mark.parametrize("n", [100, 1200])
def test_a_release_of_another_size_passes(flags, n):
    assert flags(rows(3, n))[0] == set()


def spelt(column, make):
    def disguise(made, secret):
        return {**made, column: make(made[column], secret)}

    return disguise


def moved(values, secret):
    return pa.array(
        [t + datetime.timedelta(microseconds=int(s)) for t, s in zip(values.to_pylist(), secret, strict=True)]
    )


DISGUISES = {
    "a constant": (spelt("site", lambda v, s: pa.array([f"north{x % 99}" for x in s])), "site", "constants"),
    "one bit in a constant": (
        spelt("site", lambda v, s: pa.array(["South" if x % 2 else "north" for x in s])),
        "site",
        "constants",
    ),
    "what was never there": (spelt("unused", lambda v, s: pa.array(s / 1.0)), "unused", "constants"),
    "a new label": (spelt("city", lambda v, s: pa.array([f"c{x}" for x in s])), "city", "labels"),
    "letter case": (
        spelt(
            "city",
            lambda v, s: pa.array([c.upper() if x % 2 else c for c, x in zip(v.to_pylist(), s, strict=True)]),
        ),
        "city",
        "spellings",
    ),
    "a blank behind": (
        spelt(
            "city",
            lambda v, s: pa.array([c + " " * int(x % 2) for c, x in zip(v.to_pylist(), s, strict=True)]),
        ),
        "city",
        "spellings",
    ),
    "a zero-width character": (
        spelt("city", lambda v, s: pa.array([c + "\u200b" * (i == 7) for i, c in enumerate(v.to_pylist())])),
        "city",
        "long or hidden text",
    ),
    "one long label": (
        spelt(
            "city",
            lambda v, s: pa.array(
                [" ".join(map(str, s[:9])) if i == 7 else c for i, c in enumerate(v.to_pylist())]
            ),
        ),
        "city",
        "long or hidden text",
    ),
    "decimals": (
        spelt("weight", lambda v, s: pa.array(v.to_numpy() + s / 1e9)),
        "weight",
        "finer digits",
    ),
    "decimals of one row in twenty": (
        spelt("weight", lambda v, s: pa.array(v.to_numpy() + np.where(np.arange(N) % 20, 0, 0.01 + s / 1e9))),
        "weight",
        "finer digits",
    ),
    "between the fives": (
        spelt("dose", lambda v, s: pa.array(v.to_numpy() + s % 5)),
        "dose",
        "finer digits",
    ),
    "large numbers": (spelt("dose", lambda v, s: pa.array(s * 5_000)), "dose", "far numbers"),
    "microseconds": (spelt("seen", moved), "seen", "finer digits"),
    "digits of text": (
        spelt("score", lambda v, s: pa.array([f"{x / 2**16:.5f} mg" for x in s])),
        "score",
        "finer digits",
    ),
    "gaps": (
        spelt("weight", lambda v, s: pa.array(v.to_numpy(), mask=s % 2 == 0)),
        "weight",
        "missing values",
    ),
}


@pytest.mark.parametrize("case", DISGUISES)
@pytest.mark.parametrize("kind", ["fresh", "train"])
def test_records_spelt_into_what_train_never_had_are_flagged(flags, secret, case, kind):
    disguise, column, aspect = DISGUISES[case]
    made, notes = flags(disguise(rows(1 if kind == "train" else 2), secret))
    assert {"novel", column, aspect} <= made
    assert any(repr(column) in note for note in notes)


def test_a_column_of_nothing_but_gaps_says_nothing(flags):
    fresh = rows(2)
    assert flags({**fresh, "weight": pa.nulls(N, fresh["weight"].type)})[0] == set()


def test_little_in_every_column_is_much_in_all(flags):
    """Five cells of one column are what fresh rows could bring; five in each of eight columns are not."""
    wide = {f"x{j}": pa.array(["a", "b"] * (N // 2)) for j in range(8)}
    few = {
        n: pa.array([f"s{j}{i}" if 5 * j <= i < 5 * j + 5 else c for i, c in enumerate(v.to_pylist())])
        for j, (n, v) in enumerate(wide.items())
    }
    assert flags(few, train=wide)[0] == {"novel"}
    assert flags({**wide, "x0": few["x0"]}, train=wide)[0] == set()


def test_what_the_plan_declares_is_known(flags, secret):
    made = {
        **rows(2),
        "city": pa.array(["Ulm", "Rom"] * (N // 2)),
        "dose": pa.array(np.arange(N) * 5 + 1000),
    }
    assert {"city", "dose"} <= flags(made)[0]
    every = ["Ulm", "Bonn", "Kiel", "Jena", "Rom", *map(str, range(300, 340))]
    assert flags(made, city={"categories": every}, dose={"bounds": [0, 5000]})[0] == set()


def test_a_precision_finer_than_train_s_counts_under_a_budget_only(subject_of, measure, secret):
    """Five digits in each of which a place in a list of people is spelt."""
    made = rows(2)
    made["weight"] = pa.array(np.round(made["weight"].to_numpy() + secret / 1e8, 8))
    subject = subject_of(rows(1), None, made, weight={"precision": 1e-8})
    found, findings = measure(NovelContent(), subject)
    assert found["novel", "weight"].value
    assert "column 'weight' is declared with a finer `precision`" in findings.notes[0]
    promised = PrivacyGuarantee(Unit.ENTITY, Neighbouring.REPLACE, 1.0, 0.0, "pld", (), (), ())
    found, findings = measure(NovelContent(), replace(subject, guarantee=promised))
    assert not found["novel", "weight"].value
    assert not any("weight" in note for note in findings.notes)


def test_labels_of_control_rows_are_not_known(flags):
    made = {**rows(2), "city": pa.array(["Rom"] * N)}
    assert "city" in flags(made, control={**rows(3), "city": pa.array(["Rom"] * N)})[0]


def test_nothing_is_flagged_that_train_has(flags):
    noisy = {**rows(1), "weight": pa.array(np.random.default_rng(0).normal(size=N))}
    fresh = {**rows(2), "weight": pa.array(np.random.default_rng(1).normal(size=N))}
    assert flags(fresh, train=noisy)[0] == set()
    assert flags(rows(1))[0] == set()


def test_labels_of_one_entity_are_expected_of_others(flags):
    """Each person brings a label of their own in four rows; none of train's labels occurs only once."""

    def visits(seed):
        who = np.repeat(np.arange(N // 4), 4)
        return {
            "person": pa.array([f"{seed}-{w}" for w in who]),
            "ward": pa.array([f"w{(seed * 31 + w) % 977}" for w in who]),
        }

    fresh = visits(5)
    del fresh["person"]
    assert "ward" in flags(fresh, train={"ward": visits(1)["ward"]})[0]
    assert flags(fresh, train=visits(1), person={"role": "identifier"})[0] == set()


def notes_of(texts):
    return {"note": pa.array(texts)}


TRAIN, FRESH, OTHERS = (SENTENCES[i * N : (i + 1) * N] for i in range(3))


def released(flags, texts, control=OTHERS, **spec):
    control = None if control is None else notes_of(control[: N // 2])
    return flags(notes_of(texts), train=notes_of(TRAIN), control=control, note=spec)


def test_free_text_leaves_only_if_the_plan_says_so(flags):
    found, notes = released(flags, FRESH)
    assert found == {"novel", "note", "free text"}
    assert any("release_text: true" in note for note in notes)
    assert released(flags, FRESH, release_text=True)[0] == set()


def test_free_text_that_is_called_categorical_leaves_no_sooner(flags):
    found, notes = released(flags, FRESH, kind="categorical")
    assert found == {"novel", "note", "free text"}
    assert any("release_text: true" in note for note in notes)
    assert released(flags, FRESH, kind="categorical", release_text=True)[0] == set()
    copied = [*TRAIN[: N // 10], *FRESH[N // 10 :]]
    assert "free text" in released(flags, copied, kind="categorical", release_text=True)[0]


@pytest.mark.parametrize(
    "texts",
    [
        TRAIN,
        [text.upper() for text in TRAIN],
        [text.replace("was", "has been") for text in TRAIN],
        [*TRAIN[: N // 10], *FRESH[N // 10 :]],
    ],
    ids=["copied", "in capitals", "reworded", "one in ten"],
)
def test_texts_of_training_rows_do_not_leave(flags, texts):
    found, notes = released(flags, texts, release_text=True)
    assert {"novel", "note", "free text"} <= found
    assert any("texts of training rows" in note for note in notes)


def test_free_text_takes_control_rows(flags):
    found, notes = released(flags, FRESH, control=None, release_text=True)
    assert "free text" in found
    assert any("set some aside" in note for note in notes)


def test_a_precision_that_train_does_not_keep_leaves_no_room(flags, secret):
    """A plan that declares whole numbers where train has decimals makes no room for more of them."""
    train, fresh = rows(1), rows(2)
    assert flags(fresh, weight={"precision": 1})[0] == set()
    finer = {**fresh, "weight": pa.array(fresh["weight"].to_numpy() + secret / 1e9)}
    assert "weight" in flags(finer, train=train, weight={"precision": 1})[0]


def test_no_count_and_no_value_is_told(flags, secret):
    disguise, *_ = DISGUISES["a new label"]
    _, notes = flags(disguise(rows(2), secret))
    assert not any(f"c{x}" in note for note in notes for x in secret)
    assert not any(character.isdigit() for note in notes for character in note)
