"""One interval of a proportion: formula and name stand in one file, and all that rests on it follows."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from synth_audit.audits.privacy.singling_out import IsolationRate, isolation_risk
from synth_audit.audits.published import closest_record as distances
from synth_audit.stats import proportions, roc
from synth_audit.stats.attack_success import risk
from synth_audit.stats.proportions import (
    Proportion,
    middle_and_half_width,
    proportion_difference,
    unknown_proportion,
    unseen_share,
    wilson,
)

PACKAGE = Path(proportions.__file__).parent.parent
HOME = "proportions.py"


def test_the_middle_and_half_width_are_those_of_the_interval():
    ends = wilson(7, 40, 0.95)
    assert middle_and_half_width(7, 40, 0.95) == pytest.approx(
        ((ends.low + ends.high) / 2, (ends.high - ends.low) / 2)
    )
    assert middle_and_half_width(0, 0, 0.95) == pytest.approx((0.5, 0.5))


def test_what_was_not_seen_may_be_as_much_as_wilson_says():
    z = 1.959963984540054
    assert unseen_share(100, 0.95) == pytest.approx(z * z / (100 + z * z))


def stated():
    """Labels of everything that rests on the interval of a proportion, and one number."""
    some, none = Proportion(7, 40), Proportion(0, 0)
    rate = IsolationRate(0.2, 40, 31.5)
    flat = roc.PlacementValues.of(np.ones(30), np.zeros(30))
    near = distances.proportion_privacy_score(np.arange(40.0), np.arange(40.0), 0.05, 0.95)
    found = (
        some.interval(0.95),
        none.interval(0.95),
        unknown_proportion(0.95),
        risk(some, none, 0.95).interval,
        risk(some, some, 0.95).interval,
        rate.interval(0.95),
        isolation_risk(rate, rate, 0.95).interval,
        near,
        roc.cross_fitted_interval([flat, flat], 0.95),
        proportion_difference(7.5, 40, 3, 40, 0.95),
    )
    return [i.method for i in found], found[0].high


def test_another_formula_is_named_wherever_it_is_used(monkeypatch):
    labels, high = stated()
    assert all("wilson" in label or label == "newcombe" for label in labels)
    monkeypatch.setattr(proportions, "METHOD", "clopper-pearson")
    others, exact = stated()
    assert all("clopper-pearson" in label and "wilson" not in label for label in others)
    assert exact > high


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


def test_no_other_file_names_the_formula_or_calls_it():
    for path in PACKAGE.rglob("*.py"):
        if path.name == HOME:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        assert not [t for t in texts(nodes) if "wilson" in t.lower()], path
        imported = [a.name for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names]
        assert "wilson" not in imported, path
