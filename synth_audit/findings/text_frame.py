"""A frame whose text columns notebooks show left-aligned; pandas is imported with this module."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from synth_audit.findings.measurement import Measurement, is_share

_SENTENCE = 60
"""Letters from which on a text takes several lines."""


class TextFrame(pd.DataFrame):
    """A pandas frame like any other; what is computed from it is an ordinary one."""

    def _repr_html_(self) -> str:
        kinds = [pd.api.types.infer_dtype(column, skipna=True) for _, column in self.items()]
        text = [i for i, kind in enumerate(kinds) if kind == "string"]
        sentences = [i for i in text if self.iloc[:, i].astype(str).str.len().max() > _SENTENCE]
        name = f"synth-audit-{'-'.join(map(str, text))}"
        rules = ((text, "text-align: left"), (sentences, "min-width: 30em"))
        style = "".join(
            f"<style>{', '.join(f'.{name} tr > :nth-child({i + 2})' for i in columns)} {{ {rule}; }}</style>"
            for columns, rule in rules  # the first column is the index
            if columns
        )
        with pd.option_context("display.max_colwidth", None):
            page = self.to_html(max_rows=60, show_dimensions=True)
        return f'<div class="{name}" style="overflow-x: auto">{style}{page}</div>'


def as_html(rows: Iterable[dict[str, Any]]) -> str:
    """Return rows as a small table for a notebook, escaped."""
    return TextFrame(rows)._repr_html_()


def explained_unit(unit: str) -> str:
    """``share of people (1 = 100 %)``: frames keep shares as numbers, which pages show in percent."""
    return f"{unit} (1 = 100 %)" if is_share(unit) else unit


def measurement_row(m: Measurement) -> dict[str, object]:
    """Return a measurement as a row; ``low``, ``high`` and ``level`` are None without an interval."""
    return {
        "audit": m.id.audit,
        "measurement": str(m.id),
        "column": m.id.column,
        "value": m.value,
        "low": m.interval.low if m.interval else None,
        "high": m.interval.high if m.interval else None,
        "level": m.interval.level if m.interval else None,
        "reference": m.reference.value if m.reference else None,
        "n": m.n_achieved,
        "unit": explained_unit(m.unit),
        "direction": str(m.direction),
    }
