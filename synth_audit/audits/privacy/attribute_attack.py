"""The attribute attack: how much of what ties a secret to other columns does this release hand on?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from synth_audit.arrays import Codes, Floats
from synth_audit.audits._shared import different
from synth_audit.audits.privacy import _attribute_secrets as attributes
from synth_audit.encode.cells import AnchoredCells, column_grouping
from synth_audit.encode.codes import Vocabulary
from synth_audit.errors import PluginError
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import single_threaded_algebra
from synth_audit.execution.seeds import child_rng
from synth_audit.findings.measurement import Estimate, Findings, Interval, Measurement
from synth_audit.plugins.audit import AuditInfo, Leak, Subject
from synth_audit.stats import regression
from synth_audit.stats.resampling import critical_value, enough_draws, normal_interval, reference_rows
from synth_audit.table.table import Table

Test = tuple[int, int, float]
"""Of a part of an attack: degrees of freedom used and free, and the p-value up to which it is believed."""

BINS = 8
"""Quantile bins of a number: enough to follow a bend, with rows enough in each."""

CHANCE = 0.01
"""What tests find with this probability by chance is not believed."""

_MOST_LEARNT = 20_000
"""Rows that the attack learns from at most; the time of learning is bounded."""

_MOST_SCORED = 5_000
"""Rows that guesses are scored at, at most; the bootstrap says how surely."""

_DRAWS = 200
"""Bootstrap draws: a standard deviation is known to 5 %."""

_FEWEST_RARE, _MOST_RARE = 10, 50
"""Training rows from which on a rare label is attacked: its frequency is known to a third (1/√10).
Labels at most: each takes a regression of its own, and the commonest weigh most."""

_LEAST_TOLD = 0.1
"""Rare labels are not judged where real rows explain less of them: a ratio of two small numbers from a few
rows would leave every release undecided, and there is little to give away."""

RARE_LABELS = "rare labels"
"""Setting in which the labels of a secret that share one number are attacked apart."""


@dataclass(frozen=True)
class Attack:
    """Guesses ``Σ β_k x_k + Σ γ_j m_j(g_j)`` with m_j the mean, in group g_j of column j, of what β leaves.

    Attributes:
        line: β, shape (q, c); all 0 where an F test at 1 % finds the regression no better than chance.
        means, slopes: m_j, and γ, shape (j, c), of the columns ``used``, whose groups differ in what β leaves
            by an F test at 1 %, corrected for the number of columns.
        tests: of the line and of each column: degrees of freedom used and free, and the p-value believed.
    """

    line: Floats
    used: tuple[int, ...]
    means: tuple[regression.GroupMeans, ...]
    slopes: Floats
    tests: tuple[Test, ...]

    @classmethod
    def learnt(cls, rows: attributes.SecretRows, sizes: Sequence[int] = ()) -> Self:
        """Learn from rows.

        Guesses from chance coefficients correlate with the truth by anything, either way: many sets even that
        out, one release does not. Hence the tests.

        Args:
            sizes: numbers of groups; left out, only β is learnt.
        """
        x, y = (regression.Scaling.of(v).apply(v) for v in (rows.known, rows.answers))
        line, free = _least_squares(x, y), max(len(x) - 1, 0)
        explained = float((line * (x.T @ y)).sum(axis=0) @ rows.weights) / max(free, 1)
        if regression.chance_of_share(explained, x.shape[1], free) > CHANCE:
            line = np.zeros_like(line)
        left = y - x @ line
        grouped = rows.groups[: len(sizes)]
        means = [regression.GroupMeans.of(g, left, size) for g, size in zip(grouped, sizes, strict=True)]
        each = CHANCE / max(len(means), 1)
        used = tuple(j for j, m in enumerate(means) if len(x) and m.chance(left, rows.weights) <= each)
        told = [means[j].of_others(rows.groups[j], left) for j in used]
        slopes = np.zeros_like(left[:0])
        if told:
            parts = np.stack(told, axis=1)
            slopes = np.column_stack(
                [_least_squares(parts[:, :, i], left[:, i : i + 1]) for i in range(left.shape[1])]
            )
        tests = ((x.shape[1], free, CHANCE), *((m.spent, free, each) for m in means))
        return cls(line, used, tuple(means[j] for j in used), slopes, tests)

    @property
    def parts(self) -> frozenset[int]:
        """What is believed: 0 for the line, and 1 + j for each column used."""
        return frozenset([0] * bool(np.any(self.line)) + [1 + j for j in self.used])

    def not_in(self, other: "Attack") -> tuple[Test, ...]:
        """The tests by which this attack does not believe what another does."""
        return tuple(self.tests[part] for part in sorted(other.parts - self.parts))

    def guess(self, rows: attributes.SecretRows) -> Floats:
        """Guesses at the answers, shape (n, c), in standard deviations of those who were learnt from."""
        guesses: Floats = rows.known @ self.line
        for j, means, slope in zip(self.used, self.means, self.slopes, strict=True):
            guesses = guesses + slope * means.at(rows.groups[j])
        return guesses


def _least_squares(x: Floats, y: Floats) -> Floats:
    """Coefficients, shape (q, c), without intercept, of smallest norm."""
    if not x.shape[1]:
        return np.zeros((0, y.shape[1]))
    n = max(len(x) - 1, 1)
    return regression.Regression.on(
        regression.correlation(x), np.zeros(x.shape[1], dtype=np.intp), len(x)
    ).coefficients(x.T @ y / n)


@dataclass(frozen=True)
class SkillEstimate:
    """How well a secret is guessed at real rows, learnt from the release and from train.

    Attributes:
        draws: bootstrap over the rows that are scored, shape (b, 2): learnt from the release, from train.
        rows: that were scored. overlooked: tests that found nothing in the release of what is in train.
    """

    skill: float
    real_skill: float
    draws: Floats
    rows: int
    overlooked: tuple[Test, ...]

    @property
    def retained(self) -> float:
        """Without its sign: who knows one secret can turn guesses round that are wrong throughout."""
        return abs(self.skill) / self.real_skill

    def interval(self, level: float) -> Interval:
        """Linearised: ``ρ ± z · sd((a* − ρ b*) / b)`` over the draws, and above it what may be overlooked.

        A test that finds nothing in a few hundred rows does not say that nothing is there: the largest share
        of variance that it would have missed is added to the skill at the upper end.
        """
        ratio = self.skill / self.real_skill
        around = (self.draws[:, 0] - ratio * self.draws[:, 1]) / self.real_skill
        found = normal_interval(self.retained, around, level)
        if not self.overlooked:
            return found
        missed = max(regression.share_overlooked(*test, level) for test in self.overlooked)
        method = f"{found.method}, and what a test overlooks"
        return Interval(found.low, found.high + missed / self.real_skill, level, method)

    def measurable(self, level: float) -> bool:
        """Real rows teach the attack something, beyond what the choice of scored rows explains."""
        spread = float(np.std(self.draws[:, 1], ddof=1))
        return self.rows >= attributes.FEWEST_SCORED and self.real_skill > critical_value(level) * spread


def _rows(
    table: Table,
    design: attributes.DesignMatrix,
    secret: attributes.Secret,
    groupings: Sequence[AnchoredCells],
    rare: dict[str, int],
) -> attributes.SecretRows:
    """The rows of a table that hold the secret.

    Args:
        rare: labels of the secret that share one number in the design, with their rows in train; the answers
            are then indicators of these, weighted by how frequent they are.
    """
    table = table.take(secret.coding.present(table))
    rows = attributes.SecretRows.of(design.encode(table), slice(None), secret)
    answers, weights = rows.answers, rows.weights
    if rare:
        places = Vocabulary(secret.name, tuple(rare)).places(table)
        marks = (places[:, None] == np.arange(len(rare))).astype(np.float64)
        counts = np.array(list(rare.values()), dtype=np.float64)
        answers, weights = regression.Scaling.of(marks).apply(marks), counts / counts.sum()
    return attributes.SecretRows(rows.known, answers, weights, tuple(g.of(table) for g in groupings))


def _rare_labels(secret: attributes.Secret) -> dict[str, int]:
    """Labels of the secret that share one number, commonest first, and how many rows of train hold each.

    Together they would hide what each hangs on.
    """
    enough = [item for item in secret.coding.rare_counts.items() if item[1] >= _FEWEST_RARE]
    return dict(sorted(enough, key=lambda item: -item[1])[:_MOST_RARE])


def _groupings(subject: Subject, secret: attributes.Secret) -> Iterator[AnchoredCells]:
    """Of the other columns, as train has them."""
    for column in subject.features:
        if column.name != secret.name:
            yield column_grouping(subject.train, column, bins=BINS)


def _some(table: Table, most: int, rng: np.random.Generator) -> Table:
    return table.take(reference_rows(table.n_rows, (), most, rng))


def unseen(subject: Subject, design: attributes.DesignMatrix, secret: attributes.Secret, seed: int) -> bool:
    """True when groups of another column differ in the secret, which no line may tell.

    A permutation test of the largest ``η²`` of the secret, or of its distance from its median, between the
    labels of another column, or the quantile bins of its numbers; ``p ≤ 0.01`` for all together.
    """
    rng = child_rng(seed, attributes.STREAM, "unseen", secret.name)
    table = _some(subject.train, attributes.MOST_TESTED, rng)
    table = table.take(secret.coding.present(table))
    groups = [grouping.of(table) for grouping in _groupings(subject, secret)]
    if not groups or table.n_rows < attributes.FEWEST_SCORED:
        return False
    y = design.encode(table)[:, secret.responses]
    y = np.hstack([y, np.abs(y - np.median(y, axis=0))])
    y = regression.Scaling.of(y).apply(y)
    return attributes.chance_of(partial(_between, groups), y, 199, rng) <= CHANCE


def _between(groups: list[Codes], y: Floats) -> float:
    """The largest share of a column's variance that lies between the groups of a grouping."""
    shares = []
    for group in groups:
        sizes = np.maximum(np.bincount(group), 1)
        sums = [np.bincount(group, weights=column, minlength=len(sizes)) for column in y.T]
        shares.append(max(float((s**2 / sizes).sum()) for s in sums) / len(y))
    return max(shares)


