"""The page over many tables."""

import base64
import hashlib
import os
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from report_reading import text  # made importable by conftest.py

from synth_audit import api
from synth_audit.errors import DataError
from synth_audit.findings.verdict import Result
from synth_audit.store import locate
from synth_audit.store.evidence import Evidence
from synth_audit.store.files import sha256_of_bytes
from synth_audit.store.journal import AuditEntry, Journal
from synth_audit.store.records import Newest, Released, to_json
from synth_audit.store.workspace import Workspace


def workspace(root: Path, *audits: Evidence, released: int | None = None) -> Path:
    """A review folder as another machine sees it, without a journal."""
    for evidence in audits:
        folder = root / "review" / "audits" / evidence.digest
        folder.mkdir(parents=True)
        (folder / "evidence.json").write_text(evidence.to_json())
        (folder / "certificate.html").write_text("page")
    (root / "review" / "newest.json").write_text(to_json(Newest(audits[-1].digest)))
    if released is not None:
        out = Released(audits[released].digest, "somewhere", "2026-11-16T00:00:00+00:00", 39084, "55" * 32)
        (root / "review" / "released.json").write_text(to_json(out))
    return root


def numbered(evidence: Evidence, attempt: int) -> Evidence:
    created = f"2026-11-{13 + attempt:02d}T10:00:00+00:00"
    return replace(evidence, attempt=attempt, created=created, seed=attempt).sealed()


def index(tmp_path: Path, *roots: Path) -> str:
    return api.write_index(roots, tmp_path / "index.html").read_text()


def test_each_audit_is_a_row_with_its_reason_and_its_release(build: ModuleType, tmp_path: Path) -> None:
    audits = [numbered(e, i) for i, e in enumerate((build.passing(), build.failing()), 1)]
    page = index(tmp_path, workspace(tmp_path / "adult", *audits, released=0))
    said = text(page)
    assert said.index("15 November 2026") < said.index("14 November 2026"), "the newest first"
    assert "16 November 2026, out there" in said
    assert re.search(r"Fail: [^;]*; 0.1 % allowed\.", said)
    assert f'href="adult/review/audits/{audits[0].digest}/certificate.html"' in page
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="chart"') >= 2
    assert "released" in page[page.index("<desc") :]


def test_it_filters_by_its_style_sheet_alone(build: ModuleType, tmp_path: Path) -> None:
    page = index(
        tmp_path, workspace(tmp_path / "a", build.passing()), workspace(tmp_path / "b", build.failing())
    )
    [style] = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert 'body:has(#table option[value="t2"]:checked) .entry:not(.t2)' in style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src &#39;sha256-{digest}&#39;" in page or f"style-src 'sha256-{digest}'" in page
    assert "<script" not in page


def test_what_was_altered_does_not_count_as_what_it_says(build: ModuleType, tmp_path: Path) -> None:
    root = workspace(tmp_path / "adult", build.passing())
    [file] = root.glob("review/audits/*/evidence.json")
    file.write_text(file.read_text().replace("39084", "39085", 1))
    said = text(index(tmp_path, root))
    assert "not as it was filed" in said
    assert "Insufficient evidence" in said


def test_hostile_names_are_text(build: ModuleType, tmp_path: Path) -> None:
    page = index(tmp_path, workspace(tmp_path / "x", build.hostile()))
    assert "<script" not in page


def test_other_folders_and_files_are_refused(build: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no workspace"):
        api.write_index([tmp_path], tmp_path / "index.html")
    root = workspace(tmp_path / "adult", build.passing())
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(DataError, match="no index"):
        index(tmp_path, root)
    api.write_index([root], tmp_path / "index.html", force=True)
    index(tmp_path, root)


def test_without_a_journal_those_that_were_written_last_are_shown(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "NEWEST", 2)
    audits = [numbered(build.passing(), i) for i in range(1, 7)]
    root = workspace(tmp_path / "adult", *audits[::-1], released=3)  # attempt 1 is the newest, 3 is out
    for i, evidence in enumerate(audits):
        os.utime(root / "review" / "audits" / evidence.digest / "evidence.json", (i, i))
    history = locate.table_history(root)
    assert [a.evidence.attempt for a in history.audits] == [1, 3, 5, 6]
    assert (history.unlisted, history.total, history.unread) == (2, 6, 0)
    said = text(index(tmp_path, root))
    assert "Audits 6" in said
    assert "2 other audits not shown" in said


def test_earlier_audits_are_counted_by_month_and_not_read(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "NEWEST", 2)
    audits = [numbered(build.failing() if i == 2 else build.passing(), i) for i in range(1, 6)]
    root = workspace(tmp_path / "adult", *audits)
    entries = [
        AuditEntry(
            number=i,
            digest=e.digest,
            verdict=e.verdict,
            candidate="",
            created="2026-10-31T10:00:00+00:00" if i == 1 else e.created,
            place="",
            files={"evidence.json": sha256_of_bytes(e.to_json().encode())},
        )
        for i, e in enumerate(audits, 1)
    ]
    released = Released(audits[2].digest, "somewhere", "2026-11-16T00:00:00+00:00", 39084, "55" * 32)
    journal = Journal(tuple(entries), {"": audits[-1].digest}, released=released, releases=(released,))
    Workspace(root).prepare().journal.write_text(to_json(journal))
    for evidence in audits[:2]:
        (root / "review" / "audits" / evidence.digest / "evidence.json").unlink()
    history = locate.table_history(root)
    assert [a.evidence.attempt for a in history.audits] == [3, 4, 5]
    assert all(a.sound for a in history.audits)
    assert [(m.name, dict(m.verdicts)) for m in history.earlier] == [
        ("2026-10", {Result.PASS: 1}),
        ("2026-11", {Result.FAIL: 1}),
    ]
    assert history.unread == 0
    said = text(index(tmp_path, root))
    assert "Audits 5" in said
    assert "2026-11 0 1 0 0 2026-10 1 0 0 0" in said
