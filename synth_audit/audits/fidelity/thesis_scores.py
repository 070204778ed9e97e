"""The figures of TableDiffusion's thesis, computed as they were published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats
from synth_audit.audits.fidelity._propensity import MOST_LABELS, by_frequency
from synth_audit.audits.fidelity._reference import measured, sampling_note
from synth_audit.encode.codes import codes
from synth_audit.errors import NotApplicable
from synth_audit.findings.measurement import Direction, Estimate, Findings, MeasurementId, Quantity
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.run.context import RunContext
from synth_audit.run.executor import single_threaded
from synth_audit.table.kind import NumberPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

STEPS = 30
"""Levels of α and β, 0 and 1 among them."""


def precision_curve(real: Floats, made: Floats) -> Floats:
    """Share of made rows within the α-quantile of real rows' distances from the real mean, shape (30,).

    Args:
        real, made: vectors, shape (n, p) and (m, p).
    """
    centre = real.mean(axis=0)
    radii = np.quantile(np.linalg.norm(real - centre, axis=1), np.linspace(0, 1, STEPS))
    found: Floats = np.mean(np.linalg.norm(made - centre, axis=1)[:, None] <= radii, axis=0)
    return found


def recall_curve(real: Floats, made: Floats) -> Floats:
    """Share of real rows that a made row covers within the β-support of the made rows, shape (30,).

    A real row is covered where the nearest made row is no farther than the nearest other real row; the made
    row counts at β where it is within the β-quantile of made rows' distances from the made mean.

    Args:
        real, made: vectors, shape (n, p) and (m, p), n ≥ 2.
    """
    from sklearn.neighbors import NearestNeighbors  # here, since it takes a second to load

    with single_threaded():
        own = NearestNeighbors(n_neighbors=2, n_jobs=1).fit(real).kneighbors(real)[0][:, 1]
        distance, place = NearestNeighbors(n_neighbors=1, n_jobs=1).fit(made).kneighbors(real)
    outside = np.linalg.norm(made - made.mean(axis=0), axis=1)
    radii = np.quantile(outside, np.linspace(0, 1, STEPS))
    inside = (distance[:, 0] <= own)[:, None] & (outside[place[:, 0]][:, None] <= radii)
    found: Floats = inside.mean(axis=0)
    return found


def propensity_ratio(vectors: Floats, made: Bools, features: int) -> float:
    """pMSE over ``k (n₁/N)² (n₂/N) / N``, with k columns, n₁ real and n₂ made rows.

    Args:
        vectors: of real and made rows, each coordinate in [0, 1], shape (N, p). made: shape (N,), of both
            kinds. features: k, columns before labels became indicators.
    """
    from sklearn.linear_model import LogisticRegression  # see above

    share = float(made.mean())
    with single_threaded():
        model = LogisticRegression(max_iter=1000).fit(vectors, made)
        scores = model.predict_proba(vectors)[:, 1]
    expected = features * (1 - share) ** 2 * share / len(made)
    return float(np.mean((scores - share) ** 2)) / expected


def proportion_chi_square(real: Floats, made: Floats) -> float:
    """``1 − p`` of a χ² test that is handed shares instead of counts, near 0 whatever they are.

    Args:
        real: shares of the labels in the real rows, all above 0, shape (k,). made: in the made rows; what
            has none counts as 1e-6.
    """
    from scipy.special import chdtr  # see above

    if len(real) < 2:
        return 0.0
    seen = np.where(made > 0, made, 1e-6)
    seen = seen / seen.sum()
    return float(chdtr(len(real) - 1, np.sum((seen - real) ** 2 / real)))


FEWEST_ROWS = 10
"""Of either table, fewer than which nothing is compared."""


def _quantity(name: str, title: str, unit: str, most: float, help_text: str) -> Quantity:
    # No direction: what the thesis' own text calls better is not better beyond what fresh real rows have.
    return Quantity(name, title, unit=unit, direction=Direction.NEUTRAL, range=(0.0, most), help=help_text)


PMSE = _quantity(
    "pmse_ratio_published",
    "pMSE ratio, as published in the thesis",
    "ratio",
    math.inf,
    "Expected is k (n₁/N)² (n₂/N) / N with k columns, whatever their labels: far above 1 for real rows too.",
)
MD = _quantity(
    "marginal_distance_published",
    "Marginal distance, as published in the thesis",
    "distance",
    1.0,
    "Mean of Kolmogorov–Smirnov distances and of 1 − p of χ² on shares, which is near 0 for any labels.",
)
ALPHA = _quantity(
    "alpha_precision_published",
    "α-precision, as published in the thesis",
    "score",
    1.0,
    "Mean of 30 steps of the curve; about ½ for fresh real rows, more for rows nearer to the mean.",
)
BETA = _quantity(
    "beta_recall_published",
    "β-recall, as published in the thesis",
    "score",
    1.0,
    "Mean of 30 steps of the curve; real rows covered by a row of the release.",
)
AUPRC = _quantity(
    "auprc_published",
    "α-precision times β-recall, as published in the thesis",
    "score",
    1.0,
    "The product of both means, called AUPRC there.",
)


@dataclass(frozen=True, kw_only=True)
class ThesisScores:
    """Computes what tables 7.1 to A.2 of the thesis hold, to compare with; nothing here should be gated.

    Numbers are scaled to [0, 1] over both tables, what is missing read as their mean; labels, missing among
    them, are indicators. ``pmse_ratio_published`` fits a logistic regression with the ridge of its library.
    ``marginal_distance_published`` hands shares to χ². α-precision and β-recall are means over 30 levels,
    around the mean of the real and of the made rows, from as many rows of either. ``propensity``,
    ``marginals`` and ``coverage`` ask the same soundly.

    Fields:
        most_rows: rows taken of either table, at random.

    Raises:
        NotApplicable: train or the release has fewer than 10 rows.

    Source: Truda 2023 (TableDiffusion), section 6.8.
    """

    most_rows: int = 5_000

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Scores of TableDiffusion's thesis",
        question="Which figures would the thesis on TableDiffusion report of the release?",
        threat_model="Someone who compares generators by published tables would set unlike things side by "
        "side.",
        not_covered="Whether the release is good: fresh real rows do not have the best scores here.",
        quantities=(PMSE, MD, ALPHA, BETA, AUPRC),
        risk="fidelity",
        default=False,
        cost="seconds",
        source="Truda 2023, section 6.8",
    )

    def __post_init__(self) -> None:
        if self.most_rows < FEWEST_ROWS:
            raise ValueError(f"most_rows must be at least {FEWEST_ROWS}")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Compare the release, and control rows as its reference, with train."""
        if min(subject.train.n_rows, subject.synthetic.n_rows) < FEWEST_ROWS:
            raise NotApplicable(f"at least {FEWEST_ROWS} rows of train and of the release are needed")

        def compare(table: Table, rng: np.random.Generator) -> Mapping[MeasurementId, Estimate]:
            if table.n_rows < FEWEST_ROWS:
                return {}
            tables = [t.sample(self.most_rows, rng) for t in (subject.train, table)]
            return {q.id(): Estimate(value) for q, value in _scores(tables, subject.features, rng).items()}

        found = measured(subject, compare, self.info.quantities, context.rng)
        return Findings(tuple(found), (), sampling_note(subject, self.most_rows))


