"""Column by column: does the release have the same values in the same proportions?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from synth_audit.core.measurement import Findings, Interval, Measurement, Quantity, Reference, Series
from synth_audit.core.plugin import AuditInfo
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.kernels import distributions as dist
from synth_audit.kernels.encode import codes
from synth_audit.kernels.intervals import normal_interval

Floats = npt.NDArray[np.float64]

TOTAL_VARIATION = Quantity(
    "total_variation",
    "Total variation distance",
    help="Share of rows that would have to change to give the real proportions; 0 is identical.",
)
HELLINGER = Quantity("hellinger", "Hellinger distance", unit="distance", help="0 identical, 1 disjoint.")
KOLMOGOROV_SMIRNOV = Quantity(
    "ks",
    "Kolmogorov–Smirnov distance",
    unit="distance",
    help="Largest gap between the cumulative distributions of a numeric column.",
)


_REFERENCE = "control rows against train"


@dataclass(frozen=True, kw_only=True)
class Marginals:
    """Distances between the real and the synthetic distribution of every column.

    Discrete columns: cells are the categories. Numeric columns: cells of about equal real mass, cut on
    train. Missing is a cell of its own. ``total_variation = ½ Σ |p − q|``,
    ``hellinger = sqrt(½ Σ (√p − √q)²)``, ``ks`` = largest gap of the distribution functions (numeric, present
    values). An empty scope is the mean over columns.

    Fields:
        cells: cells of a numeric column, at least 2.
        n_bootstrap: resamples behind the interval.

    Source: Disjoint Generative Models, section 3; TableDiffusion thesis, section 6.8.2.
    """

    cells: int = 10
    n_bootstrap: int = 200

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Distributions of single columns",
        question="Does each column of the release look like the real one?",
        threat_model="Someone who counts or averages a single column would be misled.",
        not_covered="How columns depend on each other.",
        quantities=(TOTAL_VARIATION, HELLINGER, KOLMOGOROV_SMIRNOV),
        risk="fidelity",
        cost="instant",
        source="Disjoint Generative Models, section 3; TableDiffusion thesis, section 6.8.2",
    )

    def __post_init__(self) -> None:
        if self.cells < 2 or self.n_bootstrap < 100:
            raise ValueError("cells must be at least 2 and n_bootstrap at least 100")

    def run(self, subject: Subject, rng: np.random.Generator) -> Findings:
        """Measure every released column against train, with control against train as reference."""
        compared = [_Compared.of(column, subject, self.cells) for column in subject.features]
        draws = [self._draws(c, subject, rng) for c in compared]
        found: list[Measurement] = []
        for c, drawn in zip(compared, draws, strict=True):
            interval = normal_interval(c.total_variation, drawn, subject.level)
            found += _of_column(c, subject, interval)
        found += _overall(found, np.mean(draws, axis=0), subject)
        worst_first = sorted(compared, key=lambda c: -c.total_variation)
        return Findings(tuple(found), tuple(_picture(c, subject) for c in worst_first))

    def _draws(self, c: _Compared, subject: Subject, rng: np.random.Generator) -> Floats:
        """Total variation of resampled train and synthetic rows, shape (n_bootstrap,)."""
        real = dist.resampled_shares(c.train, subject.train.n_rows, self.n_bootstrap, rng)
        made = dist.resampled_shares(c.synthetic, subject.synthetic.n_rows, self.n_bootstrap, rng)
        return dist.total_variation(real, made)


@dataclass(frozen=True, eq=False)
class _Compared:
    """Cell shares of one column in the three tables."""

    column: Column
    cell_names: tuple[str, ...]
    train: Floats
    synthetic: Floats
    control: Floats | None

    @classmethod
    def of(cls, column: Column, subject: Subject, most_cells: int) -> _Compared:
        tables = [subject.train, subject.synthetic, *([subject.control] if subject.control else [])]
        cells, names = _cells(column, tables, most_cells)
        train, synthetic, *rest = (dist.shares(c, len(names)) for c in cells)
        return cls(column, names, train, synthetic, rest[0] if rest else None)

    @property
    def total_variation(self) -> float:
        return float(dist.total_variation(self.train, self.synthetic))

    @property
    def reference(self) -> float | None:
        return None if self.control is None else float(dist.total_variation(self.train, self.control))


def _cells(
    column: Column, tables: list[Table], most: int
) -> tuple[list[npt.NDArray[np.int64]], tuple[str, ...]]:
    """Cell of every row of every table, and the cells' names; the last cell is missing."""
    if column.kind.numeric:
        values = [t.numbers(column.name) for t in tables]
        edges = dist.quantile_cells(values[0], most)
        names = tuple(f"cell {i + 1}" for i in range(len(edges) + 1))
        return [dist.cell_codes(v, edges) for v in values], (*names, "missing")
    joint = codes(tables, column)
    labels: dict[int, str] = {}
    for table, of_table in zip(tables, joint, strict=True):
        labels |= dict(zip(of_table.tolist(), table.labels(column.name).tolist(), strict=True))
    known = sorted(code for code in labels if code >= 0)
    last = len(known)
    return [np.where(c < 0, last, c) for c in joint], (*(labels[c] for c in known), "missing")


