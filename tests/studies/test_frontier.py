"""The record of a sweep: scores against a slow twin, the choice, the file."""

import math
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_audit import api
from synth_audit.errors import DataError
from synth_audit.findings.measurement import BOX_LINES, MeasurementId, Series
from synth_audit.store.records import parse_strict
from synth_audit.studies import frontier, run_estimate
from synth_audit.studies.run_estimate import _stage

BOX = Series(
    MeasurementId("", "mab", column="x"),
    "MAB",
    "box",
    "secret",
    "MAB",
    ("x",),
    dict.fromkeys(BOX_LINES, (0.1,)),
)
TAU = frontier.Correlations(("a", "b"), ((1.0, 0.25), (0.25, 1.0)))


def candidate(name="a", verdict="pass", privacy=0.0, utility=0.0, **more):
    numbers = [None if v is None else frontier.Number(v, v - 1, v + 1) for v in (privacy, utility)]
    plain = frontier.CandidateResult(name, name, {"name": "vine", "config": {}}, {}, verdict)
    return replace(plain, privacy=numbers[0], utility=numbers[1], **more)


def ranked(*candidates, alpha=0.5, higher_privacy=False, higher_utility=True):
    return frontier.scored(candidates, alpha, higher_privacy=higher_privacy, higher_utility=higher_utility)


def record(*candidates):
    best, reason = frontier.choose(candidates)
    name = best.name if best else None
    return frontier.FrontierRecord(
        "t",
        "0" * 64,
        1,
        0.975,
        0.5,
        MeasurementId("u", "u"),
        MeasurementId("p", "p"),
        candidates,
        name,
        reason,
        TAU,
        "2026-11-21T00:00:00",
    )


def test_scores_by_hand():
    a, b, c = ranked(
        candidate("a", privacy=2, utility=10),
        candidate("b", privacy=4, utility=20),
        candidate("c", privacy=3, utility=20),
        alpha=0.25,
    )
    assert [x.privacy_score for x in (a, b, c)] == [1, 0, 0.5]
    assert [x.utility_score for x in (a, b, c)] == [0, 1, 1]
    assert [x.score for x in (a, b, c)] == pytest.approx([0.25, 0.75, 0.875])


finite = st.floats(-1e6, 1e6)
pairs = st.lists(st.tuples(st.none() | finite, st.none() | finite), min_size=1, max_size=8)


@given(pairs, st.floats(0, 1), st.booleans(), st.booleans())
def test_scores_are_those_of_a_slow_twin(values, alpha, higher_privacy, higher_utility):
    got = ranked(
        *(candidate(str(i), privacy=p, utility=u) for i, (p, u) in enumerate(values)),
        alpha=alpha,
        higher_privacy=higher_privacy,
        higher_utility=higher_utility,
    )

    def twin(own, others, higher):
        if own is None:
            return None
        known = [x if higher else -max(x, 0.0) for x in others if x is not None]
        own = own if higher else -max(own, 0.0)
        return 1.0 if max(known) == min(known) else (own - min(known)) / (max(known) - min(known))

    for c, (p, u) in zip(got, values, strict=True):
        twins = (
            twin(p, [v[0] for v in values], higher_privacy),
            twin(u, [v[1] for v in values], higher_utility),
        )
        assert (c.privacy_score, c.utility_score) == pytest.approx(twins)
        if None in twins:
            assert c.score is None
        else:
            assert c.score == pytest.approx(alpha * twins[0] + (1 - alpha) * twins[1])
            assert -1e-12 <= c.score <= 1 + 1e-12


def test_only_what_passes_is_chosen_and_the_scale_is_that_of_all():
    all_three = ranked(
        candidate("best", "fail", 0, 9),
        candidate("undecided", "insufficient evidence", 1, 9),
        candidate("safe", privacy=4, utility=1),
    )
    chosen, reason = frontier.choose(all_three)
    assert chosen.name == "safe"
    assert chosen.score == 0
    assert reason == "safe is the only one of 3 candidates that may leave."


def test_the_only_one_that_passes_needs_no_score():
    chosen, _ = frontier.choose(ranked(candidate("a", "fail"), candidate("b", utility=None)))
    assert chosen.name == "b"


def test_the_first_of_equals_is_chosen():
    chosen, reason = frontier.choose(ranked(candidate("a"), candidate("b")))
    assert chosen.name == "a"
    assert "the best score, 1.000, among the 2 of 2 candidates that" in reason


def test_candidates_whose_intervals_overlap_are_not_told_apart():
    _, reason = frontier.choose(
        ranked(candidate("a"), candidate("b"), candidate("c", utility=9), candidate("d", privacy=9))
    )
    assert reason.startswith("c has the best score")
    assert "istinguishable" not in reason
    _, reason = frontier.choose(
        ranked(candidate("a", privacy=0.1), candidate("b", utility=1), candidate("c", privacy=9))
    )
    assert "Not distinguishable from it" in reason
    assert ": a. Choose" in reason
    broad = replace(candidate("b"), utility=frontier.Number(1.0, math.nan, math.nan))
    assert "istinguishable" not in frontier.choose(ranked(candidate("a"), broad))[1], (
        "without an interval nothing is known"
    )


def test_nothing_is_gained_below_zero():
    """A score of −2 % and one of 0 are both that of a release without leak."""
    noise, none, some = ranked(candidate("a", privacy=-2.0), candidate("b"), candidate("c", privacy=1.0))
    assert noise.privacy_score == none.privacy_score == 1
    assert some.privacy_score == 0
    gains = ranked(candidate("a", privacy=-2.0), candidate("b"), higher_privacy=True)
    assert [c.privacy_score for c in gains] == [0, 1]


