from __future__ import annotations

import math
import re
from html import unescape
from types import ModuleType
from xml.etree import ElementTree

import pytest
from report_reading import chapter, text  # made importable by conftest.py

from synth_audit.findings.measurement import read
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, WORST_SUBGROUP
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import render_report, words
from synth_audit.report.known_answer import LeakScale, common_scale, leak_interval_svg

NB = "\u00a0"


def test_the_scale_keeps_order_and_holds_everything() -> None:
    scale = LeakScale(0.25)
    shares = (-3.0, 0.0, 0.001, 0.01, 0.1, 0.25)
    places = [scale(s) for s in shares]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    assert scale(7.0) == scale(0.25)
    assert scale(-1e9) == scale(-0.001)


@pytest.mark.parametrize(("high", "reach"), [(0.009, 0.05), (0.07, 0.1), (0.3, 0.5), (1.0, 1.0), (9.0, 1.0)])
def test_all_leaks_share_a_scale_that_holds_the_largest(
    build: ModuleType, one: AuditOutcome, high: float, reach: float
) -> None:
    m = build.measurement("a.leak_equivalent", 0.001, 0.0005)
    wide = build.measurement("a.leak_equivalent", high - 0.001, 0.001)
    assert common_scale([m, wide]).reach == reach
    assert common_scale([]).reach == 0.05


@pytest.mark.parametrize(
    ("value", "half"),
    [(0.003, 0.006), (-0.3, 0.1), (math.nan, 0.1), (2.0, 0.1), (0.1, None), (0.1, math.inf)],
)
def test_odd_leaks_give_sound_strips(build: ModuleType, value: float, half: float | None) -> None:
    m = build.measurement("a.leak_equivalent", value, half)
    drawn = leak_interval_svg(m, LeakScale(0.25), title="<t>", anchor="x")
    root = ElementTree.fromstring(drawn)  # noqa: S314
    assert root[0].text == "<t>"
    for node in root.iter():
        for place in ("x", "x1", "x2", "cx"):
            assert 0 <= float(node.get(place, 0)) <= 360


def test_every_leak_stands_beside_its_number_and_in_no_table_of_its_own(build: ModuleType) -> None:
    evidence = build.passing()
    page = render_report(evidence)
    assert LEAK_EQUIVALENT.title not in chapter(page, "risk-membership")
    share = evidence.measurement("closest_record.leak_equivalent[of share]")
    assert share.interval is not None
    said = words.behaves_like(share.value, share.interval.low, share.interval.high)
    row = re.search(r"<tr>\n<th[^>]*>Share of synthetic rows closer.*?</tr>", page, re.DOTALL)
    assert row is not None
    article = chapter(page, "risk-membership")
    assert f"Behaves like a release in which {said}." in article
    assert "Sees a full copy, and a leak of" in article
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
    assert f"gate on copied rows: at most 2{NB}%" in chapter(page, "risk-membership")


def test_a_blind_number_says_so_in_its_own_section(build: ModuleType) -> None:
    article = text(chapter(render_report(build.failing()), "risk-membership"))
    assert "Blind here: a full copy gives no clearly worse value." in article
