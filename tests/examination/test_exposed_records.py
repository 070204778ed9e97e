"""What an examination publishes: exposed records as counts, ratios of few digits, telling columns."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.examination.examine import ratio, rounded_for_publication
from synth_audit.examination.exposed_records import (
    as_measurements,
    exposed_records,
    record_view,
    weights_of_evidence,
    worst_subgroups,
)
from synth_audit.examination.planted_leaks import most_telling
from synth_audit.findings.measurement import (
    Estimate,
    Exposure,
    Interval,
    Measurement,
    MeasurementId,
    Reference,
)
from synth_audit.plugins.audit import AuditOutcome, Status, Subject
from synth_audit.stats.attack_success import risk
from synth_audit.stats.proportions import Proportion
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


@pytest.fixture
def subject():
    train = pa.table({"sex": ["f", "m"] * 300, "few": ["x"] * 5 + ["y"] * 595, "n": np.arange(600.0)})
    control = pa.table({"sex": ["f", "m"] * 100, "few": ["y"] * 200, "n": np.arange(200.0)})
    schema = infer_schema(train, {})
    known, other = (read_table(t, schema, where="table") for t in (train, control))
    return Subject(known, other, known)


def exposure(hit, setting="", control_hit=(), control=True, audit="one"):
    none = np.empty(0, dtype=np.intp)
    return Exposure(
        MeasurementId(audit, "risk", setting),
        ("n",),
        np.arange(600),
        np.array(hit, dtype=np.intp),
        np.arange(200) if control else none,
        np.array(control_hit, dtype=np.intp) if control else none,
    )


def viewed(exposures, subject):
    return record_view(exposures, worst_subgroups(exposures, subject), subject)


def test_records_are_ranked_by_the_attacks_that_hit_them():
    found = [exposure(range(100)), exposure(range(50, 150), "deep", audit="two")]
    table = exposed_records(found, 600, 200).to_pydict()
    assert table["row"][:50] == list(range(50, 100)), "hit by both"
    assert table["hits"] == [2] * 50 + [1] * 100
    assert table["attacks"][0] == ["one.risk", "two.risk[deep]"]
    assert table["log_odds"] == sorted(table["log_odds"], reverse=True)


def test_no_exposure_is_an_empty_table():
    assert exposed_records([], 600, 0).num_rows == 0


def test_small_counts_are_not_shown(subject):
    view = viewed([exposure(range(9)), exposure(range(300), audit="two")], subject)
    assert view.exposed == 300
    assert view.control_exposed == 0
    assert [g.train_hit for g in view.groups] == [None, 300]
    assert [g.control_hit for g in view.groups] == [0, 0]


def test_the_weight_of_evidence_by_hand():
    found = [exposure(range(300), control_hit=range(20))]
    train, control = weights_of_evidence(found, 600, 200)
    r_t, r_c = 300.5 / 601, 20.5 / 201
    assert train[0] == pytest.approx(np.log(r_t / r_c))
    assert train[599] == control[199] == pytest.approx(np.log((1 - r_t) / (1 - r_c)))


def test_an_attack_that_is_right_about_strangers_too_exposes_nobody(subject):
    view = viewed([exposure(range(540), control_hit=range(180), audit=f"a{i}") for i in range(9)], subject)
    assert view.exposed == 0


def test_the_worst_subgroup_by_hand(subject):
    women = np.arange(0, 600, 2)
    hit = np.sort(np.concatenate([women[:90], women[:20] + 1]))
    found = [exposure(hit, control_hit=[0, 2, 4])]
    [worst] = worst_subgroups(found, subject)
    assert (worst.id.column, worst.category, worst.train_rows) == ("sex", "f", 300)
    by_hand = risk(Proportion(90, 300), Proportion(3, 100), 1 - 0.05 / 2)
    assert worst.value == pytest.approx(by_hand.value)
    assert worst.interval.low == pytest.approx(by_hand.interval.low)
    assert "2 categories" in worst.interval.method
    assert worst.interval.level == 0.95


def test_a_category_below_the_limit_is_never_named(subject):
    everyone_rare = [exposure(range(5))]
    assert all(s.category != "x" for s in worst_subgroups(everyone_rare, subject))
    assert '"x"' not in repr(viewed(everyone_rare, subject))


def test_an_attack_without_control_has_no_subgroups(subject):
    """A plain rate of hits is no risk: nothing says how often strangers are hit."""
    assert worst_subgroups([exposure(range(0, 600, 4), control=False)], subject) == []


def test_a_secret_has_no_subgroups_by_its_own_values(subject):
    attack = replace(exposure(range(0, 600, 4)), columns=("sex",))
    assert worst_subgroups([attack], subject) == []


def test_no_count_below_the_limit_can_be_worked_out(subject):
    """Risk times rows is a count of hits: a category with few of them, or with few misses, is left out."""
    women, men = np.arange(0, 600, 2), np.arange(1, 600, 2)
    few = [exposure(np.sort(np.concatenate([women[:5], men[:90]])))]
    many = [exposure(np.sort(np.concatenate([women[:298], men[:90]])))]
    assert worst_subgroups(few, subject) == worst_subgroups(many, subject) == []


def test_subgroups_can_be_gated(subject):
    subgroups = worst_subgroups([exposure(range(200), "deep")], subject)
    [measured] = as_measurements(subgroups)["one"]
    assert str(measured.id) == "one.worst_subgroup[by sex of risk[deep]]"
    assert measured.interval.high >= measured.value


def interval(low: float, high: float) -> Interval:
    return Interval(low, high, 0.95, "bootstrap")


def test_all_numbers_are_rounded_and_intervals_still_hold_their_value() -> None:
    reference = Reference(
        1 / 3, "control", interval(0.31234567, math.inf), Estimate(2 / 3, interval(0.61234567, 2 / 3))
    )
    m = Measurement(
        MeasurementId("marginals", "ks"), 1 / 7, interval=interval(1 / 7, 0.14285749), reference=reference
    )
    [found] = rounded_for_publication(
        AuditOutcome("marginals", "fidelity", Status.MEASURED, measurements=(m,))
    ).measurements
    assert (found.value, found.interval) == (0.1429, interval(0.1429, 0.1429))
    assert found.reference == Reference(
        0.3333, "control", interval(0.3123, math.inf), Estimate(0.6667, interval(0.6123, 0.6667))
    )


KS = MeasurementId("marginals", "ks", column="age")


def number(value: float, low: float, high: float, reference: Reference | None) -> Measurement:
    return Measurement(KS, value, interval=Interval(low, high, 0.95, "wilson"), reference=reference)


def beside(value: float, low: float, high: float, candidate: Estimate | None = None) -> Reference:
    return Reference(value, "control", Interval(low, high, 0.95, "wilson"), candidate)


def test_a_ratio_spans_what_both_intervals_allow() -> None:
    found = ratio(number(0.2, 0.1, 0.3, beside(0.1, 0.05, 0.2)))
    assert found is not None
    assert found.interval is not None
    assert str(found.id) == "marginals.reference_ratio[of ks[by age]]"
    assert found.value == pytest.approx(2)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.5, 6))


def test_a_candidate_is_compared_at_the_size_of_its_reference() -> None:
    alike = Estimate(0.3, Interval(0.2, 0.4, 0.95, "wilson"))
    found = ratio(number(0.2, 0.1, 0.25, beside(0.1, 0.1, 0.1, alike)))
    assert found is not None
    assert found.value == pytest.approx(3)


def test_a_reference_that_may_be_zero_sets_no_upper_end() -> None:
    found = ratio(number(0.2, 0.1, 0.3, beside(0.1, -0.05, 0.2)))
    assert found is not None
    assert found.interval is not None
    assert found.interval.high == math.inf
    assert not found.finite


@pytest.mark.parametrize("reference", [None, Reference(0.5, "known exactly"), beside(0, 0, 0.1)])
def test_there_is_no_ratio_to_zero_or_to_what_was_not_measured(
    reference: Reference | None,
) -> None:
    assert ratio(number(0.2, 0.1, 0.3, reference)) is None


N = 800


@pytest.fixture(scope="module")
def districts():
    """What is true of a whole district, in five columns, and three answers of each person."""
    rng = np.random.default_rng(2)
    district = rng.integers(0, 60, N)
    of_district = {f"d{k}": rng.permutation(30 - k)[district % (30 - k)].astype(float) for k in range(5)}
    own = {f"p{k}": rng.integers(0, 6, N).astype(float) for k in range(3)}
    return table_of(of_district | own | {"flat": np.zeros(N)})


def test_what_follows_from_columns_chosen_before_comes_last(districts):
    told = most_telling(districts, districts.schema.features, 5)
    assert {"p0", "p1", "p2"} < set(told)
    assert next(iter(told)) == "d0", "the largest entropy of all"
    assert told["d0"] == pytest.approx(np.log2(30), abs=0.2)
    assert sum(told.values()) < 15, "four columns of the district would have told as much"


def test_columns_that_hang_together_with_none_are_taken_by_entropy_and_none_that_is_constant(districts):
    own = [c for c in districts.schema.features if c.name[0] in "pf"]
    told = most_telling(districts, own, 5)
    assert set(told) == {"p0", "p1", "p2"}
    assert all(bits > 0.8 * np.log2(6) for bits in told.values())


def test_the_same_number_in_two_columns_tells_nothing_twice():
    x = np.random.default_rng(3).normal(size=N)
    rows = table_of({"x": x, "again": 2 * x, "sex": np.arange(N) % 2})
    told = most_telling(rows, rows.schema.features, 3)
    assert list(told)[1] == "sex"
    assert told["x"] < 0.01 * told["again"]
