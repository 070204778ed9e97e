"""The attribute game: how much of what ties a secret to other columns does the generator hand on?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.audits._declarations import at_least, descriptive, different, excess_over_control, share
from synth_audit.audits._targets import AttackerLimit
from synth_audit.audits.privacy import _attribute_secrets as attributes
from synth_audit.audits.privacy.attribute_game import iterations as game
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import single_threaded_algebra
from synth_audit.findings import measurement
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.stats.attack_success import corrected_level
from synth_audit.stats.epsilon import most_advantage
from synth_audit.stats.resampling import box_lines, mean_interval, ratio_interval

MAB = measurement.Quantity(
    "mab",
    "Mean absolute coefficient (MAB)",
    unit="standard deviations",
    range=(0.0, float("inf")),
    proportional=False,
    help="How much one other column tells of the secret, in standard deviations, averaged over columns.",
)
REAL_MAB = descriptive(
    "real_mab",
    "Mean absolute coefficient in real rows",
    unit="standard deviations",
    range=(0.0, float("inf")),
    help="The same where the real reference rows are drawn again instead of a release.",
)
REAL_MR2 = descriptive(
    "real_mr2",
    "Explained share of the secret's variance in real rows",
    range=(float("-inf"), 1.0),
    help="The same where the real reference rows are drawn again instead of a release.",
)
WCAB = descriptive(  # a maximum grows with the number of games, so that no interval can hold it
    "wcab",
    "Largest absolute coefficient (WCAB)",
    unit="standard deviations",
    range=(0.0, float("inf")),
    help="The most that any column told of the secret in any set.",
)
MR2 = measurement.Quantity(
    "mr2",
    "Explained share of the secret's variance (MR²)",
    range=(float("-inf"), 1.0),
    proportional=False,  # rises with the square of what is left of the coefficients
    help="Adjusted R², averaged over sets; 0 when other columns tell nothing of the secret.",
)
MSE = descriptive(  # low for targets near the mean, whatever the release tells
    "mse",
    "Squared error of guesses at the secret",
    unit="variances",
    range=(0.0, float("inf")),
    help="A guess informs only where the error is below that of guessing the mean.",
)
ADVANTAGE = excess_over_control(
    "advantage",
    "Secrets of those learnt from guessed oftener than those of others",
    unit="probability",
    direction=measurement.Direction.NEUTRAL,  # what all people have in common is handed on without it
    help="Share of guesses nearer than the mean among rows the generator saw, less that among others.",
)
REAL_MSE = descriptive(
    "real_mse",
    "Squared error of guesses at the secret, learnt from real rows",
    unit="variances",
    range=(0.0, float("inf")),
    help="The same where the attacker learns from the real reference rows, drawn with replacement (MSE_R).",
)

FEWEST_ITERATIONS = 5
"""Fewer iterations say too little of how much games differ."""

_NONE_RETAINED = measurement.Reference(0.0, "a release that tells nothing of the secret")
_NO_MORE = measurement.Reference(0.0, "guesses that help as much with people the generator never saw")
_NONE_EXPLAINED = measurement.Reference(0.0, "other columns that tell nothing of the secret")


@dataclass(frozen=True)
class SecretResult:
    """All iterations about one secret.

    Attributes:
        associated: a line through other columns tells of it in train.
        explained: there were rows enough for an R².
    """

    name: str
    iterations: tuple[game.IterationResult, ...]
    associated: bool
    explained: bool
    level: float
    suppression: int

    def of(self, pick: Callable[[game.IterationResult], float]) -> Floats:
        """One number of each iteration, shape (m,)."""
        return np.array([pick(r) for r in self.iterations])

    @property
    def advantages(self) -> Floats | None:
        """Of each iteration; None where one of them had no rows outside the reference."""
        found = self.of(lambda r: r.advantage)
        return None if np.isnan(found).any() else found

    @property
    def played(self) -> bool:
        """What the reference rows teach helps with other real rows, so that there is something to retain."""
        return self.associated and mean_interval(self.of(lambda r: r.real_skill), self.level).low > 0

    @property
    def open(self) -> bool:
        """The games cannot say whether the secret is handed on: no gate may pass on the others alone."""
        return self.associated and not (self.explained and self.played)

    def mab(self, level: float) -> measurement.Measurement:
        """Beside that of the same sets with the secret shuffled."""
        chance = mean_estimate(self.of(lambda r: r.chance), self.level)
        shuffled = "the same tables with the secret shuffled"
        null = measurement.Reference(chance.value, shuffled, chance.interval)
        return self._at(MAB, mean_estimate(self.of(lambda r: r.mab), level), null)

    def mr2(self, level: float) -> measurement.Measurement:
        """Beside 0."""
        return self._at(MR2, mean_estimate(self.of(lambda r: r.r_squared), level), _NONE_EXPLAINED)

    def retained(self, level: float) -> Iterator[measurement.Measurement]:
        """Where real rows teach anything."""
        if not (self.explained and self.played):
            return
        found, real = self.of(lambda r: r.skill), self.of(lambda r: r.real_skill)
        turned = math.copysign(1.0, found.mean())  # who knows one secret can turn such guesses round
        interval = ratio_interval(turned * found, real, level)
        ratio = measurement.Estimate(float(abs(found.mean()) / real.mean()), interval)
        yield self._at(attributes.RETAINED, ratio, _NONE_RETAINED)

    def others(self) -> Iterator[measurement.Measurement]:
        """What describes the attack and is not judged."""
        yield self._at(REAL_MAB, mean_estimate(self.of(lambda r: r.real_mab), self.level))
        if self.explained:
            yield self._at(REAL_MR2, mean_estimate(self.of(lambda r: r.real_r_squared), self.level))
        yield self._at(WCAB, measurement.Estimate(float(self.of(lambda r: r.worst).max())))
        if self.advantages is not None:
            yield self._at(ADVANTAGE, mean_estimate(self.advantages, self.level), _NO_MORE)
        for targets, guesses in self.guesses().items():
            if _many(guesses, self.suppression):
                yield from self._errors(targets, guesses)

    def _errors(self, setting: str, guesses: Sequence[game.Guesses]) -> Iterator[measurement.Measurement]:
        """Mean squared errors over iterations that had targets, beside that of guessing the mean: learnt from
        the sets (MSE_S), and from real rows (MSE_R)."""
        requested, achieved = game.TARGETS * len(self.iterations), sum(len(g.rows) for g in guesses)
        of_guesses = np.array([(g.unaided, g.error, g.real) for g in guesses]).T
        unaided, error, real = (mean_estimate(values, self.level) for values in of_guesses)
        mean = measurement.Reference(unaided.value, "guesses of the mean alone", unaided.interval)
        for quantity, found in ((MSE, error), (REAL_MSE, real)):
            yield quantity.at(
                found,
                setting=setting,
                column=self.name,
                n_requested=requested,
                n_achieved=achieved,
                reference=mean,
            )

    def guesses(self) -> dict[str, list[game.Guesses]]:
        """Guesses of the iterations that had targets, by kind of target."""
        found: dict[str, list[game.Guesses]] = {"outlying targets": [], "random targets": []}
        for result in self.iterations:
            for kind, guesses in result.guesses.items():
                found.setdefault(kind, []).append(guesses)
        return found

    def boxes(self) -> measurement.Series:
        """Iterations beside their nulls: the release, the same shuffled, and the real rows."""
        groups = [self.of(lambda r: r.mab), self.of(lambda r: r.chance), self.of(lambda r: r.real_mab)]
        return measurement.Series(
            id=MAB.id(column=self.name),
            title=f"What other columns tell of {self.name}",
            kind="box",
            x_label="",
            y_label="mean absolute coefficient",
            x=("synthetic sets", "secret shuffled", "real rows"),
            lines=box_lines(groups),
        )

    def _at(
        self,
        quantity: measurement.Quantity,
        found: measurement.Estimate,
        reference: measurement.Reference | None = None,
    ) -> measurement.Measurement:
        n = len(self.iterations)
        return quantity.at(found, column=self.name, n=n, n_minimum=FEWEST_ITERATIONS, reference=reference)


def mean_estimate(values: Floats, level: float) -> measurement.Estimate:
    """The mean over iterations, shape (m,)."""
    return measurement.Estimate(float(values.mean()), mean_interval(values, level))


def measured(
    results: Sequence[SecretResult], level: float, *, complete: bool
) -> Iterator[measurement.Measurement]:
    """Everything that is reported: the worst secret first, then each secret, then what describes the attack.

    Args:
        complete: every secret that the table has was attacked, or never varies.
    """
    yield from attributes.retained(
        lambda at: [m for r in results for m in r.retained(at)],
        level,
        judged=complete and not any(r.open for r in results),
    )
    corrected = corrected_level(level, len(results))
    for measure in (SecretResult.mab, SecretResult.mr2):
        # One secret that cannot be judged must not leave a headline that looks safe without it.
        if measure is SecretResult.mab or all(r.explained for r in results):
            yield attributes.worst([measure(r, corrected) for r in results], level)
            yield from (measure(r, level) for r in results)
    for result in results:
        yield from result.others()


def advantages_below(results: Sequence[SecretResult]) -> Iterator[measurement.Series]:
    """The advantage of guesses at each secret beside the most that the fits' guarantee allows."""
    found = {r.name: float(r.advantages.mean()) for r in results if r.advantages is not None}
    # The reference has as many rows whoever is in it, so somebody else is in the place of whoever is not.
    promise = AttackerLimit.of(results[0].iterations[0].guarantee, replaced=True)
    if found and promise is not None:
        most = most_advantage(promise.epsilon, promise.delta)
        yield measurement.Series(
            id=ADVANTAGE.id(),
            title="Secrets of those learnt from guessed oftener than those of others",
            kind="bar",
            x_label="secret",
            y_label="difference of shares",
            x=tuple(found),
            lines={"found": tuple(found.values()), promise.label: (most,) * len(found)},
        )


