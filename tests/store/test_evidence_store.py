"""Evidence goes through one object: what it does, and that no module outside the store knows a path of it."""

import ast
import re
from pathlib import Path

import pytest

from synth_audit.errors import DataError
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.journal import read_journal
from synth_audit.store.locate import newest_evidence
from synth_audit.store.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
FILES = {"evidence.json", "measurements.parquet", "report.html", "newest.json", "released.json", "audits"}
NAMES = {"AuditFolder", "EVIDENCE", "MEASUREMENTS", "REPORT", "read_pointer", "seal_path"}
PLACES = re.compile(
    r"\b(workspace|own|home)\.(evidence|measurements|report|newest|newest_pointer|released_pointer|audits|"
    r"audit|kept_rows)\b"
)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "w").prepare()


def test_an_audit_is_filed_and_found_again(workspace, build):
    store = evidence_store(workspace)
    assert [store.newest_digest(), store.released(), store.release_sealed()] == [None] * 3
    assert read_journal(workspace) is None
    filed = store.put(build.passing(), b"numbers")
    assert store.newest_digest() == filed.digest
    found = store.get(filed.digest)
    assert found.files == store.newest().files
    assert (found.digest, found.evidence, found.measurements) == (filed.digest, filed, b"numbers")
    assert (found.report, found.seal) == (None, None)
    assert newest_evidence(workspace) == filed
    [entry] = read_journal(workspace).audits
    assert (entry.digest, entry.names(found.evidence_file), entry.names(b"other")) == (
        filed.digest,
        True,
        False,
    )


def test_a_report_stands_beside_its_evidence_and_stays(workspace, build):
    store = evidence_store(workspace)
    digest = store.put(build.passing(), b"numbers").digest
    assert store.put_report(digest, b"page") == store.where()["report"]
    store.put_report(digest, b"another page")
    assert store.newest().report == b"page"
    assert store.where() == store.where(digest)
    assert store.where()["measurements"].read_bytes() == b"numbers"


def test_what_was_altered_is_no_evidence(workspace, build):
    store = evidence_store(workspace)
    store.put(build.passing(), b"numbers")
    path = store.where()["evidence"]
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DataError, match="altered"):
        newest_evidence(workspace)


def test_nothing_filed_is_nothing_found(workspace):
    store = evidence_store(workspace)
    for ask in (
        store.newest,
        store.where,
        lambda: store.get("a" * 64),
        lambda: newest_evidence(workspace),
    ):
        with pytest.raises(DataError):
            ask()


def faults(text):
    """What a module says of paths of evidence."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("synth_audit.store"):
            yield from (a.name for a in node.names if a.name in NAMES)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            sides = (node.left, node.right)
            yield from (x.value for x in sides if isinstance(x, ast.Constant) and x.value in FILES)
    yield from (m.group() for m in PLACES.finditer(text))


def test_no_module_outside_the_store_knows_where_evidence_lies():
    found = {}
    for package in ("synth_audit", "dagster_project"):
        for path in sorted((ROOT / package).rglob("*.py")):
            inside = (ROOT / "synth_audit" / "store") in path.parents
            if not inside and (said := sorted(faults(path.read_text(encoding="utf-8")))):
                found[str(path.relative_to(ROOT))] = said
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "from synth_audit.store.workspace import AuditFolder",
        "def f(x):\n    return x.review / 'audits' / 'a'",
        "where = table.workspace.newest.evidence",
        "rows = self.workspace.kept_rows(digest)",
    ],
)
def test_a_path_of_evidence_is_noticed(text):
    assert list(faults(text))
