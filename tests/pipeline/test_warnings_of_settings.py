"""What a reader must be told of tables made elsewhere and of audits whose settings were changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from synth_audit.core.accounting import PrivacyAccount
from synth_audit.core.plan import Plan
from synth_audit.core.plan_file import parse_plan
from synth_audit.judging.judge import load_suite
from synth_audit.pipeline.warnings import about_external, about_settings
from synth_audit.store.evidence_records import GeneratorRecord


@pytest.mark.parametrize(
    ("name", "config", "warned"),
    [
        ("external", {}, True),
        ("external", {"source": "made.parquet", "command": None}, True),
        ("external", {"source": None, "command": ["program"]}, False),
        ("external", {"source": None, "command": None, "recipe": "dpmm"}, False),
        ("vine", {}, False),
    ],
)
def test_only_a_finished_table_may_hold_control_rows(name, config, warned):
    found = about_external(GeneratorRecord(name, config, PrivacyAccount(guarantee=None, reason="a test")))
    assert bool(found) is warned


def test_changed_settings_of_a_judged_audit_are_told():
    suite = load_suite(Plan().gates, Path())
    plan = parse_plan({"audits": [{"closest_record": {"percentile": 0.05}}, {"marginals": {"cells": 5}}]})
    [said] = about_settings(plan, suite)
    assert "changes percentile of closest_record" in said
    assert about_settings(parse_plan({"audits": ["closest_record"]}), suite) == ()