def remarks(results: Sequence[SecretResult], n_sets: int) -> Iterator[str]:
    """What a reader must know of secrets that were not judged, and of sets that gave no unique answer."""
    for result in results:
        if not result.associated:
            yield (
                f"no linear association of {result.name} is beyond chance, so games have nothing of it to "
                "retain"
            )
        elif result.explained and result.open:
            yield (
                f"{result.name}: real rows are too few for the attack to succeed at others, so the whole is "
                "not judged"
            )
    for result in results:
        if not result.explained:
            yield (
                f"R² of {result.name} is not reported: {attributes.ROWS_EACH} rows are needed for each "
                "number that predicts it, so raise `reference` and `rows` as far as train allows"
            )
        for targets, guesses in result.guesses().items():
            if not _many(guesses, result.suppression):
                which = f"{targets} of {result.name}"
                yield f"errors of guesses at {which} are withheld: too few rows are such targets"
        if singular := sum(r.singular for r in result.iterations):
            yield (
                f"{result.name}: in {singular} of {n_sets} sets other columns were collinear or constant; "
                "coefficients are those of smallest norm"
            )


def _many(guesses: Sequence[game.Guesses], suppression: int) -> bool:
    """True when enough people stand behind the errors: a mean over few would give their values away."""
    return len(guesses) > 1 and len({row for g in guesses for row in g.rows}) >= suppression


