from __future__ import annotations

import pytest

from synth_audit import api
from synth_audit.errors import DataError
from synth_audit.studies.run_estimate import _stage


@pytest.mark.parametrize(
    ("name", "seconds", "rows", "exponent"),
    [
        *(
            ("fit and draw", s, 16_000, e)
            for s, e in (((1, 4), 1), ((1, 2), 0.5), ((3, 2), 0), ((0.1, 100), 2))
        ),
        *(("audits", (1, 4), rows, e) for rows, e in ((8_000, 1), (10_001, 0.5), (10**6, 0.5))),
    ],
)
def test_a_stage_grows_as_a_power_of_the_rows_up_to_its_steepest(name, seconds, rows, exponent):
    stage = _stage(name, seconds, (1_000, 4_000), rows)
    assert stage.exponent == pytest.approx(exponent)
    assert stage.expected == pytest.approx(seconds[1] * (rows / 4_000) ** exponent)


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