def test_none_is_chosen_when_none_passes_or_none_is_measured():
    chosen, reason = frontier.choose(
        (candidate("a", "fail"), candidate("b", "error"), candidate("c", "insufficient evidence"))
    )
    assert chosen is None
    assert (
        reason
        == "None of 3 candidates may leave: 1 failed a gate, 1 gave no table, 1 had insufficient evidence."
    )
    chosen, reason = frontier.choose(ranked(candidate("a", privacy=None), candidate("b", utility=None)))
    assert chosen is None
    assert "not both measured for any of them" in reason


def test_the_file_gives_the_record_back(tmp_path):
    number = frontier.Number(0.5, math.nan, math.inf)
    whole = record(
        *ranked(
            candidate("a"),
            candidate(
                "b",
                privacy=1,
                boxes=(BOX,),
                correlations=TAU,
                gates=(frontier.GateOutcome("g", "G", "pass"),),
            ),
        )
    )
    odd = replace(
        whole,
        candidates=(
            replace(whole.candidates[0], utility=number, problem="ValueError"),
            *whole.candidates[1:],
        ),
    )
    for one in (whole, odd):
        path = tmp_path / "frontier.json"
        path.write_text(one.to_json())
        back = frontier.read_frontier(path)
        assert back.to_json() == one.to_json()
        assert back.digest == one.digest
    assert frontier.read_frontier(path).candidates[1].gates[0].title == "G"
    assert parse_strict(frontier.FrontierRecord, whole.to_json().encode()) == whole
    assert whole.best == whole.candidates[0]


def test_the_digest_is_blind_to_times_alone():
    whole = record(candidate("a"), candidate("b"))
    later = replace(
        whole, created="later", candidates=tuple(replace(c, seconds=9.0, kept=True) for c in whole.candidates)
    )
    assert later.digest == whole.digest
    assert replace(whole, alpha=0.4).digest != whole.digest
    assert record(candidate("a", utility=1), candidate("b")).digest != whole.digest


@pytest.mark.parametrize("text", ["", "{}", "[]", None])
def test_what_is_no_record_is_refused(tmp_path, text):
    path = tmp_path / "frontier.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match="record of the sweep"):
        frontier.read_frontier(path)
    path.write_text(
        record(candidate()).to_json().replace('"schema_version": "1.1"', '"schema_version": "9.0"')
    )
    with pytest.raises(DataError, match="record of the sweep"):
        frontier.read_frontier(path)


@pytest.mark.parametrize(
    ("name", "seconds", "rows", "exponent"),
    [
        *(
            ("fit and draw", s, 16_000, e)
            for s, e in (((1, 4), 1), ((1, 2), 0.5), ((3, 2), 0), ((0.1, 100), 2))
        ),
        *(("audits", (1, 4), rows, e) for rows, e in ((8_000, 1), (10_001, 0.45), (10**5, 0.45))),
        ("audits", (4, 4), 10**5, 0.33),
    ],
)
def test_a_stage_grows_as_a_power_of_the_rows_up_to_its_steepest(name, seconds, rows, exponent):
    stage = _stage(name, seconds, (1_000, 4_000), rows)
    assert stage.exponent == pytest.approx(exponent)
    assert stage.expected == pytest.approx(seconds[1] * (rows / 4_000) ** exponent)


@pytest.mark.parametrize(("rows", "measured"), [(10**5, 157), (10**6, 431), (10**7, 2_809)])
def test_audits_of_large_tables_are_estimated_as_they_were_measured(rows, measured):
    """Seconds of 20 columns in one process, after small runs of 14 and 37 seconds on the same machine."""
    assert _stage("audits", (14.3, 37.0), (1_000, 4_000), rows).expected == pytest.approx(measured, rel=0.1)


def test_an_estimate_leaves_nothing_behind(tmp_path, make_case):
    case = make_case(tmp_path / "case", audits=["exact_match"])
    before = sorted(tmp_path.rglob("*"))
    found = api.estimate(case.plan)
    assert sorted(tmp_path.rglob("*")) == before
    assert [s.name for s in found.stages] == ["fit and draw", "audits"]
    assert found.expected == sum(s.expected for s in found.stages) > 0
    assert found.sizes == (found.rows // 4, found.rows // 2)


def test_of_a_table_made_elsewhere_the_same_share_is_audited(tmp_path, make_case, monkeypatch):
    case = make_case(
        tmp_path / "case", audits=["exact_match"], generator={"external": {"source": "made.parquet"}}
    )
    whole = pq.read_table(case.folder / "people.parquet").drop_columns(["person"])
    pq.write_table(whole, case.folder / "made.parquet")
    monkeypatch.setattr(run_estimate, "FEWEST", 100)
    audited, examine = [], run_estimate.examine

    def seen(plan, subject, *rest, **named):
        audited.append(subject.synthetic.n_rows)
        return examine(plan, subject, *rest, **named)

    monkeypatch.setattr(run_estimate, "examine", seen)
    found = api.estimate(case.plan)
    assert audited == [100, *found.sizes]


def test_a_small_table_is_simply_run(tmp_path, make_case, monkeypatch):
    case = make_case(tmp_path / "case")
    monkeypatch.setattr("synth_audit.studies.run_estimate.FEWEST", 10**6)
    with pytest.raises(DataError, match="less time than an estimate"):
        api.estimate(case.plan)
