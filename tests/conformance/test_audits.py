"""What every audit must keep, whoever wrote it; a new file in a room is covered without an edit here."""

import importlib
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conformance_by_name import by_name  # made importable by conftest.py
from conformance_readme import README_AUDIT

from synth_audit import registry
from synth_audit.audits.utility import _prediction_task as prediction
from synth_audit.examination.audit_runner import candidate_tasks, run_tasks
from synth_audit.examination.examine import run_examination
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import in_processes
from synth_audit.findings.measurement import Direction
from synth_audit.findings.sensitivity import Sensitivity
from synth_audit.plan.sections import KnownAnswerSpec
from synth_audit.plugins.audit import Leak, Need, RandomSplit, Status
from synth_audit.report.charts import CHARTS
from synth_audit.report.panels import PANELS

AUDITS = tuple(dict.fromkeys((*registry.catalogue("audit"), README_AUDIT)))
PRIVACY = tuple(n for n, ref in registry.catalogue("audit").items() if ref.family == "privacy")
USEFULNESS = tuple(n for n in AUDITS if n not in PRIVACY)

every_audit = by_name(AUDITS)

TREES = prediction.TREES
"""Trees of a forest as it comes, before conftest.py takes fewer."""

SPREAD = ("exact_match", "attribute_game", "linkability")
"""Audits whose known-answer checks, too, are done in two processes: of one look, of fits, of many columns."""


@pytest.fixture(scope="module")
def tables(population):
    return population(320, 1), population(160, 2), population(320, 3)


@pytest.fixture(scope="module")
def small_tables(population):
    """Of them only whether an audit comes to an end is asked, and hardly what it finds."""
    return population(160, 1), population(80, 2), population(160, 3)


class WatchedSplit(RandomSplit):
    """Notes when it is asked how chance divided people."""

    asked = False

    def __getattribute__(self, name):
        if name in ("train", "ours", "apart"):
            object.__setattr__(self, "asked", True)
        return super().__getattribute__(name)


@pytest.fixture(scope="module")
def divided():
    """By audit, the division that it met on a fresh sample."""
    return {}


@pytest.fixture(scope="module")
def fresh(made_once, outcome_of, as_subject, tables, divided):
    """Outcome of each audit on a fresh real sample, which stands for a release nobody would object to."""

    def run(name):
        divided[name] = WatchedSplit()
        return outcome_of(name, as_subject(*tables, random_split=divided[name]))

    return made_once(run)


@pytest.fixture(scope="module")
def again(made_once, outcome_of, as_subject, tables):
    """The same once more, with the tables that the audit was given as it left them."""

    def run(name):
        subject = as_subject(*tables)
        return outcome_of(name, subject), subject

    return made_once(run)


@pytest.fixture(scope="module")
def draws(made_once, outcome_of, as_subject, tables, fresh):
    """True for an audit that another seed moves."""
    return made_once(
        lambda name: not same(values(outcome_of(name, as_subject(*tables), seed=9)), values(fresh[name]))
    )


def values(outcome):
    return {m.id: m.value for m in outcome.measurements}


def same(one, other):
    return one == pytest.approx(other, nan_ok=True, abs=1e-9)


@every_audit
def test_it_measures_an_ordinary_table(name, fresh):
    assert fresh[name].status is Status.MEASURED, fresh[name].reason
    assert fresh[name].measurements
    assert any(m.id == m.id.whole for m in fresh[name].measurements)
    assert all(m.finite for m in fresh[name].measurements)


@every_audit
def test_what_it_declares_is_complete(name, built):
    info = built(name).info
    assert all((info.title, info.question, info.threat_model, info.not_covered))
    assert len({q.name for q in info.quantities}) == len(info.quantities)
    assert all(q.range[0] < q.range[1] and q.title and q.unit for q in info.quantities)


