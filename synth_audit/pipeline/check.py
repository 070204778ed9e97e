"""What a check says of evidence or of what lies beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was recomputed or compared.

    Attributes:
        holds: None when it is not checkable here, since what it takes is not at hand.
        detail: what was found, or why it cannot be checked.
    """

    what: str
    holds: bool | None
    detail: str