def _scores(
    tables: Sequence[Table], columns: Sequence[Column], rng: np.random.Generator
) -> dict[Quantity, float]:
    """Everything about a table beside train, which comes first."""
    n = tables[0].n_rows
    blocks, distances = [], []
    for column in columns:
        part = column.kind.part
        if isinstance(part, NumberPart):
            values = np.concatenate([part.read(t.column(column.name)) for t in tables])
            blocks.append(_scaled(values)[:, None])
            distances.append(_farthest(values[:n], values[n:]))
        else:
            ranked = by_frequency(np.concatenate(codes(tables, column)))
            kept = np.arange(min(MOST_LABELS, 1 + int(ranked.max())))
            blocks.append((ranked[:, None] == kept).astype(np.float64))
            distances.append(_labels_apart(ranked[:n], ranked[n:]))
    vectors = np.hstack(blocks)
    picked = min(n, len(vectors) - n)
    real, made = (part[rng.permutation(len(part))[:picked]] for part in (vectors[:n], vectors[n:]))
    alpha = float(precision_curve(real, made).mean())
    beta = float(recall_curve(real, made).mean())
    return {
        PMSE: propensity_ratio(vectors, np.arange(len(vectors)) >= n, len(columns)),
        MD: float(np.mean(distances)),
        ALPHA: alpha,
        BETA: beta,
        AUPRC: alpha * beta,
    }


def _scaled(values: Floats) -> Floats:
    """Numbers in [0, 1]; all the same where they do not vary."""
    known = values[~np.isnan(values)]
    if not len(known) or np.ptp(known) == 0:
        return np.zeros(len(values))
    filled = np.where(np.isnan(values), known.mean(), values)
    return np.asarray((filled - known.min()) / np.ptp(known))


def _farthest(real: Floats, made: Floats) -> float:
    """Kolmogorov–Smirnov distance of the values that are there; 1 where one table has none alone."""
    real, made = (np.sort(x[~np.isnan(x)]) for x in (real, made))
    if not len(real) or not len(made):
        return float(len(real) != len(made))
    both = np.concatenate([real, made])
    shares = [np.searchsorted(x, both, "right") / len(x) for x in (real, made)]
    return float(np.max(np.abs(shares[0] - shares[1])))


def _labels_apart(real: Codes, made: Codes) -> float:
    size = 1 + int(max(real.max(), made.max()))
    shares = [np.bincount(x, minlength=size) / len(x) for x in (real, made)]
    there = shares[0] > 0
    return proportion_chi_square(shares[0][there], shares[1][there])