@every_audit
def test_values_lie_in_their_declared_range_and_intervals_stand_upright(name, fresh, built):
    for m in fresh[name].measurements:
        declared = built(name).info.quantity(m.id.quantity)
        assert declared.range[0] - 1e-9 <= m.value <= declared.range[1] + 1e-9
        assert (m.unit, m.direction) == (declared.unit, declared.direction)
        if m.interval:
            assert m.interval.low <= m.interval.high
            assert m.interval.level >= 0.95
            assert m.interval.method
        if m.n_achieved is not None:
            assert m.n_requested is not None
            assert m.n_achieved <= m.n_requested


@every_audit
def test_the_same_seed_gives_the_same_outcome_to_the_last_bit(name, fresh, again):
    outcome, _ = again[name]
    assert outcome == fresh[name]


def parts_of(subject):
    return subject.train, subject.control, subject.synthetic


@every_audit
def test_its_inputs_are_not_changed(name, again, as_subject, population):
    _, given = again[name]
    untouched = as_subject(population(320, 1), population(160, 2), population(320, 3))
    rebuilt = as_subject(*(t.data for t in parts_of(given)))
    before = [(t.fingerprint, t.schema) for t in parts_of(untouched)]
    assert [(t.fingerprint, t.schema) for t in parts_of(rebuilt)] == before


def reordered_rows(table, rng):
    return table.take(rng.permutation(table.num_rows))


def reordered_columns(table):
    return table.select(list(reversed(table.column_names)))


def relabelled(table):
    new = {"a": "zeta", "b": "eta", "c": "a", "d": "ε", "e": "b", "f": ""}
    labels = pa.array([new.get(x, x) for x in table.column("region").to_pylist()])
    return table.set_column(table.column_names.index("region"), "region", labels)


@pytest.fixture(scope="module")
def changed(as_subject, tables):
    """Other rows first, other columns first, and other names for labels."""
    rng = np.random.default_rng(0)
    return as_subject(*(relabelled(reordered_columns(reordered_rows(t, rng))) for t in tables))


@every_audit
def test_order_and_names_do_not_matter(name, changed, fresh, draws, outcome_of):
    """Values move by rounding only. Those of an audit that fits models, learns from rows in turn or draws at
    random, which another seed moves too, may move by twice the width of their interval (which holds what rows
    are drawn, not at which threshold they are told apart). Without an interval they may move by 0.1, or by a
    twentieth of a larger value.
    """
    before, after = values(fresh[name]), values(outcome_of(name, changed))
    assert set(after) == set(before)
    fits = registry.find("audit", name).family == "utility"
    if not fits and not draws[name]:
        assert same(after, before)
        return
    for m in fresh[name].measurements:
        room = 2 * (m.interval.high - m.interval.low) if m.interval else max(0.1, abs(m.value) / 20)
        assert abs(after[m.id] - m.value) <= room


def copy(train, rng):
    return train


def apart(table):
    """Each column in an order of its own: clean for who looks for ties, unlike new people."""
    rng = np.random.default_rng(2)
    return pa.table({name: table[name].take(rng.permutation(len(table))) for name in table.column_names})


@pytest.fixture(scope="module")
def leaking(made_once, as_subject, tables):
    train, control, _ = tables
    return made_once(lambda leak: as_subject(train, control, leak(train, np.random.default_rng(1))))


@pytest.fixture(scope="module")
def apart_from(made_once, outcome_of, as_subject, tables):
    """Outcomes on a release whose columns are in an order of their own."""
    train, control, synthetic = tables
    subject = as_subject(train, control, apart(synthetic))
    return made_once(lambda name: outcome_of(name, subject))


@pytest.fixture(scope="module")
def on_leak(made_once, built, leaking):
    """What each audit finds of a leak, and whom it exposes."""

    def run(name, leak):
        [ended] = run_tasks(candidate_tasks({name: built(name)}, leaking[leak]), RunContext(seed=0))
        return ended

    return made_once(run)


@by_name(PRIVACY)
@pytest.mark.parametrize("leak", [copy, reordered_rows])
def test_a_copy_is_the_worst_for_privacy(name, leak, fresh, on_leak, apart_from):
    clean = apart_from[name] if looks_for_ties(name) else fresh[name]
    assert_worse(on_leak[name, leak].outcome, clean)


