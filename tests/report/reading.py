"""How the tests of the report read it: the parts of a page, and the views behind them."""

from __future__ import annotations

import re
from html import unescape
from types import SimpleNamespace

from synth_audit.report.known_answer import (
    MeasurementSensitivity,
    known_answer,
    sensitivities,
    sensitivity_line,
)
from synth_audit.report.view import SensitivityLine
from synth_audit.store.evidence import Evidence


def found_in(evidence: Evidence) -> tuple[MeasurementSensitivity, ...]:
    return sensitivities(evidence)


def view_of(evidence: Evidence) -> SimpleNamespace:
    body = known_answer(evidence, found_in(evidence)).body
    assert isinstance(body, dict)
    return SimpleNamespace(**body)


def line_of(evidence: Evidence) -> SensitivityLine:
    return sensitivity_line(evidence, found_in(evidence))


def chapter(page: str, anchor: str) -> str:
    """The markup of one section."""
    found = re.search(rf'<section class="chapter [^"]*" id="{anchor}".*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]


def text(page: str) -> str:
    """What a reader sees of markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
