"""A sweep: each candidate as if it stood alone, kept when whole, gone when not, and nothing leaks."""

import fcntl
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import api, registry
from synth_audit.dp.guarantee import Mechanism, MechanismRecord
from synth_audit.errors import DataError, PlanError, ReleaseRefused, SynthAuditError
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import Deadline, in_processes
from synth_audit.generators.resample import Resample, ResampleModel
from synth_audit.generators.vine import Vine
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.verify import verify
from synth_audit.plugins.fitting import FitRecipe, fit_shared
from synth_audit.store.evidence import read_evidence
from synth_audit.store.files import link_or_copy, new_folder
from synth_audit.store.salts import known_salt
from synth_audit.store.workspace import Workspace
from synth_audit.studies.frontier import Correlations, read_frontier
from synth_audit.studies.ranking import CandidateRun, candidates_of, ranked
from synth_audit.studies.sweep import sweep
from synth_audit.table.content_hash import fingerprint

pytestmark = pytest.mark.xdist_group("sweep")  # they share a finished sweep
SPEC = {
    "generators": ["independent", "resample"],
    "privacy": "exact_match.excess",
    "utility": "marginals.total_variation",
}
SMALL = {"audits": ["exact_match", "marginals"], "frontier": SPEC}


@pytest.fixture(scope="module")
def finished_sweep(tmp_path_factory, make_case):
    """A finished sweep, not to be altered."""
    case = make_case(tmp_path_factory.mktemp("swept") / "case", **SMALL)
    api.frontier(case.folder / "plan.yaml", case.workspace.root)
    return case


@pytest.fixture
def swept(finished_sweep, tmp_path):
    """A copy of the finished sweep, hard links and all."""
    os.system(f"cp -a {finished_sweep.folder} {tmp_path}/case")  # noqa: S605  (two paths of our own)
    return type(finished_sweep)(tmp_path / "case")


def own(case, slug):
    return case.workspace.candidate(slug)


def whole(case, slug):
    """True when a candidate is there with evidence that verifies against its tables."""
    room = own(case, slug)
    evidence = read_evidence(room.evidence)
    names = ("train", "control", "synthetic")
    hashes = {n: fingerprint(pq.read_table(getattr(room, n))) for n in names}
    return all(c.holds for c in verify(evidence, hashes, known_salt(room)))


def leftovers(case):
    root = case.workspace.root
    return [p for p in root.rglob("*") if p.name.startswith("synth-audit-") or p.name.endswith(".tmp")]


def test_the_copy_fails_and_the_other_is_chosen(finished_sweep):
    record = read_frontier(finished_sweep.workspace.frontier)
    assert [(c.name, c.verdict) for c in record.candidates] == [("independent", "pass"), ("resample", "fail")]
    assert record.chosen == "independent"
    assert record.level == 0.975
    assert (str(record.privacy), str(record.utility)) == ("exact_match.excess", "marginals.total_variation")
    honest, copied = record.candidates
    assert copied.privacy.value > honest.privacy.value
    assert (honest.privacy_score, copied.privacy_score) == (1, 0)
    assert honest.score == pytest.approx(0.5 + 0.5 * honest.utility_score)
    assert ("copies", "fail") in [(g.gate, g.result) for g in copied.gates]
    names = ("age", "income", "city", "ill")
    assert record.real_correlations.names == honest.correlations.names == names
    age_and_ill = [
        c.values[0][3] for c in (record.real_correlations, copied.correlations, honest.correlations)
    ]
    assert abs(age_and_ill[0]) > 0.3
    assert abs(age_and_ill[1] - age_and_ill[0]) < 0.15
    assert abs(age_and_ill[2]) < 0.2


def test_each_candidate_is_as_if_it_stood_alone(finished_sweep, tmp_path, with_salt):
    for candidate in candidates_of(finished_sweep.plan, 4):
        room = Workspace(tmp_path / candidate.slug)
        with_salt(room)
        alone = pipeline.produce(candidate.plan, room)
        assert alone.digest == read_evidence(own(finished_sweep, candidate.slug).evidence).digest
        assert alone.level == 0.975


