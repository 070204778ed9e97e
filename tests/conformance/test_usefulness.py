"""What every audit of usefulness must keep: references, floors, and tables that are hard to read."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conformance_by_name import by_name  # made importable by conftest.py
from conformance_readme import README_AUDIT

from synth_audit import registry
from synth_audit.examination.examine import with_ratios
from synth_audit.findings.measurement import Direction
from synth_audit.plugins.audit import Status

FAMILIES = {name: ref.family for name, ref in registry.catalogue("audit").items()} | {
    README_AUDIT: "fidelity"
}
FIDELITY = tuple(name for name, family in FAMILIES.items() if family == "fidelity")
USEFULNESS = tuple(name for name, family in FAMILIES.items() if family in ("fidelity", "utility"))
STRUCTURE = ("associations", "propensity", "prediction")
"""Audits of how columns hang together, which columns shuffled one by one no longer do."""

every_audit = by_name(USEFULNESS)
every_comparison = by_name(FIDELITY)


def shuffled(table, seed=0):
    rng = np.random.default_rng(seed)
    columns = {n: table.column(n).take(pa.array(rng.permutation(len(table)))) for n in table.column_names}
    return pa.table(columns)


@pytest.fixture(scope="module")
def three(population):
    return population(600, 1), population(300, 2), population(600, 3)


@pytest.fixture(scope="module")
def small_three(population):
    return population(200, 1), population(100, 2), population(200, 3)


@pytest.fixture(scope="module")
def found(made_once, outcome_of, as_subject, three):
    """Each audit on new people, or on columns shuffled one by one."""
    train, control, fresh = three
    cases = {"fresh": fresh, "independent": shuffled(train)}
    return made_once(lambda name, case: outcome_of(name, as_subject(train, control, cases[case])))


@every_comparison
def test_control_as_the_release_scores_at_its_reference(name, outcome_of, as_subject, three):
    train, control, _ = three
    outcome = outcome_of(name, as_subject(train, control, control))
    measured = [m for m in outcome.measurements if m.reference is not None and math.isfinite(m.value)]
    judged = any(q.direction is not Direction.NEUTRAL for q in outcome.info.quantities)
    assert measured or not judged or outcome.status is Status.NOT_APPLICABLE
    for m in measured:
        assert m.value == m.reference.value
        assert m.reference.candidate is None
        assert m.interval == m.reference.interval


@every_comparison
def test_every_judged_number_has_an_interval_and_a_reference_with_one(name, found):
    for m in found[name, "fresh"].measurements:
        if m.direction is Direction.NEUTRAL:
            continue
        assert m.interval is not None, str(m.id)
        assert m.interval.low <= m.value <= m.interval.high, str(m.id)
        assert m.reference is not None, str(m.id)
        assert m.reference.interval is not None, str(m.id)


@every_comparison
def test_a_larger_release_is_set_against_the_reference_at_its_size(name, found):
    outcome = with_ratios(found[name, "fresh"])
    restated = {m.id.derived_from for m in outcome.measurements if m.id.quantity == "reference_ratio"}
    for m in found[name, "fresh"].measurements:
        if m.reference is not None and m.reference.interval is not None:
            assert m.reference.candidate is not None, str(m.id)
            quantity = outcome.info.quantity(m.id.quantity)
            measurable = quantity.range[0] >= 0 and m.reference.value > 0
            assert (m.id in restated) == (measurable and m.direction is not Direction.NEUTRAL)


def beyond(interval, m):
    """Wholly on the worse side of a measurement; more is worse where nothing is said of that."""
    if m.direction is Direction.HIGHER:
        return interval.high < m.interval.low
    return interval.low > m.interval.high


@by_name(STRUCTURE)
def test_shuffled_columns_are_told_from_new_people(name, found):
    fresh, independent = (
        {m.id: m for m in found[name, case].measurements} for case in ("fresh", "independent")
    )
    worse = [
        key
        for key, m in fresh.items()
        if key == key.whole and m.interval and (n := independent[key]).interval and beyond(n.interval, m)
    ]
    assert worse


def test_shuffled_columns_have_the_right_marginals(found):
    for m in found["marginals", "independent"].measurements:
        if str(m.id) == "marginals.total_variation":
            assert m.value < 0.01


def constant(table):
    same = {n: table.column(n).take(pa.array([0] * len(table))) for n in ("age", "region", "smoker")}
    for n, column in same.items():
        table = table.set_column(table.column_names.index(n), n, column)
    return table


def wide(table, numbers, labels):
    rng = np.random.default_rng(len(table))
    more = {f"x{i}": pa.array(rng.normal(size=len(table))) for i in range(numbers)}
    more |= {f"c{i}": pa.array(rng.choice(list("abcdefgh"), len(table))) for i in range(labels)}
    return pa.table({n: table.column(n) for n in table.column_names} | more)


HARD = {
    "constant in the release only": lambda a, b, c: (a, b, constant(c)),
    "one class in control": lambda a, b, c: (a, b.filter(pc.equal(b["ill"], "yes")), c),
    "ten rows in the release": lambda a, b, c: (a, b, c.slice(0, 10)),
    "a release of twice the size": lambda a, b, c: (a.slice(0, 100), b, c),
    # 320 labels, more than a projection keeps apart.
    "more columns than rows": lambda *t: (
        wide(x.slice(0, n), 14, 40) for x, n in zip(t, (60, 30, 60), strict=True)
    ),
    "200 columns": lambda *t: (wide(x.slice(0, n), 100, 93) for x, n in zip(t, (120, 60, 120), strict=True)),
}
SLOW = {
    "200 columns",
    "constant in the release only",
    "one class in control",
    "ten rows in the release",
    "a release of twice the size",
}


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=[pytest.mark.slow] if c in SLOW else []) for c in HARD]
)
@every_audit
def test_hard_tables_end_in_a_number_or_a_reason(name, case, ending_of, as_subject, small_three):
    outcome = ending_of(name, as_subject(*HARD[case](*small_three)))
    assert outcome.status in (Status.MEASURED, Status.NOT_APPLICABLE), outcome.reason
    if outcome.status is Status.NOT_APPLICABLE:
        assert outcome.reason
