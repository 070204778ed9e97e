"""Names tell things apart: classes of the package, and kinds of the leak zoo."""

import ast
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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


ZOO = Path(__file__).parent.parent / "benchmarks" / "leak_zoo"
MODULES = ("leaks", "disclosure_control", "values", "tables", "slips", "overfitted", "still_passing")


@pytest.fixture
def zoo(monkeypatch):
    monkeypatch.syspath_prepend(str(ZOO))
    import overfitted
    import still_passing
    import tables

    whole = tables.drawn(400).assign(x5=lambda t: t["x5"].mul(100).round().astype(int))
    parts = (whole[:150], whole[150:250], whole[250:])
    dealt = tables.Dealt(*(part.reset_index(drop=True) for part in parts))
    yield overfitted, still_passing, dealt
    for name in MODULES:
        sys.modules.pop(name)


def test_a_kind_that_still_passes_holds_nothing_of_train_but_its_people(zoo):
    _, still_passing, dealt = zoo
    for name, kind in still_passing.KINDS.items():
        parts, honest = kind.release_of(dealt, 0.0, seed=1)
        _, leaky = kind.release_of(dealt, 0.4, seed=1)
        if name == "half_missing":  # and every table has gaps of its own
            assert parts.train.isna().to_numpy().any()
            assert leaky.isna().to_numpy().mean() > honest.isna().to_numpy().mean() + 0.1
            continue
        fresh = set(map(tuple, parts.fresh.to_numpy()))
        assert set(map(tuple, honest.to_numpy())) <= fresh, name
        assert 50 <= sum(row not in fresh for row in map(tuple, leaky.to_numpy())) <= 60, name
        assert list(leaky.dtypes) == list(dealt.train.dtypes), name


def test_rows_of_a_generator_that_overfits_lie_nearer_to_train_than_to_control(zoo):
    overfitted, _, dealt = zoo
    from values import as_points

    for kind in overfitted.DRAWS:
        made = overfitted.release_of(dealt, kind, 150, np.random.default_rng(0))
        assert list(made.dtypes) == list(dealt.train.dtypes)
        rows = as_points(pd.concat([dealt.train, dealt.control, made]), dealt.train)
        away = np.linalg.norm(rows[:250, None] - rows[None, 250:], axis=2).min(axis=1)
        assert np.median(away[:150]) < 0.9 * np.median(away[150:]), kind
