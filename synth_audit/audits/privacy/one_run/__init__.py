"""One run: a proven lower bound on the privacy cost, from the random split and no further fit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools, Floats
from synth_audit.audits._shared import at_least, descriptive
from synth_audit.audits.privacy.one_run import claims as bounds
from synth_audit.audits.privacy.one_run.people import ClaimablePeople, PeopleScores, gather, score
from synth_audit.dp.composition import gaussian_epsilon
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import as_int_seed, public_key
from synth_audit.findings import measurement
from synth_audit.neighbours.search import most_queries
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.proportions import proportion_interval

LARGEST_MU = 8.0
"""No larger μ is reported: with it, one guess in 30,000 would be wrong."""

_HALVINGS = 20
"""Of the interval of μ: to 1e-5."""

USUAL_DELTA = 1e-5
"""δ of the conversion without a guarantee that has one; usual for tables of up to 100,000 people."""

FEWEST_GUESSES = 10
"""With fewer guesses almost no μ is refuted, and each number of guesses has its share of α."""

EMPIRICAL_EPSILON = measurement.Quantity(
    "empirical_epsilon",
    "Proven lower bound on ε",
    unit="epsilon",
    range=(0.0, bounds.LARGEST),
    proportional=False,  # a logarithm
    help="No smaller epsilon allows claims of who was in train to be right so often. 0 proves nothing.",
)

CEILING = descriptive(
    "epsilon_ceiling",
    "Largest epsilon that could be shown here",
    unit="epsilon",
    range=(0.0, bounds.LARGEST),
    proportional=False,
    help="What claims about everybody whose side was secret would prove if all were right.",
)

BEYOND_CHANCE = descriptive(
    "beyond_chance",
    "Right claims beyond those of guessing",
    range=(-1.0, 1.0),
    proportional=False,  # claims are of those that look most like it
    help="Share of the claims that were right, less the share that guessing by the split's odds has right.",
)

EPSILON_REFUTED = measurement.Quantity(
    "epsilon_refuted",
    "Epsilon that one run proves beyond the one guaranteed",
    unit="epsilon",
    range=(-math.inf, math.inf),
    proportional=False,  # a logarithm
    help="How far the epsilon that explains the claims lies above the guarantee; at most 0: it holds.",
)

GAUSSIAN_MU = descriptive(
    "gaussian_mu",
    "Lower bound on mu under the Gaussian model",
    unit="score",
    range=(0.0, LARGEST_MU),
    proportional=False,
    help="If the generator protects people as Gaussian noise does, mu is at least this. 0 proves nothing.",
)

GAUSSIAN_MU_CONVERTED = descriptive(
    "gaussian_mu_converted",
    "The same, converted at a delta under the Gaussian model",
    unit="score",
    range=(0.0, math.inf),
    proportional=False,
    help="What Gaussian noise of this mu costs, at the delta in the notes. It bounds no other generator.",
)

QUANTITIES = (EMPIRICAL_EPSILON, CEILING, BEYOND_CHANCE, EPSILON_REFUTED, GAUSSIAN_MU, GAUSSIAN_MU_CONVERTED)

FEWEST_JUDGED = 10
"""With fewer claims about people whose side was secret the number is no evidence."""

_METHOD = "binomial tail of right claims"

FEWEST_PEOPLE, FEWEST_PLANTED = 200, 60
"""Of fewer people no claims could be right often enough to prove much, nor, among those of a planted leak, to
tell a full copy from none."""

FEWEST_CLAIMS = 30
"""No rule is chosen that claims fewer on the half where sides are known."""

_SPENT_ON_DELTA = 0.2
"""Share of α that δ may take; the pool of people is cut down until it does."""


def mu_at_least(sides: bounds.Coins | bounds.FixedSizes, guesses: bounds.Claims, alpha: float) -> float:
    """Return the largest μ refuted at level α: a lower bound on μ under the Gaussian model.

    If the mechanism is μ-GDP, the result exceeds μ with probability at most α. It is no bound on ε, because
    a mechanism need not be Gaussian.

    Args:
        sides: how sides were decided. ``Coins.pool`` is m, the people a guess could have been about.
            ``delta`` is not used.
        guesses: c guesses, fixed before the release was seen, and how many were right. They are of one kind,
            unless coins are fair.
        alpha: in (0, 1).

    Returns:
        In [0, 8]; 0 if no μ is refuted.

    Source: Mahloujifar, Melis & Chaudhuri 2024.

    Example: 10,000 people, fair coins, 654 right guesses of 1,000. Gaussian noise of this μ has ε = 0.7 at
    δ = 1e-5.

        >>> sides, guesses = bounds.Coins(0.5, pool=10_000), bounds.Claims(500, 500, 654)
        >>> round(mu_at_least(sides, guesses, 0.05), 3)
        0.195
    """
    right, wrong = _weights(sides, guesses)
    if not guesses.right or not _refuted(0.0, right, wrong, alpha):
        return 0.0
    low, high = 0.0, LARGEST_MU
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _refuted(middle, right, wrong, alpha) else (low, middle)
    return low


def _weights(sides: bounds.Coins | bounds.FixedSizes, guesses: bounds.Claims) -> tuple[Floats, Floats]:
    """a_w and b_w for w = 0, …, right; shape (right + 1,) each."""
    w, c = np.arange(guesses.right + 1.0), guesses.made
    if isinstance(sides, bounds.FixedSizes):
        k, rest = (sides.others, sides.members) if guesses.others else (sides.members, sides.others)
        pairs = max(k * rest, 1)
        return w * np.maximum(rest - c + w, 0) / pairs, (c - w) * (k - w) / pairs
    if guesses.members and guesses.others:
        return w / sides.pool, (c - w) / sides.pool
    p = 1 - sides.p if guesses.others else sides.p
    return w / (sides.pool * p), (c - w) / (sides.pool * (1 - p))


def _refuted(mu: float, right: Floats, wrong: Floats, alpha: float) -> bool:
    """Whether P(W ≥ right) = α needs a total probability above 1 under μ-GDP."""
    from scipy.special import ndtri  # lazy import: keeps CLI start fast

    total, inside, outside = alpha, alpha * right[-1], alpha * wrong[-1]
    for w in range(len(right) - 2, -1, -1):
        if inside >= 1:
            return True
        demanded = math.erfc((mu - ndtri(inside)) / math.sqrt(2)) / 2  # the inverse of F
        if demanded <= outside:  # nothing is added here, and so nothing below
            return False
        added = (demanded - outside) / wrong[w]
        total, inside, outside = total + added, inside + added * right[w], demanded
        if total > 1:
            return True
    return False


@dataclass(frozen=True)
class GaussianBound:
    """Whether a μ-GDP mechanism could have let so many guesses be right.

    Attributes:
        mu: lower bound on μ; 0 if none was refuted. delta: at which it is converted.
        best: the same if every guess had been right.
        guesses: how many were made for ``mu``. pool: people whom guesses could be about.
        tried: numbers and kinds of guesses, among which α was divided.
    """

    mu: float
    best: float
    guesses: int
    pool: int
    tried: int
    delta: float

    @property
    def converted(self) -> float:
        """ε of Gaussian noise with this μ at this δ. It is no bound on the ε of the release."""
        return gaussian_epsilon(self.mu, self.delta) if self.mu > 0 else 0.0


def gaussian_bound(
    scores: Floats, people: ClaimablePeople, p: float | None, alpha: float, delta: float
) -> GaussianBound:
    """Guesses about the half whose sides are secret, and the largest μ that they refute.

    The numbers of guesses are ½, ¼, … of these people, so none depends on the release. For each number, and
    for guesses of either side, the score with the most right guesses on the known half is used. α is divided
    equally, and the largest μ is taken.

    Args:
        scores: shape (s, n), higher for likelier training people. Ties are broken by the order of people,
            which is random.
        p: probability of train; None where the sizes of the sides were fixed.
        delta: of a guarantee; 0 without one.
    """
    secret = ~people.known
    n, inside = int(secret.sum()), int(people.members[secret].sum())
    sides = bounds.Coins(p, pool=n) if p is not None else bounds.FixedSizes(inside, n - inside)
    sizes = [n >> k for k in range(1, n.bit_length()) if n >> k >= FEWEST_GUESSES]
    right = _right(scores, people.members, people.known, sizes)
    right_others = _right(-scores, ~people.members, people.known, sizes)
    made = [bounds.Claims(g, 0, r) for g, r in zip(sizes, right, strict=True)]
    made += [bounds.Claims(0, g, r) for g, r in zip(sizes, right_others, strict=True)]
    perfect = [bounds.Claims(g, 0, min(g, inside)) for g in sizes]
    perfect += [bounds.Claims(0, g, min(g, n - inside)) for g in sizes]
    each = alpha / max(len(made), 1)
    mu, guesses = max(((mu_at_least(sides, g, each), g.made) for g in made), default=(0.0, 0))
    return GaussianBound(
        mu=mu,
        best=max((mu_at_least(sides, g, each) for g in perfect), default=0.0),
        guesses=guesses,
        pool=n,
        tried=len(made),
        delta=delta or USUAL_DELTA,
    )


def _right(scores: Floats, wanted: Bools, known: Bools, sizes: list[int]) -> list[int]:
    """Right guesses among the highest secret scores, for each number of guesses."""
    on_known, on_secret = (
        np.cumsum(wanted[half][np.argsort(-scores[:, half], axis=1, kind="stable")], axis=1)
        for half in (known, ~known)
    )
    return [int(on_secret[np.argmax(on_known[:, g - 1]), g - 1]) for g in sizes]


@dataclass(frozen=True)
class Judgement:
    """Claims about the half whose sides were secret, and how they were come by.

    Attributes:
        p: probability of train. delta: used in the bound. pool, members: people of whom a claim could
            have been made, and those of them in train.
        claimed: the ε that is guaranteed; None where none is that could be compared.
    """

    chances: bounds.Chances
    claims: bounds.Claims
    rule: bounds.ClaimRule
    alpha: float
    p: float
    delta: float
    pool: int
    members: int
    claimed: float | None

    @property
    def fixed(self) -> bool:
        """Whether the sizes of train and control were fixed."""
        return isinstance(self.chances, bounds.FixedSizes)


def measured(judged: Judgement, level: float) -> tuple[measurement.Measurement, ...]:
    """All quantities; a guarantee is only compared where there is one."""
    claims = judged.claims
    epsilon = bounds.epsilon_at_least(judged.chances, claims, judged.alpha)
    # What everybody claimed rightly would have refuted; of a split of fixed sizes, all of train.
    others = 0 if judged.fixed else judged.pool - judged.members
    everybody = bounds.Claims(judged.members, others, judged.members + others)
    ceiling = bounds.epsilon_at_least(judged.chances, everybody, judged.alpha)
    middle, high = (max(epsilon, bounds.epsilon_usual(judged.chances, claims, x)) for x in (0.5, level))
    counts = measurement.SampleCounts(
        n_requested=judged.pool, n_achieved=claims.made, n_minimum=FEWEST_JUDGED
    )
    interval = measurement.Interval(epsilon, high, level, _METHOD)
    reference = measurement.Reference(0.0, "a release that nobody's presence has changed")
    found = [EMPIRICAL_EPSILON.at(epsilon, interval=interval, reference=reference, **counts)]
    found.append(CEILING.at(ceiling, **counts))
    if claims.made:
        share = proportion_interval(claims.right, claims.made, level)
        chance = (claims.members * judged.p + claims.others * (1 - judged.p)) / claims.made
        interval = replace(share, low=share.low - chance, high=share.high - chance)
        reference = measurement.Reference(0.0, "guessing")
        value = claims.right / claims.made - chance
        found.append(BEYOND_CHANCE.at(value, interval=interval, reference=reference, **counts))
    if (claimed := judged.claimed) is not None:
        interval = measurement.Interval(epsilon - claimed, high - claimed, level, _METHOD)
        reference = measurement.Reference(0.0, "a guarantee that the claims do not contradict")
        found.append(EPSILON_REFUTED.at(middle - claimed, interval=interval, reference=reference, **counts))
    return tuple(found)


def claim_notes(judged: Judgement, names: Sequence[str]) -> tuple[str, ...]:
    """How the claims were made, in words; no number of people, since that might be a small one."""
    rule, claims = judged.rule, judged.claims
    sides = (
        (rule.members, claims.members, "most were claimed to be in train"),
        (rule.others, claims.others, "least were claimed not to be"),
    )
    made = [
        f"people whom the score {names[threshold.score]!r} suspects {what}"
        for threshold, n, what in sides
        if threshold is not None and n
    ]
    of_these = bounds.epsilon_at_least(judged.chances, claims.perfect, judged.alpha)
    how = "sizes were fixed, train had a share of" if judged.fixed else "every entity went to train with"
    return (
        f"{'; '.join(made) or 'nobody was claimed to be in train'}; score and threshold were chosen on "
        "people who are not counted",
        f"{how} {judged.p:.3g}; α = {judged.alpha:.3g}, δ = {judged.delta:g}; had all of these claims been "
        f"right, they would have shown an epsilon of {of_these:.2f}",
    )


def gaussian_told(found: GaussianBound, level: float, *, fixed: bool) -> str:
    """What the bound on μ assumes, in words."""
    change = "replacing" if fixed else "adding or removing"
    return (
        f"mu is that of Gaussian differential privacy for {change} one person, with {100 * level:.4g} % "
        f"confidence over {found.tried} numbers and kinds of guesses, converted at δ = {found.delta:g}. It "
        "is no bound on epsilon: the generator need not be Gaussian. No mu above "
        f"{found.best:.2f} could be shown here"
    )


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """A lower bound on ε from one release, for any generator, which is not run again.

    The split tossed an independent secret coin for every entity. Claims of who is in train, from the release
    and from real rows whose side is not told, are right no more often than (ε, δ)-DP allows: see
    :mod:`.one_run.claims`. Which score is claimed by, and from which value on, is chosen on
    one half of the people, by a coin of their own; ``empirical_epsilon`` is the largest ε that the claims
    about the other half refute at level 1 − α, its interval reaching to the ε at which so many would be right
    with probability 1 − α.

    Under a guarantee its δ is used, and only units that it is made to are claimed: entities, or those of one
    row. Where δ is above 0 the people judged are the most isolated ones, so few that δ takes no more than a
    fifth of α. Where the sizes of train and control were fixed, or the guarantee is one of replacing, the
    bound is that for divisions of fixed sizes.

    The scores are its own, because the bound grows with the number of people, and views of ``recognition``
    score 2,000 of a side at most. On the same few people these prove about as much
    (``docs/research/methods-measured.md``).

    ``gaussian_mu`` is a second lower bound from the same scores: the largest μ for which no μ-GDP mechanism
    would let so many guesses be right (:func:`mu_at_least`). It has its own α and
    is never called ε, because a generator need not behave like Gaussian noise.

    Fields:
        max_rows: people of at most so many rows are drawn at random, fewer where the release has above 80,000
            rows (:func:`~synth_audit.neighbours.search.most_queries`), and so many further real rows beside
            them are a reference. The release is searched whole.
        subsets: random subsets of two to five columns that are tried as what the adversary knows.

    Raises:
        NotApplicable: nothing says that chance alone divided train and control; or there are too few people
            of whom claims could be made.

    Source: Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024 (``gaussian_mu``).
    """

    max_rows: int = 50_000
    subsets: int = 20

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Proven privacy cost",
        question="How much does this release provably reveal about who was in the training set?",
        threat_model=(
            "An adversary holds the release and the records of training and control people, and names some "
            "of them as training people. A random split chose the training people, and the adversary does "
            "not know it. More correct names than guessing would give prove a leak."
        ),
        not_covered=(
            "A lower bound proves a cost and never its absence: 0 says that these claims proved nothing, and "
            "better ones might. It can only be as large as the number of claims allows."
        ),
        quantities=QUANTITIES,
        risk="membership",
        needs=(Need.CONTROL,),
        cost="minutes",
        source=(
            "Steinke, Nasr & Jagielski 2023; Wallenius 1963; van Breugel et al. 2023 (density ratio); "
            "Mahloujifar, Melis & Chaudhuri 2024 (mu)"
        ),
    )

    def __post_init__(self) -> None:
        at_least(self, max_rows=FEWEST_PEOPLE, subsets=0)

    def run(self, subject: Subject, context: RunContext) -> measurement.Findings:
        """Choose claims on one half of the people and count the right ones on the other."""
        guarantee, rng = subject.guarantee, context.rng
        if subject.random_split is None:
            raise NotApplicable(
                "it holds only where chance alone divided train and control, which the plan does not state. "
                "If it did, write `split: {made_elsewhere: random}`"
            )
        key = public_key(as_int_seed(rng), "one run")
        single = guarantee is not None and not guarantee.covers_entities
        most = most_queries(self.max_rows, subject.synthetic.n_rows)
        people = gather(subject, most, self.max_rows, key, single=single)
        fewest = FEWEST_PLANTED if subject.planted else FEWEST_PEOPLE
        if len(people) < fewest:
            raise NotApplicable(f"fewer than {fewest} people of whom claims could be made")
        scores = score(subject, people, self.subsets, rng)
        judged = _judge(subject, people, scores)
        p = None if judged.fixed else judged.p
        gaussian = gaussian_bound(scores.values, people, p, 1 - subject.level, judged.delta)
        counts = measurement.SampleCounts(
            n_requested=gaussian.pool, n_achieved=gaussian.guesses, n_minimum=FEWEST_GUESSES
        )
        of_mu = GAUSSIAN_MU.at(gaussian.mu, **counts), GAUSSIAN_MU_CONVERTED.at(gaussian.converted, **counts)
        assumed = gaussian_told(gaussian, subject.level, fixed=judged.fixed)
        notes = (*claim_notes(judged, scores.names), assumed)
        return measurement.Findings((*measured(judged, subject.level), *of_mu), notes=notes)


def _judge(subject: Subject, people: ClaimablePeople, scores: PeopleScores) -> Judgement:
    """Choose on the half whose sides are known, count on the other."""
    split, guarantee, alpha = subject.random_split, subject.guarantee, 1 - subject.level
    assert split is not None
    by_replacing = guarantee is not None and guarantee.neighbouring is Neighbouring.REPLACE
    fixed = split.train is None or by_replacing
    members = people.members[people.known]
    p = split.train or (float(members.sum()) + 0.5) / (len(members) + 1)  # within (0, 1) even if all are
    delta = guarantee.delta if guarantee else 0.0
    asked = np.ones(len(people), dtype=np.bool_)
    if guarantee and delta > 0:
        most = bounds.allowed_pool(p, guarantee.epsilon, delta, _SPENT_ON_DELTA * alpha)
        asked = bounds.beyond_most(scores.isolation, scores.isolation[~people.known], most)
    known, secret = people.known & asked, ~people.known & asked
    both, on_known = not fixed and delta == 0, (scores.values[:, known], people.members[known])
    rule = bounds.choose_rule(*on_known, p, alpha, FEWEST_CLAIMS, both=both)
    claims = rule.counted(scores.values[:, secret], people.members[secret])
    n, inside = int(secret.sum()), int(people.members[secret].sum())
    return Judgement(
        chances=bounds.FixedSizes(inside, n - inside, delta) if fixed else bounds.Coins(p, delta, n),
        claims=claims if claims.made >= FEWEST_JUDGED else bounds.Claims(0, 0, 0),
        rule=rule,
        alpha=alpha,
        p=p,
        delta=delta,
        pool=n,
        members=inside,
        claimed=guarantee.epsilon if guarantee and (by_replacing or not fixed) else None,
    )