@pytest.mark.parametrize("room", [0, 9])
def test_a_full_disk_leaves_candidates_whole_or_none_and_the_next_sweep_finishes(swept, full_disk, room):
    before = read_frontier(swept.workspace.frontier)
    with full_disk(room) as disk, pytest.raises(SynthAuditError, match=r"space|room"):
        api.frontier(swept.folder / "plan.yaml", swept.workspace.root, fresh=True)
    assert disk.full
    assert all(whole(swept, path.name) for path in swept.workspace.candidates.iterdir())
    assert leftovers(swept) == []
    after = api.frontier(swept.folder / "plan.yaml", swept.workspace.root)
    assert (after.chosen, len(after.candidates)) == (before.chosen, 2)


def test_each_candidate_is_a_whole_private_workspace(finished_sweep):
    for slug in ("independent", "resample"):
        room = own(finished_sweep, slug)
        assert whole(finished_sweep, slug)
        assert room.report.is_file()
        assert room.restricted.stat().st_mode & 0o777 == 0o700
        assert all(p.stat().st_mode & 0o077 == 0 for p in room.restricted.iterdir())
        for part in ("train", "control"):
            assert os.path.samefile(getattr(room, part), getattr(finished_sweep.workspace, part))
    assert leftovers(finished_sweep) == []
    assert finished_sweep.workspace.frontier_page.is_file()


def test_nothing_a_reader_may_see_holds_a_value(finished_sweep, canary):
    said = [p for p in finished_sweep.workspace.root.rglob("*") if p.is_file() and "review" in p.parts]
    assert len(said) == 12
    assert not any(canary.encode() in p.read_bytes() or b"Person-" in p.read_bytes() for p in said)


def stamps(case):
    return {s: own(case, s).evidence.stat().st_mtime_ns for s in ("independent", "resample")}


def kept(record):
    return [c.kept for c in record.candidates]


def only(*generators):
    """A frontier of fewer candidates than the finished sweep has."""
    return {**SPEC, "generators": list(generators)}


def test_a_second_sweep_keeps_all_and_finds_the_same(swept, monkeypatch):
    before, digest = stamps(swept), read_frontier(swept.workspace.frontier).digest
    (swept.folder / "people.parquet").unlink()
    monkeypatch.setattr(pipeline, "make_synthetic", None)
    said = []
    record = sweep(swept.plan, swept.workspace, RunContext(progress=lambda what, *_: said.append(what)))
    assert kept(record) == [True, True]
    assert said == ["1/2 independent: kept", "2/2 resample: kept"]
    assert record.digest == digest
    assert stamps(swept) == before


def test_another_weight_or_measurement_runs_nothing_again(swept):
    plan = swept.replan(frontier={**SPEC, "alpha": 0.9, "utility": "marginals.total_variation[by age]"})
    record = sweep(plan, swept.workspace)
    assert kept(record) == [True, True]
    assert (record.alpha, str(record.utility)) == (0.9, "marginals.total_variation[by age]")


def test_fresh_keeps_nothing_and_a_split_that_was_kept_is_said(swept):
    before = stamps(swept)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT.*", sweep(swept.plan, swept.workspace).split_kept)
    record = sweep(swept.plan, swept.workspace, fresh=True)
    assert kept(record) == [False, False]
    assert record.split_kept == ""
    assert all(stamps(swept)[s] > before[s] for s in before)


def test_a_candidate_that_ran_out_of_time_is_run_again_and_lends_no_answers(swept):
    """A later candidate, or a later sweep, may have more time than the one whose answers are at hand."""
    hurried = RunContext(deadline=Deadline(at=0.0, limit=1e-9))
    plan = swept.replan(frontier=only("independent"))
    record = sweep(plan, swept.workspace, hurried, fresh=True)
    late = read_evidence(own(swept, "independent").evidence).outcomes
    assert {o.reason for o in late} == {"ran out of time"}
    assert not any(c.passed for c in record.candidates)
    assert kept(sweep(plan, swept.workspace)) == [False]
    assert kept(sweep(plan, swept.workspace)) == [True]


def spoil_synthetic(case):
    room = own(case, "resample")
    pq.write_table(pq.read_table(room.synthetic).slice(1), room.synthetic)


