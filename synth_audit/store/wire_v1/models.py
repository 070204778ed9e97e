"""What may stand in an evidence file: every key, its type and its range; nothing else.

Measurements are named by the text of their identity, see :mod:`synth_audit.core.identity`. Words that the
file has for verdicts, directions and the like are spelt out here, so that they stay as they are.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

VERSION = "1.2"

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


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, ser_json_inf_nan="strings")


class Interval(_Part):
    """An interval of a number."""

    low: Number
    high: Number
    level: Number
    method: str


class Estimate(_Part):
    """A number with its interval."""

    value: Number
    interval: Interval | None


class Reference(_Part):
    """What a measurement would be for a release that nobody objects to."""

    value: Number
    meaning: str
    interval: Interval | None
    candidate: Estimate | None


class Measurement(_Part):
    """One number of an audit."""

    id: str
    value: Number
    interval: Interval | None
    n_requested: int | None
    n_achieved: int | None
    n_minimum: int | None
    unit: str
    direction: Direction
    reference: Reference | None


class Series(_Part):
    """The numbers of one picture."""

    id: str
    title: str
    kind: Literal["line", "step", "bar", "box", "matrix", "density"]
    x_label: str
    y_label: str
    x: tuple[Number, ...] | tuple[str, ...]
    lines: dict[str, tuple[Number, ...]]
    places: tuple[str, ...]


class Quantity(_Part):
    """A number that an audit declares."""

    name: str
    title: str
    unit: str
    direction: Direction
    range: tuple[Number, Number]
    help: str
    proportional: bool


class AuditInfo(_Part):
    """What an audit says of itself."""

    title: str
    question: str
    threat_model: str
    not_covered: str
    quantities: tuple[Quantity, ...]
    risk: Literal["singling out", "linkability", "inference", "membership", "fidelity", "utility"]
    needs: tuple[str, ...]
    leak: str
    default: bool
    spreads: bool
    cost: Literal["instant", "seconds", "minutes", "hours"]
    source: str


class PlantedResult(_Part):
    """What was measured on a release with a known share of copies."""

    share: Number
    value: Number
    low: Number
    high: Number


class SensitivityCurve(_Part):
    """How a measurement answered planted leaks."""

    id: str
    direction: Direction
    sight: Literal["sees", "blind"]
    reason: str
    answers: tuple[PlantedResult, ...]
    null: Number | None
    half_width: Number | None
    minimum_detectable: Number | None


class Outcome(_Part):
    """What became of one audit."""

    audit: str
    family: str
    status: Literal["measured", "not applicable", "error"]
    info: AuditInfo | None
    config: dict[str, Any]
    measurements: tuple[Measurement, ...]
    series: tuple[Series, ...]
    notes: tuple[str, ...]
    reason: str
    responses: tuple[SensitivityCurve, ...]


class TableCheck(_Part):
    """One expectation on the synthetic table."""

    key: str
    met: bool | None
    explanation: str


class GateResult(_Part):
    """The decision of one gate."""

    gate: str
    title: str
    result: Verdict
    blocking: bool
    reason: str
    explanation: str
    advice: str
    measurement: str | None
    every: bool
    bound: str
    value: Number | None
    low: Number | None
    high: Number | None
    level: Number | None
    minimum: Number | None
    maximum: Number | None
    n_needed: int | None


class Gates(_Part):
    """The suite as it was applied, and what came of it."""

    suite_name: str
    suite: dict[str, Any]
    suite_sha256: Sha256
    results: tuple[GateResult, ...]
    blockers: tuple[str, ...]


class PlantedLeaks(_Part):
    """How leaks were planted."""

    train_rows: Count
    control_rows: Count
    release_rows: Count
    shares: tuple[Number, ...]
    reason: str


class ExposedGroup(_Part):
    """How many records one attack got right."""

    id: str
    columns: tuple[str, ...]
    train_tried: Count
    train_hit: Count | None
    control_tried: Count
    control_hit: Count | None


class Subgroup(_Part):
    """The most exposed category of a column under one attack."""

    id: str
    category: str
    train_rows: Count
    value: Number
    interval: Interval


class Records(_Part):
    """What may be known of the most exposed records."""

    train_rows: Count
    exposed: Count | None
    control_rows: Count
    control_exposed: Count | None
    groups: tuple[ExposedGroup, ...]
    subgroups: tuple[Subgroup, ...]


class Column(_Part):
    """What was known of a column."""

    name: str
    kind: str
    storage: str
    roles: tuple[str, ...]
    kind_declared: bool
    domain_declared: bool
    categories: Count | None


class Table(_Part):
    """Identity of a table: under the salt, and plain where it may be known."""

    rows: Count
    hmac: str
    sha256: Sha256 | None


class Certificate(_Part):
    """What may formally be claimed of a generator."""

    claim: Literal["none", "differential privacy"]
    reason: str
    epsilon: Number | None
    delta: Number | None


class Mechanism(_Part):
    """One spending of privacy budget."""

    what: str
    mechanism: Literal[
        "gaussian", "poisson-subsampled gaussian", "laplace", "exponential", "pure", "approximate"
    ]
    noise_multiplier: Number | None
    sampling_rate: Number | None
    epsilon: Number | None
    delta: Number | None
    count: Count
    rows: Count
    epsilon_alone: Number | None


class Guarantee(_Part):
    """What differential privacy promises of everything drawn from the fit."""

    unit: Literal["entity", "row"]
    neighbouring: Literal["add or remove one", "replace one"]
    epsilon: Number
    delta: Number
    accountant: str
    mechanisms: tuple[Mechanism, ...]
    assumptions: tuple[str, ...]
    not_protected: tuple[str, ...]


class Account(_Part):
    """What the fit spent, and what the table has cost with it."""

    guarantee: Guarantee | None
    reason: str
    mechanisms: tuple[Mechanism, ...]
    several_rows: bool
    table_epsilon: Number
    table_delta: Number


class Generator(_Part):
    """Who made the candidate."""

    name: str
    config: dict[str, Any]
    certificate: Certificate
    privacy: Account | None


class LedgerHead(_Part):
    """How far the table's ledger had come."""

    lines: Count
    digest: Sha256


class Evidence(_Part):
    """The whole file."""

    table: str
    attempt: Count
    ledger: LedgerHead | None
    plan: dict[str, Any]
    plan_sha256: Sha256
    seed: int
    level: Number
    suppression: Count
    columns: tuple[Column, ...]
    tables: dict[TableName, Table]
    generator: Generator
    outcomes: tuple[Outcome, ...]
    table_checks: tuple[TableCheck, ...]
    gates: Gates
    verdict: Verdict
    salt_commitment: str
    planting: PlantedLeaks
    records: Records
    warnings: tuple[str, ...]
    versions: dict[str, str]
    schema_version: Literal["1.2"]
    digest: str
    created: str
    timings: dict[str, Number]
