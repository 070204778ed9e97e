"""What a fit says of itself, which its guarantee rests on beside what it spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from synth_audit.core.accounting.guarantee import Mechanism, MechanismRecord, Neighbouring, Unit

Origin = Literal["declared", "bought", "inferred"]

_FIXED = (
    "noise, sampling rates and numbers of steps were set beforehand, not by what earlier mechanisms returned"
)
_FILTER = (
    "what shares a zero-concentrated spending was chosen by what came before it, and ran only while the sum "
    "of all that it cost stayed within the share (Feldman & Zrnic 2021)"
)
_FLOATS = "noise is drawn in floating point; the proofs are about real numbers (Mironov 2012)"
_ELSEWHERE = (
    "it is of this fit alone: fits of the same rows add up in the ledger of their workspace, and those of "
    "another workspace, or of one that was deleted, are in none"
)
_POISSON = "each row joined each batch by an independent secret coin (Poisson sampling), as it was run"


class StatedClaim:
    """What must hold for a guarantee, and what ends it.

    Args:
        unit, rows: as of an :class:`~synth_audit.core.accounting.accountant.Accountant`.
    """

    def __init__(self, *, unit: Unit, neighbouring: Neighbouring, rows: int) -> None:
        self._unit = unit
        self._neighbouring = neighbouring
        self._rows = rows
        self._assumptions: list[str] = []
        self._voids: list[str] = []
        self._rows_void = ""
        self._rows_stated = self._domain_stated = False

    @property
    def voids(self) -> tuple[str, ...]:
        """What ended it for good, in order."""
        return tuple(self._voids)

    def draws(self, rows: int | None) -> None:
        """State how many synthetic rows are drawn; None for as many as train has."""
        self._rows_stated = True
        if rows is not None:
            self.assume(f"the number of rows drawn, {rows:,}, is a public constant")
        elif self._neighbouring is Neighbouring.REPLACE and self._rows == 1:
            self.assume("as many rows are drawn as train has, which neighbours do not differ in")
        else:
            self._rows_void = (
                "as many rows are drawn as train has: the number of rows drawn must be a public constant"
            )

    def domain(self, origin: Origin) -> None:
        """State where bounds and categories come from."""
        self._domain_stated = True
        if origin == "inferred":
            self.void("inferred bounds or categories: they were read off the real rows")
        elif origin == "bought":
            self.assume("bounds and categories that the plan does not declare were bought from the budget")
        else:
            self.assume("bounds and categories declared in the plan are public knowledge")
        self.assume("so are the names, the order and the stored types of the columns of the source")

    def assume(self, text: str) -> None:
        """Record what must hold."""
        if text not in self._assumptions:
            self._assumptions.append(text)

    def void(self, reason: str) -> None:
        """Give it up for good."""
        if reason not in self._voids:
            self._voids.append(reason)

    @contextmanager
    def part(self, what: str, records: Sequence[MechanismRecord]) -> Iterator[None]:
        """Have one of several fits state its own domain, and spend, in the block; else the whole is void.

        Args:
            records: everything spent; it grows by what the fit spends.
        """
        before, stated = len(records), self._domain_stated
        self._domain_stated = False
        try:
            yield
        finally:
            if len(records) == before:
                self.void(f"{what} spent nothing on privacy")
            elif not self._domain_stated:
                self.void(f"{what} did not state where bounds and categories come from")
            self._domain_stated |= stated

    def against(self, records: Sequence[MechanismRecord]) -> list[str]:
        """Why nothing can be claimed of what was spent; empty when something can."""
        reasons = list(self._voids)
        if not records:
            return [*reasons, "the generator spent nothing on privacy"]
        if self._rows_void:
            reasons.append(self._rows_void)
        if not self._rows_stated:
            reasons.append("nobody stated how many rows are drawn")
        if not self._domain_stated:
            reasons.append("the generator did not state where bounds and categories come from")
        return reasons

    def assumptions(self, records: Sequence[MechanismRecord]) -> tuple[str, ...]:
        """What the spendings themselves assume, then what was recorded."""
        kinds = {record.mechanism for record in records}
        sampled = (_POISSON,) if Mechanism.POISSON_SUBSAMPLED_GAUSSIAN in kinds else ()
        each = (
            "each row is protected on its own; entities with several rows are not"
            if self._unit is Unit.ROW
            else f"the fit saw at most {self._rows:,} {'row' if self._rows == 1 else 'rows'} of any entity"
        )
        shared = (_FILTER,) if Mechanism.CONCENTRATED in kinds else ()
        fixed = (_FIXED,) if len(records) > 1 else ()
        return (each, *sampled, *shared, *fixed, _FLOATS, _ELSEWHERE, *self._assumptions)