def spoil_evidence(case):
    path = own(case, "resample").evidence
    path.write_text(path.read_text().replace('"fail"', '"pass"'))


def remove_evidence(case):
    own(case, "resample").evidence.unlink()


@pytest.mark.parametrize("spoil", [spoil_synthetic, spoil_evidence, remove_evidence])
def test_a_candidate_that_does_not_verify_is_run_again(swept, spoil):
    spoil(swept)
    assert kept(sweep(swept.plan, swept.workspace)) == [True, False]
    assert whole(swept, "resample")


def test_other_gates_another_plan_or_other_rows_run_all_again(swept, make_gate):
    swept.set_gates(make_gate("copies", "exact_match.excess", 0.9))
    assert kept(sweep(swept.plan, swept.workspace)) == [False, False]
    plan = swept.replan(suppression=11, frontier=only("independent"))
    assert kept(sweep(plan, swept.workspace)) == [False]
    assert kept(sweep(plan, swept.workspace)) == [True]
    pq.write_table(pq.read_table(swept.folder / "people.parquet").slice(9), swept.folder / "people.parquet")
    pipeline.split_table(plan, swept.workspace)
    assert kept(sweep(plan, swept.workspace)) == [False]


def test_a_forged_record_of_a_sweep_lets_nothing_be_purged_and_is_told(swept):
    sweep(swept.plan, swept.workspace)
    assert api.purge(swept.workspace.root, keep=1).goes == ()
    record = read_frontier(swept.workspace.frontier)
    forged = replace(record, candidates=record.candidates[:1], chosen=None)
    swept.workspace.frontier.write_text(forged.to_json())
    assert api.purge(swept.workspace.root, keep=1).goes == ()
    own = swept.workspace.candidate("independent")
    api.release(swept.plan, swept.workspace.root, candidate=own.root.name)
    checks = {c.what: c.holds for c in api.verify(swept.workspace.root)}
    assert checks["record of the sweep"] is False
    sweep(swept.plan, swept.workspace)
    assert all(c.holds for c in api.verify(swept.workspace.root))


def test_a_candidate_that_is_released_before_it_has_a_report_gets_one_everywhere(swept, monkeypatch):
    from synth_audit import report

    with monkeypatch.context() as killed:
        killed.setattr(report, "write_report", lambda own: None)
        api.frontier(swept.replan(seed=6, frontier=only("independent")), swept.workspace.root)
    api.release(swept.plan, swept.workspace.root, candidate="independent")
    api.frontier(swept.plan, swept.workspace.root)
    assert own(swept, "independent").report.exists()
    assert all(c.holds for c in api.verify(swept.workspace.root))
    api.release(swept.plan, swept.workspace.root, candidate="independent")


def test_an_interruption_leaves_each_candidate_whole_or_away(swept, monkeypatch):
    plan, true_audit = swept.replan(seed=6), pipeline.audit_synthetic
    calls = []

    def interrupted(*args, **kwargs):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return true_audit(*args, **kwargs)

    monkeypatch.setattr(pipeline, "audit_synthetic", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan, swept.workspace)
    assert whole(swept, "independent")
    assert not own(swept, "resample").root.exists(), "nor what an older sweep had left"
    assert not swept.workspace.frontier.exists()
    assert not swept.workspace.frontier_page.exists()
    assert leftovers(swept) == []
    assert kept(sweep(plan, swept.workspace)) == [True, False]


def test_what_a_killed_sweep_left_is_cleared_away(swept):
    for left in (
        swept.workspace.candidates / ".resample.0123456789ab.tmp",
        swept.workspace.scratch / "synth-audit-x1",
    ):
        left.mkdir(parents=True)
        (left / "rows").write_text("of somebody")
    assert kept(sweep(swept.plan, swept.workspace)) == [True, True]
    assert leftovers(swept) == []


