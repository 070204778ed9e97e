from __future__ import annotations

import pytest

from synth_audit import api
from synth_audit.errors import DataError
from synth_audit.studies.run_estimate import _stage


@pytest.mark.parametrize(
    ("seconds", "exponent", "expected"),
    [((1.0, 4.0), 1.0, 16.0), ((1.0, 2.0), 0.5, 4.0), ((3.0, 2.0), 0.0, 2.0), ((0.1, 100.0), 2.0, 1600.0)],
)
def test_a_stage_grows_as_a_power_of_the_rows_and_no_more_than_their_square(seconds, exponent, expected):
    stage = _stage("fit and draw", seconds, (1_000, 4_000), 16_000)
    assert stage.exponent == pytest.approx(exponent)
    assert stage.expected == pytest.approx(expected)


@pytest.mark.parametrize(("rows", "exponent"), [(8_000, 1.0), (10_001, 0.5), (10**6, 0.5)])
def test_audits_of_large_tables_look_at_samples_and_grow_with_the_root_at_most(rows, exponent):
    stage = _stage("audits", (1.0, 4.0), (1_000, 4_000), rows)
    assert stage.exponent == pytest.approx(exponent)
    assert stage.expected == pytest.approx(4 * (rows / 4_000) ** exponent)


def test_an_estimate_leaves_nothing_behind(tmp_path, make_case):
    case = make_case(tmp_path / "case", audits=["exact_match"])
    before = sorted(tmp_path.rglob("*"))
    found = api.estimate(case.plan)
    assert sorted(tmp_path.rglob("*")) == before
    assert [s.name for s in found.stages] == ["fit and draw", "audits"]
    assert found.expected == sum(s.expected for s in found.stages) > 0
    assert found.sizes == (found.rows // 4, found.rows // 2)


def test_a_small_table_is_simply_run(tmp_path, make_case, monkeypatch):
    case = make_case(tmp_path / "case")
    monkeypatch.setattr("synth_audit.studies.run_estimate.FEWEST", 10**6)
    with pytest.raises(DataError, match="less time than an estimate"):
        api.estimate(case.plan)