def looks_for_ties(name):
    """Whether new people do not stand for a clean release."""
    info = registry.find("audit", name).load().info
    return info.leak is Leak.ASSOCIATIONS and Need.GENERATOR not in info.needs


def assert_worse(leaky, clean):
    """No number is better for privacy, and one is much worse."""
    before, after = values(clean), values(leaky)
    directed = [m for m in clean.measurements if m.direction is not Direction.NEUTRAL]
    worse = [(after[m.id] - before[m.id]) * (1 if m.direction is Direction.LOWER else -1) for m in directed]
    assert min(worse) >= -1e-9
    assert max(worse) > 0.1


@pytest.fixture(scope="module")
def under_coins(made_once, outcome_of, as_subject, tables):
    """Outcomes where our coins divided people."""
    train, control, _ = tables
    split = RandomSplit(2 / 3, ours=True, apart=True)
    return made_once(
        lambda name, made: outcome_of(name, as_subject(train, control, made(*tables), random_split=split))
    )


def new_people(train, control, synthetic):
    return synthetic


def new_columns(train, control, synthetic):
    return apart(synthetic)


def plain_copy(train, control, synthetic):
    return train


def shuffled_copy(train, control, synthetic):
    return reordered_rows(train, np.random.default_rng(1))


@by_name(PRIVACY)
@pytest.mark.parametrize("leak", [pytest.param(plain_copy, marks=pytest.mark.slow), shuffled_copy])
def test_a_copy_is_the_worst_where_our_own_coins_divided_people(name, leak, fresh, divided, under_coins):
    """Who does not ask how people were divided says what it says of any division."""
    assert fresh[name].measurements
    if divided[name].asked:
        clean = new_columns if looks_for_ties(name) else new_people
        assert_worse(under_coins[name, leak], under_coins[name, clean])


def test_some_audits_ask_how_people_were_divided(fresh, divided):
    asked = {name for name in ("one_run", "exact_match") if fresh[name] and divided[name].asked}
    assert asked == {"one_run"}


@pytest.fixture
def whole_forests(monkeypatch):
    """Forests of few trees depend on the order of rows by more than 0.05."""
    monkeypatch.setattr(prediction, "TREES", TREES)


@by_name(USEFULNESS)
@pytest.mark.usefixtures("whole_forests")
@pytest.mark.parametrize("leak", [copy, reordered_rows])
def test_a_copy_is_the_best_for_usefulness(name, leak, on_leak):
    for m in on_leak[name, leak].outcome.measurements:
        if m.direction is Direction.LOWER:
            assert abs(m.value) <= (0.05 if registry.find("audit", name).family == "utility" else 1e-9)


@by_name(AUDITS)
def test_a_fresh_real_sample_is_near_its_reference(name, fresh):
    for m in fresh[name].measurements:
        if m.reference and m.interval:
            half = (m.interval.high - m.interval.low) / 2
            own = m.reference.interval
            room = 2 * half + ((own.high - own.low) / 2 if own else 0)
            assert abs(m.value - m.reference.value) <= room + 1e-9, str(m.id)


@by_name(AUDITS)
def test_without_control_it_says_so_or_does_without(name, outcome_of, as_subject, tables):
    train, _, synthetic = tables
    found = outcome_of(name, as_subject(train, None, synthetic))
    assert found.status is not Status.ERROR, found.reason
    if found.status is Status.NOT_APPLICABLE:
        assert "control" in found.reason


def with_column(tables, name, make):
    return [t.set_column(t.column_names.index(name), name, make(t, i)) for i, t in enumerate(tables)]


def gaps_everywhere(tables):
    rng = np.random.default_rng(4)

    def gap(table, column):
        keep = pa.array(rng.random(table.num_rows) > 0.4)
        return pc.if_else(keep, table.column(column), pa.scalar(None, table.schema.field(column).type))

    return [pa.table({c: gap(t, c) for c in t.column_names}) for t in tables]