@dataclass(frozen=True, kw_only=True)
class AttributeGame:
    """Plays an attacker who fits the same generator on rows of his own and regresses the secret on the rest.

    In each iteration m the generator is fitted to a reference sample of train and draws ``sets`` tables. Each
    is standardised (n − 1) and the secret regressed on all other columns by least squares, with the solution
    of smallest norm where they are collinear. With d other columns k, and sets l:
    ``mab = mean over k, m, l of |β_kml|``, ``wcab`` their maximum, ``mr2`` the mean adjusted R²; ``mse``
    (MSE_S) is the squared error of the guess ``Σ β_k x_k`` at rows of the reference, standardised by their
    holder, and ``real_mse`` (MSE_R) that of one learnt from sets drawn from the reference with replacement.

    ``retained = |skill| / skill_real``: skill is the signed squared correlation of those guesses with the
    secrets of real rows outside the reference, averaged over sets; skill_real that of β learnt from the
    reference rows themselves. Where train leaves fewer than 50 others, the reference rows are scored, and
    skill_real is cross-fitted in ten folds. 0 is a release whose other columns tell nothing of the secret,
    1 one that teaches the attack as much as real rows do. Without a column it is the worst number of all
    secrets, its interval corrected for their number; there is none while a secret could not be judged.

    ``advantage`` is how much oftener a guess comes nearer than the mean for reference rows than for rows
    outside: what the generator tells of people because it saw them, and the one part of the game that a
    guarantee bounds, by ``(e^ε' − 1 + 2δ') / (e^ε' + 1)`` with (ε', δ') for one row in another's place.

    A secret that no line through other columns tells of in train, by a permutation test, gets no ``retained``
    here: games fit lines alone. Bends, groups of labels and the release at hand are ``attribute_attack``'s.
    Rows that lack the secret teach nothing, and numbers are read no further than train's own smallest and
    largest.

    Labels are indicators; the size of a label's effect is the standard deviation of what all its indicators
    add, which for a number is |β|. A secret of several labels is regressed as one indicator each, weighted
    by frequency. A missing value is read as the mean of its column in the set, and a numeric column with
    gaps has a second number that says where they are.

    Fields:
        iterations: fits on a new reference sample, at least 2.
        reference: rows of that sample; all of train when it has fewer.
        sets: tables drawn from each fit. rows: of each table.
        columns: secrets; left out, the columns of role sensitive.
        tail: share of reference rows whose secret counts as outlying, in (0, 1).
        achilles: besides four outlying and four random targets of each iteration, as published, guess at
            four Achilles' heels: the rows that hold the secret with the largest mean distance to their five
            nearest other rows of the reference.

    Raises:
        ValueError: a field is out of range, or a column is named twice.
        NotApplicable: train has too few rows, a secret is the target, or none can be attacked.

    Source: TVineSynth, Definition 2.2 and Appendix G; Stadler et al. 2022; Meeus et al. 2023.
    """

    iterations: int = 10
    reference: int = 500
    sets: int = 50
    rows: int = 500
    columns: tuple[str, ...] = ()
    tail: float = 0.05
    achilles: bool = False

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Attribute game",
        question="How much of what other columns tell of a secret does this way of making data hand on?",
        threat_model=(
            "An adversary knows the generator and all of a person's attributes but one, learns from "
            "synthetic data how they hang together, and infers the one."
        ),
        not_covered=(
            "The release at hand, and ties that no line shows, which `attribute_attack` measures; what other "
            "columns tell only together, such as a product of two; whether a value is missing; copies of "
            "single records. What the population has in common counts as well: a release that hands on a "
            "true association is useful for it and tells of everybody to whom it applies."
        ),
        quantities=(attributes.RETAINED, MAB, REAL_MAB, WCAB, MR2, REAL_MR2, MSE, REAL_MSE, ADVANTAGE),
        risk="inference",
        needs=(Need.GENERATOR,),  # and a secret: one of role sensitive, or one that `columns` names
        leak=Leak.ASSOCIATIONS,
        default=False,
        spreads=True,
        cost="minutes",
        source="TVineSynth, Definition 2.2; Stadler et al. 2022; Meeus et al. 2023 (targets)",
    )

    def __post_init__(self) -> None:
        # Of fewer than two iterations nothing is known of how much they differ.
        at_least(self, iterations=2, reference=attributes.FEWEST_ROWS, rows=attributes.FEWEST_ROWS, sets=1)
        share(self, "tail")
        different(self, "columns")

    def run(self, subject: Subject, context: RunContext) -> measurement.Findings:
        """Play the iterations: reference samples and fits by the seed, sets drawn from ``context.rng``."""
        attacked = attributes.AttackedSecrets.of(subject, self.columns)
        n, secrets, notes = subject.train.n_rows, attacked.secrets, list(attacked.notes)
        if n < self.reference:
            notes.append(f"reference samples are all {n} training rows, since there are no {self.reference}")
        sizes = game.GameSizes(self.reference, self.sets, self.rows, self.tail, self.achilles)
        played = partial(game.play, subject, context, attacked.design, secrets, sizes)
        iterations = context.map("iteration", played, list(enumerate(context.rng.spawn(self.iterations))))
        with single_threaded_algebra():
            tied = [attributes.associated(subject, attacked.design, s, context.seed) for s in secrets]
        results = [
            SecretResult(
                name=secret.name,
                iterations=tuple(results[i] for results in iterations),
                associated=tied[i],
                explained=attributes.ROWS_EACH * len(secret.predictors) <= min(n, self.reference, self.rows),
                level=subject.level,
                suppression=subject.suppression,
            )
            for i, secret in enumerate(secrets)
        ]
        return measurement.Findings(
            tuple(measured(results, subject.level, complete=attacked.complete)),
            (*(r.boxes() for r in results), *advantages_below(results)),
            (*notes, *remarks(results, self.sets * self.iterations)),
        )
