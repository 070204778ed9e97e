"""Decides whether a synthetic table may be released: attack it, measure it, judge it, report it.

    import synth_audit

    evidence = synth_audit.audit(train, control, synthetic)
    print(evidence.verdict)

Importing the package is light: the verbs, and all that they need, are imported when one is asked for.
"""

# ruff: noqa: F403, F405  (every verb, for type checkers alone)

from importlib import import_module
from typing import TYPE_CHECKING, Any

from synth_audit.build import VERSION

if TYPE_CHECKING:
    from synth_audit.api import *

__version__ = VERSION

__all__ = [
    "Evidence",
    "Running",
    "__version__",
    "approve",
    "attest",
    "audit",
    "calibrate",
    "compare",
    "estimate",
    "exposure",
    "frontier",
    "gate",
    "install_recipe",
    "load_evidence",
    "mend",
    "new_key",
    "purge",
    "recipes",
    "refuse_mended_place",
    "release",
    "render_report",
    "rerun",
    "rollback",
    "run",
    "sample",
    "swept",
    "test_mechanism",
    "try_recipe",
    "verify",
    "write_certificate",
    "write_index",
    "write_mended_plan",
    "write_pdf",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("synth_audit.api"), name)


def __dir__() -> list[str]:
    return list(__all__)
