"""What the report says for machines: digest, verdict and every gate as attributes of its elements.

Sentences and pictures may change between versions; these may not, and they must follow from the evidence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser

from synth_audit.core.verdict import Fitness, GateResult
from synth_audit.store.evidence import Evidence

Marks = Mapping[str, str]

WRITTEN_BY = "data-written-by"

_AUDIT, _GATE = "data-evidence-digest", "data-gate"
_PACKAGE = "synth-audit"


@dataclass(frozen=True)
class PageMarks:
    """The marks of one page; gates in no order.

    Attributes:
        written_by: version of the package that wrote the page; empty when it says so nowhere.
    """

    audit: Marks
    gates: tuple[Marks, ...]
    written_by: str = ""


def audit_marks(evidence: Evidence) -> Marks:
    """Attributes of the page's main part."""
    return {
        _AUDIT: evidence.digest,
        "data-schema-version": _ascii(evidence.schema_version),
        "data-verdict": str(evidence.verdict),
        "data-attempt": str(evidence.attempt),
        # absent where it was not tested
        **({} if evidence.fitness is Fitness.NOT_TESTED else {"data-fitness": str(evidence.fitness)}),
    }


def gate_marks(gate: GateResult) -> Marks:
    """Attributes of one gate: numbers to their last digit, without those that it does not have."""
    numbers = {
        "value": gate.value,
        "low": gate.low,
        "high": gate.high,
        "minimum": gate.minimum,
        "maximum": gate.maximum,
    }
    return {
        _GATE: _ascii(gate.gate),
        "data-result": str(gate.result),
        "data-blocking": str(gate.blocking).lower(),
        "data-measurement": _ascii(str(gate.measurement or "")),
        "data-every": str(gate.every).lower(),
        "data-bound": _ascii(gate.bound),
    } | {f"data-{name}": repr(float(x)) for name, x in numbers.items() if x is not None}


def marks_of(evidence: Evidence) -> PageMarks:
    """What the report of this evidence must say."""
    return PageMarks(audit_marks(evidence), _sorted([gate_marks(g) for g in evidence.gates.results]))


@lru_cache(maxsize=2)  # writing, checking and releasing each ask of the same page and its certificate
def read_marks(page: str) -> PageMarks | None:
    """What a page says; None when it is not clear, since it says nothing or the same thing twice."""
    reader = _MarkParser()
    reader.feed(page)
    reader.close()
    if len(reader.audits) != 1 or reader.doubled:
        return None
    [audit] = reader.audits
    rest = {name: text for name, text in audit.items() if name != WRITTEN_BY}
    return PageMarks(rest, _sorted(reader.gates), audit.get(WRITTEN_BY, ""))


class _MarkParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.audits: list[Marks] = []
        self.gates: list[Marks] = []
        self.doubled = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        data = [(name, text or "") for name, text in attrs if name.startswith("data-")]
        found = dict(data)
        if _AUDIT in found or _GATE in found:
            # Of two attributes of one name a browser takes the first, and this dictionary the last.
            self.doubled |= len(found) < len(data) or (_AUDIT in found and _GATE in found)
            (self.audits if _AUDIT in found else self.gates).append(found)


def _sorted(gates: Sequence[Marks]) -> tuple[Marks, ...]:
    return tuple(sorted(gates, key=lambda g: sorted(g.items())))


def _ascii(text: str) -> str:
    """Text whose letters no page needs to clean or to escape otherwise than as HTML."""
    return json.dumps(text)[1:-1]
