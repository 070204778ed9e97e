"""What a suite of one's own does not hold back and the suite that ships for most tables would."""

from __future__ import annotations

from functools import cache

from synth_audit.judging.limit import Limit
from synth_audit.judging.suite import Gate, Suite, load_suite
from synth_audit.resources import resource_folder

USUAL = "release"


def weaker_gates(suite: Suite) -> tuple[str, ...]:
    """Names of the blocking gates on measurements in the usual suite that no blocking gate here holds as
    strictly; none of a suite that ships."""
    if suite.sha256 in {shipped.sha256 for shipped in _shipped().values()}:
        return ()
    return tuple(g.id for g in usual_gates() if not any(_as_strict(own, g) for own in _blocking(suite)))


def usual_gates() -> tuple[Gate, ...]:
    """The blocking gates on measurements of the usual suite."""
    return _blocking(_shipped()[USUAL])


def _blocking(suite: Suite) -> tuple[Gate, ...]:
    return tuple(g for g in suite.measured if g.blocking)


def _as_strict(own: Gate, usual: Gate) -> bool:
    ours, theirs = own.limit, usual.limit
    assert ours is not None
    assert theirs is not None
    same = ours.applies_to(theirs.measurement) and ours.compared in (theirs.compared, "both")
    return same and _within(ours, theirs) and (usual.optional or not own.optional)


def _within(ours: Limit, theirs: Limit) -> bool:
    above = theirs.maximum is None or (ours.maximum is not None and ours.maximum <= theirs.maximum)
    below = theirs.minimum is None or (ours.minimum is not None and ours.minimum >= theirs.minimum)
    return above and below


@cache
def _shipped() -> dict[str, Suite]:
    folder = resource_folder("expectations")
    return {path.stem: load_suite(path.name, folder) for path in sorted(folder.glob("*.json"))}