@dataclass(frozen=True)
class SecretFinding:
    """One secret.

    Attributes:
        told: what the release teaches whoever fits a line and, where groups of single columns tell more in
            train, looks at those too.
        grouped: they do. rare: of who guesses the rare labels of the secret likewise; None where train tells
            next to nothing of them.
        associated: a line through other columns tells of it in train.
        unseen: no line does, but groups of rows differ in it.
        rows: of train.
    """

    secret: attributes.Secret
    told: SkillEstimate
    grouped: bool
    rare: SkillEstimate | None
    associated: bool
    unseen: bool
    rows: int
    level: float

    @classmethod
    def of(
        cls, subject: Subject, design: attributes.DesignMatrix, secret: attributes.Secret, seed: int
    ) -> Self:
        """Score on control, or on train where there is none worth it."""
        linear = attributes.associated(subject, design, secret, seed)
        if not all(c.kind.finite(subject.synthetic.column(c.name)) for c in subject.features):
            raise PluginError("the release holds infinite numbers")
        rng = child_rng(seed, attributes.STREAM, "release", secret.name)
        apart = subject.control is not None and subject.control.n_rows >= attributes.FEWEST_SCORED
        scored = _some(subject.real[apart], _MOST_SCORED, rng)
        tables = (*(_some(t, _MOST_LEARNT, rng) for t in (subject.synthetic, subject.train)), scored)
        groupings, draws = tuple(_groupings(subject, secret)), enough_draws(_DRAWS, subject.level)
        sizes = tuple(g.size for g in groupings)

        def tested(rare: dict[str, int]) -> tuple[Attack, SkillEstimate]:
            """What all groups teach of the answers in train, and the skill of what is attacked by them.

            Where those who are scored are in train, train's own skill is that of guesses at each of
            :data:`FOLDS` folds, learnt from the others.
            """
            made, train, held = (_rows(table, design, secret, groupings, rare) for table in tables)
            taught = Attack.learnt(train, sizes)
            learn = partial(Attack.learnt, sizes=sizes if rare or taught.used else ())
            n, of_made, of_train = len(held), learn(made), learn(train)
            folds = None if apart else rng.permutation(n) % attributes.FOLDS
            real = held.cross_fitted(
                lambda rows: (of_train if apart else learn(held.take(rows))).guess, folds
            )
            guesses = (of_made.guess(held), real)
            picks = (rng.integers(max(n, 1), size=n) for _ in range(draws))
            counts = [np.bincount(rows, minlength=n).astype(np.float64) for rows in picks]
            (skill, real_skill), *drawn = ([held.skill(g, c) for g in guesses] for c in (None, *counts))
            return taught, SkillEstimate(skill, real_skill, np.array(drawn), n, of_made.not_in(of_train))

        taught, told = tested({})
        rare = None
        if labels := _rare_labels(secret):
            of_labels, by_label = tested(labels)
            rare = by_label if of_labels.parts and by_label.real_skill >= _LEAST_TOLD else None
        return cls(
            secret=secret,
            told=told,
            grouped=bool(taught.used),
            rare=rare,
            associated=linear,
            unseen=not linear and unseen(subject, design, secret, seed),
            rows=subject.train.n_rows,
            level=subject.level,
        )

    @property
    def tied(self) -> bool:
        """Train ties the secret to other columns, by a line or by groups."""
        return self.associated or self.grouped

    @property
    def explained(self) -> bool:
        """There are rows enough for what predicts the secret."""
        return attributes.ROWS_EACH * len(self.secret.predictors) <= self.rows

    @property
    def measured(self) -> bool:
        """What train teaches helps with other real rows, and the release can be held against it."""
        return self.tied and self.explained and self.told.measurable(self.level)

    @property
    def bent(self) -> bool:
        """Something ties the secret to other columns that no attack here can measure."""
        lost = self.unseen if not self.grouped else not self.told.measurable(self.level)
        return lost or (self.rare is not None and not self.rare.measurable(self.level))

    @property
    def open(self) -> bool:
        """It cannot be said whether the secret is handed on: no gate may pass on the others alone."""
        return self.bent or (self.tied and not self.measured)

    def retained(self, level: float) -> Iterator[Measurement]:
        """Of the secret as a whole, and of its rare labels, each where real rows teach anything."""
        if self.measured:
            yield self._at(self.told, "", level)
        if self.rare is not None and self.explained and self.rare.measurable(self.level):
            yield self._at(self.rare, RARE_LABELS, level)

    def remarks(self) -> Iterator[str]:
        """What a reader must know of a secret that was not judged."""
        name = self.secret.name
        if self.bent:
            yield (
                f"{name} hangs on other columns in a way that is not linear, or by labels of few rows, "
                "and that the attack could not measure, so the whole is not judged"
            )
        elif not self.tied:
            yield f"no linear association of {name} is beyond chance, so nothing of it can be retained"
        elif not self.explained:
            yield (
                f"{name}: {attributes.ROWS_EACH} training rows are needed for each number that predicts it, "
                "so the whole is not judged"
            )
        elif self.open:
            yield (
                f"{name}: real rows are too few for the attack to succeed at others, so the whole is not "
                "judged"
            )

    def _at(self, skill: SkillEstimate, setting: str, level: float) -> Measurement:
        found, name = Estimate(skill.retained, skill.interval(level)), self.secret.name
        return attributes.RETAINED.at(
            found, setting=setting, column=name, n=skill.rows, n_minimum=attributes.FEWEST_SCORED
        )


