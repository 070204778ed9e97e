"""Exposed records: positions for the restricted workspace, rates above the suppression limit for others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.examination.exposed_records import (
    as_measurements,
    exposed_records,
    record_view,
    weights_of_evidence,
    worst_subgroups,
)
from synth_audit.findings.measurement import Exposure, MeasurementId
from synth_audit.plugins.audit import Subject
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
