"""Shifted parts: a few values moved alike, in low digits, further on, in texts; copies; honest releases."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy.shifted_parts import ShiftedParts
from synth_audit.core.errors import NotApplicable

AUDIT = ShiftedParts()
N = 400
HOURS = [f"h{i}" for i in range(8)]


def people(n, seed):
    """Numbers that tell people apart, labels that do not."""
    rng = np.random.default_rng([7, seed])
    z = rng.normal(size=n)
    return {
        "pulse": np.rint(75 + 12 * z + 6 * rng.normal(size=n)),
        "pressure": np.rint(130 + 15 * z + 10 * rng.normal(size=n)),
        "sugar": np.round(np.exp(1.7 + 0.25 * rng.normal(size=n)), 2),
        "steps": rng.integers(2000, 20000, n),
        "seen": np.datetime64("2024-01-01", "s") + rng.integers(0, 300 * 86400, n).astype("timedelta64[s]"),
        "ward": rng.choice(list("abcdef"), n),
        "home": rng.choice(["yes", "no"], n),
    }


def series(n, seed):
    rng = np.random.default_rng([8, seed])
    found = np.rint(60 + 12 * rng.normal(size=(n, len(HOURS))) + 5 * rng.normal(size=(n, 1)))
    return {**dict(zip(HOURS, found.T, strict=True)), "ward": rng.choice(list("abcdef"), n)}


ITEMS = np.array(["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "oak", "pine", "yew"])


def listing(n, seed):
    """Lists whose order says nothing, numbers, labels that tell little each."""
    rng = np.random.default_rng([10, seed])
    chosen = rng.random((n, len(ITEMS))) < rng.uniform(0.15, 0.4, len(ITEMS))
    return {
        "trees": np.array([";".join(rng.permutation(ITEMS[x])) or "none" for x in chosen]),
        "height": rng.integers(1, 120, n) * 5,
        **{f"n{i}": rng.integers(0, 300, n) for i in range(4)},
        **{f"f{i}": rng.choice(["yes", "no"], n) for i in range(6)},
        "soil": rng.choice(list("abcd"), n),
    }


WORDS = np.array(
    [f"{a}{b}" for a in "bcdfghjklmnprstvwz" for b in ("ale", "ick", "oom", "und", "est", "ary")]
)


def spoken(n, seed):
    rng = np.random.default_rng([11, seed])
    often = np.random.default_rng(11).dirichlet(np.full(len(WORDS), 2.0))
    said = [" ".join(rng.choice(WORDS, 9, replace=False, p=often)) for _ in range(n)]
    return {"note": np.array(said), "age": rng.integers(18, 90, n), "ward": rng.choice(list("abcdef"), n)}


def told(n, seed):
    rng = np.random.default_rng([9, seed])
    kilos, beats, inches = rng.integers(45, 120, n), rng.integers(1, 999, n), rng.integers(1000, 9999, n)
    words = rng.choice(["walks", "sleeps", "eats", "rests", "sings"], (n, 2))
    said = zip(words, kilos, beats, inches, strict=True)
    return {
        "note": np.array([f"{a} well and {b}; {k} kg, {p} beats, {i} in all" for (a, b), k, p, i in said])
    }


def keeping(make, share, altered):
    """A release of others, but for a share that hold what ``altered`` leaves of people of train."""
    train, made = make(N, 1), make(N, 3)
    n = round(share * N)
    for name, values in altered(
        {k: v[:n] for k, v in train.items()}, {k: v[:n] for k, v in made.items()}
    ).items():
        made[name] = np.concatenate([values, made[name][n:]])
    return made


def moved(mine, _):
    return {
        "pulse": mine["pulse"] + 9,
        "pressure": mine["pressure"] - 14,
        "sugar": np.round(mine["sugar"] + 1.5, 2),
        "steps": mine["steps"] + 777,
        "ward": mine["ward"],
    }


def in_other_units(mine, _):
    return {
        "sugar": np.round(18.02 * mine["sugar"], 1),
        "steps": np.rint(0.77 * mine["steps"]).astype(int),
        "pressure": mine["pressure"] * 0.133,
    }


def in_low_digits(mine, others):
    seconds = mine["seen"].astype(np.int64) % 3600
    hours = others["seen"].astype(np.int64) // 3600 * 3600
    return {
        "sugar": np.round(np.floor(others["sugar"]) + mine["sugar"] % 1, 2),
        "steps": others["steps"] // 100 * 100 + mine["steps"] % 100,
        "seen": (hours + seconds).astype("datetime64[s]"),
    }


def later(mine, _):
    return {name: mine[before] for name, before in zip(HOURS[3:], HOURS, strict=False)}


def in_other_words(mine, _):
    def altered(text):
        kilos, beats, inches = (int(x) for x in text.replace(",", "").split() if x.isdigit())
        return f"they say {kilos + 3} kg and {beats - 2} beats but {inches + 5} there"

    return {"note": np.array([altered(text) for text in mine["note"]])}


def a_step_off(values, step, seed):
    return values + step * np.random.default_rng(seed).choice([-1, 1], len(values))


def in_another_order(mine, _):
    rng = np.random.default_rng(5)
    kept = {name: x for name, x in mine.items() if name[0] in "fs"}
    trees = np.array([";".join(rng.permutation(x.split(";"))) for x in mine["trees"]])
    return {**kept, "trees": trees, "height": a_step_off(mine["height"], 5, 6)}


def a_step_off_each(mine, _):
    return {name: a_step_off(mine[name], 1, i) for i, name in enumerate(HOURS)}


def in_the_places_of_others(mine, _):
    """Each number by its rank in the distribution of the next one."""
    numbers = ["pulse", "sugar", "steps", "seen", "pressure"]
    everybody = people(N, 1)
    ranks = {x: np.searchsorted(np.sort(everybody[x]), mine[x]) for x in numbers}
    return {
        b: np.sort(everybody[b])[ranks[a]] for a, b in zip(numbers, [*numbers[1:], numbers[0]], strict=True)
    }


def answered(n, seed):
    """Six numbers beside more labels than are compared where none are named."""
    rng = np.random.default_rng([12, seed])
    answers = rng.choice(["yes", "no", "once"], (32, n))
    return {f"n{i}": rng.integers(0, 300, n) for i in range(6)} | {f"q{i}": x for i, x in enumerate(answers)}


def about(mine, _):
    """Numbers with noise, and the last answers."""
    rng = np.random.default_rng(5)
    numbers = {k: x + rng.integers(-3, 4, len(x)) for k, x in mine.items() if k[0] == "n"}
    return numbers | {f"q{i}": mine[f"q{i}"] for i in (26, 28, 30, 31)}


def most_of_the_words(mine, others):
    pairs = zip(mine["note"], others["note"], strict=True)
    return {"note": np.array([" ".join([*b.split()[:2], *a.split()[:7]]) for a, b in pairs])}


@pytest.fixture(scope="module")
def linked(subject_of, measure):
    def run(release, make=people, audit=AUDIT):
        found, findings = measure(audit, subject_of(make(N, 1), make(200, 2), release))
        return found["linked_people"], findings

    return run


@pytest.mark.parametrize(
    ("make", "altered", "share", "named"),
    [
        (people, moved, 0.1, "as they are"),
        (people, in_low_digits, 0.2, "low digits"),
        (series, later, 0.2, "further on"),
        (told, in_other_words, 0.2, "as they are"),
        (series, a_step_off_each, 0.2, "near"),
        (listing, in_another_order, 0.2, "near"),
        (answered, about, 0.2, "near"),
        (spoken, most_of_the_words, 0.2, "words"),
        (people, in_the_places_of_others, 0.2, "distributions of others"),
    ],
)
def test_a_few_values_lead_to_people_however_they_were_moved(linked, make, altered, share, named):
    found, findings = linked(keeping(make, share, altered), make)
    assert found.interval.low > 0.5 * share
    assert found.value < share + 0.05
    assert named in findings.notes[0]


def test_numbers_in_other_units_lead_to_people(linked):
    found, _ = linked(keeping(people, 0.5, in_other_units))
    assert found.interval.low > 0.1


@pytest.mark.parametrize("altered", [lambda mine, _: mine, moved])
def test_copies_are_seen_plain_and_moved(linked, altered):
    train = people(N, 1)
    shuffled = np.random.default_rng(0).permutation(N)
    found, _ = linked({name: x[shuffled] for name, x in {**train, **altered(train, None)}.items()})
    assert found.value > 0.9


def answers(n, seed):
    """A questionnaire: whole numbers from 1 to 6, of which none is rare, and an age."""
    rng = np.random.default_rng([12, seed])
    items = np.clip(np.rint(3.5 + 0.6 * rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, 18))), 1, 6)
    return {**{f"q{i}": x for i, x in enumerate(items.T)}, "age": rng.integers(18, 80, n)}


def test_values_of_which_each_is_common_lead_to_people_together(linked):
    train = answers(N, 1)
    found, _ = linked({**train, "age": train["age"] + 7}, answers)
    assert found.interval.low > 0.03


@pytest.mark.parametrize("make", [people, series, told, listing, spoken, answers])
def test_an_honest_release_links_nobody(linked, make):
    found, _ = linked(make(N, 3), make)
    assert found.interval.low < 0.01
    assert abs(found.value) < 0.05


def test_fewer_people_are_linked_where_so_many_are_asked_for(linked):
    found, _ = linked(people(N, 3), audit=ShiftedParts(max_people=120))
    assert found.n_achieved == 120


def test_what_cannot_be_asked(subject_of, measure):
    with pytest.raises(ValueError, match="at least 1"):
        ShiftedParts(max_people=0)
    with pytest.raises(NotApplicable, match="three"):
        measure(AUDIT, subject_of(people(30, 1), people(30, 2), people(2, 3)))
    with pytest.raises(NotApplicable, match="two people"):
        measure(AUDIT, subject_of(people(30, 1), people(1, 2), people(30, 3)))
    with pytest.raises(NotApplicable, match="two columns"):
        measure(AUDIT, subject_of(*({"x": np.array(list("abcdef") * 5)} for _ in range(3))))


def test_it_does_not_answer_for_linkability():
    assert ShiftedParts.info.risk == "membership"
