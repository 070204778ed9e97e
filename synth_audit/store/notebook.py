"""How evidence shows itself to whoever holds it in Python: in a line, as a frame, in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Protocol

from synth_audit.findings.measurement import Measurement
from synth_audit.findings.verdict import Result

if TYPE_CHECKING:
    import pandas as pd

    from synth_audit.store.evidence import Evidence


class Pictures(tuple[str, ...]):
    """SVG pictures, which a notebook shows one below the other.

    Attributes:
        why_none: why there is no picture, empty where there are some.
    """

    why_none = ""

    @classmethod
    def none(cls, why: str) -> Pictures:
        """No picture, and the reason in words."""
        pictures = cls()
        pictures.why_none = why
        return pictures

    def _repr_html_(self) -> str:
        if self.why_none:
            return f"<p>{escape(self.why_none)}</p>"
        return "\n".join(f'<div style="background:#fff">{picture}</div>' for picture in self)

    def __repr__(self) -> str:
        return f"<{len(self)} picture{'s' * (len(self) != 1)}{self.why_none and f': {self.why_none}'}>"


class NotebookPage(Protocol):
    """Draws evidence for notebooks: the report, which this room does not know."""

    def html(self, evidence: Evidence) -> str:
        """Verdict, criteria and gates as a piece of a page."""
        ...

    def pictures(self, evidence: Evidence, audit: str) -> Pictures:
        """The pictures of one audit."""
        ...


def line_of(evidence: Evidence) -> str:
    """Evidence in one line."""
    results = [g.result for g in evidence.gates.results]
    gates = ", ".join(f"{results.count(r)} {r}" for r in Result if r in results)
    return (
        f"<Evidence of {evidence.table!r}: {evidence.verdict} (gates: {gates or 'none'}), "
        f"fit for purpose: {evidence.fitness}, "
        f"{len(evidence.measurements)} measurements, digest {evidence.digest[:12] or 'not sealed'}>"
    )


class Measurements(tuple[Measurement, ...]):
    """Measurements, which a notebook shows as a table."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each; ``low``, ``high`` and ``level`` are missing where no interval is known."""
        from synth_audit.findings.text_frame import TextFrame, measurement_row

        return TextFrame(map(measurement_row, self))

    def _repr_html_(self) -> str:
        from synth_audit.findings.text_frame import as_html, measurement_row

        return as_html(map(measurement_row, self))
