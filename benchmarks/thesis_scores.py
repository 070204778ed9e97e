"""The figures of TableDiffusion's thesis (Truda 2023, section 6.8), computed as they were published.

Numbers are scaled to [0, 1] over both tables, what is missing read as their mean; labels, missing among them,
are indicators. The pMSE ratio fits a logistic regression with the ridge of its library; what it expects is
k (n₁/N)² (n₂/N) / N with k columns, whatever their labels, so that it is far above 1 for real rows too. The
marginal distance is the mean of Kolmogorov–Smirnov distances and of 1 − p of χ² on shares, which is near 0
for any labels. α-precision and β-recall are means over 30 levels, around the mean of the real and of the made
rows, from as many rows of either: fresh real rows have about ½, not the best score. AUPRC is their product.
The audits `propensity`, `marginals` and `coverage` ask the same soundly.

    .venv/bin/python benchmarks/thesis_scores.py TRAIN CONTROL SYNTHETIC
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats
from synth_audit.audits.fidelity.propensity import MOST_LABELS
from synth_audit.encode.codes import by_frequency, codes
from synth_audit.execution.executor import single_threaded
from synth_audit.inputs import as_arrow, as_plan
from synth_audit.pipeline.stages import anchored_subject
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
    from sklearn.neighbors import NearestNeighbors  # lazy import: keeps --help fast

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
    from sklearn.linear_model import LogisticRegression  # lazy import

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
    from scipy.special import chdtr  # lazy import

    if len(real) < 2:
        return 0.0
    seen = np.where(made > 0, made, 1e-6)
    seen = seen / seen.sum()
    return float(chdtr(len(real) - 1, np.sum((seen - real) ** 2 / real)))


def scores(tables: Sequence[Table], columns: Sequence[Column], rng: np.random.Generator) -> dict[str, float]:
    """All figures of a table beside train, which comes first."""
    n = tables[0].n_rows
    blocks, distances = [], []
    for column in columns:
        part = column.kind.part
        if isinstance(part, NumberPart):
            values = np.concatenate([part.read(t.column(column.name)) for t in tables])
            blocks.append(_scaled(values)[:, None])
            distances.append(_farthest(values[:n], values[n:]))
        else:
            joint = np.concatenate(codes(tables, column))
            [ranked] = by_frequency([joint], joint)
            kept = np.arange(min(MOST_LABELS, 1 + int(ranked.max())))
            blocks.append((ranked[:, None] == kept).astype(np.float64))
            distances.append(_labels_apart(ranked[:n], ranked[n:]))
    vectors = np.hstack(blocks)
    picked = min(n, len(vectors) - n)
    real, made = (part[rng.permutation(len(part))[:picked]] for part in (vectors[:n], vectors[n:]))
    alpha = float(precision_curve(real, made).mean())
    beta = float(recall_curve(real, made).mean())
    return {
        "pMSE": propensity_ratio(vectors, np.arange(len(vectors)) >= n, len(columns)),
        "MD": float(np.mean(distances)),
        "αP": alpha,
        "βR": beta,
        "AUPRC": alpha * beta,
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of the synthetic table, and of control rows, which no release can be better than."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("train", "control", "synthetic"):
        parser.add_argument(name, type=Path, help="Parquet or CSV")
    parser.add_argument("--plan", type=Path, help="plan with columns")
    parser.add_argument("--rows", type=int, default=5_000, help="rows taken of each table, at random")
    chosen = parser.parse_args(arguments)
    plan = as_plan(chosen.plan or {})
    train, control, synthetic = (
        as_arrow(getattr(chosen, name), name) for name in ("train", "control", "synthetic")
    )
    subject = anchored_subject(train, control, synthetic, plan)
    assert subject.control is not None
    fresh = subject.control.sample(subject.synthetic.n_rows, np.random.default_rng(plan.seed))
    for name, table in (("synthetic", subject.synthetic), ("control", fresh)):
        rng = np.random.default_rng(plan.seed)
        found = scores([t.sample(chosen.rows, rng) for t in (subject.train, table)], subject.features, rng)
        print(f"{name:<10}", "  ".join(f"{key} {value:.4g}" for key, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
