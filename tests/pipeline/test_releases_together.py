"""Releases of the same people are attacked together; of other people, or altered rows, they are not."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from synth_audit import api, cli
from synth_audit.errors import DataError
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.store.journal import read_journal


def release_again(case, **changes):
    case.replan(**changes)
    pipeline.produce(case.plan, case.workspace)
    return pipeline.release_synthetic(case.plan, case.workspace)


@pytest.fixture
def twice(case):
    """A table that was released twice from the same training rows."""
    first = pipeline.release_synthetic(case.plan, case.workspace).table.rows
    second = release_again(case, rows=first - 50).table.rows
    return case, first + second


def test_both_are_audited_as_one_table_and_what_is_out_there_stays(twice):
    case, rows = twice
    before = read_journal(case.workspace)
    words = ["exposure", str(case.folder / "plan.yaml"), "--out", str(case.workspace.root), "--json"]
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == 0, result.output
    evidence = api.load_evidence(case.workspace.root / "together")
    assert evidence.tables["synthetic"].rows == rows
    assert evidence.verdict is Result.PASS
    assert evidence.table.endswith("-together")
    assert read_journal(case.workspace) == before


def test_one_release_adds_up_with_nothing(case):
    pipeline.release_synthetic(case.plan, case.workspace)
    pipeline.release_synthetic(case.plan, case.workspace)
    with pytest.raises(DataError, match="1 of the releases"):
        api.exposure(case.plan, case.workspace.root)


def test_releases_of_other_people_are_left_out(case, make_people):
    pipeline.release_synthetic(case.plan, case.workspace)
    pq.write_table(make_people(250, seed=1), case.folder / "people.parquet")
    release_again(case)
    with pytest.raises(DataError, match="1 of the releases"):
        api.exposure(case.plan, case.workspace.root)


def test_rows_that_were_exchanged_are_refused(twice):
    case, _ = twice
    journal = read_journal(case.workspace)
    kept = case.workspace.kept_rows(journal.previous.digest)
    pq.write_table(pq.read_table(kept).slice(1), kept)
    with pytest.raises(DataError, match="not those that were audited"):
        api.exposure(case.plan, case.workspace.root)


@pytest.mark.parametrize("which", ["train", "control"])
def test_real_rows_that_the_split_did_not_leave_are_refused(twice, which):
    case, _ = twice
    file = getattr(case.workspace, which)
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(DataError, match="not those that the split left"):
        api.exposure(case.plan, case.workspace.root)
