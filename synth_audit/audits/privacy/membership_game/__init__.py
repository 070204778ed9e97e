"""Membership inference as a game: does a release betray whether one person was learnt from?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Positions
from synth_audit.audits._declarations import at_least, different, share, some_of
from synth_audit.audits._targets import AttackerLimit
from synth_audit.audits.privacy.membership_game import measures, shadow_game
from synth_audit.audits.privacy.membership_game.measures import Played, played
from synth_audit.dp.guarantee import PrivacyGuarantee
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import as_int_seed, child_rng
from synth_audit.findings.measurement import Exposure, Findings, Measurement
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.plugins.fitting import FitRecipe
from synth_audit.stats.attack_success import corrected_level
from synth_audit.stats.resampling import mean_interval

KINDS = ("outlying", "random", "vulnerable", "achilles")


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
        question="Could somebody tell from a release whether one person was among those it was learnt from?",
        threat_model=(
            "An adversary holds a person's record and real rows of the same population, knows the generator "
            "with its settings and the number of rows, and runs it again with and without the person to "
            "learn what a release looks like either way."
        ),
        not_covered=(
            "The targets stand for their kind; others may be more at risk. An attacker with a better idea of "
            "where to look sees more. Of several rows of one person one alone is added."
        ),
        quantities=measures.QUANTITIES,
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
        if min(getattr(self, kind) for kind in KINDS) < 0 or not any(getattr(self, kind) for kind in KINDS):
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
        chosen = shadow_game.choose(
            subject, columns, wanted, self.tail, child_rng(context.seed, shadow_game.GAME, "targets")
        )
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
        kinds = {kind: np.searchsorted(targets, rows) for kind, rows in chosen.items()}
        games = played(scores, kinds)
        requested = {kind: self.iterations * wanted[kind] for kind in chosen}
        found = measures.measured(games, requested, subject.level)
        promise = scores[0].guarantee
        if promise is not None:
            found.append(measures.refuted(found[0], promise.epsilon, promise.delta))
        return Findings(
            measurements=tuple(found),
            series=(
                *measures.boxes(games, subject.suppression),
                *measures.curves(games, subject.suppression, AttackerLimit.of(promise, replaced=False)),
            ),
            notes=(*self._notes(game.sizes, chosen), *_promises(promise, found[0])),
            exposures=tuple(_exposures(games, chosen, subject.level)),
        )

    def _notes(self, sizes: shadow_game.Sizes, chosen: Mapping[str, Positions]) -> list[str]:
        """What could not be played as asked for."""
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
    """What a formal guarantee says of the gain, and whether the game contradicts it."""
    if guarantee is None:
        return []
    bound = measures.least_gain(guarantee.epsilon, guarantee.delta)
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
        found.append(
            Exposure(measures.PRIVACY_GAIN.id(kind), (), rows, rows[np.array(hit, dtype=bool)], none, none)
        )
    return found
