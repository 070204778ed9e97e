"""Membership inference as a game: does a release reveal whether one person was in the training set?"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.audits._shared import at_least, different, merit, share, some_of
from synth_audit.audits.privacy.membership_game import shadow_game
from synth_audit.audits.privacy.membership_game.shadow_game import FeatureSet
from synth_audit.dp.guarantee import AttackerLimit, PrivacyGuarantee, most_advantage, most_found
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import as_int_seed, child_rng
from synth_audit.findings.measurement import (
    Direction,
    Exposure,
    Findings,
    Interval,
    IntervalEstimate,
    Measurement,
    MeasurementId,
    Quantity,
    Reference,
    SampleCounts,
    Series,
)
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.plugins.fitting import FitRecipe
from synth_audit.stats import roc
from synth_audit.stats.attack_success import corrected_level, worst_estimate
from synth_audit.stats.proportions import Proportion, proportion_interval
from synth_audit.stats.resampling import box_lines, critical_value, mean_interval
from synth_audit.stats.roc import auroc

SURE = 0.5
"""The attacker claims above this probability that the person was in the training set."""

ONE_PERCENT, ONE_PER_MILLE = 0.01, 0.001
"""False positive rates at which true positive rates are reported, low ones as in Carlini et al. 2022."""

FEWEST_GAMES = 10
"""A game is one iteration about one target. With fewer of a kind, single models decide the number."""

_LEAST_GAIN = 1e-300
"""A gain of 0 is read as this, so that its logarithm is finite."""

PRIVACY_GAIN = merit(
    "privacy_gain",
    "Privacy gain against membership inference",
    range=(0.0, 2.0),
    proportional=False,  # it rests on a few people, most of them chosen for standing alone
    help="1: the attacker does no better than by guessing; 0: it always knows, as with the real table.",
)

MEDIAN_GAIN = Quantity(
    "median_gain",
    "Median privacy gain over iterations and targets",
    unit="score",
    direction=Direction.NEUTRAL,  # half of the targets may be found out and it stays where it is
    range=(0.0, 2.0),
    help="As TVineSynth reports it. Gates judge the mean.",
)

WORST_TARGET = merit(
    "worst_target_gain",
    "Privacy gain of the target that is found most often",
    range=(0.0, 2.0),
    proportional=False,  # the least of many noisy numbers
    help="Least gain over single targets. Chance alone brings it below 1. Near 0 one target is always found.",
)

AUC = Quantity(
    "auc",
    "Area under the attacker's curve",
    unit="probability",
    proportional=False,  # see above
    help="Chance that a set learnt with the target looks more like it than one without. 0.5: guessing.",
)

TPR_1 = Quantity(
    "tpr_at_fpr_1pct",
    "Targets found at 1 % false alarms",
    proportional=False,  # see above
    help="Share of sets with the target that the attacker names while it names 1 % of those without.",
)

TPR_01 = Quantity(
    "tpr_at_fpr_01pct",
    "Targets found at 0.1 % false alarms",
    proportional=False,  # see above
    help="Share of sets with the target that the attacker names while it names 0.1 % of those without.",
)

EPSILON_REFUTED = Quantity(
    "epsilon_refuted",
    "Epsilon that the game proves beyond the one guaranteed",
    unit="epsilon",
    range=(-math.inf, math.inf),
    proportional=False,  # a logarithm
    help="How far the epsilon that explains the attacker's success lies above the guarantee; 0: it holds.",
)

_POOLED = (PRIVACY_GAIN, AUC, TPR_1, TPR_01)

QUANTITIES = (PRIVACY_GAIN, MEDIAN_GAIN, WORST_TARGET, AUC, TPR_1, TPR_01, EPSILON_REFUTED)

_REFERENCES = {
    PRIVACY_GAIN: Reference(1.0, "a generator that the target leaves no trace in"),
    WORST_TARGET: Reference(1.0, "a generator that no target leaves a trace in"),
    AUC: Reference(0.5, "guessing"),
    TPR_1: Reference(ONE_PERCENT, "naming sets with the target no more often than others"),
    TPR_01: Reference(ONE_PER_MILLE, "naming sets with the target no more often than others"),
}

_RATES = {TPR_1: ONE_PERCENT, TPR_01: ONE_PER_MILLE}

KINDS = ("outlying", "random", "vulnerable", "achilles")
"""Kinds of targets, which are fields of the audit too: the number of targets of each kind."""


@dataclass(frozen=True, eq=False)
class Played:
    """Scores of all games about targets of one kind with one feature set, shape (M, T, E) each.

    Attributes:
        requested: iterations times targets that were asked for.
        inside, outside: the attacker's probabilities for sets of models with and without the target in their
            training rows; M iterations, T targets, E sets.
    """

    kind: str
    features: FeatureSet
    requested: int
    inside: Floats
    outside: Floats

    @property
    def setting(self) -> str:
        """Kind of target and feature set."""
        return f"{self.kind}, {self.features}"

    @property
    def gains(self) -> Floats:
        """``PG = 1 − (TPR − FPR)`` of every iteration and target, shape (M, T)."""
        inside, outside = ((scores > SURE).mean(axis=2) for scores in (self.inside, self.outside))
        gains: Floats = 1.0 - (inside - outside)
        return gains


def gain(game: Played, level: float) -> IntervalEstimate:
    """Mean privacy gain, ``1 − (TPR − FPR)``.

    All sets of one model, and all targets of one iteration, share reference rows: iterations are the units.
    """
    hits, alarms = (Proportion.of((x > SURE).ravel()) for x in (game.inside, game.outside))
    apart = alarms.less(hits, level).interval
    counted = replace(apart, low=1 + apart.low, high=1 + apart.high)
    return _over_iterations(game.gains.mean(axis=1), counted, level)


def area(game: Played, level: float) -> IntervalEstimate:
    """Mean over games of ``AUC = P(with > without) + ½ P(tie)``, each among the sets of one classifier.

    Were all sets independent, its variance would be at most ``AUC (1 − AUC) / n`` (Birnbaum & Klose 1957),
    that of a share: the interval is at least as wide.
    """
    pairs = [
        [auroc(i, o) for i, o in zip(with_target, without, strict=True)]
        for with_target, without in zip(game.inside, game.outside, strict=True)
    ]
    per_iteration = np.mean(pairs, axis=1)
    counted = proportion_interval(float(per_iteration.mean()) * game.inside.size, game.inside.size, level)
    return _over_iterations(per_iteration, counted, level)


def true_positive_rate(game: Played, level: float, false_alarms: float) -> IntervalEstimate:
    """True-positive rate where one threshold over all games passes this share of sets without the target.

    A share's interval for as many independent sets as would be as certain, ``n = θ (1 − θ) / v · (z / t)²``,
    but no more than there are; v by the jackknife over the M iterations, ``v = s²(M θ − (M − 1) θ₍₋ₘ₎) / M``,
    which knows of the uncertain threshold too, and t for M − 1 degrees of freedom. Sources: Tukey 1958; Korn
    & Graubard 1998.
    """
    from scipy.special import stdtrit  # here, since a code location must not load it

    def found(kept: Bools) -> float:
        inside, outside = game.inside[kept].ravel(), game.outside[kept].ravel()
        return float(np.mean(roc.alarm(inside, outside, false_alarms)))

    m = len(game.inside)
    value = found(np.ones(m, dtype=bool))
    pseudo = np.array([m * value - (m - 1) * found(np.arange(m) != i) for i in range(m)])
    variance = float(np.var(pseudo, ddof=1)) / m
    certain = value * (1 - value) / variance if variance > 0 else math.inf
    slack = critical_value(level) / float(stdtrit(m - 1, 0.5 + level / 2))
    n = min(float(game.inside.size), certain * slack**2)
    if n <= 0:  # no set, or every set, in every iteration
        n = float(game.inside.size)
    ends = proportion_interval(value * n, n, level)
    return IntervalEstimate(value, replace(ends, method=f"{ends.method}, jackknife over iterations"))


def _over_iterations(values: Floats, counted: Interval, level: float) -> IntervalEstimate:
    """Their mean; at each end the wider: iterations that agree are no surer than independent sets."""
    own = mean_interval(values, level)
    method = f"{own.method}, at least {counted.method}"
    interval = Interval(min(own.low, counted.low), max(own.high, counted.high), level, method)
    return IntervalEstimate(float(values.mean()), interval)


_ESTIMATORS: Mapping[Quantity, Callable[[Played, float], IntervalEstimate]] = {
    PRIVACY_GAIN: gain,
    WORST_TARGET: gain,
    AUC: area,
    **{rate: partial(true_positive_rate, false_alarms=alarms) for rate, alarms in _RATES.items()},
}


def measured(games: Sequence[Played], level: float) -> list[Measurement]:
    """Every quantity for the worst of all, for the worst of each kind, and the gain for each feature set.

    A mean over targets hides one that is always found, and wrong guesses about one target cancel right ones
    about another. So the worst single target is reported too.
    """
    kinds = list(dict.fromkeys(g.kind for g in games))
    groups = [("", list(games)), *((kind, [g for g in games if g.kind == kind]) for kind in kinds)]
    groups += [(g.setting, [g]) for g in games]
    pooled = [
        _worst(quantity, setting, group, level)
        for setting, group in groups
        for quantity in (_POOLED if setting in ("", *kinds) else (PRIVACY_GAIN,))
        if all(_told(quantity, g) for g in group)
    ]
    medians = [median_gain(setting, group, level) for setting, group in groups]
    return [pooled[0], worst_target(games, level), *pooled[1:], *medians]


def median_gain(setting: str, games: Sequence[Played], level: float) -> Measurement:
    """The median over iterations, targets and, where several are given, feature sets.

    The interval is Student's of the medians of single iterations, and holds the median of all.
    """
    gains = np.concatenate([g.gains for g in games], axis=1)
    value, ends = float(np.median(gains)), mean_interval(np.median(gains, axis=1), level)
    interval = replace(ends, low=min(ends.low, value), high=max(ends.high, value))
    null, counts = _REFERENCES[PRIVACY_GAIN], _counts(games)
    return MEDIAN_GAIN.at(value, setting=setting, interval=interval, reference=null, **counts)


def _counts(games: Sequence[Played]) -> SampleCounts:
    """Games about all kinds of targets, those with several feature sets once."""
    kinds = {g.kind: g for g in games}
    return SampleCounts(
        n_requested=sum(g.requested for g in kinds.values()),
        n_achieved=sum(g.gains.size for g in kinds.values()),
        n_minimum=FEWEST_GAMES * len(kinds),
    )


def least_gain(epsilon: float, delta: float) -> float:
    """The privacy gain that (ε, δ) guarantees: ``2 (1 − δ) / (e^ε + 1)``.

    From ``Adv ≤ (e^ε − 1 + 2δ) / (e^ε + 1)`` (Kairouz et al. 2015, Humphries et al. 2023), never above the
    ``e^ε − 1`` of Yeom et al. 2018 when δ is 0, and not void for a large ε.
    """
    return 1 - most_advantage(epsilon, delta)


def refuted(headline: Measurement, epsilon: float, delta: float) -> Measurement:
    """The least ε whose guarantee allows the gain, less the ε that is claimed.

    ``PG ≥ 2 (1 − δ) / (e^ε + 1)`` solved for ε, which falls as the gain rises: the upper end of the gain's
    interval gives the lower end of this one.
    """

    def beyond(gain: float) -> float:
        if math.isnan(gain):  # of no gain it must not say that the claim holds
            return math.nan
        ratio = 2 * (1 - delta) / max(gain, _LEAST_GAIN) - 1
        return (math.log(ratio) if ratio > 1 else 0.0) - epsilon

    given = headline.interval
    assert given is not None
    return EPSILON_REFUTED.at(
        beyond(headline.value),
        interval=replace(given, low=beyond(given.high), high=beyond(given.low)),
        n_requested=headline.n_requested,
        n_achieved=headline.n_achieved,
        n_minimum=headline.n_minimum,
        reference=Reference(0.0, "a guarantee that the game does not contradict"),
    )


def worst_target(games: Sequence[Played], level: float) -> Measurement:
    """The least gain over single targets and feature sets, its interval corrected for all of them."""
    single = [
        replace(game, inside=game.inside[:, [i]], outside=game.outside[:, [i]])
        for game in games
        for i in range(game.inside.shape[1])
    ]
    worst = _worst(WORST_TARGET, "", single, level)
    targets = sum(g.inside.shape[1] for g in {g.kind: g for g in games}.values())
    return replace(worst, n_achieved=len(games[0].inside) * targets)


def _told(quantity: Quantity, game: Played) -> bool:
    """Whether there are enough sets for such a false positive rate."""
    return quantity not in _RATES or _RATES[quantity] * (game.inside.size + 1) >= 1 - 1e-9


def _worst(quantity: Quantity, setting: str, games: Sequence[Played], level: float) -> Measurement:
    """The worst of several games; both ends of its interval are the worst of intervals that hold for all."""
    at = [partial(_ESTIMATORS[quantity], game) for game in games]
    safer = quantity.direction is Direction.HIGHER
    worst = at[0](level) if len(at) == 1 else worst_estimate(at, level, str(len(at)), higher_is_safer=safer)
    counts = _counts(games)
    return quantity.at(worst, setting=setting, reference=_REFERENCES[quantity], **counts)


def boxes(games: Sequence[Played], suppression: int) -> Iterator[Series]:
    """Box plots of the gain over iterations and targets; none where a box would stand for too few."""
    shown = [g for g in games if g.gains.size >= suppression]
    if shown:
        yield Series(
            id=PRIVACY_GAIN.id(),
            title="Privacy gain over iterations and targets",
            kind="box",
            x_label="targets and what the attacker looks at",
            y_label="privacy gain",
            x=tuple(g.setting.replace("_", " ") for g in shown),
            lines=box_lines([g.gains.ravel() for g in shown]),
            places=tuple(PRIVACY_GAIN.id(g.setting) for g in shown),
        )


def curves(games: Sequence[Played], suppression: int, promise: AttackerLimit | None) -> Iterator[Series]:
    """The attackers' curves over all kinds of targets, by what they look at, below what is promised.

    One threshold for all games of a feature set, as for the rates; the promise is concave in the rate of
    false alarms, so that it bounds the mean over games with a threshold each, and this one.
    """
    grid = np.linspace(0.0, 1.0, 51).tolist()
    lines: dict[str, tuple[float, ...]] = {}
    for name in dict.fromkeys(g.features for g in games):
        own = [g for g in games if g.features == name]
        if sum(g.gains.size for g in own) >= suppression:
            inside = np.concatenate([g.inside.ravel() for g in own])
            outside = np.concatenate([g.outside.ravel() for g in own])
            found = (float(np.mean(roc.alarm(inside, outside, x))) for x in grid)
            lines[name.replace("_", " ")] = tuple(found)
    if lines:
        bound = {}
        if promise is not None:
            most = (most_found(x, promise.epsilon, promise.delta) for x in grid)
            bound = {promise.label: tuple(most)}
        yield Series(
            id=MeasurementId("", "attackers_curve"),
            title="Sets with the target found against false alarms",
            kind="line",
            x_label="share of sets without the target named",
            y_label="share of sets with the target named",
            x=tuple(grid),
            lines={**lines, **bound},
        )


@dataclass(frozen=True, kw_only=True)
class MembershipGame:
    """Refits the generator with and without a person and lets an attacker tell the releases apart.

    In each iteration an attacker draws a reference sample without the targets, fits shadow models to parts of
    it, each once as it is and once with the target added, draws sets from them and trains a classifier on
    features of those sets. Then the generator is fitted to another sample, without and with the target, and
    the classifier judges sets of both. ``Adv = TPR − FPR``, ``privacy_gain = 1 − Adv``: the attacker who sees
    the real table has Adv 1. ``auc`` and the true-positive rates at 1 % and 0.1 % false alarms come from the
    classifier's probabilities.

    Intervals are over iterations, Student's t (a jackknife for the rates), since neither the sets of one
    model nor the targets of one iteration are independent. Without a setting and for a kind of target the
    number is that of the worst feature set, with an interval corrected for their number (Bonferroni).
    ``worst_target_gain`` is the gain of the one target that some feature set finds most often, with an
    interval corrected for all targets and feature sets: a mean over targets hides one who is always found.

    Fits depend on the plan's seed and on their place in the game only, so that all truncation levels of a
    vine share them. Models with and without a target are fitted with different seeds, as in a real release.

    Fields:
        iterations: games about each target, at least 2.
        attacker_rows: rows of the attacker's reference sample. evaluation_rows: rows behind each model under
            attack; shadow models are fitted to as many of the attacker's, at most 80 % of them.
        shadows: models with, and as many without, the target. sets: drawn from each. evaluated: sets drawn
            from each model under attack. set_rows: rows of a set.
        outlying, random, vulnerable, achilles: targets beyond the tails of ``columns``, at random, by the
            distance to their nearest other row, and by the mean distance to their five nearest other rows
            (Achilles' heels); the same in all iterations.
        columns: those whose outlying rows are targets; the sensitive ones if left out, else the numeric ones.
        tail: share of rows outside the quantiles, in (0, 1).
        features: what the attacker looks at. classifier: how it learns.

    Raises:
        NotApplicable: too few rows to draw samples from, or no targets.
        PluginError: the generator failed, or returned another table than it was asked for.

    Source: Stadler et al. 2022; TVineSynth, section 2.5 and appendices G and J; Meeus et al. 2023.
    """

    iterations: int = 10
    attacker_rows: int = 500
    evaluation_rows: int = 400
    shadows: int = 10
    sets: int = 10
    evaluated: int = 50
    set_rows: int = 400
    outlying: int = 4
    random: int = 2
    vulnerable: int = 0
    achilles: int = 4
    columns: tuple[str, ...] = ()
    tail: float = 0.05
    features: tuple[shadow_game.FeatureSet, ...] = shadow_game.FEATURE_SETS
    classifier: shadow_game.Classifier = "random_forest"

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Membership game",
        question="Can an adversary infer from a release whether one person was in the training set?",
        threat_model=(
            "An adversary holds a person's record and real rows of the same population, knows the generator "
            "with its settings and the number of rows, and runs it again with and without the person to "
            "learn what a release looks like either way."
        ),
        not_covered=(
            "The targets are examples of their kind, and other people may be at a higher risk. A better "
            "attack may find more. Of a person with several rows only one row is added."
        ),
        quantities=QUANTITIES,
        risk="membership",
        needs=(Need.GENERATOR,),
        leak=Leak.COPIES,
        default=False,
        spreads=True,
        cost="hours",
        source="Stadler et al. 2022; TVineSynth, section 2.5; Meeus et al. 2023 (targets); Yeom et al. 2018",
    )

    def __post_init__(self) -> None:
        at_least(self, iterations=2, shadows=1, sets=1, evaluated=1, set_rows=2)
        at_least(self, attacker_rows=20, evaluation_rows=20)
        wanted = [getattr(self, kind) for kind in KINDS]
        if min(wanted) < 0 or not any(wanted):
            raise ValueError(f"{', '.join(KINDS)} must not be negative, and one of them positive")
        share(self, "tail")
        some_of(self, "features", shadow_game.FEATURE_SETS)
        different(self, "columns")
        if self.classifier not in shadow_game.CLASSIFIERS:
            raise ValueError(f"classifier must be one of {', '.join(shadow_game.CLASSIFIERS)}")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Play all iterations; only draws from the models, and the classifiers, depend on ``context.rng``."""
        assert subject.generator is not None
        columns = shadow_game.outlier_columns(subject, self.columns)
        wanted = {kind: int(getattr(self, kind)) for kind in KINDS}
        rng = child_rng(context.seed, shadow_game.GAME, "targets")
        chosen = shadow_game.choose(subject, columns, wanted, self.tail, rng)
        targets = np.unique(np.concatenate(list(chosen.values())))
        sizes = shadow_game.Sizes(
            self.attacker_rows, self.evaluation_rows, self.shadows, self.sets, self.evaluated, self.set_rows
        )
        game = shadow_game.ShadowGame(
            recipe=FitRecipe.of(subject),
            train=subject.train.released_only(),
            targets=targets,
            sizes=sizes.within(subject.train.n_rows - len(targets)),
            features=self.features,
            classifier=self.classifier,
            context=context,
            draws=as_int_seed(context.rng),
        )
        scores = context.map("iteration", game.play, range(self.iterations))
        games = list[Played]()
        for kind, rows in chosen.items():
            places = np.searchsorted(targets, rows)
            for name in self.features:
                inside = np.stack([of.inside[name][places] for of in scores])
                outside = np.stack([of.outside[name][places] for of in scores])
                games.append(Played(kind, name, self.iterations * wanted[kind], inside, outside))
        found = measured(games, subject.level)
        promise = scores[0].guarantee
        if promise is not None:
            found.append(refuted(found[0], promise.epsilon, promise.delta))
        limit = AttackerLimit.of(promise, replaced=False)
        return Findings(
            tuple(found),
            (*boxes(games, subject.suppression), *curves(games, subject.suppression, limit)),
            (*self._notes(game.sizes, chosen), *_promises(promise, found[0])),
            tuple(_exposures(games, chosen, subject.level)),
        )

    def _notes(self, sizes: shadow_game.Sizes, chosen: Mapping[str, Positions]) -> list[str]:
        """Say which games could not be played as requested."""
        notes = []
        if (sizes.attacker, sizes.evaluation) != (self.attacker_rows, self.evaluation_rows):
            notes.append(
                f"the table has too few rows for samples of {self.attacker_rows} and {self.evaluation_rows}: "
                f"{sizes.attacker} and {sizes.evaluation} were drawn"
            )
        notes += [
            f"no row is an {kind} target" for kind in KINDS if getattr(self, kind) and kind not in chosen
        ]
        return notes


def _promises(guarantee: PrivacyGuarantee | None, headline: Measurement) -> list[str]:
    """State the gain that a formal guarantee promises, and whether the game contradicts it."""
    if guarantee is None:
        return []
    bound = least_gain(guarantee.epsilon, guarantee.delta)
    notes = [
        f"the guarantee of the fit (epsilon {guarantee.epsilon:g}) promises a privacy gain of at "
        f"least {bound:.3f}"
    ]
    if headline.interval is not None and headline.interval.high < bound:
        notes.append("the game contradicts the guarantee: the whole interval of the gain lies below that")
    return notes


def _exposures(games: Sequence[Played], chosen: Mapping[str, Positions], level: float) -> list[Exposure]:
    """Targets found out more often than chance, by some feature set, over the iterations."""
    none = np.empty(0, dtype=np.intp)
    found = []
    for kind, rows in chosen.items():
        gains = [g.gains for g in games if g.kind == kind]
        each = corrected_level(level, len(gains) * len(rows))
        hit = [any(mean_interval(g[:, i], each).high < 1 for g in gains) for i in range(len(rows))]
        found.append(Exposure(PRIVACY_GAIN.id(kind), (), rows, rows[np.array(hit, dtype=bool)], none, none))
    return found
