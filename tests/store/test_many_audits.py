"""A workspace of many audits: earlier ones are neither opened nor looked at again, one by one."""

import builtins
import io
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from synth_audit import api
from synth_audit.pipeline.stages import measurement_bytes
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.journal import open_journal
from synth_audit.store.purge import Retention, survey

FEW, MANY = 50, 200
"""Earlier audits; both are more than the index reads."""


@pytest.fixture
def touched(case, monkeypatch) -> Callable[[Callable[[], object]], Counter[str]]:
    """How often something in the workspace is opened, listed or looked at while a function runs."""
    root, found = str(case.workspace.root), Counter[str]()

    def count(module, name, what):
        real = getattr(module, name)

        def counting(path=".", *args, **kwargs):
            found[what] += isinstance(path, str | os.PathLike) and os.fspath(path).startswith(root)
            return real(path, *args, **kwargs)

        monkeypatch.setattr(module, name, counting)

    for module, name in ((os, "open"), (io, "open"), (builtins, "open")):
        count(module, name, "opened")
    for name in ("listdir", "scandir"):
        count(os, name, "listed")
    for name in ("stat", "lstat"):
        count(os, name, "looked at")

    def of(work):
        found.clear()
        work()
        return Counter(found)

    return of


def fill(case, earlier):
    """Let so many earlier audits be filed: copies of the case's own, older than it."""
    own = case.workspace.newest
    with open_journal(case.workspace) as journal:
        known = journal.now.entry(own.digest)
        for i in range(len(journal.now.audits), earlier + 1):
            digest = f"{i:064x}"
            shutil.copytree(own.path, case.workspace.audit(digest).path)
            os.utime(case.workspace.audit(digest).evidence, (i, i))
            journal.now = journal.now.with_entry(replace(known, digest=digest, created="2020-01-01"))
        others = [e for e in journal.now.audits if e is not known]
        journal.write(replace(journal.now, audits=(*others, known)))


@pytest.fixture
def compared(case, touched, tmp_path):
    """What a function touches beside few audits, and beside many."""

    def compare(work):
        fill(case, FEW)
        work()  # what is loaded once is loaded now
        few = touched(work)
        fill(case, MANY)
        return few, touched(work)

    return compare


def test_an_audit_is_verified(case, compared):
    few, many = compared(lambda: api.verify(case.workspace.newest.path))
    assert few["opened"] > 3
    assert few == many


def test_an_audit_is_filed(case, compared):
    seeds = iter(range(9))

    def file():
        evidence = replace(case.evidence, seed=next(seeds), attempt=0).sealed()
        evidence_store(case.workspace).put(evidence, measurement_bytes(evidence))

    few, many = compared(file)
    assert few["opened"] > 3
    assert few == many


def test_an_index_is_written(case, compared, tmp_path):
    few, many = compared(lambda: api.write_index([case.workspace.root], tmp_path / "index.html"))
    assert few["opened"] > 30
    assert few == many


def test_an_index_is_written_without_a_journal(case, compared, tmp_path):
    def write():
        hidden = case.workspace.journal.rename(tmp_path / "journal.json")
        api.write_index([case.workspace.root], tmp_path / "index.html")
        hidden.rename(case.workspace.journal)

    few, many = compared(write)
    assert few["opened"] > 30
    assert few["opened"] == many["opened"]
    assert many["looked at"] - few["looked at"] <= MANY - FEW  # when its evidence was written


def test_what_is_old_is_found(case, compared):
    few, many = compared(lambda: survey(case.workspace, Retention(keep=9)))
    assert few["opened"] == many["opened"] == 1
    assert many["listed"] - few["listed"] <= 2 * (MANY - FEW)  # its size, and its approvals