def test_two_sweeps_do_not_share_a_workspace(swept):
    with (swept.workspace.restricted / ".sweep.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="another sweep is at work"):
            sweep(swept.plan, swept.workspace)


def broken(self, train, rng):
    raise ValueError(train.labels("city")[0])


def leaving(self, train, rng):
    raise SystemExit(0)


@pytest.mark.parametrize(("fit", "problem"), [(broken, "ValueError at"), (leaving, "SystemExit at")])
def test_a_generator_that_fails_is_told_of_and_the_others_go_on(swept, monkeypatch, canary, fit, problem):
    monkeypatch.setattr(registry.find("generator", "resample").load(), "fit", fit)
    record = sweep(swept.replan(seed=7), swept.workspace)
    failed = record.candidates[1]
    assert failed.verdict == "error"
    assert failed.problem.startswith(problem)
    assert (failed.privacy, failed.score, failed.correlations.names) == (None, None, ())
    assert record.chosen == "independent"
    assert not own(swept, "resample").root.exists()
    assert leftovers(swept) == []
    assert canary not in record.to_json()


def test_data_that_an_audit_refuses_are_told_of_their_candidate(swept, monkeypatch):
    true_audit = pipeline.audit_synthetic

    def refusing(plan, *args, **kwargs):
        if plan.generator.name == "resample":
            raise DataError("it cannot be audited")
        return true_audit(plan, *args, **kwargs)

    monkeypatch.setattr(pipeline, "audit_synthetic", refusing)
    record = sweep(swept.replan(seed=7), swept.workspace)
    assert record.candidates[1].problem == "DataError: it cannot be audited"
    assert record.chosen == "independent"
    assert leftovers(swept) == []


def test_a_finished_table_with_other_rows_is_audited_again(swept):
    table = swept.folder / "made.parquet"
    made = pq.read_table(own(swept, "independent").synthetic)
    pq.write_table(made, table)
    plan = swept.replan(frontier=only({"external": {"source": "made.parquet"}}))
    assert kept(sweep(plan, swept.workspace)) == [False]
    assert kept(sweep(plan, swept.workspace)) == [True]
    pq.write_table(made.slice(3), table)
    assert kept(sweep(plan, swept.workspace)) == [False]
    table.unlink()
    assert "does not exist" in sweep(plan, swept.workspace).candidates[0].problem


@pytest.fixture(params=["no seed", "privacy budget"])
def once(request, monkeypatch):
    """Lets the generator `resample` be one that cannot be made again; returns the list of its draws."""
    draws = []
    true_sample = ResampleModel.sample

    def drawn_otherwise(self, n, rng):
        draws.append(n)
        return true_sample(self, n, np.random.default_rng(len(draws)))

    monkeypatch.setattr(ResampleModel, "sample", drawn_otherwise)
    if request.param == "no seed":
        monkeypatch.setattr(Resample, "repeats", False, raising=False)
    else:
        true_fit = Resample.fit

        def paid(self, train, context):
            spent = MechanismRecord(what="a test", mechanism=Mechanism.PURE, epsilon=1.0)
            context.accountant._records.append(spent)  # as if there had been a budget
            return true_fit(self, train, context)

        monkeypatch.setattr(Resample, "fit", paid)
    return draws


def test_a_candidate_that_cannot_be_made_again_is_audited_anew_and_never_drawn_anew(swept, once, make_gate):
    sweep(swept.replan(frontier=only("resample")), swept.workspace, fresh=True)
    drawn = own(swept, "resample").synthetic.read_bytes()
    swept.set_gates(make_gate("copies", "exact_match.excess", 0.9))
    record = sweep(swept.plan, swept.workspace)
    assert kept(record) == [False]
    assert whole(swept, "resample")
    sweep(swept.replan(suppression=11, seed=77), swept.workspace)
    own(swept, "resample").evidence.unlink()
    assert sweep(swept.plan, swept.workspace).candidates[0].verdict == "fail"
    assert own(swept, "resample").synthetic.read_bytes() == drawn
    assert len(once) == 1


def test_what_else_makes_another_candidate_of_it_draws_it(swept, once):
    sweep(swept.replan(frontier=only("resample")), swept.workspace, fresh=True)
    sweep(swept.replan(rows=50), swept.workspace)
    assert once == [once[0], 50]
    spoil_synthetic(swept)
    sweep(swept.plan, swept.workspace)
    assert once == [once[0], 50, 50], "what is stored is not what was drawn"
    sweep(swept.plan, swept.workspace, fresh=True)
    assert len(once) == 4
    pq.write_table(pq.read_table(swept.folder / "people.parquet").slice(9), swept.folder / "people.parquet")
    pipeline.split_table(swept.plan, swept.workspace)
    sweep(swept.plan, swept.workspace)
    assert len(once) == 5, "made from other rows"


def test_it_stays_when_its_audit_is_interrupted(swept, once, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    plan = swept.replan(frontier=only("resample"))
    shutil.rmtree(own(swept, "resample").root)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "audit_synthetic", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sweep(plan, swept.workspace)
    assert own(swept, "resample").synthetic.exists()
    assert leftovers(swept) == []
    assert kept(sweep(plan, swept.workspace)) == [False]
    assert whole(swept, "resample")
    assert len(once) == 1


def test_candidates_of_another_sweep_do_not_stay(swept):
    note = swept.workspace.candidates / "notes"
    note.mkdir()
    sweep(swept.replan(frontier=only("independent")), swept.workspace)
    assert {p.name for p in swept.workspace.candidates.iterdir()} == {"independent", "notes"}


def test_what_all_candidates_share_costs_none_of_them(swept):
    evidence = read_evidence(own(swept, "independent").evidence)
    shared = sum(s for step, s in evidence.timings.items() if step.startswith("known answer"))
    assert shared > 0
    [first, _] = read_frontier(swept.workspace.frontier).candidates
    assert first.seconds == pytest.approx(sum(evidence.timings.values()) - shared, abs=2e-3)


def test_a_named_measurement_that_came_short_is_told_of_in_the_reason(swept):
    def shortened(candidate):
        evidence = read_evidence(own(swept, candidate.slug).evidence)
        outcomes = [
            replace(o, measurements=tuple(replace(m, n_achieved=3, n_minimum=20) for m in o.measurements))
            for o in evidence.outcomes
        ]
        return CandidateRun(candidate, replace(evidence, outcomes=tuple(outcomes)))

    tried = [shortened(e) for e in candidates_of(swept.plan, 4)]
    record = ranked(swept.plan, tried, Correlations())
    assert [c.privacy for c in record.candidates] == [None, None]
    assert (
        "exact_match.excess does not count for 2 of 2 audited: it rests on 3 attempts where 20 are needed."
        in record.reason
    )
    unnamed = swept.replan(frontier={"generators": SPEC["generators"]})
    assert ranked(unnamed, tried, Correlations()).privacy is None


def test_the_record_knows_of_the_target_and_of_the_gates(swept):
    record = read_frontier(swept.workspace.frontier)
    assert (record.releasable, record.privacy_gated) == (True, True)
    plan = swept.replan(release=None, frontier={**SPEC, "privacy": "exact_match.share"})
    record = sweep(plan, swept.workspace)
    assert (record.releasable, record.privacy_gated) == (False, False)


def test_an_error_of_the_project_keeps_its_sentence(swept):
    listed = ["independent", {"external": {"source": "nowhere.parquet"}}]
    record = sweep(swept.replan(frontier={**SPEC, "generators": listed}), swept.workspace)
    assert record.candidates[1].problem.startswith("DataError: ")
    assert "does not exist" in record.candidates[1].problem


def test_an_audit_that_errors_is_told_of_and_tried_again(swept, monkeypatch):
    def fail(self, subject, rng):
        raise ValueError("4711")

    plan = swept.replan(seed=8, frontier=only("independent"))
    with monkeypatch.context() as patch:
        patch.setattr(registry.find("audit", "marginals").load(), "run", fail)
        record = sweep(plan, swept.workspace)
    assert record.chosen is None
    assert {c.verdict for c in record.candidates} == {"insufficient evidence"}
    assert all(c.problem.startswith("marginals: ValueError at") for c in record.candidates)
    assert kept(sweep(plan, swept.workspace)) == [False]


def test_the_numbers_do_not_depend_on_the_workers(swept):
    digest = read_frontier(swept.workspace.frontier).digest
    before = {s: read_evidence(own(swept, s).evidence).digest for s in stamps(swept)}
    record = sweep(swept.plan, swept.workspace, RunContext(executor=in_processes(2)), fresh=True)
    assert record.digest == digest
    assert {s: read_evidence(own(swept, s).evidence).digest for s in before} == before


def test_truncation_levels_share_their_fits(make_case, tmp_path, monkeypatch):
    frontier = {**SPEC, "generators": [], "vary": {"truncation": [1, None]}}
    case = make_case(tmp_path / "case", generator="vine", **{**SMALL, "frontier": frontier})
    audit, true_fit, fits, seen = registry.find("audit", "exact_match").load(), Vine.fit, [], []
    true_run = audit.run

    def game(self, subject, context):
        if isinstance(subject.generator, Vine):
            fit_shared(FitRecipe.of(subject), subject.train, 5, context)
            seen.append(context.cache.folder)
        return true_run(self, subject, context)

    def counted(self, train, context):
        fits.append(self.truncation)
        return true_fit(self, train, context)

    monkeypatch.setattr(audit, "run", game)
    monkeypatch.setattr(Vine, "fit", counted)
    sweep(case.plan, case.workspace)
    assert len(seen) == 2
    assert len(set(seen)) == 1, "one folder for all candidates"
    assert not seen[0].exists()
    assert seen[0].parent == case.workspace.scratch
    assert len(fits) == 3, "one for each candidate and one for all games"


def test_planted_leaks_are_answered_once_for_all_candidates(make_case, tmp_path, monkeypatch):
    case = make_case(tmp_path / "case", **SMALL)
    audit, rows = registry.find("audit", "exact_match").load(), []
    true_run = audit.run

    def counted(self, subject, rng):
        rows.append(subject.train.n_rows)
        return true_run(self, subject, rng)

    monkeypatch.setattr(audit, "run", counted)
    sweep(case.plan, case.workspace)
    whole_train = max(rows)
    assert rows.count(whole_train) == 2, "once for each candidate"
    assert len(rows) == 5, "three planted leaks for both"


def test_a_candidate_that_passed_is_released_and_no_other(swept):
    target = swept.folder / "out-of-the-house/released.parquet"
    plan = swept.folder / "plan.yaml"
    with pytest.raises(ReleaseRefused, match="verdict is fail"):
        api.release(plan, swept.workspace.root, candidate="resample")
    assert not target.exists()
    assert api.release(plan, swept.workspace.root, candidate="independent").table.rows > 100
    audited = pq.read_table(own(swept, "independent").synthetic)
    assert fingerprint(pq.read_table(target)) == fingerprint(audited)
    with pytest.raises(PlanError, match="no candidate 'vine'"):
        api.release(plan, swept.workspace.root, candidate="vine")
    swept.replan(seed=9)
    with pytest.raises(ReleaseRefused, match="another plan"):
        api.release(plan, swept.workspace.root, candidate="independent")


def test_mistakes_show_before_the_source_is_read(make_case, tmp_path):
    case = make_case(tmp_path / "case", **SMALL)
    (case.folder / "people.parquet").unlink()
    for frontier in ({**SPEC, "vary": {"nonsense": [1]}}, {**SPEC, "privacy": "exact_match.nonsense"}):
        with pytest.raises(PlanError):
            sweep(case.replan(frontier=frontier), case.workspace)
    with pytest.raises(DataError, match="does not exist"):
        sweep(case.replan(frontier=SPEC), case.workspace)


def test_rows_without_links_are_copied(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError

    source = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}), source)
    monkeypatch.setattr(os, "link", refuse)
    link_or_copy(source, tmp_path / "b.parquet")
    assert pq.read_table(tmp_path / "b.parquet").equals(pq.read_table(source))
    assert (tmp_path / "b.parquet").stat().st_mode & 0o777 == 0o600


def test_a_folder_is_replaced_wholly_or_not_at_all(tmp_path):
    there = tmp_path / "there"

    def fill(text, then=None):
        with new_folder(there, replace=True) as folder:
            (folder / text).touch()
            assert not Path(there, text).exists()
            if then:
                raise then

    fill("one")
    fill("two")
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            fill("three", error)
    assert [p.name for p in there.iterdir()] == ["two"]
    assert list(tmp_path.iterdir()) == [there]
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be made"), new_folder(tmp_path / "file/folder", replace=True):
        pass
    with pytest.raises(OSError, match="of the block"), new_folder(there, replace=True):
        raise OSError("of the block")
