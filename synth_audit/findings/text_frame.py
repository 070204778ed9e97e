"""A frame whose text columns notebooks show left-aligned; pandas is imported with this module."""

from __future__ import annotations

import pandas as pd


class TextFrame(pd.DataFrame):
    """A pandas frame like any other; what is computed from it is an ordinary one."""

    def _repr_html_(self) -> str:
        kinds = [pd.api.types.infer_dtype(column, skipna=True) for _, column in self.items()]
        text = [i for i, kind in enumerate(kinds) if kind == "string"]
        name = f"synth-audit-{'-'.join(map(str, text))}"
        rule = ", ".join(f".{name} tr > :nth-child({i + 2})" for i in text)  # the first is the index
        style = f"<style>{rule} {{ text-align: left; }}</style>" if text else ""
        page = self.to_html(max_rows=60, show_dimensions=True)
        return f'<div class="{name}">{style}{page}</div>'
