"""What the attacks came to, each worst one chosen on one half of the people and measured on the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from synth_audit.audits._targets import FEWEST_GUESSES, rate
from synth_audit.audits.privacy._asked_people import AskedPeople
from synth_audit.audits.privacy.partial_knowledge.attacks import Attacks, Knowledge
from synth_audit.audits.privacy.partial_knowledge.pooled_answers import pooled_excess
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import (
    Direction,
    Estimate,
    Exposure,
    Findings,
    Measurement,
    Quantity,
    Reference,
    SampleCounts,
)
from synth_audit.core.subject import Subject
from synth_audit.kernels.attack_success import SuccessCount
from synth_audit.kernels.held_out import mean_of_halves
from synth_audit.kernels.proportion_interval import proportion_difference

EXCESS = Quantity(
    "excess_people",
    "People given away to one who knows a few columns",
    range=(-1.0, 1.0),
    proportional=False,  # a claim that is right by luck is no excess, and luck differs by column
    help="Share of people in the training data of whom a further column is claimed rightly, beyond what "
    "claims about strangers come to; 0 is none.",
)
CLAIMED = Quantity(
    "claimed",
    "Training people of whom a claim is made",
    direction=Direction.NEUTRAL,
    help="Those as near to the release as the nearest strangers, on whom all nearest rows agree.",
)
TRAIN_RATE = Quantity(
    "train_rate",
    "Training people claimed rightly",
    direction=Direction.NEUTRAL,
    help="Share of training people of whom a claim is made that is right, in the worst set of columns.",
)
CONTROL_RATE = Quantity(
    "control_rate",
    "Control people claimed rightly",
    direction=Direction.NEUTRAL,
    help="The same for people the generator never saw: what the population gives away, not the release.",
)

QUANTITIES = (EXCESS, CLAIMED, TRAIN_RATE, CONTROL_RATE)

_SIZES = {2: "pairs", 3: "triples", 4: "quadruples", 5: "quintuples"}


def measured(attacks: Attacks, subject: Subject, requested: int) -> Findings:
    """Findings of the worst sets."""
    level, people = subject.level, attacks.people
    n = min(len(people.train), len(people.control))
    counts = SampleCounts(n_requested=max(requested, n), n_achieved=n, n_minimum=FEWEST_GUESSES)
    if not attacks.pairs:
        raise NotApplicable("a known and a further column are needed")
    notes = [_tried(attacks)]
    excess, worst = _worst_claims(attacks, level)
    pooled = pooled_excess(attacks, attacks.sets.blocks, level)
    if pooled and _high(pooled) > _high(excess):
        excess = pooled
        notes.append("as many are given away on average over the columns of a block that tell little each")
    null = Reference(0.0, "claims about people the generator never saw are right as often")
    found = [EXCESS.at(excess.value, interval=excess.interval, reference=null, **counts)]
    if attacks.sets.together:
        blind, _ = _worst_claims(attacks, level, told=False)
        notes.append(
            f"to one who does not know which columns were drawn together {blind.value:.1%} are given away"
        )
    named = [f"{_known(k, attacks)} claim {attacks.secret(secret)}" for k, secret in worst]
    notes.append("most given away where " + " and ".join(dict.fromkeys(named)))
    exposure = _exposed(attacks, worst)
    found += _rates(exposure, people, requested, level)
    notes += _success(exposure, subject)
    return Findings(tuple(found), notes=tuple(notes), exposures=(exposure,))


def _high(estimate: Estimate) -> float:
    return math.inf if estimate.interval is None else estimate.interval.high


def _worst_claims(
    attacks: Attacks, level: float, *, told: bool = True
) -> tuple[Estimate, list[tuple[Knowledge, int]]]:
    """The worst excess, and for each half by what and about which column it was measured."""
    halves, worst = [], []
    for half in (0, 1):
        pair = attacks.worst_pair(1 - half, told=told)
        halves.append(attacks.table.count(half, pair).excess(level))
        tried, secret = attacks.pairs[pair]
        worst.append((attacks.tried[tried], secret))
    return mean_of_halves(halves, level), worst


def _exposed(attacks: Attacks, worst: Sequence[tuple[Knowledge, int]]) -> Exposure:
    """Of whom the worst set claims the secret in the half where it was measured, and of whom rightly."""
    people = attacks.people
    tried, hit = (np.zeros(len(people.member), dtype=bool) for _ in range(2))
    for half, (knowledge, secret) in enumerate(worst):
        found = attacks.again(knowledge)
        column = int(np.searchsorted(found.secrets, secret))
        here = people.of(half)[found.who]
        tried[found.who[here & found.made[:, column]]] = True
        hit[found.who[here & found.right[:, column]]] = True
    n = len(people.train)
    columns = {
        i for knowledge, secret in worst for of in (*knowledge.known, secret) for i in attacks.plain(of)
    }
    return Exposure(
        measurement=EXCESS.id(),
        columns=tuple(dict.fromkeys(attacks.name(i) for i in sorted(columns))),
        train_tried=people.train[tried[:n]],
        train_hit=people.train[hit[:n]],
        control_tried=people.control[tried[n:]],
        control_hit=people.control[hit[n:]],
    )


def _rates(exposure: Exposure, people: AskedPeople, requested: int, level: float) -> Iterator[Measurement]:
    """How often claims are made, and how often rightly, of all people."""
    n, k = len(people.train), len(people.control)
    yield rate(CLAIMED, SuccessCount(len(exposure.train_tried), n), requested, level)
    yield rate(TRAIN_RATE, SuccessCount(len(exposure.train_hit), n), requested, level)
    yield rate(CONTROL_RATE, SuccessCount(len(exposure.control_hit), k), requested, level)


def _success(exposure: Exposure, subject: Subject) -> Iterator[str]:
    """How often claims are right, of those made, where there are enough to be shown."""
    train = SuccessCount(len(exposure.train_hit), len(exposure.train_tried))
    control = SuccessCount(len(exposure.control_hit), len(exposure.control_tried))
    sides, level = (train, control), subject.level
    if any(min(s.successes, s.guesses - s.successes) < subject.suppression for s in sides):
        return
    ends = [side.interval(level) for side in sides]
    apart = proportion_difference(train.successes, train.guesses, control.successes, control.guesses, level)
    of = [f"{s.share:.0%} ({i.low:.0%} to {i.high:.0%})" for s, i in zip(sides, ends, strict=True)]
    yield (
        f"of the claims made, {of[0]} are right about training people and {of[1]} about control people, "
        f"{apart.low:+.0%} to {apart.high:+.0%} apart"
    )


def _known(knowledge: Knowledge, attacks: Attacks) -> str:
    return ", ".join(dict.fromkeys(attacks.name(i) for i in knowledge.known))


def _tried(attacks: Attacks) -> str:
    """How many of the sets of columns that there are were tried."""
    shares = [f"{tried:,} of {there:,} {_SIZES[k]}" for k, (tried, there) in attacks.sets.shares.items()]
    if derived := attacks.sets.derived:
        shares.append(f"{len(derived)} sets with differences of columns")
    if together := attacks.sets.together:
        shares.append(f"{len(together)} sets of columns that the generator drew together")
    if weak := attacks.sets.weak:
        shares.append(
            f"{len(weak)} sets of {min(map(len, weak))} to {max(map(len, weak))} that tell little each"
        )
    return f"known columns tried: {', '.join(shares) or 'the only one'}"
