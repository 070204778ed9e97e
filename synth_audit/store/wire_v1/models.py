"""What may stand in an evidence file: every key, its type and its range; nothing else.

Measurements are named by the text of their identity, see :mod:`synth_audit.core.identity`. Words that the
file has for verdicts, directions and the like are spelt out here, so that they stay as they are.
"""

from __future__ import annotations

from typing import Any, Literal

from synth_audit.store.evidence import SCHEMA_VERSION
from synth_audit.store.wire_v1.audit_models import (
    Count,
    Number,
    Sha256,
    TableName,
    Verdict,
    WireInterval,
    WireOutcome,
    WirePart,
    WireSeries,
)

VERSION = SCHEMA_VERSION


class WireTableCheck(WirePart):
    """One expectation on the synthetic table."""

    key: str
    met: bool | None
    explanation: str


class WireGateResult(WirePart):
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
    fitness: bool


class WireGates(WirePart):
    """The suite as it was applied, and what came of it."""

    suite_name: str
    suite: dict[str, Any]
    suite_sha256: Sha256
    results: tuple[WireGateResult, ...]
    blockers: tuple[str, ...]


class WirePlantedLeaks(WirePart):
    """How leaks were planted."""

    train_rows: Count
    control_rows: Count
    release_rows: Count
    shares: tuple[Number, ...]
    reason: str


class WireExposedGroup(WirePart):
    """How many records one attack got right."""

    id: str
    columns: tuple[str, ...]
    train_tried: Count
    train_hit: Count | None
    control_tried: Count
    control_hit: Count | None


class WireSubgroup(WirePart):
    """The most exposed category of a column under one attack."""

    id: str
    category: str
    train_rows: Count
    value: Number
    interval: WireInterval


class WireRecords(WirePart):
    """What may be known of the most exposed records."""

    train_rows: Count
    exposed: Count | None
    control_rows: Count
    control_exposed: Count | None
    groups: tuple[WireExposedGroup, ...]
    subgroups: tuple[WireSubgroup, ...]


class WireColumn(WirePart):
    """What was known of a column."""

    name: str
    kind: str
    storage: str
    roles: tuple[str, ...]
    kind_declared: bool
    domain_declared: bool
    categories: Count | None


class WireTable(WirePart):
    """Identity of a table: under the salt, and plain where it may be known."""

    rows: Count
    hmac: str
    sha256: Sha256 | None


class WireMechanism(WirePart):
    """One spending of privacy budget."""

    what: str
    mechanism: Literal[
        "gaussian",
        "poisson-subsampled gaussian",
        "laplace",
        "exponential",
        "pure",
        "approximate",
        "zero-concentrated",
    ]
    noise_multiplier: Number | None
    sampling_rate: Number | None
    epsilon: Number | None
    delta: Number | None
    count: Count
    rows: Count
    epsilon_alone: Number | None


class WireGuarantee(WirePart):
    """What differential privacy promises of everything drawn from the fit."""

    unit: Literal["entity", "row"]
    neighbouring: Literal["add or remove one", "replace one"]
    epsilon: Number
    delta: Number
    accountant: str
    mechanisms: tuple[WireMechanism, ...]
    assumptions: tuple[str, ...]
    not_protected: tuple[str, ...]


class WireAccount(WirePart):
    """What the fit spent, and what the table has cost with it."""

    guarantee: WireGuarantee | None
    reason: str
    mechanisms: tuple[WireMechanism, ...]
    several_rows: bool
    table_epsilon: Number
    table_delta: Number


class WireGenerator(WirePart):
    """Who made the candidate."""

    name: str
    config: dict[str, Any]
    privacy: WireAccount
    training: tuple[WireSeries, ...]
    column_groups: tuple[tuple[str, ...], ...]


class WireLedgerHead(WirePart):
    """How far the table's ledger had come."""

    lines: Count
    digest: Sha256


class WireEarlierAudit(WirePart):
    """An audit of the same candidate under other settings, before this one."""

    at: str
    plan: Sha256
    suite: str
    verdict: Verdict | Literal[""]
    evidence: str


class WireEvidence(WirePart):
    """The whole file."""

    table: str
    attempt: Count
    ledger: WireLedgerHead | None
    earlier: tuple[WireEarlierAudit, ...]
    plan: dict[str, Any]
    plan_sha256: Sha256
    seed: int
    level: Number
    suppression: Count
    columns: tuple[WireColumn, ...]
    tables: dict[TableName, WireTable]
    generator: WireGenerator
    outcomes: tuple[WireOutcome, ...]
    table_checks: tuple[WireTableCheck, ...]
    gates: WireGates
    verdict: Verdict
    fitness: Literal["yes", "no", "insufficient evidence", "not tested"]
    salt_commitment: str
    planting: WirePlantedLeaks
    records: WireRecords
    warnings: tuple[str, ...]
    versions: dict[str, str]
    schema_version: Literal["1.0"]
    digest: str
    created: str
    timings: dict[str, Number]
