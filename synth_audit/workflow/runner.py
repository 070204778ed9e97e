"""Runs audits so that each ends as measured, not applicable or an error, and none can vanish."""

from __future__ import annotations

import math
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from synth_audit.core import registry
from synth_audit.core.errors import NotApplicable, PluginError
from synth_audit.core.measurement import Findings
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.plugin import Audit, AuditInfo, Need
from synth_audit.core.schema import Role
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import Subject


class BrokenContract(PluginError):
    """An audit returned what it had not declared. Raised here only, so its text is ours to show."""


_ROUNDING = 1e-9
"""How far a value may stray out of its declared range by floating point alone."""


class Progress(Protocol):
    """Called before and after each piece of long work."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """``done`` of ``total`` pieces are finished; ``what`` is under way."""


def silent(what: str, done: int, total: int) -> None:
    """Report no progress."""


def run_audits(
    audits: Mapping[str, Audit], subject: Subject, seed: int, progress: Progress = silent
) -> tuple[tuple[AuditOutcome, ...], dict[str, float]]:
    """Run every audit once, each with its own child generator.

    Returns:
        One outcome per audit in the given order, and the seconds each took.
    """
    outcomes, seconds = [], {}
    for done, (name, audit) in enumerate(audits.items()):
        progress(name, done, len(audits))
        start = time.perf_counter()
        outcomes.append(_run_one(name, audit, subject, seed))
        seconds[f"audit.{name}"] = round(time.perf_counter() - start, 3)
    progress("audits", len(audits), len(audits))
    return tuple(outcomes), seconds


def _run_one(name: str, audit: Audit, subject: Subject, seed: int) -> AuditOutcome:
    outcome = AuditOutcome(
        audit=name,
        family=registry.find("audit", name).family,
        status=Status.NOT_APPLICABLE,
        info=audit.info,
        config=registry.config_of(audit),
    )
    if lacking := [need for need in audit.info.needs if not _has(subject, need)]:
        return replace(outcome, reason=f"needs {' and '.join(lacking)}")
    try:
        findings = audit.run(subject, child_rng(seed, "audit", name))
        _check_contract(audit.info, findings)
    except NotApplicable as reason:
        return replace(outcome, reason=reason.what)
    # Any other fault of a plug-in must become a visible outcome; a SystemExit would even end as a pass.
    except (Exception, SystemExit) as error:
        return replace(outcome, status=Status.ERROR, reason=describe_error(error))
    return outcome.with_findings(findings)


def _has(subject: Subject, need: Need) -> bool:
    match need:
        case Need.CONTROL:
            return subject.control is not None
        case Need.TARGET:
            return subject.schema.target is not None
        case Need.SENSITIVE:
            return bool(subject.schema.with_role(Role.SENSITIVE))
        case Need.GENERATOR:
            return subject.generator is not None


def _check_contract(info: AuditInfo, findings: Findings) -> None:
    """A measurement must be declared, within its range, and there once."""
    declared = {q.name: q for q in info.quantities}
    for m in findings.measurements:
        if m.name not in declared:
            raise BrokenContract(f"quantity {m.name!r} is not declared in the audit's info")
        low, high = declared[m.name].range
        if math.isfinite(m.value) and not low - _ROUNDING <= m.value <= high + _ROUNDING:
            raise BrokenContract(f"quantity {m.name!r} is outside its declared range")
    keys = Counter((m.name, m.scope) for m in findings.measurements)
    if twice := [name for (name, _), n in keys.items() if n > 1]:
        raise BrokenContract(f"quantity {twice[0]!r} is measured twice for one scope")


def describe_error(error: BaseException) -> str:
    """Kind and place of an error. Its text may hold a cell value, so only the runner's own show theirs."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if f.filename != __file__] or frames
    own = [f for f in inside if "synth_audit" in Path(f.filename).parts] or inside
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno} in {own[-1].name}" if own else "unknown place"
    text = f": {error}" if isinstance(error, BrokenContract) else ""
    return f"{type(error).__name__} at {place}{text}"
