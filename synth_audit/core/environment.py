"""What the environment holds that other programs must not be handed."""

from __future__ import annotations

import os

EVIDENCE_KEY = "SYNTH_AUDIT_EVIDENCE_KEY"
"""Environment variable of the key that seals evidence; whoever has it can make evidence."""


def for_other_programs() -> dict[str, str]:
    """The environment without what only this program needs to know."""
    return {name: value for name, value in os.environ.items() if name != EVIDENCE_KEY}
