"""One interval of a proportion: formula and name stand in one file, and all that rests on it follows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from synth_audit.stats import proportions
from synth_audit.stats.proportions import (
    middle_and_half_width,
    proportion_interval,
    unseen_share,
)

PACKAGE = Path(proportions.__file__).parent.parent
HOME = "proportions.py"


def test_the_middle_and_half_width_are_those_of_the_interval():
    ends = proportion_interval(7, 40, 0.95)
    assert middle_and_half_width(7, 40, 0.95) == pytest.approx(
        ((ends.low + ends.high) / 2, (ends.high - ends.low) / 2)
    )
    assert middle_and_half_width(0, 0, 0.95) == pytest.approx((0.5, 0.5))


def test_what_was_not_seen_may_be_as_much_as_wilson_says():
    z = 1.959963984540054
    assert unseen_share(100, 0.95) == pytest.approx(z * z / (100 + z * z))


def texts(nodes):
    """Texts of a module that are not documentation."""
    inside = {
        id(node.value) for node in nodes if isinstance(node, ast.Expr)
    }  # a text that stands alone says something, but does nothing
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
    ]


def test_no_other_file_names_the_formula():
    for path in PACKAGE.rglob("*.py"):
        if path.name == HOME:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        assert not [t for t in texts(nodes) if "wilson" in t.lower()], path