def one_row(tables):
    return [*tables[:2], tables[2].slice(0, 1)]


def tiny(tables):
    return [t.slice(0, n) for t, n in zip(tables, (8, 2, 8), strict=True)]


def duplicates(tables):
    return [t.take(np.arange(t.num_rows) % 5) for t in tables]


def only_in(part, **column):
    [(name, value)] = column.items()
    return lambda tables: with_column(
        tables,
        name,
        lambda t, i: pa.array(
            [value] * t.num_rows if i == part else t.column(name).to_pylist(), t.schema.field(name).type
        ),
    )


def constant(tables):
    numbers = with_column(tables, "income", lambda t, i: pa.array([0.1] * t.num_rows))
    return with_column(numbers, "region", lambda t, i: pa.array(["a"] * t.num_rows))


def all_missing(tables):
    numbers = with_column(tables, "income", lambda t, i: pa.nulls(t.num_rows, pa.float64()))
    return with_column(numbers, "region", lambda t, i: pa.nulls(t.num_rows, pa.string()))


def many_labels(tables):
    return with_column(tables, "region", lambda t, i: pa.array([f"c{k % 200}" for k in range(t.num_rows)]))


def outliers(tables):
    return with_column(
        tables, "income", lambda t, i: pa.array([1e200 * (-1) ** i, *t.column("income").to_pylist()[1:]])
    )


HARD = {
    "missing values": gaps_everywhere,
    "constant columns": constant,
    "all-missing columns": all_missing,
    "column of no type": lambda t: with_column(t, "region", lambda x, i: pa.nulls(x.num_rows)),
    "missing in the release only": only_in(2, income=None),
    "one column missing in control and another in train only": lambda t: only_in(1, income=None)(
        only_in(0, visits=None)(t)
    ),
    "one synthetic row": one_row,
    "ten rows": tiny,
    "unseen label": only_in(2, region="never seen"),
    "one class in the release": only_in(2, ill="yes"),
    "a class of its own": only_in(2, ill="perhaps"),
    "duplicates": duplicates,
    "200 labels": many_labels,
    "huge outliers": outliers,
    "one column": lambda t: [x.select(["region"]) for x in t],
    "labels only": lambda t: [x.select(["region", "smoker", "ill"]) for x in t],
    "dates only": lambda t: [x.select(["since"]) for x in t],
}
LARGE = {"200 labels"}
SLOW = {
    "column of no type",
    "unseen label",
    "one class in the release",
    "200 labels",
    "all-missing columns",
    "missing in the release only",
    "one column missing in control and another in train only",
    "a class of its own",
    "duplicates",
    "labels only",
    "dates only",
}
"""Cases of which another quick one is like: `make test-all` runs them."""


@pytest.fixture(scope="module")
def hard(made_once, as_subject, population, small_tables):
    large = population(240, 1), population(120, 2), population(240, 3)
    return made_once(lambda case: as_subject(*HARD[case](large if case in LARGE else small_tables)))


@pytest.fixture
def hasty(monkeypatch):
    """Forests of few trees and tests of few permutations: no number of a hard table is compared."""
    monkeypatch.setattr(prediction, "TREES", 2)
    nearness = importlib.import_module("synth_audit.audits.recognition.row_nearness")
    monkeypatch.setattr(nearness, "CLEAR", 19)


@every_audit
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[pytest.mark.slow] if c in SLOW else []) for c in HARD]
)
def test_it_survives(name, case, ending_of, hard):
    found = ending_of(name, hard[case])
    assert found.status is not Status.ERROR, found.reason
    assert found.reason or found.status is Status.MEASURED
    for m in found.measurements:
        if m.interval and m.finite:
            assert m.interval.low <= m.interval.high
        assert not (math.isnan(m.value) and m.interval and math.isfinite(m.interval.high))


