from __future__ import annotations

import re
from html import unescape
from types import ModuleType

from report_reading import chapter, text  # made importable by conftest.py

from synth_audit.findings.measurement import read
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, WORST_SUBGROUP
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import render_report, words

NB = "\u00a0"


def test_every_leak_stands_with_the_planted_ones_and_in_no_table_of_its_own(build: ModuleType) -> None:
    evidence = build.passing()
    page = render_report(evidence, full=True)
    assert LEAK_EQUIVALENT.title not in chapter(page, "risk-membership")
    share = evidence.measurement("closest_record.leak_equivalent[of share]")
    planted = chapter(page, "known-answer")
    (row,) = re.findall(r"<tr>\n<th[^>]*>Share of synthetic rows closer.*?</tr>", planted, re.DOTALL)
    assert f"Behaves like a release in which {words.cut_share(share)} of the rows were copied." in row
    assert WORST_SUBGROUP.title in chapter(page, "risk-singling-out")
    assert WORST_SUBGROUP.help in unescape(chapter(page, "risk-singling-out"))


def test_a_gate_on_the_restated_number_stands_beside_it_with_its_unit(
    build: ModuleType, one: AuditOutcome
) -> None:
    gate = build.gate(
        "leak", "Few copies", measurement=read("closest_record.leak_equivalent[of share]"),
        value=0.003, low=-0.003, high=0.009, maximum=0.02,
    )  # fmt: skip
    page = render_report(build.judged(one, gate))
    assert f"Limit: at most 2{NB}%" in chapter(page, "risk-membership")


def test_a_blind_number_says_so_with_its_reason(build: ModuleType) -> None:
    planted = text(chapter(render_report(build.failing(), full=True), "known-answer"))
    assert "Blind A full copy gives no clearly worse value." in planted
