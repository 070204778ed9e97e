"""Whoever holds evidence and release may not work out how few real rows hold a value.

The attacker knows every row of the release and every published number, takes each cut of a column and solves
for the real rows beyond it: ``n · (share of the release ± number)``. A formula that is right whatever the
count is a leak; one that is right by chance is not.
"""

from dataclasses import replace

import numpy as np
import pytest

from synth_audit.audits.fidelity._shared_cells import SortedPair, tellable
from synth_audit.audits.fidelity.associations import Associations
from synth_audit.audits.fidelity.coverage import Coverage
from synth_audit.audits.fidelity.marginals import Marginals
from synth_audit.examination.examine import rounded_for_publication
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.stats.distributions import SortedNumbers

N, COUNTS = 240, (3, 5, 7)


def tables(few, kind):
    """Train with ``few`` rows beyond all others, and a release where many are."""
    rng = np.random.default_rng(few)

    def table(n, beyond):
        x = np.concatenate([rng.integers(0, 20, n - beyond), np.full(beyond, 90)]).astype(float)
        label = np.where(x == 90, "rare", np.where(x < 10, "a", "b"))
        numbers = {"whole": x, "turned": -x, "gaps": np.where(x == 90, np.nan, x)}
        return {"y": rng.normal(size=n), **({"label": label} if kind == "labels" else {"x": numbers[kind]})}

    return table(N, few), table(80, max(few // 3, 1)), table(N, 96)


def published(audit, subject):
    """Every number of the evidence by name."""
    findings = audit.run(subject, context())
    outcome = AuditOutcome("a", "fidelity", Status.MEASURED, measurements=findings.measurements)
    for m in rounded_for_publication(outcome).measurements:
        ends = (m.interval.low, m.interval.high) if m.interval else ()
        reference = (m.reference.value,) if m.reference else ()
        yield from ((f"{m.id} {i}", x) for i, x in enumerate((m.value, *ends, *reference)))


def context():
    from synth_audit.execution.context import RunContext

    return RunContext(seed=0, draws=np.random.default_rng(0))


def shares_beyond(release, kind):
    """What the attacker reads off the release: its shares at every cut, in every column."""
    if kind == "labels":
        return {("label", v): float(np.mean(release["label"] == v)) for v in np.unique(release["label"])}
    x = release["x"]
    if np.isnan(x).any():
        return {("missing", ""): float(np.isnan(x).mean())}
    sides = {"up": lambda v: x >= v, "down": lambda v: x <= v}
    return {(side, v): float(beyond(v).mean()) for v in np.unique(x) for side, beyond in sides.items()}


def formulas_that_are_right(audit, few, kind, subject_of):
    train, control, release = tables(few, kind)
    subject = subject_of(train, control, release)
    return {
        (name, place, sign)
        for name, number in published(audit, subject)
        for place, share in shares_beyond(release, kind).items()
        for sign in (-1, 1)
        if np.isfinite(number) and abs(N * (share + sign * number) - few) < 0.1
    }


@pytest.mark.parametrize("kind", ["whole", "turned", "labels", "gaps"])
@pytest.mark.parametrize(
    "audit", [Marginals, *(pytest.param(a, marks=pytest.mark.slow) for a in (Associations, Coverage))]
)
def test_no_published_number_is_solved_for_a_small_count(audit, kind, subject_of):
    found = [formulas_that_are_right(audit(), few, kind, subject_of) for few in COUNTS]
    assert not set.intersection(*found)


def test_the_attack_works_on_what_is_not_protected(subject_of):
    """With a suppression limit of 1 the largest distance gives every count away."""

    def unprotected(*parts):
        return replace(subject_of(*parts), suppression=1)

    found = [formulas_that_are_right(Marginals(), few, "whole", unprotected) for few in COUNTS]
    assert any(name.startswith("ks") for name, _, _ in set.intersection(*found))


def test_a_cut_beside_few_is_left_out_of_the_distance():
    train, release = np.repeat([1.0, 9.0], [97, 3]), np.repeat([1.0, 9.0], [50, 50])
    pair = SortedPair.of(SortedNumbers.of(train), SortedNumbers.of(release))
    assert pair.kolmogorov_smirnov() == pytest.approx(0.47)
    assert pair.kolmogorov_smirnov(10) == 0
    assert tellable(np.array([0, 3, 10, 90, 97, 100]), 10).tolist() == [True, False, True, True, False, True]