@pytest.fixture(scope="module")
def marked(as_subject, tables):
    rare = ["Bartholomew-Quincy"] * 3
    train, control, synthetic = with_column(
        tables, "region", lambda t, i: pa.array([*rare, *t.column("region").to_pylist()[3:]])
    )
    number = 918_273.645
    train = with_column(
        [train], "income", lambda t, i: pa.array([number, *t.column("income").to_pylist()[1:]])
    )[0]
    return as_subject(train, control, synthetic)


@every_audit
def test_findings_hold_no_rare_value(name, outcome_of, marked):
    """A label that fewer rows hold than the suppression limit, and every number, stays inside."""
    outcome = outcome_of(name, marked)
    said = json.dumps([outcome.series, outcome.measurements, outcome.notes, outcome.reason], default=repr)
    assert "Bartholomew" not in said
    assert "918273.6" not in said


@pytest.fixture(scope="module")
def plantable(as_subject, population):
    """A table large enough to plant leaks in."""
    return as_subject(population(500, 1), population(200, 2), population(500, 3))


@pytest.fixture(scope="module")
def examined(made_once, built, plantable):
    """A privacy audit with its known-answer check, in 1 or 2 processes."""
    return made_once(
        lambda name, workers: run_examination(
            {name: built(name)}, plantable, KnownAnswerSpec(), RunContext(executor=in_processes(workers))
        )
    )


@by_name(PRIVACY, slow=("membership_game",))  # each planted leak takes a game; attribute_game plays one too
def test_its_headline_sees_a_full_copy(name, examined):
    [outcome] = examined[name, 1].outcomes
    if outcome.info.leak is Leak.OWN:
        assert not outcome.responses
        return
    assert outcome.responses
    headlines = [r for r in outcome.responses if r.id == r.id.whole]
    assert any(r.sensitivity is Sensitivity.SENSITIVE for r in headlines), [r.reason for r in headlines]


@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize("name", SPREAD)
def test_the_number_of_processes_changes_no_number(name, examined):
    alone, spread = examined[name, 1], examined[name, 2]
    assert spread.outcomes == alone.outcomes
    assert spread.view == alone.view
    assert spread.exposed.equals(alone.exposed)


@pytest.fixture(scope="module")
def beside(built, as_subject, small_tables):
    """How all privacy audits end on one table, one after the other and beside one another."""
    tasks = candidate_tasks({name: built(name) for name in PRIVACY}, as_subject(*small_tables))
    ended = (run_tasks(tasks, RunContext(executor=in_processes(workers))) for workers in (1, 2))
    alone, spread = (dict(zip(PRIVACY, of, strict=True)) for of in ended)
    return alone, spread


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize("name", PRIVACY)
def test_audits_beside_one_another_keep_their_numbers(name, beside):
    """All audits in two processes, of which some spread their own work, say what each says alone."""
    alone, spread = (of[name] for of in beside)
    assert spread.outcome == alone.outcome
    assert told_of(spread) == told_of(alone)


def told_of(ended):
    """Whom an audit exposes, by which columns."""
    return [
        (e.columns, *(x.tolist() for x in (e.train_tried, e.train_hit, e.control_tried, e.control_hit)))
        for e in ended.exposures
    ]


@by_name(PRIVACY)
def test_exposed_records_are_positions_of_attacked_rows(name, on_leak, tables):
    train, control, _ = tables
    ended = on_leak[name, copy]
    for e in ended.exposures:
        for tried, hit, n in (
            (e.train_tried, e.train_hit, train.num_rows),
            (e.control_tried, e.control_hit, control.num_rows),
        ):
            assert np.array_equal(tried, np.unique(tried))
            assert np.array_equal(hit, np.unique(hit))
            assert set(hit) <= set(tried) <= set(range(n))
        assert set(e.columns) <= set(train.column_names)


@every_audit
def test_series_are_shares_and_not_rows(name, fresh):
    for series in fresh[name].series:
        assert series.kind in {*CHARTS, *PANELS}
        assert len(series.x) <= 200
        withheld = series.kind in ("matrix", "density")
        assert all(
            math.isfinite(y) or (withheld and math.isnan(y)) for line in series.lines.values() for y in line
        )
