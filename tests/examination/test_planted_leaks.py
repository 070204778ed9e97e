"""Planted leaks: known shares, the candidate's ratio of sizes, entities kept together."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import registry
from synth_audit.examination import examine
from synth_audit.examination.examine import Views, run_examination
from synth_audit.examination.planted_leaks import (
    FEWEST_ROWS,
    PlantedGenerator,
    prepare_injection,
    telling_columns,
)
from synth_audit.execution.context import Cache, RunContext
from synth_audit.findings.sensitivity import PlantedLeaks
from synth_audit.plan.sections import KnownAnswerSpec
from synth_audit.plugins.audit import Leak, RandomSplit, Subject
from synth_audit.plugins.generator import FitContext
from synth_audit.table.coarsening import Coarsening, Merging
from synth_audit.table.people import persons
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table


def numbered(start, n, **more):
    return pa.table({"x": np.arange(start, start + n, dtype=float), "y": ["a", "b"] * (n // 2)} | more)


def subject_of(n_train=1000, n_control=200, n_made=1000, specs=None, made=lambda n: {}, **more):
    train = numbered(0, n_train, **{name: make(n_train) for name, make in more.items()})
    control = numbered(10**6, n_control, **{name: make(n_control) for name, make in more.items()})
    released = numbered(10**7, n_made, **made(n_made))
    schema = infer_schema(train, specs or {})
    return Subject(
        read_table(train, schema, where="train"),
        read_table(control, schema, where="control"),
        read_table(released, schema, where="synthetic", partial=True),
    )


def rows(table):
    return set(table.numbers("x"))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.4, 1.0])
def test_a_release_holds_the_planted_share_of_copies(share):
    injector = prepare_injection(subject_of(), 10_000, 0)
    release = injector.release(share)
    copied = rows(release) & rows(injector.known)
    assert len(copied) == round(share * release.n_rows)
    assert release.n_rows == 500
    assert rows(release) <= rows(injector.subject.train), "real people, none of whom is in control"


@pytest.mark.parametrize(
    ("was", "then"),
    [(None, None), (RandomSplit(0.8, ours=True), RandomSplit(ours=True)), (RandomSplit(),) * 2],
)
def test_chance_that_divided_the_table_divided_its_parts_too(was, then):
    """In sizes that are fixed; and no guarantee is made of a planted leak."""
    subject = replace(subject_of(), random_split=was, guarantee="a guarantee")
    planted = prepare_injection(subject, 10_000, 0).planted(0.1, Leak.COPIES)
    assert (planted.random_split, planted.guarantee) == (then, None)


def test_the_two_halves_do_not_meet():
    injector = prepare_injection(subject_of(), 10_000, 0)
    assert not rows(injector.known) & rows(injector.fresh)


def test_leaks_are_nested():
    injector = prepare_injection(subject_of(), 10_000, 0)
    known = rows(injector.known)
    small, large = (rows(injector.release(f)) & known for f in (0.05, 0.5))
    assert small < large


def test_the_smallest_leak_is_one_row():
    injector = prepare_injection(subject_of(n_made=40), 10_000, 0)
    assert len(rows(injector.release(0.001)) & rows(injector.known)) == 1


@pytest.mark.parametrize(
    ("n_made", "most", "n_known", "n_release"),
    [
        (1000, 10_000, 500, 500),
        (2000, 10_000, 500, 500),
        (10_000, 10_000, 500, 500),
        (1000, 100, 100, 500),
        (100, 10_000, 100, 100),
    ],
)
def test_sizes(n_made, most, n_known, n_release):
    injector = prepare_injection(subject_of(n_made=n_made), most, 0)
    assert (injector.known.n_rows, injector.release(0.3).n_rows) == (n_known, n_release)
    assert injector.control.n_rows == min(200, most)


def test_the_same_seed_plants_the_same():
    one, again = (prepare_injection(subject_of(), 10_000, 0).release(0.3).fingerprint for _ in range(2))
    assert one == again


def test_rows_of_one_person_stay_on_one_side():
    specs = {"person": ColumnSpec(role="split_key")}
    injector = prepare_injection(
        subject_of(specs=specs, person=lambda n: [f"p{i // 4}" for i in range(n)]), 10_000, 0
    )
    known, fresh = (set(t.labels("person")) for t in (injector.known, injector.fresh))
    assert not known & fresh
    assert "person" not in injector.release(0.5).names


def test_both_views_of_a_coarser_release_halve_the_same_people():
    """Some without a key, who are one person once their values are merged."""

    def people(name, keys=100):
        pairs = [f"pair {i // 2}" for i in range(100)]
        texts = [f"{name} {i}" for i in range(100)]
        return {"person": [*texts[:keys], *[None] * (100 - keys)], "pair": pairs, "text": texts}

    train, control, made = (pa.table(people(*of)) for of in (("a", 80), ("b",), ("c",)))
    schema = infer_schema(train, {"person": ColumnSpec(role="identifier")})
    subject = Subject(
        read_table(train, schema, where="train"),
        read_table(control, schema, where="control"),
        read_table(made.drop_columns(["person"]), schema, where="synthetic", partial=True),
        coarsening=Coarsening({"text": Merging("other", labels=frozenset(train["text"].to_pylist()))}),
    )
    views = Views.of(subject)
    assert persons(views.plain.train).max() > persons(views.coarse.train).max()
    audits = {name: registry.build("audit", name, {}) for name in ("exact_match", "membership_game")}
    tasks, _ = examine._planted(audits, views, KnownAnswerSpec(), 0)
    halves = {t.name: t.subject.train.labels("pair").tolist() for t in tasks}
    assert halves["exact_match"] == halves["membership_game"]


def test_too_few_rows_leave_no_ground():
    barren = prepare_injection(subject_of(n_train=2 * FEWEST_ROWS - 2), 10_000, 0)
    assert isinstance(barren, PlantedLeaks)
    assert "fewer than" in barren.reason


def test_a_single_entity_cannot_be_halved():
    specs = {"person": ColumnSpec(role="split_key")}
    barren = prepare_injection(subject_of(specs=specs, person=lambda n: ["one"] * n), 10_000, 0)
    assert isinstance(barren, PlantedLeaks)
    assert "entity" in barren.reason


def test_without_control_there_is_none_in_the_planted_subject():
    subject = subject_of()
    bare = Subject(subject.train, None, subject.synthetic)
    injector = prepare_injection(bare, 10_000, 0)
    assert injector.leaky(injector.release(1.0)).control is None
    assert injector.planted_leaks((0.0, 1.0)).control_rows == 0


def test_a_partial_leak_copies_a_few_telling_columns_together():
    more = {
        "dose": lambda n: np.random.default_rng(n).normal(size=n),
        "code": lambda n: np.random.default_rng(n).integers(0, 9, n),
        "flat": lambda n: ["same"] * n,
    }
    injector = prepare_injection(
        subject_of(**more, made=lambda n: {name: make(n) for name, make in more.items()}), 10_000, 0
    )
    names = telling_columns(injector.known)
    assert names == ("dose", "x", "code"), "three of those that vary, of the largest entropies"
    release = injector.planted(0.4, Leak.SUBSETS).synthetic
    of_known = {x: i for i, x in enumerate(injector.known.numbers("x"))}
    copies = [(i, of_known[x]) for i, x in enumerate(release.numbers("x")) if x in of_known]
    assert len(copies) == round(0.4 * release.n_rows)
    at, source = (np.array(side) for side in zip(*copies, strict=True))
    assert np.array_equal(release.numbers("dose")[at], injector.known.numbers("dose")[source])
    same = release.labels("y")[at] == injector.known.labels("y")[source]
    assert 0.3 < same.mean() < 0.7, "the other columns are those of new people"


def test_a_shifted_leak_moves_a_few_numbers_by_one_constant_each():
    def numbers(n):
        return {k: np.random.default_rng([n, i]).normal(0, 9, n).round(3) for i, k in enumerate("abcd")}

    table = {k: (lambda n, k=k: numbers(n)[k]) for k in "abcd"}
    injector = prepare_injection(subject_of(n_train=400, **table, made=numbers), 10_000, 0)
    release = injector.planted(1.0, Leak.SHIFTED).synthetic
    for name in "abcd":
        apart = release.numbers(name) - injector.known.numbers(name)[injector.copied]
        assert np.ptp(apart) < 1e-9
        assert apart[0] == pytest.approx(round(apart[0], 3), abs=1e-9)
        assert abs(apart[0]) > 1
    same = release.labels("y") == injector.known.labels("y")[injector.copied]
    assert same.mean() < 0.7, "the other columns are those of new people"


def test_a_generator_plants_a_partial_leak_too():
    injector = prepare_injection(subject_of(), 10_000, 0)
    rng = np.random.default_rng(0)
    model = PlantedGenerator(0.5, injector.fresh, Leak.SUBSETS).fit(injector.known, FitContext(rng=rng))
    assert len(rows(model.sample(100, rng)) & rows(injector.known)) == 50


NONE = MappingProxyType({})


@pytest.mark.parametrize(
    ("changed", "anew"),
    [
        ({}, 0),
        ({"context": {"seed": 2}}, 5),
        ({"context": {"device": "auto"}}, 5),
        ({"subject": {"level": 0.9}}, 5),
        ({"subject": {"random_split": RandomSplit(ours=True, apart=True)}}, 5),
        ({"subject": {"random_split": RandomSplit(0.5, ours=True)}}, 2),
        ({"subject": {"train": subject_of().train.take(np.arange(1000)[::-1])}}, 5),
        ({"subject": {"synthetic": subject_of().train.released_only()}}, 2),
        ({"audit": {"cells": 7}}, 1),
        ({"check": {"small": 0.1}}, 3),
    ],
)
def test_an_outcome_is_taken_over_where_all_that_it_depends_on_is_the_same(changed, anew, tmp_path):
    """Two audits of the candidate, and one on three planted shares, whose answers do not depend on it."""

    def journaled(subject=NONE, context=NONE, audit=NONE, check=NONE):
        audits = {
            "exact_match": registry.build("audit", "exact_match", {}),
            "marginals": registry.build("audit", "marginals", {"n_bootstrap": 100} | audit),
        }
        how = RunContext(journal=Cache(tmp_path), **context)
        about = replace(subject_of(), **{"random_split": RandomSplit(ours=True)} | subject)
        run_examination(audits, about, KnownAnswerSpec(**check), how)
        return sum(1 for _ in tmp_path.iterdir())

    before = journaled()
    assert before == 5
    assert journaled(**changed) - before == anew
