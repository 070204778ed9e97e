"""Audits draw by the salt of the training table and the content of the candidate, and by no setting."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.cli.terminal import show_evidence
from synth_audit.errors import DataError
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.warnings import PREDICTABLE
from synth_audit.report import render_report
from synth_audit.report.certificate import certificate_view, render_certificate
from synth_audit.store.evidence import parse_evidence
from synth_audit.store.workspace import Workspace

DRAWING = [
    {"closest_record": {"max_queries": 100, "n_bootstrap": 100}},
    {"linkability": {"n_attacks": 100}},
    {"marginals": {"n_bootstrap": 100}},
    {"propensity": {"most_rows": 100, "trees": 5, "folds": 2}},
    "exact_match",
    "singling_out",
]
"""Audits that draw rows, or resamples of rows, and two that draw nothing."""


def people(seed: int, n: int = 150) -> pa.Table:
    rng = np.random.default_rng(seed)
    numbers = {f"c{i}": rng.normal(size=n) for i in range(4)}
    return pa.table({**numbers, "city": rng.choice(["north", "south", "east"], n)})


TRAIN, CONTROL, SYNTHETIC = (people(seed) for seed in range(3))


@pytest.fixture
def plan(tmp_path, monkeypatch, write_suite):
    monkeypatch.chdir(tmp_path)
    write_suite()
    return {"audits": DRAWING, "gates": "gates.json", "known_answer": {"max_rows": 100}}


def numbers(evidence):
    """Every number of every audit; only privacy audits draw a part of theirs from planted leaks."""
    assert not evidence.errored
    return evidence.outcomes


@pytest.mark.parametrize("out", [pytest.param("out", marks=pytest.mark.slow), None])
def test_the_seed_of_a_plan_moves_no_number(plan, out):
    found = [api.audit(TRAIN, CONTROL, SYNTHETIC, plan | {"seed": seed}, out=out) for seed in (0, 1)]
    assert numbers(found[0]) == numbers(found[1])


def test_the_seed_of_a_plan_moves_no_number_of_a_run(case):
    before, plan = case.evidence, case.replan(seed=6)
    after = pipeline.produce(plan, case.workspace)
    assert after.outcomes == before.outcomes
    assert [a.plan for a in after.earlier] == [before.plan_sha256]


@pytest.mark.parametrize("out", [pytest.param("out", marks=pytest.mark.slow), None])
def test_the_order_of_the_candidates_rows_moves_no_number(plan, out):
    order = np.random.default_rng(9).permutation(SYNTHETIC.num_rows)
    found = [
        api.audit(TRAIN, CONTROL, release, plan, out=out)
        for release in (
            SYNTHETIC,
            SYNTHETIC.take(pa.array(order)),
            SYNTHETIC.select(TRAIN.column_names[::-1]),
        )
    ]
    assert numbers(found[0]) == numbers(found[1]) == numbers(found[2])
    assert found[0].digest == found[1].digest or out is None


@pytest.mark.slow  # executors are compared in tests/conformance
def test_processes_move_no_number(plan):
    found = [api.audit(TRAIN, CONTROL, SYNTHETIC, plan, out="out", workers=n) for n in (1, 2)]
    assert numbers(found[0]) == numbers(found[1])


def test_another_workspace_draws_by_the_salt_of_the_training_table(plan):
    first, second = (api.audit(TRAIN, CONTROL, SYNTHETIC, plan, out=out) for out in ("a", "b"))
    assert numbers(first) == numbers(second)
    assert first.salt_commitment != second.salt_commitment
    [said] = [w for w in second.warnings if "in another workspace" in w]
    assert first.salt_commitment[:12] in said
    assert not any("another workspace" in w for w in first.warnings)
    other = api.audit(people(7), CONTROL, SYNTHETIC, plan, only=("exact_match",), out="c")
    assert not any("another workspace" in w for w in other.warnings)


def test_an_account_without_a_folder_keeps_to_the_workspace_and_says_so(plan, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    first, again = (api.audit(TRAIN, CONTROL, SYNTHETIC, plan, out="a") for _ in range(2))
    assert first.outcomes == again.outcomes
    assert any("no folder to remember the training table" in w for w in first.warnings)


def test_a_salt_of_a_training_table_that_others_can_read_is_refused(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    api.audit(TRAIN, CONTROL, SYNTHETIC, plan, only=("exact_match",), out="a")
    [salt] = (tmp_path / "state").rglob("salt")
    assert salt.read_text() == Workspace(tmp_path / "a").salt.read_text()
    salt.chmod(0o644)
    with pytest.raises(DataError, match="can be read by others"):
        api.audit(TRAIN, CONTROL, SYNTHETIC, plan, only=("exact_match",), out="b")


@pytest.mark.parametrize("second", ["a", pytest.param("b", marks=pytest.mark.slow)])
def test_a_second_audit_under_other_settings_is_listed(plan, second, tmp_path, write_suite, capsys):
    quick = plan | {"audits": ["exact_match"]}
    before = api.audit(TRAIN, CONTROL, SYNTHETIC, quick, out="a")
    assert before.earlier == ()
    assert api.audit(TRAIN, CONTROL, SYNTHETIC, quick, out=second).earlier == (), "the settings are the same"
    after = api.audit(TRAIN, CONTROL, SYNTHETIC, quick | {"suppression": 12}, out=second)
    [listed] = after.earlier
    assert (listed.plan, listed.verdict) == (before.plan_sha256, before.verdict)
    assert after.intact
    assert parse_evidence(after.to_json()) == after
    for page in (render_report(after), render_certificate(after)):
        assert "audited with another plan or other gates" in page
    assert all(c.holds is not False for c in api.verify(tmp_path / second))
    assert api.audit(TRAIN, CONTROL, people(5), quick, out=second).earlier == (), "another candidate"
    pq.write_table(SYNTHETIC, "same.parquet")
    write_suite(name="another")
    gated = api.audit(
        TRAIN, CONTROL, "same.parquet", quick | {"suppression": 12, "name": "table"}, out=second
    )
    assert len(gated.earlier) == 2, "other gates are other settings too"
    show_evidence(gated, [], as_json=False)
    assert capsys.readouterr().out.count(" audited ") == 1, "the terminal has one line on earlier audits"


def test_without_a_salt_evidence_and_report_say_that_draws_can_be_predicted(plan):
    free, kept = (
        api.audit(TRAIN, CONTROL, SYNTHETIC, plan, only=("exact_match",), out=out) for out in (None, "out")
    )
    assert PREDICTABLE in free.warnings
    assert "can be predicted" in PREDICTABLE
    assert (free.salt_commitment, bool(kept.salt_commitment)) == ("", True)
    assert PREDICTABLE not in kept.warnings
    said = "the draws can be predicted"
    assert said in render_report(free)
    assert said not in render_report(kept)


def test_settings_away_from_the_defaults_are_on_the_certificate(plan):
    audits = ["exact_match", {"marginals": {"n_bootstrap": 120}}]
    found = api.audit(TRAIN, CONTROL, SYNTHETIC, plan | {"audits": audits, "suppression": 12, "seed": 4})
    shown = "; ".join(certificate_view(found)["settings"])
    assert "Settings away from the defaults" in render_certificate(found)
    assert shown.startswith("Audits: exact_match, marginals; ")
    for part in (
        "No smaller count is ever shown: 12",
        "Most rows of any table a leak is planted in: 100",
        "Marginals, n bootstrap: 120",
        "gates.json",
    ):
        assert part in shown
    assert "seed" not in shown
