"""Names tell things apart: no two classes of the package share one."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ALLOWED: dict[str, str] = {}
"""Class names that occur more than once, each with the reason why it must."""


@cache
def classes(root):
    """Where each class is defined, by name; classes inside functions and classes count too."""
    found = defaultdict(list)
    for package in ("synth_audit", "dagster_project"):
        for path in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(f"{path.relative_to(root)}:{node.lineno}")
    return found


def shared(root):
    return {name: places for name, places in classes(root).items() if len(places) > 1}


def test_no_two_classes_share_a_name():
    assert {name: places for name, places in shared(ROOT).items() if name not in ALLOWED} == {}


def test_every_exception_is_still_needed_and_has_a_reason():
    assert set(ALLOWED) <= set(shared(ROOT))
    assert all(ALLOWED.values())


def test_a_shared_name_is_found_wherever_it_is(tmp_path):
    (tmp_path / "synth_audit" / "core").mkdir(parents=True)
    (tmp_path / "dagster_project").mkdir()
    (tmp_path / "synth_audit" / "core" / "a.py").write_text("class One: ...\nclass Two: ...")
    (tmp_path / "dagster_project" / "b.py").write_text("def f():\n    class One: ...")
    assert shared(tmp_path) == {"One": ["synth_audit/core/a.py:1", "dagster_project/b.py:2"]}
