"""Re-checks evidence years later: hashes, verdict and, where they are still there, the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from synth_audit.core.errors import GateError
from synth_audit.core.fingerprint import fingerprint
from synth_audit.judging import judge as gate
from synth_audit.store.evidence import Evidence, sha256_of


@dataclass(frozen=True)
class Check:
    """One thing that was recomputed: what, whether it agrees, and what was found."""

    what: str
    holds: bool
    detail: str


def verify(evidence: Evidence, tables: Mapping[str, pa.Table] | None = None) -> tuple[Check, ...]:
    """Recompute what the evidence claims.

    The digest shows damage and careless edits. It is no signature: who can rewrite the file can
    rewrite the digest, so compare it with a copy kept elsewhere, such as the signed report.

    Args:
        tables: any of ``source``, ``train``, ``control``, ``synthetic`` that are still at hand.
    """
    return (
        Check("digest of the evidence", evidence.intact, evidence.digest),
        Check("hash of the plan", sha256_of(evidence.plan) == evidence.plan_sha256, evidence.plan_sha256),
        Check(
            "hash of the gate suite",
            sha256_of(evidence.gates.suite) == evidence.gates.suite_sha256,
            evidence.gates.suite_sha256,
        ),
        _verdict(evidence),
        *(_table(evidence, name, data) for name, data in (tables or {}).items()),
    )


def _verdict(evidence: Evidence) -> Check:
    what = "verdict, judged anew"
    try:
        suite = gate.parse_suite(evidence.gates.suite, where="evidence", installed=False)
        judged = gate.judge(suite, evidence.outcomes, evidence.table_checks)
    except GateError as error:
        return Check(what, False, f"the suite cannot be judged: {error.what}")
    same = judged.verdict is evidence.verdict and judged.results == evidence.gates.results
    return Check(what, same, str(judged.verdict))


def _table(evidence: Evidence, name: str, data: pa.Table) -> Check:
    recorded = evidence.tables.get(name)
    found = fingerprint(data)
    return Check(f"content of {name}", recorded is not None and recorded.sha256 == found, found)
