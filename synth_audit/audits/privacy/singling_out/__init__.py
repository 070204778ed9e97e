"""Singling out: does the release tell of something that is true of exactly one person?"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from synth_audit.arrays import Bools, Codes32, Counts, Floats, Positions
from synth_audit.audits._shared import at_least, descriptive, risk_over_control
from synth_audit.audits.privacy.singling_out import predicates
from synth_audit.audits.privacy.singling_out.predicates import CodedRows, ColumnCodebook, Matches, Predicates
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings import measurement
from synth_audit.neighbours.search import nearest_other, repeated_at_most, row_kinds
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.attack_success import corrected_level, paired_risk, risk, worst_interval
from synth_audit.stats.proportions import (
    Proportion,
    middle_and_half_width,
    proportion_interval,
    unknown_proportion,
)

RISK = risk_over_control(
    "risk",
    "Singling-out risk",
    unit=measurement.DESCRIPTIONS,
    proportional=False,  # a joined guess at a copied row fits others in train too, unless all of it is copied
    help="0: guesses single out training rows no more often than control people; 1: every guess does.",
)

WORST = risk_over_control(
    "worst_risk",
    "Singling-out risk, worst attack",
    unit=measurement.DESCRIPTIONS,
    proportional=False,  # generators that draw exact values of single columns reach 1 without copying a row
    help="The riskiest of the attack's settings; its interval allows for their number. A setting with few "
    "attempts counts where it proves a risk. The attempts are those of the setting with most.",
)

TRAIN_RATE = descriptive(
    "train_rate",
    "Guesses that match exactly one training row",
    help="Includes what chance and general knowledge of the population achieve.",
)

CONTROL_RATE = descriptive(
    "control_rate",
    "Guesses that would match exactly one of as many control people",
    help="From control rows, at the size of the training table.",
)

NAIVE_RATE = descriptive(
    "naive_rate",
    "Random guesses that match exactly one training row",
    help="Predicates of the same kind made without the release.",
)

RATES = (TRAIN_RATE, CONTROL_RATE, NAIVE_RATE)

PAIRED_RISK = descriptive(
    "paired_risk",
    "Singling-out risk, guess by guess",
    range=(float("-inf"), 1.0),
    help="The same risk with each guess's outcome on train and control paired; where they are of equal size.",
)

PUBLISHED_RISK = descriptive(
    "published_risk",
    "Singling-out risk, control rate corrected as published",
    range=(float("-inf"), 1.0),
    help="To compare with figures in the literature; it takes an honest release for a risk.",
)

EXACT_VALUES = risk_over_control(
    "exact_values",
    "Values of a column that belong to exactly one training row, beyond control people",
    proportional=False,
    help="Above 0 the column leaves with exact values of real people, whether or not their rows do.",
)

_FEWEST = 20
"""Guesses on a column below which nothing is said of it."""

_NAMED = 10
"""Columns that the note names."""

HONEST = measurement.Reference(0.0, "a release that is independent of the training rows")

_MOST_COLUMNS = 5
"""An exposure names at most this many columns."""

UNIVARIATE, EMBEDDING = "univariate", "embedding"


@dataclass(frozen=True)
class IsolationRate:
    """Successes per guess, and how many independent guesses that rests on.

    Attributes:
        share: successes over guesses made, in [0, 1]; NaN without a guess.
        trials: guesses made.
        effective: independent guesses that would be as certain, at most ``trials``; need not be whole.
    """

    share: float
    trials: int
    effective: float

    @classmethod
    def of(cls, gains: Floats | Bools, rows: Positions, most: float = 1.0) -> Self:
        """Mean gain per guess.

        Guesses that single out one and the same record succeed or fail together: with m_r the gain through
        record r, the sum of gains varies like ``Σ m_r²`` instead of ``Σ m_r``, so that
        ``effective = guesses · min(1/most, Σ m_r / Σ m_r²)``.

        Args:
            gains: of each guess, in [0, most], shape (p,).
            rows: the record through which a guess gains, shape (p,); read only where the gain is not 0.
            most: the largest gain of one guess, at least 1.
        """
        n = len(gains)
        if not n:
            return cls(math.nan, 0, 0.0)
        gaining = gains > 0
        total = float(np.sum(gains))
        _, whose = np.unique(rows[gaining], return_inverse=True)
        squares = float(np.sum(np.bincount(whose, weights=gains[gaining]) ** 2)) if total else 0.0
        shared = max(most, squares / total) if total else most
        return cls(total / n, n, n / shared)

    def interval(self, level: float) -> measurement.Interval:
        """The interval on the effective number of guesses; the whole of [0, 1] without one."""
        if not self.trials:
            found = unknown_proportion(level)
        else:
            successes = min(min(self.share, 1.0) * self.effective, self.effective)
            found = proportion_interval(successes, self.effective, level)
        return replace(found, method=f"{found.method} on independent guesses")

    def centre(self, level: float) -> float:
        """The middle of the interval of the guesses made, as in the published risk."""
        return middle_and_half_width(self.share * self.trials, self.trials, level)[0]


@dataclass(frozen=True, eq=False)
class PredicateTrial:
    """Guesses tried on train and control.

    Attributes:
        lexicon: what the codes of the guesses stand for. predicates: the guesses, p of them.
        in_train, in_control: what each matches; counts of train are exact where one control row is matched,
            those of control where train has fewer rows.
        naive: which guesses made without the release match one training row; p of them.
        sizes: rows of train and of control.
    """

    lexicon: ColumnCodebook
    predicates: Predicates
    in_train: Matches
    in_control: Matches
    naive: Bools
    sizes: tuple[int, int]

    def __len__(self) -> int:
        return len(self.predicates)

    @classmethod
    def of_each(
        cls,
        guesses: Sequence[tuple[Predicates, Predicates]],
        lexicon: ColumnCodebook,
        train: Codes32,
        control: Codes32,
    ) -> list[Self]:
        """Try guesses of several kinds, with one table at a time prepared for matching.

        Args:
            guesses: read off a release, and made without it.
            train, control: codes, shape (d, n) each.
        """
        n_t, n_c = train.shape[1], control.shape[1]
        limit = 2 if n_c <= n_t else n_c + 1
        rows = CodedRows.of(control, lexicon)
        on_control = [predicates.match(rows, made, limit) for made, _ in guesses]
        del rows
        rows, found = CodedRows.of(train, lexicon), []
        for (made, without), in_control in zip(guesses, on_control, strict=True):
            in_train = predicates.match(rows, made)
            if len(many := np.flatnonzero(in_control.single & (in_train.counts > 1))):
                in_train.counts[many] = predicates.match(rows, made.take(many), limit=n_t + 1).counts
            by_luck = predicates.match(rows, without).single
            found.append(cls(lexicon, made, in_train, in_control, by_luck, (n_t, n_c)))
        return found

    @cached_property
    def train(self) -> IsolationRate:
        """Success rate of all guesses."""
        return self.rates(slice(None))[0]

    @cached_property
    def control(self) -> IsolationRate:
        """Success rate at the size of train among people that the generator never saw."""
        return self.rates(slice(None))[1]

    def rates(self, some: Bools | slice) -> tuple[IsolationRate, IsolationRate]:
        """Success rates of some of the guesses, on train and on control."""
        (n_t, n_c), here, there = self.sizes, self.in_train, self.in_control
        strangers = control_rate(there.counts[some], there.rows[some], here.counts[some], n_c, n_t)
        return IsolationRate.of(here.single[some], here.rows[some]), strangers

    def risk(self, level: float, some: Bools | slice = slice(None)) -> measurement.IntervalEstimate:
        """Of all guesses, or some given as a mask of shape (p,); see :func:`isolation_risk`."""
        return isolation_risk(*self.rates(some), level)

    def most_used(self) -> list[int]:
        """Columns of the predicates that single out a training row, the most used first."""
        columns = self.predicates.take(self.in_train.single).columns
        times = np.bincount(columns.ravel())
        return [int(j) for j in np.argsort(-times, kind="stable") if times[j]]


def chance_at_most(n: int) -> float:
    """The largest chance that a predicate made without a table of n rows isolates one of them.

    ``max_w P(w, n) = (1 − 1/n)^(n − 1)`` with ``P(w, n) = n·w·(1 − w)^(n − 1)``; 1/e for large n.
    Source: Cohen & Nissim 2020.
    """
    return (1 - 1 / n) ** (n - 1)


def gains_among_strangers(control: Counts, train: Counts, n_control: int, n_train: int) -> Floats:
    """What each guess is worth among ``n_train`` people that the generator never saw, shape (p,).

    With as many control rows as training rows: 1 where it matches one control row. With more, the mean of
    that over all subsets of n_train control rows. With fewer, control rows take the place of as many random
    training rows, and a guess gains ``n_train / n_control`` when it singles out a *control* row of the mixed
    table:

    ``(n_t / n_c) · [c = 1] · P(none of the t matched training rows is among the n_t − n_c that stay)``.

    If guesses do not depend on who is in train, control and train rows are exchangeable, and the expected
    gain is ``P(w, n_t) = n_t·w·(1 − w)^(n_t − 1)`` exactly (Cohen & Nissim 2020), for every weight w of the
    predicate and any sizes: nothing is fitted or extrapolated. A leaked training row can only lower it, as
    it stands in the way of the control row, which raises the risk.

    Args:
        control: control rows matched, exact up to 1, or throughout when n_control > n_train; shape (p,).
        train: training rows matched, exact where one control row is; shape (p,).
    """
    from scipy.stats import hypergeom  # lazy import: keeps CLI start fast

    if n_control == n_train:
        return np.equal(control, 1).astype(np.float64)
    if n_control > n_train:
        return np.asarray(hypergeom.pmf(1, n_control, control, n_train), dtype=np.float64)
    none_stays = hypergeom.pmf(0, n_train, train, n_train - n_control)
    return np.asarray(np.where(control == 1, n_train / n_control * none_stays, 0.0), dtype=np.float64)


def control_rate(
    control: Counts, rows: Positions, train: Counts, n_control: int, n_train: int
) -> IsolationRate:
    """Mean of :func:`gains_among_strangers`, cut at :func:`chance_at_most`, which its expectation keeps.

    Args:
        rows: position of one matched control row, shape (p,); the rest as there.
    """
    gains = gains_among_strangers(control, train, n_control, n_train)
    rate = IsolationRate.of(gains, rows, max(1.0, n_train / n_control))
    return replace(rate, share=min(rate.share, chance_at_most(n_train)))  # NaN without a guess stays NaN


def published_factor(n_control: int, n_train: int) -> float:
    """What the literature multiplies the control rate with to carry it to the size of train.

    Cohen & Nissim's ``P(w, n) = n·w·(1 − w)^(n − 1)``, averaged over weights w that are even in [0, 1], is
    ``1 / (n + 1)``, so that the rate falls with the size by ``(n_control + 1) / (n_train + 1)``. Predicates
    read off a release have far smaller weights, and strangers are singled out about as often in a larger
    table: the correction takes an honest release for a risk, which is why it is reported beside the risk
    and not as it. Source: Giomi et al. 2022.
    """
    return (n_control + 1) / (n_train + 1)


def isolation_risk(
    train: IsolationRate, control: IsolationRate, level: float
) -> measurement.IntervalEstimate:
    """Risk of being singled out through the release, beyond chance.

    :func:`~synth_audit.stats.attack_success.risk` on the middles of the intervals of the guesses made, with
    an interval from those of the *effective* guesses, widened to hold the value.

    Returns:
        NaN with an infinite interval without a guess.
    """
    found = risk(train, control, level)
    low, high = min(found.interval.low, found.value), max(found.interval.high, found.value)
    return replace(found, interval=replace(found.interval, low=low, high=high))


def exact_values(trial: PredicateTrial, level: float) -> tuple[list[measurement.Measurement], list[str]]:
    """The risk of guesses on single columns for each, and a note that names those where it is proven."""
    of_column = trial.predicates.columns[:, 0]
    asked, times = np.unique(of_column, return_counts=True)
    asked = asked[times >= _FEWEST]
    found, proven = [], []
    for j in asked:
        some = of_column == j
        left = trial.risk(corrected_level(level, len(asked)), some)
        interval = worst_interval([left.interval], level, f"{len(asked)} columns")
        name, n = trial.lexicon.names[j], int(some.sum())
        found.append(EXACT_VALUES.at(left.value, column=name, interval=interval, n=n, reference=HONEST))
        if left.interval.low > 0:
            proven.append((-left.value, name))
    columns = [name for _, name in sorted(proven)]
    if not columns:
        return found, []
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    return found, [
        f"columns with exact values of real people: {', '.join(columns[:_NAMED])}{more}. A value that only "
        "one person has shows that this person was in the training set, even where no row is copied. "
        "Round these columns or put their values into coarser classes"
    ]


def exposure_of(
    risk_id: measurement.MeasurementId, trial: PredicateTrial, everybody: Positions
) -> measurement.Exposure:
    """The records singled out of all, and the columns most used for it.

    No trial on control: as fewer rows leave more of them alone, the same guesses would single out another
    share of control than of as many strangers as train has rows.
    """
    none = np.empty(0, dtype=np.intp)
    columns = tuple(trial.lexicon.names[j] for j in trial.most_used()[:_MOST_COLUMNS])
    hit = np.unique(trial.in_train.rows[trial.in_train.single])
    return measurement.Exposure(risk_id, columns, everybody, hit, none, none)


def pictured(made: Mapping[str, PredicateTrial]) -> measurement.Series:
    """Success rates of all settings side by side."""
    return measurement.Series(
        id=measurement.MeasurementId("", "success_rates"),
        title="Guesses that single out one person",
        kind="bar",
        x_label="attack",
        y_label="share of guesses",
        x=tuple(made),
        lines={
            "training rows": tuple(trial.train.share for trial in made.values()),
            "control people": tuple(trial.control.share for trial in made.values()),
            "without the release": tuple(float(trial.naive.mean()) for trial in made.values()),
        },
    )


def without_repeats(subject: Subject, synthetic: Codes32) -> tuple[Subject, Codes32]:
    """The release, as it stands in the subject and coded, with rows once that its size lets repeat.

    With r rows for each training row a copied record is there about r times, and no description of it fits
    exactly one row. So of equal rows that are at most ⌈r⌉ the first stays. Where more are equal they stay
    together: as many people may be alike.

    Args:
        synthetic: shape (d, n).
    """
    most = -(-synthetic.shape[1] // subject.train.n_rows)
    if most < 2:
        return subject, synthetic
    kept = repeated_at_most(row_kinds(synthetic.T), most)
    rows = np.ascontiguousarray(synthetic[:, kept])
    return replace(subject, synthetic=subject.synthetic.take(kept)), rows


@dataclass(frozen=True, kw_only=True)
class SinglingOut:
    """Guesses predicates from the release and counts those that are true of exactly one training row.

    A predicate that matches exactly one synthetic row is a guess; it succeeds when it matches exactly one
    real row. ``risk = (r_train − r_control) / (1 − r_control)``, where r_control is the success rate among as
    many people as train has whom the generator never saw (:func:`control_rate`, exact for any
    sizes). No predicate is guessed twice, and rates are over the guesses made. Of a release with r rows for
    each training row, at most ⌈r⌉ equal rows count as one, or a large release would hide copies in repeats.

    Settings: ``univariate`` asks for values that occur once and for extremes; ``multivariate[k]`` joins k
    random columns of a random synthetic row; ``embedding`` describes rows that lie far from all others in the
    contrastive embedding by quantile bins, by as many columns as it takes; ``embedding[k]`` describes them by
    k random columns and bins of equal width, as published (there k is 3 to 12).

    ``exact_values`` is the risk of the guesses on one column alone, for columns with 20 and more, its
    interval at ``1 − (1 − level) / columns``. A generator that draws from the real values of a column gives
    away who was in train by any value that only one person has, though it copies no row: the notes name
    these columns.

    ``worst_risk`` is the largest risk over the settings, its interval from the largest lower and the largest
    upper end at ``1 − (1 − level) / settings``. A setting with fewer than ``n_minimum`` guesses is not a weak
    attack: the release holds hardly more unique predicates of its kind. It enters when it proves a risk (its
    lower end is above 0), or when no setting reached the minimum, and then worst_risk falls short too.
    Otherwise a handful of extremes would keep every table of labels from being judged; the risk of the
    setting itself still falls short.

    Fields:
        univariate: guess on single columns.
        multivariate: numbers of columns to join, each at least 2; one larger than the table is the table's.
        embedding: guess on outliers of the embedding (needs torch).
        embedding_columns: numbers of columns to join for such outliers as published; like ``multivariate``.
        embedding_settings: how its network is built and trained.
        published: also report the risk with the published correction for a control smaller than train.
        n_attacks: guesses wanted in each setting.
        n_minimum: with fewer, a setting is insufficient evidence; at most n_attacks.
        max_trials: predicates tried per guess wanted, as most are not unique.
        n_bins: bins of a number under ``embedding`` and ``embedding_columns``.
        max_outliers: synthetic rows searched for outliers, drawn at random.

    Raises:
        ValueError: a field is outside its range, or no setting is chosen.

    Source: Giomi et al. 2022; contrastive privacy metrics, sections 3.4 and 4.2; Cohen & Nissim 2020.
    """

    univariate: bool = True
    multivariate: tuple[int, ...] = (4, 8, 12)
    embedding: bool = False
    embedding_columns: tuple[int, ...] = ()
    embedding_settings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    published: bool = False
    n_attacks: int = 2000
    n_minimum: int = 500
    max_trials: int = 100
    n_bins: int = 20
    max_outliers: int = 5000

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Singling out",
        question="Does the release describe one single person of the training data, and nobody else?",
        threat_model=(
            "An adversary with the release alone looks for descriptions that fit exactly one synthetic row "
            "and claims that exactly one person in the training data fits them too."
        ),
        not_covered=(
            "It does not say whether the person can be named or learns anything from it. A record that the "
            "release repeats more often than its size explains is not unique in it and is left to the audit "
            "of exact copies. Guesses weaken when the release is much smaller than the training table."
        ),
        quantities=(RISK, WORST, EXACT_VALUES, *RATES, PAIRED_RISK, PUBLISHED_RISK),
        risk="singling out",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="Giomi et al. 2022; contrastive privacy metrics §3.4, §4.2; Cohen & Nissim 2020",
    )

    def __post_init__(self) -> None:
        if not (self.univariate or self.multivariate or self.embedding or self.embedding_columns):
            raise ValueError("choose at least one of univariate, multivariate, embedding, embedding_columns")
        for name in ("multivariate", "embedding_columns"):
            widths = getattr(self, name)
            if any(k < 2 for k in widths) or len(set(widths)) < len(widths):
                raise ValueError(f"{name} must hold different numbers of columns, each at least 2")
        if not 1 <= self.n_minimum <= self.n_attacks:
            raise ValueError("n_minimum must lie between 1 and n_attacks")
        at_least(self, max_trials=1, n_bins=2, max_outliers=1)

    def run(self, subject: Subject, context: RunContext) -> measurement.Findings:
        """Guess in each setting and try every guess on train and control.

        Raises:
            NotApplicable: no predicate of any setting matches exactly one synthetic row.
        """
        tables = [*subject.real, subject.synthetic]
        lexicon, codes = predicates.codebook(tables, subject.features)
        guesses = self._guessed(subject, lexicon, codes.pop(), context)
        train, control = codes
        trials = PredicateTrial.of_each(list(guesses.values()), lexicon, train, control)
        tried = dict(zip(guesses, trials, strict=True))
        made = {setting: trial for setting, trial in tried.items() if len(trial)}
        if not made:
            raise NotApplicable(
                "no predicate matches exactly one synthetic row, so there is nothing to guess"
            )
        level, notes = subject.level, list[str]()
        everybody = np.arange(train.shape[1])  # one for all settings, as there may be millions
        measured = [m for setting, trial in tried.items() for m in self._measured(setting, trial, level)]
        if self.published:
            measured += [self._published(setting, trial, level) for setting, trial in made.items()]
        if UNIVARIATE in made:
            betrayed, notes = exact_values(made[UNIVARIATE], level)
            measured += betrayed
        if few := [setting for setting, trial in tried.items() if len(trial) < self.n_minimum]:
            notes.append(
                f"fewer than {self.n_minimum} descriptions could be tried by {', '.join(few)}. So few can "
                "prove a risk, and then count in the worst attack. They cannot show that there is none"
            )
        if control.shape[1] < train.shape[1]:
            notes.append(
                "control is smaller than train: control rows took the place of as many training rows, and "
                "those guesses count that single out one of them, in proportion"
            )
        return measurement.Findings(
            (self._worst(made.values(), level), *measured),
            (pictured(made),),
            tuple(notes),
            tuple(exposure_of(RISK.id(setting), trial, everybody) for setting, trial in made.items()),
        )

    def _guessed(
        self, subject: Subject, lexicon: ColumnCodebook, release: Codes32, context: RunContext
    ) -> dict[str, tuple[Predicates, Predicates]]:
        """Guesses of each setting, and as many without a release; its codes go with this call."""
        subject, release = without_repeats(subject, release)
        guesses, draws = {}, []
        for setting, found in self._guesses(subject, CodedRows.of(release, lexicon), context):
            width = int(np.median(found.widths)) if len(found) else 1
            guesses[setting] = found
            draws.append(predicates.NaiveDraws.of(len(lexicon), width, len(found), context.rng))
        naive = predicates.naive(lexicon, draws)
        return {setting: (found, naive[i]) for i, (setting, found) in enumerate(guesses.items())}

    def _guesses(
        self, subject: Subject, synthetic: CodedRows, context: RunContext
    ) -> Iterator[tuple[str, Predicates]]:
        """Name and distinct guesses of each setting, read off the release's codes."""
        n, d, rng = self.n_attacks, len(synthetic.lexicon), context.rng
        trials, bins = self.max_trials * n, self.n_bins
        if self.univariate:
            yield UNIVARIATE, predicates.univariate(synthetic, n, rng)
        for k in sorted({min(k, d) for k in self.multivariate} - {1}):
            yield f"multivariate[{k}]", predicates.multivariate(synthetic, k, n, trials, rng)
        if not (self.embedding or self.embedding_columns):
            return
        outliers = self._outliers(subject, context)
        if self.embedding:
            yield EMBEDDING, predicates.guided(synthetic, outliers, n, bins, rng)
        for k in sorted({min(k, d) for k in self.embedding_columns} - {1}):
            yield f"{EMBEDDING}[{k}]", predicates.outlying(synthetic, outliers, k, n, bins, trials, rng)

    def _outliers(self, subject: Subject, context: RunContext) -> Positions:
        """Synthetic rows by falling distance to their second-nearest other row in the embedding."""
        tables, settings = [subject.synthetic], self.embedding_settings
        [points] = embed(subject.train, tables, subject.features, settings=settings, context=context)
        few = np.sort(context.rng.choice(len(points), min(len(points), self.max_outliers), replace=False))
        apart = nearest_other(points, few).second
        return few[np.argsort(-apart, kind="stable")][: self.n_attacks]

    def _measured(
        self, setting: str, trial: PredicateTrial, level: float
    ) -> Iterator[measurement.Measurement]:
        """Risk of one setting, the rates it is made of, and the paired risk where the sizes allow it."""
        n = len(trial)
        counts = measurement.SampleCounts(n_requested=self.n_attacks, n_achieved=n, n_minimum=self.n_minimum)
        yield RISK.at(trial.risk(level), setting=setting, reference=HONEST, **counts)
        if not n:
            return
        hits, strangers = trial.in_train.single, trial.in_control.single
        control = measurement.IntervalEstimate(trial.control.share, trial.control.interval(level))
        rates = [
            (TRAIN_RATE, Proportion.of(hits).estimate(level), self.n_attacks),
            (CONTROL_RATE, control, self.n_attacks),
            (NAIVE_RATE, Proportion.of(trial.naive).estimate(level), n),
        ]
        if trial.sizes[0] == trial.sizes[1]:  # each guess had the same chance on both
            rates.append((PAIRED_RISK, paired_risk(hits, strangers, level), self.n_attacks))
        for quantity, found, asked in rates:
            yield quantity.at(found, setting=setting, n_requested=asked, n_achieved=n)

    def _published(self, setting: str, trial: PredicateTrial, level: float) -> measurement.Measurement:
        """The risk as the literature puts it; see :func:`published_factor`."""
        n, hits = len(trial), published_factor(*trial.sizes[::-1]) * float(trial.in_control.single.sum())
        found = risk(Proportion.of(trial.in_train.single), Proportion(min(n, hits), n), level)
        return PUBLISHED_RISK.at(found, setting=setting, n_requested=self.n_attacks, n_achieved=n)

    def _worst(self, made: Collection[PredicateTrial], level: float) -> measurement.Measurement:
        """The riskiest setting; the class says what becomes of those that fell short."""
        each = corrected_level(level, len(made))
        most = max(len(trial) for trial in made)
        judged = [
            (trial.risk(level).value, interval)
            for trial in made
            if (interval := trial.risk(each).interval).low > 0
            or len(trial) >= self.n_minimum
            or most < self.n_minimum
        ]
        counts = measurement.SampleCounts(
            n_requested=self.n_attacks, n_achieved=most, n_minimum=self.n_minimum
        )
        interval = worst_interval([i for _, i in judged], level, f"{len(made)} settings")
        return WORST.at(max(v for v, _ in judged), interval=interval, reference=HONEST, **counts)
