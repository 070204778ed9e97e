"""Who knows a few columns, or half of them: sets are drawn and found, and the worst is judged on others."""

import math

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits._shared import different_people
from synth_audit.audits.privacy import _secrets as secrets
from synth_audit.audits.privacy._known_columns import SECRET_STEP, known_columns
from synth_audit.audits.privacy.inference import EXCESS, Inference
from synth_audit.audits.privacy.linkability import Linkability
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

N = 500
AUDITS = [Inference(n_trees=1), Linkability()]
NAMES = tuple(f"c{i}" for i in range(14))


def people(n, seed):
    """Twelve columns that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    return {f"x{i}": rng.normal(size=n) for i in range(8)} | {
        f"k{i}": rng.choice(list("abcd"), n) for i in range(4)
    }


def with_block(train, other, share=1.0):
    """Four columns of train records, beside the others of new people."""
    rng = np.random.default_rng(0)
    rows, mixed = rng.permutation(N), rng.random(N) < share
    return other | {c: np.where(mixed, train[c][rows], other[c]) for c in ("x1", "x4", "x6", "k2")}


@pytest.mark.parametrize("audit", AUDITS)
def test_a_leak_that_only_few_columns_see(audit, subject_of, measure):
    train = people(N, 1)
    subject = subject_of(train, people(N // 2, 2), with_block(train, people(N, 3)))
    found, findings = measure(audit, subject)
    published = found["overall_risk"] if "overall_risk" in found else found["risk"]
    assert published.value < 0.1, "who knows all other columns is led astray by them"
    assert found["excess_people"].interval.low > 0.3
    told = findings.notes[-1]
    assert sum(name in told for name in ("x1", "x4", "x6", "k2")) >= 3


@pytest.mark.parametrize("audit", AUDITS)
def test_new_people_are_not_accused(audit, subject_of, measure):
    found, _ = measure(audit, subject_of(people(N, 1), people(N // 2, 2), people(N, 3)))
    excess = found["excess_people"]
    assert excess.interval.low < 0 < excess.interval.high
    assert abs(excess.value) < 0.06


@pytest.mark.parametrize("audit", AUDITS)
def test_a_copy_gives_everybody_away_to_who_knows_little(audit, subject_of, measure):
    train = people(N, 1)
    found, _ = measure(audit, subject_of(train, people(N // 2, 2), train))
    assert found["excess_people"].value > 0.5


@pytest.mark.parametrize("audit", [Inference(n_trees=1, known_sets=0), Linkability(source_pairs=0)])
def test_without_other_sets_there_is_no_excess(audit, subject_of, measure):
    found, findings = measure(audit, subject_of(people(150, 1), people(120, 2), people(150, 3)))
    assert "excess_people" not in found
    assert not any("tried" in note for note in findings.notes)


@pytest.mark.parametrize(("n_sets", "drawn", "grown"), [(3, 3, 0), (20, 10, 5)])
def test_half_of_the_sets_are_drawn_and_each_half_of_the_people_looks_for_others(
    n_sets, drawn, grown, subject_of, measure
):
    subject = subject_of(people(150, 1), people(120, 2), people(150, 3))
    _, findings = measure(Inference(n_trees=0, max_reconstructed=0, known_sets=n_sets), subject)
    [told] = [note for note in findings.notes if "tried, in addition to all other columns: " in note]
    counts = [int(word) for word in told.split("columns: ")[1].split() if word.isdigit()]
    assert counts[0] == drawn
    assert grown <= sum(counts[1:]) <= 2 * grown


@pytest.mark.parametrize("audit", AUDITS)
def test_other_sets_move_none_of_the_published_numbers(audit, subject_of, measure):
    subject = subject_of(people(150, 1), people(120, 2), people(150, 3))
    both, _ = measure(audit, subject)
    fewer = {"known_sets": 0} if isinstance(audit, Inference) else {"source_pairs": 0}
    alone, _ = measure(type(audit)(**{**vars(audit), **fewer}), subject)
    assert alone == {name: m for name, m in both.items() if name != "excess_people"}


def test_two_columns_are_known_one_at_a_time(subject_of, measure):
    train = {name: v for name, v in people(N, 1).items() if name in ("x0", "x1")}
    control = {name: v for name, v in people(N // 2, 2).items() if name in train}
    found, _ = measure(Inference(n_trees=1), subject_of(train, control, train))
    assert found["excess_people"].value > 0.8


def test_declared_secrets_are_not_known(subject_of, measure):
    train = people(200, 1)
    sensitive = {name: {"role": "sensitive"} for name in ("x0", "x1", "k0")}
    subject = subject_of(train, people(150, 2), train, **sensitive)
    _, findings = measure(Inference(n_trees=1), subject)
    known = findings.notes[-1].split(" where ")[1].split(" tell ")[0]
    assert known
    assert not set(known.split(", ")) & set(sensitive)


def test_one_person_on_a_side_decides_nothing(subject_of, measure):
    found, _ = measure(Linkability(), subject_of(people(200, 1), people(1, 2), people(200, 3)))
    assert math.isnan(found["excess_people"].value)
    assert found["excess_people"].short


def test_records_of_one_person_are_asked_once(subject_of, measure):
    """Or what a half chose would be judged on the same people."""
    tables = [people(200, seed) | {"who": np.repeat(np.arange(50) + seed * 50, 4)} for seed in range(3)]
    found, _ = measure(Linkability(), subject_of(*tables, who={"role": "split_key"}))
    assert found["excess_people"].n_achieved == 50
    assert found["risk"].n_achieved == 200


def test_drawn_sets_are_of_few_columns_and_of_half():
    sets = secrets.drawn_sets(NAMES, 10, np.random.default_rng(0))
    assert [len(known[0]) for known in sets] == [2, 3, 4, 5, 7] * 2
    assert len(set(sets)) == 10
    assert all(list(known[0]) == sorted(known[0], key=NAMES.index) for known in sets)
    assert sorted(secrets.drawn_sets(("a", "b", "c"), 9, np.random.default_rng(0))) == [
        (("a", "b"),),
        (("a", "c"),),
        (("b", "c"),),
    ]
    assert sorted(secrets.drawn_sets(("a", "b"), 9, np.random.default_rng(0))) == [(("a",),), (("b",),)]


def test_drawn_sources_share_no_column():
    pairs = secrets.drawn_sources(NAMES, 8, np.random.default_rng(0))
    assert [(len(a), len(b)) for a, b in pairs] == [(2, 2), (3, 3), (5, 5), (7, 7)] * 2
    assert not any(set(a) & set(b) for a, b in pairs)
    assert secrets.drawn_sources(("a", "b"), 5, np.random.default_rng(0)) == [(("a",), ("b",))]


def test_what_one_half_found_the_other_may_choose_not():
    found = secrets.by_halves(["a"], [["b", "a"], ["c", "b", "b"]])
    assert list(found.items()) == [("a", (0, 1)), ("b", (0, 1)), ("c", (1,))]


def test_attacks_are_counted_by_side_and_half():
    """Six of eight train people in the half that judges, none of the strangers; made is not all."""
    asked = secrets.AskedPeople(np.arange(16), np.arange(8), np.tile([False, True], 12))
    member = asked.member
    right = member & (np.arange(24) % 8 < 6)
    attacks = secrets.Attacks(asked)
    for name, hit in (("a", right), ("b", ~member)):
        attacks.add(secrets.Knowledge((name,)), [0], np.ones((24, 1), bool), hit[:, None])
    excess, worst = attacks.worst(0.95)
    assert [k.known for k, _ in worst] == [("a",), ("a",)]
    measured = attacks.excess(EXCESS, excess, 16)
    assert measured.value == pytest.approx(0.75)
    assert (measured.n_requested, measured.n_achieved) == (16, 8)


def test_any_row_of_a_person_may_be_asked(subject_of):
    """Were it always the first, a release could give away all later ones."""
    who = np.repeat(np.arange(200), 2)
    table = subject_of(
        {"x": np.arange(400.0), "who": who}, None, {"x": np.arange(9.0)}, who={"role": "split_key"}
    )
    found = different_people(table.train, 400, np.random.default_rng(0))
    assert np.array_equal(who[found], np.arange(200))
    assert 70 < (found % 2).sum() < 130


def columns_of(train, *others):
    data = pa.table(train)
    schema = infer_schema(data, {})
    tables = [read_table(data, schema, where="train")]
    tables += [read_table(pa.table(t), schema, where="control") for t in others]
    return {c.name: c for c in known_columns(tables, schema.features, tables[:1])}


def numbers(column):
    """Of all rows, shape (rows, width)."""
    return np.array([level[rank] for level, rank in zip(column.levels, column.ranks.T, strict=True)]).T


def test_numbers_are_apart_by_ranges_and_labels_by_more():
    values = np.linspace(0, 1, 201)
    found = columns_of({"x": [*values, None], "k": ["a", "b"] * 101})
    x, k = found["x"], found["k"]
    assert numbers(x).shape == (202, 1)
    assert k.levels == ()
    assert np.ptp(numbers(x)[:201]) == pytest.approx(1.0)
    assert x.labels[0] == x.labels[200] != x.labels[201]
    assert np.isnan(x.secret()[201])
    assert set(np.abs(np.diff(k.secret()))) == {SECRET_STEP}


def test_far_numbers_grow_by_their_logarithm_and_stay_apart():
    far = [10.0, 1e3, 1e6]
    x = columns_of({"x": [*np.linspace(0, 1, 500), *far]})["x"]
    placed = numbers(x)[-3:, 0]
    assert (np.diff(placed) > 1).all()
    assert placed[-1] < 20


def test_text_that_reads_as_number_is_one_and_the_rest_a_label():
    spelled = [f"{x:.2f} mg".replace(".", ",") for x in np.linspace(1, 9, 60)]
    found = columns_of({"dose": [*spelled, "unknown", "refused", None], "k": ["a", "b", "c"] * 21})["dose"]
    assert numbers(found).shape == (63, 1)
    assert (np.diff(numbers(found)[:60, 0]) > 0).all()
    assert len(np.unique(found.labels[:60])) == 1
    assert len(np.unique(found.labels[59:])) == 4, "each text that is no number is a label, and so is none"
    assert np.isnan(found.secret()[62])
    assert len(np.unique(found.secret()[58:62])) == 4


def test_labels_are_shared_between_tables_and_compared_in_standard_form():
    found = columns_of({"k": ["Ab", "c", "c"]}, {"k": ["ab ", "C", "new"]})["k"]
    assert found.labels[[0, 1]].tolist() == found.labels[[3, 4]].tolist()
    assert found.labels[5] not in found.labels[:5]


def test_free_text_is_compared_by_its_letters():
    rng = np.random.default_rng(0)
    words = ["patient", "came", "severe", "pain", "left", "knee", "after", "fall", "from", "ladder", "home"]
    notes = [" ".join(rng.choice(words, 12)) for _ in range(80)]
    moved = [note + "." for note in notes]
    found = columns_of({"note": notes, "k": ["a", "b"] * 40}, {"note": moved, "k": ["a", "b"] * 40})["note"]
    assert numbers(found).shape[1] == 4
    apart = np.abs(numbers(found)[:80, None] - numbers(found)[None, 80:]).sum(axis=2)
    assert (apart.argmin(axis=1) == np.arange(80)).mean() > 0.7, "of eighty, by four numbers each"
    assert len(np.unique(found.secret())) > 80


def test_a_column_that_is_constant_in_train_is_left_out():
    assert set(columns_of({"x": [1.5, 2.5, 3.5], "k": ["a"] * 3}, {"x": [1.0, 2.0], "k": ["b", "c"]})) == {
        "x"
    }
