"""The record of a mend: what was tried on a refused release, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, with_config

from synth_audit.core.verdict import Result
from synth_audit.store.evidence import Evidence
from synth_audit.store.workspace import Workspace
from synth_audit.store.workspace_files import write_text

SCHEMA_VERSION = "1.0"


@dataclass(frozen=True)
class MendTry:
    """One candidate that was judged.

    Attributes:
        coarsen: as it would stand in the plan. words: the same for a reader, a column each.
        refused_by: blocking gates that did not pass, of those whose audits were run.
        total_variation: of the columns on average, from real rows as they are; None if not measured.
    """

    coarsen: Mapping[str, Any]
    words: tuple[str, ...]
    verdict: str
    refused_by: tuple[str, ...]
    total_variation: float | None


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class MendRecord:
    """What was tried on a refused release.

    Attributes:
        plan_sha256: of the plan that was refused. train: identity of its training rows.
        refused_by: the blocking gates that did not pass. hopeless: those that no coarsening moves; with any,
            nothing was tried.
        tries_counted: the refused candidate, all that earlier mends of these rows may have judged, and all
            that this one may have.
        total_variation: of the refused release.
    """

    table: str
    plan_sha256: str
    train: str
    refused_by: tuple[str, ...]
    hopeless: tuple[str, ...]
    total_variation: float | None
    tries: tuple[MendTry, ...] = ()
    tries_counted: int = 1
    schema_version: str = SCHEMA_VERSION

    @classmethod
    def of(cls, evidence: Evidence, hopeless: tuple[str, ...], total_variation: float | None) -> MendRecord:
        """The record of a refused release, before anything is tried."""
        refused = [g.gate for g in evidence.gates.results if g.blocking and g.result is not Result.PASS]
        return cls(
            table=evidence.table,
            plan_sha256=evidence.plan_sha256,
            train=evidence.tables["train"].identity,
            refused_by=tuple(refused),
            hopeless=hopeless,
            total_variation=total_variation,
        )

    @property
    def mended(self) -> MendTry | None:
        """The try that passed."""
        return next((t for t in self.tries if t.verdict == Result.PASS), None)

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Gates that refused the release and every try."""
        return tuple(g for g in self.refused_by if all(g in t.refused_by for t in self.tries))

    @property
    def reason(self) -> str:
        """What came of it, in a sentence or two."""
        if self.hopeless:
            return (
                f"Nothing was tried: {', '.join(self.hopeless)} refused the release too, and no coarsening "
                "mends a generator that remembers people, or brings evidence where rows are few."
            )
        if self.mended is not None:
            return f"Coarser values of {len(self.mended.words)} columns would pass every gate."
        if not self.tries:
            return "Nothing was tried: no column is named that could be made coarser."
        never = f"{', '.join(self.unmoved)} never moved" if self.unmoved else "other gates refused instead"
        return (
            f"None of {len(self.tries)} tries passed: {never}. No coarsening mends a generator that "
            "remembers people: use one with less capacity."
        )

    def to_json(self) -> str:
        """The record as JSON text."""
        return _adapter().dump_json(self, indent=2).decode() + "\n"


def write_mend(record: MendRecord, workspace: Workspace) -> None:
    """Write the record for readers; what later mends count on is in the table's ledger."""
    write_text(workspace.mend, record.to_json())


@cache
def _adapter() -> TypeAdapter[MendRecord]:
    return TypeAdapter(MendRecord)
