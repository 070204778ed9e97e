"""Is a release fit for purpose? Gates on usefulness answer that, apart from whether it is safe to release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Literal, get_args

from synth_audit.core.errors import GateError
from synth_audit.core.verdict import FITNESS, GateResult, Result
from synth_audit.store.evidence import Evidence

BLOCKS = "fitness_blocks"
"""The key under a suite's ``meta`` that says whether a release that is not fit stays in."""

When = Literal["", "always", "target", "no target"]
"""When a gate decides fitness: never, always, where the plan names a target, or where it names none."""

_TITLE = "The release is fit for purpose"
_REASON = "The suite lets nothing leave that does not serve its purpose."


def decides(when: When, *, target: bool) -> bool:
    """Whether a gate decides fitness, given that the plan names a target or none."""
    return when == "always" or when == ("target" if target else "no target")


def when_of(meta: Mapping[str, object], where: str, *, blocking: bool) -> When:
    """When a gate decides fitness, from its ``meta``.

    Raises:
        GateError: it is none of :data:`When`, or the gate blocks by itself.
    """
    when = meta.get(FITNESS, "")
    known = [x for x in get_args(When) if x == when]
    if not known:
        raise GateError(
            f"meta.{FITNESS} does not say when the gate decides fitness",
            where=where,
            expected="always, target (where the plan names one) or no target",
            fix="correct the suite; those that ship show how it is done",
        )
    if when and blocking:
        raise GateError(
            "a gate that decides fitness blocks by itself",
            where=where,
            expected="severity warning or info",
            fix=f"say in the suite's meta whether fitness blocks: `{BLOCKS}: true`",
        )
    found: When = known[0]
    return found


def blocks(meta: object, where: str, *, judged: bool) -> bool:
    """Whether a release that is not fit stays in, from a suite's ``meta``.

    Args:
        judged: a gate of the suite decides fitness.

    Raises:
        GateError: it is neither true nor false, it is misspelt, or no gate decides fitness.
    """
    stated = meta if isinstance(meta, Mapping) else {}
    close = next((k for k in stated if k != BLOCKS and get_close_matches(str(k), [BLOCKS], 1, 0.75)), None)
    asked = stated.get(BLOCKS, False)
    if close is not None or not isinstance(asked, bool) or (asked and not judged):
        raise GateError(
            f"meta.{BLOCKS} cannot be followed",
            where=where,
            expected=f"`{BLOCKS}: true` or `false`, and with true a gate whose meta has `{FITNESS}`",
            fix="correct the suite; those that ship show how it is done",
        )
    return asked


def fitness_result(results: Sequence[GateResult]) -> GateResult:
    """The blocking gate of a suite whose fitness blocks: as bad as the worst of the gates that decide it."""
    asked = [g for g in results if g.fitness]
    left = [g for g in asked if g.result is not Result.PASS]
    failed = any(g.result is Result.FAIL for g in left)
    words = "; ".join(f"“{g.title}”: {g.result}" for g in left) or f"{len(asked)} gates on usefulness passed"
    return GateResult(
        gate=FITNESS,
        title=_TITLE,
        result=Result.FAIL if failed else Result.INSUFFICIENT if left or not asked else Result.PASS,
        blocking=True,
        reason=_REASON,
        explanation=f"{words}." if asked else "No audit that decides fitness was part of this run.",
        advice="See what these gates found, and choose a generator that keeps more." if left else "",
        fitness=True,
    )


def names_target(evidence: Evidence) -> bool:
    """Whether the plan of this evidence named a target."""
    return any("target" in c.roles for c in evidence.columns)
