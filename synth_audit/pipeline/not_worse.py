"""A release that must be no worse than the last one."""

from __future__ import annotations

from synth_audit.core.errors import ReleaseRefused
from synth_audit.core.plan import Plan
from synth_audit.judging.release_change import worse_gates
from synth_audit.store.evidence import Evidence
from synth_audit.store.release_history import released_evidence, releases_of
from synth_audit.store.workspace import Workspace

_MOST = 5


def refuse_if_worse(plan: Plan, evidence: Evidence, workspace: Workspace) -> None:
    """Raise ``ReleaseRefused`` where the plan wants no worse release than the last, and this one is.

    What cannot be compared, as the evidence of the last release is gone, is refused too.
    """
    earlier = [r.digest for r in releases_of(workspace) if r.digest != evidence.digest]
    if plan.release is None or not plan.release.not_worse or not earlier:
        return
    before = released_evidence(workspace, earlier[-1])
    if before is None:
        raise _refusal(
            "the evidence of the last release is not here", "bring its folder back, to compare with"
        )
    worse = worse_gates(evidence.gates.results, evidence.measurements, before.measurements)
    if worse:
        named = ", ".join(g.gate for g in worse[:_MOST]) + (", …" if len(worse) > _MOST else "")
        raise _refusal(
            f"worse than the last release, beyond both intervals: {named}",
            "the certificate and `synth-audit compare` show both; release it on purpose without "
            "`release.not_worse`, which takes another audit",
        )


def _refusal(what: str, fix: str) -> ReleaseRefused:
    return ReleaseRefused(
        f"release refused: {what}",
        where="release.not_worse",
        expected="no deciding number whose interval lies beyond that of the last release on the harmful side",
        fix=fix,
    )
