"""How the tests of the report read it: the parts of a page, and the views behind them."""

import re
from html import unescape
from types import SimpleNamespace

from synth_audit.report.known_answer import (
    MeasurementSensitivity,
    SensitivityLine,
    known_answer,
    sensitivities,
    sensitivity_line,
)
from synth_audit.store.evidence import Evidence


def found_in(evidence: Evidence) -> tuple[MeasurementSensitivity, ...]:
    return sensitivities(evidence)


def view_of(evidence: Evidence) -> SimpleNamespace:
    return SimpleNamespace(**known_answer(evidence, found_in(evidence)))


def line_of(evidence: Evidence) -> SensitivityLine:
    return sensitivity_line(evidence, found_in(evidence))


def chapter(page: str, anchor: str) -> str:
    """The markup of one section, or of one group of gates."""
    starts = re.split(r'(?=<section class="chapter|<details class="group)', page)
    (found,) = (part for part in starts if re.match(rf'<[^>]* id="{anchor}"', part))
    return found


def text(page: str) -> str:
    """What a reader sees of markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
