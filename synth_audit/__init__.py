"""Decides whether a synthetic table may be released: attack it, measure it, judge it, report it.

    import synth_audit

    evidence = synth_audit.audit(train, control, synthetic)
    print(evidence.verdict)

Importing the package is light; each function imports what it needs.
"""

from synth_audit.api import (
    audit,
    calibrate,
    compare,
    estimate,
    frontier,
    gate,
    load_evidence,
    purge,
    release,
    render_report,
    rerun,
    run,
    verify,
)
from synth_audit.build import VERSION
from synth_audit.samples import sample

__all__ = [
    "__version__",
    "audit",
    "calibrate",
    "compare",
    "estimate",
    "frontier",
    "gate",
    "load_evidence",
    "purge",
    "release",
    "render_report",
    "rerun",
    "run",
    "sample",
    "verify",
]

__version__ = VERSION