def _of_column(c: _Compared, subject: Subject, interval: Interval) -> list[Measurement]:
    n = subject.synthetic.n_rows
    scope = c.column.name

    def reference(value: float | None) -> Reference | None:
        return None if value is None else Reference(value, _REFERENCE)

    beside = None if c.control is None else dist.hellinger(c.train, c.control)
    found = [
        TOTAL_VARIATION.at(
            c.total_variation,
            scope=scope,
            interval=interval,
            n_requested=n,
            n_achieved=n,
            reference=reference(c.reference),
        ),
        HELLINGER.at(dist.hellinger(c.train, c.synthetic), scope=scope, reference=reference(beside)),
    ]
    if c.column.kind.numeric:
        known = [_known(t, scope) for t in (subject.train, subject.synthetic)]
        if all(map(len, known)):
            other = _known(subject.control, scope) if subject.control else np.empty(0)
            at_best = dist.kolmogorov_smirnov(known[0], other) if len(other) else None
            ks = dist.kolmogorov_smirnov(known[0], known[1])
            found.append(KOLMOGOROV_SMIRNOV.at(ks, scope=scope, reference=reference(at_best)))
    return found


def _overall(found: list[Measurement], draws: Floats, subject: Subject) -> list[Measurement]:
    """Means over columns; the interval treats the columns' sampling noise as independent."""
    means = []
    n = subject.synthetic.n_rows
    for quantity in (TOTAL_VARIATION, HELLINGER, KOLMOGOROV_SMIRNOV):
        of_columns = [m for m in found if m.name == quantity.name]
        if not of_columns:
            continue
        value = float(np.mean([m.value for m in of_columns]))
        at_best = [m.reference.value for m in of_columns if m.reference]
        sampled = quantity is TOTAL_VARIATION
        means.append(
            quantity.at(
                value,
                interval=normal_interval(value, draws, subject.level) if sampled else None,
                n_requested=n,
                n_achieved=n,
                reference=Reference(float(np.mean(at_best)), _REFERENCE) if at_best else None,
            )
        )
    return means


def _known(table: Table, name: str) -> Floats:
    values = table.numbers(name)
    return values[~np.isnan(values)]


def _picture(c: _Compared, subject: Subject) -> Series:
    """Bars of real and synthetic shares; cells with too few real rows are drawn together as one.

    The rest must not be small either, or it would give away the one cell that is hidden in it.
    """
    counts = np.rint(c.train * subject.train.n_rows)
    shown = [i for i in range(len(counts)) if counts[i] >= subject.suppression]
    shown = sorted(shown, key=lambda i: -counts[i])[:_MOST_BARS] if not c.column.kind.numeric else shown
    while shown and 0 < subject.train.n_rows - counts[shown].sum() < subject.suppression:
        shown.remove(min(shown, key=lambda i: counts[i]))
    rest = [i for i in range(len(counts)) if i not in shown]

    others = ("all others",) if c.train[rest].any() or c.synthetic[rest].any() else ()

    def line(p: Floats) -> tuple[float, ...]:
        return (*(float(p[i]) for i in shown), *(float(p[rest].sum()) for _ in others))

    return Series(
        name="distribution",
        title=f"Distribution of {c.column.name}",
        kind="bar",
        x_label="cells of equal real mass, low to high" if c.column.kind.numeric else "category",
        y_label="share of rows",
        x=(*(c.cell_names[i] for i in shown), *others),
        lines={"real": line(c.train), "synthetic": line(c.synthetic)},
        scope=c.column.name,
    )


_MOST_BARS = 20