@dataclass(frozen=True, kw_only=True)
class AttributeAttack:
    """Learns from the release how a secret hangs on all other columns, and guesses it at real people.

    ``retained = |skill| / skill_real``: skill is the signed squared correlation of the guesses with the
    secrets of control rows (of train, cross-fitted in ten folds, if there are fewer than 50); skill_real that
    of the same attack learnt from all of train. 0 is a release whose other columns tell nothing of the
    secret, 1 one that teaches the attack as much as real rows do. Without a column it is the worst number of
    all secrets, its interval corrected for how many there are; there is none while a secret could not be
    judged.

    Guesses are ``Σ β_k x_k`` by least squares; where in train the groups of a column, its labels or quantile
    bins, differ in what β leaves, the group's mean is added, read off the other rows of the group. That
    follows bends and as many labels as a column has; what columns tell only together it does not. Labels of
    the secret that share one number, and have 10 training rows each, are attacked apart (*rare labels*). What
    an F test at 1 % does not find in the release counts as 0, with what the test may overlook at the upper
    end of the interval.

    A secret that train ties to nothing, by a permutation test, cannot be given away and gets no ``retained``.
    Where tests find something that no attack here measures, the whole is not judged. Rows that lack the
    secret teach nothing, and numbers are read no further than train's own smallest and largest.

    Fields:
        columns: secrets; left out, the columns of role sensitive.

    Raises:
        ValueError: a column is named twice.
        NotApplicable: train has too few rows, a secret is the target, or none can be attacked.

    Source: TVineSynth, Appendix G; Stadler et al. 2022.
    """

    columns: tuple[str, ...] = ()

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Attribute attack",
        question="How much of what other columns tell of a secret does this release hand on?",
        threat_model=(
            "An adversary knows all of a person's attributes but one, learns from the release how they hang "
            "together, and infers the one."
        ),
        not_covered=(
            "Other releases of the same generator, which `attribute_game` draws; what other columns tell "
            "only together, such as a product of two; whether a value is missing; copies of single records. "
            "What the population has in common counts as well: a release that hands on a true association "
            "is useful for it and tells of everybody to whom it applies."
        ),
        quantities=(attributes.RETAINED,),
        risk="inference",
        leak=Leak.ASSOCIATIONS,  # it needs a secret: one of role sensitive, or one that `columns` names
        default=False,
        source="TVineSynth, Appendix G; Stadler et al. 2022",
    )

    def __post_init__(self) -> None:
        different(self, "columns")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Attack each secret; rows and bootstrap by the seed of the plan."""
        attacked = attributes.AttackedSecrets.of(subject, self.columns)
        design = attacked.design
        with single_threaded_algebra():
            found = [SecretFinding.of(subject, design, secret, context.seed) for secret in attacked.secrets]
        notes = (note for finding in found for note in finding.remarks())
        measured = attributes.retained(
            lambda level: [m for finding in found for m in finding.retained(level)],
            subject.level,
            judged=attacked.complete and not any(finding.open for finding in found),
        )
        return Findings(tuple(measured), notes=(*attacked.notes, *notes))
