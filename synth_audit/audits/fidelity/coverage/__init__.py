"""Does the release lie where the real rows are typical, reach all of them, and consist of new rows?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from synth_audit.audits._declarations import at_least, merit, some_of
from synth_audit.audits.fidelity._reference import Found, measured_together, sampling_note
from synth_audit.audits.fidelity.coverage import balls
from synth_audit.encode.embedding import EmbeddingSettings
from synth_audit.encode.encoded import Encoded
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import (
    Direction,
    Estimate,
    Findings,
    MeasurementId,
    Quantity,
)
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import most_queries
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.table.table import Table

ALPHA_PRECISION = merit(
    "alpha_precision",
    "α-precision",
    help="1: each ball around the real centre holds as many synthetic rows as real; 0: none, or all.",
)

BETA_RECALL = merit(
    "beta_recall",
    "β-recall",
    help="1: each ball around the synthetic centre holds as many real rows as synthetic; 0: none, or all.",
)

AUPRC = merit(
    "auprc",
    "α-precision times β-recall",
    help="Near 1 only where both are.",
)

AUTHENTICITY = Quantity(
    "authenticity",
    "Authenticity",
    direction=Direction.HIGHER,
    help="Synthetic rows farther from their nearest training row than that one's own neighbour is; a copy "
    "has 0. More than control rows reach is no merit: rows that are nowhere near are authentic too.",
)

_MANY_DOUBLES = 0.01
"""Share of training rows with a double from which on a reader is told."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Compares how train and the release lie around each other's centre.

    With r_α the radius around train's mean within which the share α of train lies, ``P_α`` = share of the
    release within r_α and ``alpha_precision = 1 − 2 ∫ |P_α − α| dα``. ``beta_recall`` is the same with roles
    swapped: the share R_β of train in the ball around the release's mean that holds the share β of the
    release. ``auprc = alpha_precision · beta_recall``. ``authenticity`` = share of synthetic rows that are
    farther from their nearest training row than that row is from its nearest other training row.

    A row is seen from the mean of the rows but itself, and rows on a ball's edge count in part: a copy scores
    1, 1, 1 and 0 exactly. The programme of Alaa et al. differs in the recall: there a real row is covered
    where its nearest synthetic row is in that ball and nearer than the nearest other real row.

    All are in [0, 1]. The first three have an interval from the Bayesian bootstrap of both tables, centre and
    radii included, for the number at this many rows: noise alone pulls equal distributions down to about
    ``1 − 0.63 √(1/n + 1/m)``, control rows as well. Authenticity has that of a share, the training rows
    as given, of which rows with one nearest training row are a cluster.

    Fields:
        spaces: ``features`` (without a setting), standardised and one-hot, and ``embedding``, the contrastive
            embedding, which takes minutes.
        embedding_settings: how the network of the embedding is built and trained.
        most_rows: rows of a table, drawn at random where it has more, that lie in balls and span them.
        max_queries: at most this many rows, drawn at random, are asked for authenticity, all of train being
            searched.
        max_resampled: the bootstrap weights at most this many rows of each table, drawn at random, as
            if they were all.
        n_bootstrap: draws behind the intervals.

    Raises:
        NotApplicable: no column varies in train, or the embedding has too little to learn from.

    Source: Alaa et al. 2022; TableDiffusion thesis, section 6.8.3; TVineSynth, appendix I.
    """

    spaces: tuple[balls.SpaceName, ...] = ("features",)
    embedding_settings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    most_rows: int = 100_000
    max_queries: int = 3000
    max_resampled: int = 5000
    n_bootstrap: int = 200

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Typical, covered and new rows",
        question="Do synthetic rows lie where real ones are typical, do they cover all of them, and are "
        "they new rows?",
        threat_model="Someone who studies typical or unusual cases would miss some, or be shown what does "
        "not exist.",
        not_covered="What the distance from a centre does not show, such as relations between columns: "
        "shuffled columns may score well. Authenticity is no promise of privacy: rows near several "
        "similar people, or true in a single secret column, count as new.",
        quantities=(ALPHA_PRECISION, BETA_RECALL, AUPRC, AUTHENTICITY),
        risk="fidelity",
        cost="seconds",
        source="Alaa et al. 2022; TableDiffusion thesis, section 6.8.3; TVineSynth, appendix I",
    )

    def __post_init__(self) -> None:
        some_of(self, "spaces", balls.SPACES)
        if "features" not in self.spaces:
            raise ValueError("spaces must hold features")
        at_least(self, max_queries=1, most_rows=100, max_resampled=100, n_bootstrap=100)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Compare the release, and control rows as its reference, with train in every space."""
        seen: list[dict[balls.SpaceName, balls.Curves]] = []
        with context.keeping() as keeping:  # or the embedding would be learnt anew for every table
            spaces = [
                balls.AnchoredSpace.on(name, subject, self.embedding_settings, keeping)
                for name in self.spaces
            ]

            def compare(tables: Sequence[Table], seed: int) -> list[Found]:
                found = [_Compared({}, {}, np.random.default_rng(seed)) for _ in tables]
                for space in spaces:
                    self._compare(space, tables, found)
                seen.extend(x.curves for x in found)
                return [x.estimates for x in found]

            measurements = measured_together(subject, compare, self.info.quantities, context.rng)
        n = subject.synthetic.n_rows
        asked = min(most_queries(self.max_queries, subject.train.n_rows), n)
        counted = (
            replace(m, n_requested=asked, n_achieved=asked)
            if m.id.quantity == AUTHENTICITY.name
            else replace(m, n_achieved=min(self.most_rows, n))
            for m in measurements
        )
        # The release is compared first, control rows next; a third may be a part of the first.
        labels = ("synthetic rows", balls.CONTROL)[: len(subject.real)]
        pictures = [
            picture
            for s in self.spaces
            for picture in balls.curves(
                dict(zip(labels, (c[s] for c in seen), strict=False)), subject, _setting(s)
            )
        ]
        read = sampling_note(subject, self.most_rows, "All but authenticity is read from")
        return Findings(tuple(counted), tuple(pictures), (*_doubles(subject), *read))

    def _compare(
        self, space: balls.AnchoredSpace, tables: Sequence[Table], found: Sequence[_Compared]
    ) -> None:
        """Add what each table shows in a space; all are asked of the same rows of train, put there once."""
        train, level = space.subject.train, space.subject.level
        most, asked = most_queries(self.max_queries, train.n_rows), list[Table]()
        pairs = list[tuple[Coordinates, Coordinates]]()
        for table, one in zip(tables, found, strict=True):
            known, part = (t.sample(self.most_rows, one.draws) for t in (train, table))
            pair = space.rows(known, part)
            one.curves[space.name] = balls.Curves.of(pair)
            drawn = balls.resampled(pair, self.max_resampled, self.n_bootstrap, one.draws)
            one.add(space.name, balls.scored(one.curves[space.name], pair.least, drawn, level))
            if known is train:
                pairs.append((pair.other, pair.train))
            else:
                asked.append(part.sample(most, one.draws))
        if asked:
            *others, every = space.coordinates([*asked, train])
            pairs = [(other, every) for other in others]
        for one, (other, every) in zip(found, pairs, strict=True):
            made = balls.drawn_part(other, most, one.draws)
            one.add(space.name, {AUTHENTICITY.name: balls.authenticity(made, every, level, one.draws)})


@dataclass(frozen=True, eq=False)
class _Compared:
    """What one table showed so far.

    Attributes:
        draws: the table's own, moved by no other table.
    """

    estimates: dict[MeasurementId, Estimate]
    curves: dict[balls.SpaceName, balls.Curves]
    draws: np.random.Generator

    def add(self, space: balls.SpaceName, estimates: Mapping[str, Estimate]) -> None:
        """Keep estimates by quantity as those of a space."""
        self.estimates.update({MeasurementId("", n, _setting(space)): e for n, e in estimates.items()})


def _setting(space: balls.SpaceName) -> str:
    return "" if space == "features" else space


def _doubles(subject: Subject) -> tuple[str, ...]:
    """A note where enough training rows have a double for authenticity to mean something else."""
    [groups] = Encoded([subject.train], subject.features).groups()
    sizes = np.bincount(groups)[groups]
    n = int(np.count_nonzero(sizes > 1))
    share = n / len(groups)
    if share < _MANY_DOUBLES or n < subject.suppression:
        return ()
    return (
        f"about {share:.0%} of the training rows have a double: a synthetic row that equals one is not "
        "authentic, although it may point at nobody, and a row that is merely near one always is",
    )
