"""What an evidence file holds of one audit: numbers, pictures, sensitivity; and the types of every part."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _number(value: Any) -> Any:
    """A number from one of the words that JSON lacks; any other text is refused."""
    return _WORDS.get(value, value) if isinstance(value, str) else value


Number = Annotated[float, BeforeValidator(_number)]
Count = Annotated[int, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Direction = Literal["lower is better", "higher is better", "descriptive"]
Verdict = Literal["pass", "fail", "insufficient evidence"]
TableName = Literal["source", "train", "control", "synthetic"]


class WirePart(BaseModel):
    """Base of every part: no key beyond those declared, no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, ser_json_inf_nan="strings")


class WireInterval(WirePart):
    """An interval of a number."""

    low: Number
    high: Number
    level: Number
    method: str


class WireEstimate(WirePart):
    """A number with its interval."""

    value: Number
    interval: WireInterval | None


class WireReference(WirePart):
    """What a measurement would be for a release that nobody objects to."""

    value: Number
    meaning: str
    interval: WireInterval | None
    candidate: WireEstimate | None


class WireMeasurement(WirePart):
    """One number of an audit."""

    id: str
    value: Number
    interval: WireInterval | None
    n_requested: int | None
    n_achieved: int | None
    n_minimum: int | None
    unit: str
    direction: Direction
    reference: WireReference | None


class WireSeries(WirePart):
    """The numbers of one picture."""

    id: str
    title: str
    kind: Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")]
    x_label: str
    y_label: str
    x: tuple[Number, ...] | tuple[str, ...]
    lines: dict[str, tuple[Number, ...]]
    places: tuple[str, ...]


class WireQuantity(WirePart):
    """A number that an audit declares."""

    name: str
    title: str
    unit: str
    direction: Direction
    range: tuple[Number, Number]
    help: str
    proportional: bool


class WireAuditInfo(WirePart):
    """What an audit says of itself."""

    title: str
    question: str
    threat_model: str
    not_covered: str
    quantities: tuple[WireQuantity, ...]
    risk: Literal["singling out", "linkability", "inference", "membership", "fidelity", "utility"]
    needs: tuple[str, ...]
    leak: str
    default: bool
    spreads: bool
    cost: Literal["instant", "seconds", "minutes", "hours"]
    source: str


class WirePlantedResult(WirePart):
    """What was measured on a release with a known share of copies."""

    share: Number
    value: Number
    low: Number
    high: Number


class WireSensitivityCurve(WirePart):
    """How a measurement answered planted leaks."""

    id: str
    direction: Direction
    sight: Literal["sees", "blind"]
    reason: str
    answers: tuple[WirePlantedResult, ...]
    null: Number | None
    half_width: Number | None
    minimum_detectable: Number | None


class WireOutcome(WirePart):
    """What became of one audit."""

    audit: str
    family: str
    status: Literal["measured", "not applicable", "error"]
    info: WireAuditInfo | None
    config: dict[str, Any]
    measurements: tuple[WireMeasurement, ...]
    series: tuple[WireSeries, ...]
    notes: tuple[str, ...]
    reason: str
    responses: tuple[WireSensitivityCurve, ...]
