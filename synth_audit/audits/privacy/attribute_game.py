"""The attribute game: how much of what ties a secret to other columns does the generator hand on?"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.audits import _shared
from synth_audit.audits.privacy import _attribute_secrets as attributes
from synth_audit.audits.privacy._attribute_secrets import Secret, SecretRows
from synth_audit.dp.guarantee import AttackerLimit, PrivacyGuarantee, most_advantage
from synth_audit.encode.univariate import outlying_rows
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import single_threaded_algebra
from synth_audit.execution.seeds import as_int_seed, child_rng
from synth_audit.findings import measurement
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.plugins.fitting import FitRecipe, draw, fit_shared
from synth_audit.stats.attack_success import corrected_level
from synth_audit.stats.regression import Regression, Scaling, correlation
from synth_audit.stats.resampling import box_lines, mean_interval, ratio_interval, reference_rows
from synth_audit.table.table import Table

MAB = measurement.Quantity(
    "mab",
    "Mean absolute coefficient (MAB)",
    unit="standard deviations",
    range=(0.0, float("inf")),
    proportional=False,
    help="How much one other column tells of the secret, in standard deviations, averaged over columns.",
)
REAL_MAB = _shared.descriptive(
    "real_mab",
    "Mean absolute coefficient in real rows",
    unit="standard deviations",
    range=(0.0, float("inf")),
    help="The same where the real reference rows are drawn again instead of a release.",
)
REAL_MR2 = _shared.descriptive(
    "real_mr2",
    "Explained share of the secret's variance in real rows",
    range=(float("-inf"), 1.0),
    help="The same where the real reference rows are drawn again instead of a release.",
)
WCAB = _shared.descriptive(  # a maximum grows with the number of games, so that no interval can hold it
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
MSE = _shared.descriptive(  # low for targets near the mean, whatever the release tells
    "mse",
    "Squared error of guesses at the secret",
    unit="variances",
    range=(0.0, float("inf")),
    help="A guess informs only where the error is below that of guessing the mean.",
)
ADVANTAGE = _shared.excess_over_control(
    "advantage",
    "Secrets of those learnt from guessed oftener than those of others",
    unit="probability",
    direction=measurement.Direction.NEUTRAL,  # what all people have in common is handed on without it
    help="Share of guesses nearer than the mean among rows the generator saw, less that among others.",
)
REAL_MSE = _shared.descriptive(
    "real_mse",
    "Squared error of guesses at the secret, learnt from real rows",
    unit="variances",
    range=(0.0, float("inf")),
    help="The same where the attacker learns from the real reference rows, drawn with replacement (MSE_R).",
)

FEWEST_ITERATIONS = 5
"""Fewer iterations say too little of how much games differ."""

TARGETS = 4
"""Targets of either kind in each iteration, as in the paper."""

_MOST_SCORED = 2_000
"""Rows that the guesses of one iteration are scored on."""


_NONE_RETAINED = measurement.Reference(0.0, "a release that tells nothing of the secret")
_NO_MORE = measurement.Reference(0.0, "guesses that help as much with people the generator never saw")
_NONE_EXPLAINED = measurement.Reference(0.0, "other columns that tell nothing of the secret")


@dataclass(frozen=True)
class FittedAttack:
    """What regressions of a secret, and of a shuffled copy of it, found in one set.

    Attributes:
        sizes: of the effect of each other column, on the secret first and then on the copy, shape (g, k).
        r_squared: adjusted, of the secret. coefficients: for it, shape (q, c).
        singular: True when the other columns were collinear or constant.
    """

    sizes: Floats
    r_squared: float
    coefficients: Floats
    singular: bool

    @classmethod
    def learnt(cls, rows: SecretRows, secret: Secret, rng: np.random.Generator | None = None) -> Self:
        """Regress the secret in rows standardised by one another, and a copy that ``rng`` shuffled, on its
        predictors."""
        known, answers = rows.known, [rows.answers]
        if rng is not None:
            answers.append(rng.permutation(rows.answers))
        c = rows.answers.shape[1]
        regression = Regression.on(correlation(known), secret.groups, len(known))
        with_answers = known.T @ np.hstack(answers) / max(len(known) - 1, 1)
        beta = regression.coefficients(with_answers)
        sizes = regression.effects(beta).reshape(-1, len(answers), c) @ rows.weights
        # Fewer rows that hold the secret than predictors explain nothing that could be told from chance.
        r_squared = np.nan_to_num(regression.adjusted_r_squared(beta, with_answers), nan=0.0)
        return cls(sizes, float(r_squared[:c] @ rows.weights), beta[:, :c], regression.singular)

    def guess(self, rows: SecretRows) -> Floats:
        """``Σ β_k x_k``, shape (n, c)."""
        guesses: Floats = rows.known @ self.coefficients
        return guesses

    def errors(self, rows: SecretRows) -> Floats:
        """Squared errors of the guesses, weighted over the answers, shape (n,)."""
        errors: Floats = (self.guess(rows) - rows.answers) ** 2 @ rows.weights
        return errors


@dataclass(frozen=True)
class GuessTest:
    """Real people whose secret is guessed, standardised by who holds them.

    Attributes:
        folds: of these people where they are the reference rows themselves, shape (n,); None where they are
            others.
        inside: the reference rows, standardised as these people; None where they are the reference rows.
    """

    people: SecretRows
    folds: Codes | None = None
    inside: SecretRows | None = None

    def advantage(self, learnt: FittedAttack) -> float:
        """How much more often a guess comes nearer than the mean for reference rows than for others.

        NaN where the people are the reference rows themselves.
        """
        if self.inside is None:
            return math.nan
        inside, outside = (
            float(np.mean(learnt.errors(rows) < rows.answers**2 @ rows.weights))
            for rows in (self.inside, self.people)
        )
        return inside - outside

    def skill(self, learnt: FittedAttack) -> float:
        """Signed squared correlation of guesses with the secret, weighted over its labels."""
        return self.people.skill(learnt.guess(self.people))

    def taught(self, values: Floats, present: Bools, secret: Secret) -> float:
        """Skill of what the encoded reference rows teach; where they are scored themselves, across folds."""
        held = values[present]  # a missing value is read as the mean of those who teach
        guesses = self.people.cross_fitted(
            lambda some: FittedAttack.learnt(SecretRows.of(held, some, secret), secret).guess,
            self.folds,
        )
        return self.people.skill(guesses)


@dataclass(frozen=True)
class Guesses:
    """Squared errors at some targets of one iteration, in standard deviations of the real secret.

    Attributes:
        error: mean over targets and sets. unaided: of an attacker who guesses the mean. real: of one who
            learns from the reference rows themselves, drawn with replacement.
        rows: positions of the targets in train.
    """

    error: float
    unaided: float
    real: float
    rows: tuple[int, ...]


@dataclass(frozen=True)
class IterationResult:
    """One secret in one iteration; means over its sets.

    Attributes:
        mab: mean size of effects. chance: the same with the secret shuffled within each set.
        worst: the largest size in any set. r_squared: adjusted.
        real_mab, real_r_squared: in sets drawn from the reference rows with replacement.
        skill: of guesses at real rows. real_skill: the same, learnt from the reference rows themselves.
        guesses: at targets, by their kind; of kinds that have some.
        singular: sets in which the other columns were collinear or constant.
        advantage: how much oftener guesses help with reference rows than with others; NaN where the reference
            rows are all of train, or leave too few to score guesses on.
        guarantee: what the accountant says of the fit; None for nothing.
    """

    mab: float
    chance: float
    worst: float
    r_squared: float
    real_mab: float
    real_r_squared: float
    skill: float
    real_skill: float
    guesses: Mapping[str, Guesses]
    singular: int
    advantage: float
    guarantee: PrivacyGuarantee | None


def _guess_tests(
    train: Table,
    design: attributes.DesignMatrix,
    secrets: Sequence[Secret],
    rows: Positions,
    reference: tuple[Floats, Sequence[Bools]],
    rng: np.random.Generator,
) -> list[GuessTest]:
    """Real rows outside the reference sample, or that sample itself where train leaves too few."""
    chosen = reference_rows(train.n_rows, rows, _MOST_SCORED, rng) if len(rows) < train.n_rows else rows[:0]
    outside = len(chosen) >= attributes.FEWEST_SCORED
    table = train.take(chosen if outside else rows)
    values = design.encode(table)
    folds = None if outside else rng.permutation(len(rows)) % attributes.FOLDS
    tests = []
    for secret, held in zip(secrets, reference[1], strict=True):
        present = secret.coding.present(table)
        people = SecretRows.of(values, present, secret)
        if folds is None:
            inside = SecretRows.of(reference[0], held, secret, Scaling.of(values[present]))
            tests.append(GuessTest(people, inside=inside))
        else:
            tests.append(GuessTest(people, folds[present]))
    return tests


def _result(
    learnt: Sequence[FittedAttack],
    real: Sequence[FittedAttack],
    guesses: Mapping[str, Guesses],
    test: GuessTest,
    real_skill: float,
    guarantee: PrivacyGuarantee | None,
) -> IterationResult:
    mab, chance = np.mean([found.sizes.mean(axis=0) for found in learnt], axis=0)
    return IterationResult(
        mab=float(mab),
        chance=float(chance),
        worst=max(float(found.sizes[:, 0].max()) for found in learnt),
        r_squared=float(np.mean([found.r_squared for found in learnt])),
        real_mab=float(np.mean([found.sizes[:, 0].mean() for found in real])),
        real_r_squared=float(np.mean([found.r_squared for found in real])),
        skill=float(np.mean([test.skill(found) for found in learnt])),
        real_skill=real_skill,
        guesses=guesses,
        singular=sum(found.singular for found in learnt),
        advantage=float(np.mean([test.advantage(found) for found in learnt])),
        guarantee=guarantee,
    )


@dataclass(frozen=True)
class SecretResult:
    """All iterations about one secret.

    Attributes:
        associated: a line through other columns tells of it in train.
        explained: there were rows enough for an R².
    """

    name: str
    iterations: tuple[IterationResult, ...]
    associated: bool
    explained: bool
    level: float
    suppression: int

    def of(self, pick: Callable[[IterationResult], float]) -> Floats:
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

    def _errors(self, setting: str, guesses: Sequence[Guesses]) -> Iterator[measurement.Measurement]:
        """Mean squared errors over iterations that had targets, beside that of guessing the mean: learnt from
        the sets (MSE_S), and from real rows (MSE_R)."""
        requested, achieved = TARGETS * len(self.iterations), sum(len(g.rows) for g in guesses)
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

    def guesses(self) -> dict[str, list[Guesses]]:
        """Guesses of the iterations that had targets, by kind of target."""
        found: dict[str, list[Guesses]] = {"outlying targets": [], "random targets": []}
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


def _many(guesses: Sequence[Guesses], suppression: int) -> bool:
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
        _shared.at_least(
            self, iterations=2, reference=attributes.FEWEST_ROWS, rows=attributes.FEWEST_ROWS, sets=1
        )
        _shared.share(self, "tail")
        _shared.different(self, "columns")

    def run(self, subject: Subject, context: RunContext) -> measurement.Findings:
        """Play the iterations: reference samples and fits by the seed, sets drawn from ``context.rng``."""
        attacked = attributes.AttackedSecrets.of(subject, self.columns)
        n, secrets, notes = subject.train.n_rows, attacked.secrets, list(attacked.notes)
        if n < self.reference:
            notes.append(f"reference samples are all {n} training rows, since there are no {self.reference}")
        played = partial(self._play, subject, context, attacked.design, secrets)
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

    def _play(
        self,
        subject: Subject,
        context: RunContext,
        design: attributes.DesignMatrix,
        secrets: Sequence[Secret],
        turn: tuple[int, np.random.Generator],
    ) -> list[IterationResult]:
        """One result for each secret, in the iteration of that number with that generator.

        What the attacker has, fit included, depends on the plan's seed and the iteration alone, so that the
        candidates of a sweep meet the same reference rows; only the sets are drawn from the generator.
        """
        iteration, rng = turn
        shared = child_rng(context.seed, attributes.STREAM, str(iteration))
        rows = reference_rows(subject.train.n_rows, (), self.reference, shared)
        reference = subject.train.released_only().take(rows)
        with single_threaded_algebra():  # here, since it holds for one process
            fitted = fit_shared(FitRecipe.of(subject), reference, as_int_seed(shared), context)
            values = design.encode(reference)
            present = [secret.coding.present(reference) for secret in secrets]
            targets = [self._targets(reference, secret, shared) for secret in secrets]
            # As many real sets, drawn from the reference with replacement.
            again = [shared.integers(len(values), size=self.rows) for _ in range(self.sets)]
            real = [
                [
                    FittedAttack.learnt(SecretRows.of(values[some], held[some], secret), secret)
                    for some in again
                ]
                for held, secret in zip(present, secrets, strict=True)
            ]
            tests = _guess_tests(subject.train, design, secrets, rows, (values, present), shared)
            made: list[list[FittedAttack]] = [[] for _ in secrets]
            for _ in range(self.sets):
                table = draw(fitted.model, self.rows, reference.schema, rng)
                encoded = design.encode(table)
                for found, secret in zip(made, secrets, strict=True):
                    people = SecretRows.of(encoded, secret.coding.present(table), secret)
                    found.append(FittedAttack.learnt(people, secret, rng))
            of_holder = Scaling.of(values)
            results = []
            for i, secret in enumerate(secrets):
                guesses = {}
                for kind, chosen in targets[i].items():
                    if len(chosen):
                        asked = SecretRows.of(values[chosen], present[i][chosen], secret, of_holder)
                        error, of_real = (
                            float(np.mean([np.mean(attack.errors(asked)) for attack in attacks[i]]))
                            for attacks in (made, real)
                        )
                        unaided = float(np.mean(asked.answers**2 @ asked.weights))
                        guesses[kind] = Guesses(error, unaided, of_real, tuple(rows[chosen].tolist()))
                taught = tests[i].taught(values, present[i], secret)
                results.append(_result(made[i], real[i], guesses, tests[i], taught, fitted.guarantee))
        return results

    def _targets(self, reference: Table, secret: Secret, rng: np.random.Generator) -> dict[str, Positions]:
        """Positions of targets in the reference, by their kind; none lacks its secret."""
        column = reference.schema[secret.name]
        present = np.flatnonzero(~reference.missing(secret.name))
        outlying = outlying_rows(reference, column, self.tail)
        found = {
            kind: np.sort(rng.choice(rows, min(TARGETS, len(rows)), replace=False))
            for kind, rows in (("outlying targets", outlying), ("random targets", present))
        }
        if self.achilles:
            features = reference.schema.features
            found["achilles targets"] = _shared.most_isolated(reference, features, present, TARGETS, rng)
        return found
