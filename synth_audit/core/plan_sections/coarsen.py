"""The plan's key ``coarsen``: by which rules values of a release are made coarser before it is audited."""

from __future__ import annotations

import re
from datetime import date, datetime
from math import inf, isfinite
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from synth_audit.core.column_spec import AnyLabels, as_number
from synth_audit.core.resolution import TIME_UNITS, ValueGrid

INTO = "other"
"""What labels are merged into where the plan says nothing."""

_SPAN = re.compile(rf"(?:([1-9][0-9]{{0,5}}) )?({'|'.join(TIME_UNITS)})s?")


def _step(step: float | str) -> float | str:
    if isinstance(step, str):
        span_grid(step)
    elif not 0 < step < inf:
        raise ValueError("a step is above 0 and finite")
    return step


def _end(end: float | date | datetime) -> float | date | datetime:
    if not isinstance(end, date) and not isfinite(end):
        raise ValueError("an end must be finite")
    return end


def span_grid(text: str) -> ValueGrid:
    """The grid of a span of time such as ``day``, ``1 day`` or ``15 minutes``.

    Raises:
        ValueError: it is none, or several months or years.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f"a span of time such as `1 day` or `15 minutes`: {', '.join(TIME_UNITS)}")
    unit, times = TIME_UNITS[found[2]], int(found[1] or 1)
    if unit.calendar is None:
        return ValueGrid(unit.numerator * times)
    if times > 1:
        raise ValueError(f"dates are rounded to a single {found[2]}, or to any number of days")
    return unit


Step = Annotated[float | str, AfterValidator(_step)]
End = Annotated[float | date | datetime, AfterValidator(_end)]


class ColumnCoarsening(BaseModel):
    """How the values of one column are made coarser: numbers and dates, or labels."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    round_to: Step | None = Field(
        None, description="a step such as 0.5, or a span of time such as `1 day`; the nearest multiple leaves"
    )
    bottom: End | None = Field(None, description="what lies below leaves as this value")
    top: End | None = Field(None, description="what lies above leaves as this value")
    merge: Annotated[tuple[str, ...], AnyLabels] = Field((), description="labels that leave as `into`")
    merge_rarer_than: int | None = Field(
        None, ge=2, description="labels that fewer rows of the release hold leave as `into`"
    )
    into: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="the label that others are merged into; `other` if left out"
    )

    @model_validator(mode="after")
    def _consistent(self) -> ColumnCoarsening:
        if not (self.of_numbers or self.of_labels):
            raise ValueError("give round_to, bottom, top, merge or merge_rarer_than")
        if self.of_numbers and (self.of_labels or self.into):
            raise ValueError("round_to, bottom and top are for numbers and dates, merge and into for labels")
        if self.merge and not {*self.merge} - {self.label}:
            raise ValueError("merge names no label but the one that it merges into")
        low, high = self.ends
        if low is not None and high is not None and low >= high:
            raise ValueError("bottom must lie below top")
        return self

    @property
    def of_numbers(self) -> bool:
        """Whether it is for numbers, dates or times."""
        return not (self.round_to is None and self.bottom is None and self.top is None)

    @property
    def of_labels(self) -> bool:
        """Whether it is for labels."""
        return bool(self.merge) or self.merge_rarer_than is not None

    @property
    def label(self) -> str:
        """What labels are merged into."""
        return self.into or INTO

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Bottom and top as floats, in microseconds for dates."""
        low, high = (None if x is None else as_number(x) for x in (self.bottom, self.top))
        return low, high

    @property
    def words(self) -> str:
        """What it does, for a reader."""
        parts = [] if self.round_to is None else [f"rounded to {_text(self.round_to)}"]
        parts += [] if self.bottom is None else [f"at least {_text(self.bottom)}"]
        parts += [] if self.top is None else [f"at most {_text(self.top)}"]
        parts += [f"{len(self.merge)} labels merged into {self.label!r}"] if self.merge else []
        if self.merge_rarer_than is not None:
            parts.append(f"labels of fewer than {self.merge_rarer_than} rows merged into {self.label!r}")
        return ", ".join(parts)


class CoarsenSpec(BaseModel):
    """Which columns of a release are made coarser, and what these rules rest on.

    Rules that were fixed without a look at real rows keep a guarantee of differential privacy; rules that
    were chosen by what an audit on real rows said void it, and each candidate that was judged on the way is
    a chance of a wrong pass.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    columns: dict[str, ColumnCoarsening] = Field(min_length=1, description="a rule for each column")
    chosen_on: Literal["public knowledge", "real data"] = Field(
        "public knowledge", description="what the rules were chosen by; `synth-audit mend` writes `real data`"
    )
    tries: int = Field(
        1,
        ge=1,
        le=1000,
        description="candidates that may have been judged until this one was chosen, the refused one among "
        "them; every interval then has the level 1 - (1 - level) / tries",
    )

    @model_validator(mode="after")
    def _counted(self) -> CoarsenSpec:
        if self.on_real_data and self.tries < 2:
            raise ValueError(
                "what is chosen on real data is at least the second try: say how many as `tries`"
            )
        if self.tries > 1 and not self.on_real_data:
            raise ValueError("tries above 1 go with `chosen_on: real data`")
        return self

    @property
    def on_real_data(self) -> bool:
        """Whether the rules were chosen by what real rows said."""
        return self.chosen_on == "real data"


def _text(value: float | str | date) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
