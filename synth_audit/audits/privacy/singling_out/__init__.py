"""Singling out: does the release tell of something that is true of exactly one person?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Codes32, Positions
from synth_audit.audits._declarations import at_least
from synth_audit.audits.privacy.singling_out import predicates, success
from synth_audit.audits.privacy.singling_out.predicates import CodedRows, ColumnCodebook, Predicates, codebook
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import (
    Findings,
    IntervalEstimate,
    Measurement,
    SampleCounts,
)
from synth_audit.neighbours.search import nearest_other
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.attack_success import corrected_level, paired_risk, risk, worst_interval
from synth_audit.stats.proportions import Proportion

UNIVARIATE, EMBEDDING = "univariate", "embedding"


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
        quantities=(
            success.RISK,
            success.WORST,
            success.EXACT_VALUES,
            success.TRAIN_RATE,
            success.CONTROL_RATE,
            success.NAIVE_RATE,
            success.PAIRED_RISK,
            success.PUBLISHED_RISK,
        ),
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

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Guess in each setting and try every guess on train and control.

        Raises:
            NotApplicable: no predicate of any setting matches exactly one synthetic row.
        """
        tables = [*subject.real, subject.synthetic]
        lexicon, (train, control, synthetic) = codebook(tables, subject.features)
        subject, synthetic = success.without_repeats(subject, synthetic)
        guesses = {}
        for setting, found in self._guesses(subject, synthetic, lexicon, context):
            width = int(np.median(found.widths)) if len(found) else 1
            guesses[setting] = (found, predicates.naive(lexicon, width, len(found), context.rng))
        trials = success.PredicateTrial.of_each(list(guesses.values()), lexicon, train, control)
        tried = dict(zip(guesses, trials, strict=True))
        made = {setting: trial for setting, trial in tried.items() if len(trial)}
        if not made:
            raise NotApplicable(
                "no predicate matches exactly one synthetic row, so there is nothing to guess"
            )
        measured = [
            m for setting, trial in tried.items() for m in self._measured(setting, trial, subject.level)
        ]
        if self.published:
            factor = success.published_factor(control.shape[1], train.shape[1])
            measured += [self._published(*item, factor, subject.level) for item in made.items()]
        betrayed, notes = success.exact_values(made.get(UNIVARIATE), lexicon, subject.level)
        sizes = train.shape[1], control.shape[1]
        return Findings(
            (self._worst(made.values(), subject.level), *measured, *betrayed),
            (success.pictured(made),),
            (*notes, *self._notes(tried, *sizes)),
            tuple(
                success.exposure_of(success.RISK.id(setting), trial, lexicon, sizes[0])
                for setting, trial in made.items()
            ),
        )

    def _guesses(
        self, subject: Subject, codes: Codes32, lexicon: ColumnCodebook, context: RunContext
    ) -> Iterator[tuple[str, Predicates]]:
        """Name and distinct guesses of each setting, read off the release's codes."""
        synthetic = CodedRows.of(codes, lexicon.lasts)
        n, d, rng = self.n_attacks, len(lexicon), context.rng
        if self.univariate:
            yield UNIVARIATE, predicates.univariate(synthetic, lexicon, n, rng)
        for k in sorted({min(k, d) for k in self.multivariate} - {1}):
            found = predicates.multivariate(synthetic, lexicon, k, n, self.max_trials * n, rng)
            yield f"multivariate[{k}]", found
        if not (self.embedding or self.embedding_columns):
            return
        outliers, bins = self._outliers(subject, context), self.n_bins
        if self.embedding:
            yield EMBEDDING, predicates.guided(synthetic, lexicon, outliers, n, bins, rng)
        for k in sorted({min(k, d) for k in self.embedding_columns} - {1}):
            trials = self.max_trials * n
            found = predicates.outlying(synthetic, lexicon, outliers, k, n, bins, trials, rng)
            yield f"{EMBEDDING}[{k}]", found

    def _outliers(self, subject: Subject, context: RunContext) -> Positions:
        """Synthetic rows by falling distance to their second-nearest other row in the embedding."""
        [points] = embed(
            subject.train,
            [subject.synthetic],
            subject.features,
            settings=self.embedding_settings,
            context=context,
        )
        few = np.sort(context.rng.choice(len(points), min(len(points), self.max_outliers), replace=False))
        apart = nearest_other(points, few).second
        return few[np.argsort(-apart, kind="stable")][: self.n_attacks]

    def _measured(self, setting: str, trial: success.PredicateTrial, level: float) -> Iterator[Measurement]:
        """Risk of one setting, the rates it is made of, and the paired risk where the sizes allow it."""
        n = len(trial)
        counts = SampleCounts(n_requested=self.n_attacks, n_achieved=n, n_minimum=self.n_minimum)
        yield success.RISK.at(trial.risk(level), setting=setting, reference=success.HONEST, **counts)
        if not n:
            return
        hits, strangers = trial.in_train.single, trial.in_control.single
        control = IntervalEstimate(trial.control.share, trial.control.interval(level))
        rates = [
            (success.TRAIN_RATE, Proportion.of(hits).estimate(level), self.n_attacks),
            (success.CONTROL_RATE, control, self.n_attacks),
            (success.NAIVE_RATE, Proportion.of(trial.naive).estimate(level), n),
        ]
        if trial.paired:
            rates.append((success.PAIRED_RISK, paired_risk(hits, strangers, level), self.n_attacks))
        for quantity, found, asked in rates:
            yield quantity.at(found, setting=setting, n_requested=asked, n_achieved=n)

    def _published(
        self, setting: str, trial: success.PredicateTrial, factor: float, level: float
    ) -> Measurement:
        """The risk as the literature puts it; see :func:`published_factor`."""
        n, hits = len(trial), float(trial.in_control.single.sum())
        found = risk(Proportion.of(trial.in_train.single), Proportion(min(n, factor * hits), n), level)
        return success.PUBLISHED_RISK.at(found, setting=setting, n_requested=self.n_attacks, n_achieved=n)

    def _worst(self, made: Collection[success.PredicateTrial], level: float) -> Measurement:
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
        counts = SampleCounts(n_requested=self.n_attacks, n_achieved=most, n_minimum=self.n_minimum)
        interval = worst_interval([i for _, i in judged], level, f"{len(made)} settings")
        return success.WORST.at(
            max(v for v, _ in judged), interval=interval, reference=success.HONEST, **counts
        )

    def _notes(
        self, tried: Mapping[str, success.PredicateTrial], n_train: int, n_control: int
    ) -> tuple[str, ...]:
        few = [setting for setting, trial in tried.items() if len(trial) < self.n_minimum]
        notes = []
        if few:
            notes.append(
                f"{', '.join(few)}: too few unique predicates were found to judge this setting by itself"
            )
        if n_control < n_train:
            notes.append(
                "control is smaller than train: control rows took the place of as many training rows, and "
                "those guesses count that single out one of them, in proportion"
            )
        return tuple(notes)
