"""Releases and generators with a known leak: copies of training rows among people never seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Codes, Positions
from synth_audit.encode.cells import column_grouping
from synth_audit.encode.codes import cells_of, codes, column_entropy, few_labels
from synth_audit.encode.scales import CENTRAL
from synth_audit.execution.seeds import child_rng
from synth_audit.findings.sensitivity import PlantedLeaks
from synth_audit.plugins.audit import Leak, Subject
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.kind import NumberPart
from synth_audit.table.people import persons
from synth_audit.table.schema import Column, quantitative
from synth_audit.table.table import Table, joined, load_table, save_table

_CELLS = 16
"""Cells of a column in which it is asked what others tell of it."""

_ENOUGH = 300
"""Pairs of people that agree in all columns chosen, with fewer of which nothing is asked of them."""

_FEWEST_NUMBERS = 13
"""Different numbers in train: fewer are labels that happen to be numbers."""

_MOST_TOGETHER = 5
"""Columns that are copied together at most."""

_SURPLUS = 12.0
"""Bits beyond those that find one row among all, by which a few numbers tell enough."""

_ON_PURPOSE = "it copies a part of its training rows on purpose"

FEWEST_ROWS = 20
"""Fewer rows than this on either side of train make no release worth measuring."""

_WORTHWHILE = 500
"""Neither train nor release is scaled down below this many rows while there are as many at hand."""


def most_telling(table: Table, columns: Sequence[Column], most: int) -> dict[str, float]:
    """At most so many columns that vary, and what each tells beyond those before it, in bits.

    Next comes the column of the largest ``H(j) min_C log P(j | C) / log P(j)``, P(j | C) being the share of
    pairs of people who agree in j among those who agree in all of C: each column chosen before, and all of
    them, as far as enough pairs agree in these. A column that follows from others, such as what is true of a
    whole district, tells people apart no better. Agreement is in 16 cells; ties go by name.
    """
    bits = {c.name: round(column_entropy(table, c), 9) for c in columns}  # rounded against noise
    left = {c.name: _cells(table, c) for c in columns if bits[c.name] > 0}
    new = dict.fromkeys(left, 1.0)
    found: dict[str, float] = {}
    before = np.zeros(table.n_rows, dtype=np.int64)
    while left and len(found) < most:
        name = min(left, key=lambda n: (-round(bits[n] * new[n], 9), n))
        found[name] = bits[name] * new[name]
        chosen = left.pop(name)
        both = _together(before, chosen)
        before = both if _pairs(both) >= _ENOUGH else before
        for other, cells in left.items():
            new[other] = min(new[other], _untold(cells, chosen), _untold(cells, before))
    return found


def _cells(table: Table, column: Column) -> Codes:
    """Numbers in cells of much the same share, labels but the commonest together; missing apart."""
    if not quantitative([column]):
        return few_labels(codes([table], column)[0], _CELLS)
    return column_grouping(table, column, bins=_CELLS).of(table)


def _untold(cells: Codes, known: Codes) -> float:
    """Share of what agreement in a column tells that is not told by agreement in what is known."""
    alone, given = (
        -np.log2((_pairs(_together(c, cells)) + 0.5) / (_pairs(c) + 0.5))
        for c in (np.zeros_like(cells), known)
    )
    return float(np.clip(given / alone, 0.0, 1.0)) if alone > 0 else 1.0


def _together(known: Codes, cells: Codes) -> Codes:
    """Codes of both, from 0 on."""
    both: Codes = np.unique(known * (_CELLS + 1) + cells, return_inverse=True)[1]
    return both


def _pairs(cells: Codes) -> float:
    """Pairs of rows that agree."""
    counts = np.bincount(cells).astype(np.float64)
    return float((counts * (counts - 1)).sum() / 2)


@dataclass(frozen=True, eq=False)
class PlantedModel:
    """Rows to copy and clean rows; immutable."""

    share: float
    copied: Table = field(repr=False)
    clean: Table = field(repr=False)
    leak: Leak

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """``n`` rows of which ``share`` are copies (at least one if above 0), each row once per round."""
        leaked = max(round(self.share * n), 1 if self.share > 0 else 0)
        copies = _rounds(self.copied, leaked, rng)
        others = _rounds(self.clean, n - leaked, rng)
        if self.leak is Leak.ASSOCIATIONS:
            orders = {n: pa.array(rng.permutation(others.n_rows)) for n in others.names}
            columns = {n: others.column(n).take(order) for n, order in orders.items()}
            others = Table(others.schema, pa.table(columns))
        if self.leak in (Leak.SUBSETS, Leak.SHIFTED):
            copies = leaking(self.leak, _rounds(self.clean, leaked, rng), copies, self.copied)
        return joined([copies, others])

    def save(self, folder: Path) -> None:
        """Write both kinds of rows."""
        save_table(self.copied, folder, "copied")
        save_table(self.clean, folder, "clean")


@dataclass(frozen=True, eq=False)
class PlantedGenerator:
    """Copies a share of its training rows; the other rows hold nothing of what the audit looks for.

    Attributes:
        share: f, in [0, 1].
        leak: what is copied: whole records, or a few columns of them beside the others of new people, as they
            are or moved.
        clean: rows of new people. Where associations are the leak, their columns are shuffled against each
            other in every release, for new people have the associations of everybody.
    """

    share: float
    clean: Table = field(repr=False)
    leak: Leak = Leak.COPIES
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Planted leak", summary="Copies a known share of its training rows.", cost="instant"
    )

    @property
    def minimum_people(self) -> int:
        """Rows are copied with all that is in them."""
        return 1

    def fit(self, train: Table, context: FitContext) -> PlantedModel:
        """Keep the rows of ``train``; nothing is learnt."""
        context.accountant.void(_ON_PURPOSE)
        return PlantedModel(self.share, train.released_only(), self.clean.released_only(), self.leak)

    def load(self, folder: Path) -> PlantedModel:
        """The model that was saved there."""
        copied, clean = (load_table(folder, name) for name in ("copied", "clean"))
        return PlantedModel(self.share, copied, clean, self.leak)


def telling_columns(table: Table) -> tuple[str, ...]:
    """Names of the columns that are copied together: half of those that vary, but three to five.

    Those that tell people apart best together: a few columns that hardly do give nobody away, copied or not.
    """
    there = [c for c in table.schema.features if c.name in table.names]
    varying = sum(len(table.column(c.name).unique()) > 1 for c in there)
    return tuple(most_telling(table, there, min(_MOST_TOGETHER, max(3, varying // 2))))


def leaking(leak: Leak, rows: Table, copies: Table, reference: Table) -> Table:
    """What a leak makes of copied records: themselves, or rows of new people with a part of them.

    Args:
        rows: of new people, as many as there are copies. reference: by which the parts are chosen.
    """
    if leak is Leak.SUBSETS:
        names = telling_columns(reference)
        return Table(
            rows.schema, pa.table({n: (copies if n in names else rows).column(n) for n in rows.names})
        )
    return with_shifted(rows, copies, reference) if leak is Leak.SHIFTED else copies


def with_shifted(rows: Table, copies: Table, reference: Table) -> Table:
    """As many rows as there are copies, with the most telling numbers of these, each moved by a constant.

    Five at most, by an eighth of their central range in the reference, in whole steps. Where these tell too
    little to find anybody by, all of the copies stays and these are moved.
    """
    released = [c for c in quantitative(reference.schema.features) if c.name in reference.names]
    numbers = [found for c in released for found in _plain_numbers(c, reference)]
    told = most_telling(reference, [c for c, *_ in numbers], _MOST_TOGETHER)
    some = [found for found in numbers if found[0].name in told]
    enough = np.log2(max(2, copies.n_rows)) + _SURPLUS
    few = len(some) > 1 and sum(told.values()) > enough
    columns = {n: (rows if few else copies).column(n) for n in rows.names}
    for column, part, spread in some:
        step = column.resolution.grid.step if column.resolution else 0.0
        by = max(step, np.rint(spread / 8 / step) * step) if step else spread / 8
        moved = part.read(cells_of(copies, column)) + by
        columns[column.name] = column.kind.stored(moved, copies.column(column.name).type)
    return Table(rows.schema, pa.table(columns))


def _plain_numbers(column: Column, reference: Table) -> Iterator[tuple[Column, NumberPart, float]]:
    """The numbers of a column that has more than a dozen different ones in the reference, and the width of
    its central 90 %, of all of it where that is 0."""
    values = cells_of(reference, column)
    for part in (p for p in column.kind.parts([values]) if isinstance(p, NumberPart)):
        known = part.read(values)
        known = known[np.isfinite(known)]
        if len(np.unique(known)) >= _FEWEST_NUMBERS:
            inner, outer = np.quantile(known, CENTRAL)
            yield column, part, float(outer - inner) or float(known.max()) - float(known.min())


def _rounds(table: Table, n: int, rng: np.random.Generator) -> Table:
    """``n`` rows in random order, none a second time before all were there once."""
    return table.take(np.resize(rng.permutation(table.n_rows), n).astype(np.intp))


@dataclass(frozen=True, eq=False)
class LeakInjector:
    """Where leaks are planted: one half of train plays train, the other the people never seen.

    Only half of train can be train when no other new people are at hand, for control is needed as control.
    The ratio of release to train is kept as far as both keep some hundreds of rows, and so is control, so
    that an audit meets the circumstances it meets on the candidate, with fewer rows. But train is no larger
    than the release: a full copy is one of everybody, or shares of people could not show it.

    Attributes:
        subject: the real circumstances, in any view of the same rows. seed: of the draws.
        rows: positions of :attr:`known`, :attr:`control` and :attr:`fresh`; none of control without one.
        copied: positions in ``known`` of what is copied, as many as the release has.
    """

    subject: Subject
    seed: int
    rows: tuple[Positions, Positions, Positions]
    copied: Positions

    @cached_property
    def known(self) -> Table:
        """Rows that play train."""
        return self.subject.train.take(self.rows[0])

    @cached_property
    def control(self) -> Table | None:
        """Rows that play control."""
        return self.subject.control and self.subject.control.take(self.rows[1])

    @cached_property
    def fresh(self) -> Table:
        """Rows of new people, as many as the release has."""
        return self.subject.train.take(self.rows[2])

    def leaks(self, share: float) -> Table:
        """The copied rows of a release, ``share`` of it (rounded to whole rows, at least one if above 0).

        Leaks are nested: what is copied at a share is copied at every larger one.
        """
        n = len(self.copied)
        leaked = min(n, max(round(share * n), 1 if share > 0 else 0))
        return self.known.take(self.copied[:leaked]).released_only()

    def release(self, share: float, leaks: Table | None = None) -> Table:
        """A release of which ``share`` are copies and the others new people.

        Args:
            leaks: what became of the copies, as many rows as there are; the copies themselves if left out.
        """
        copies = leaks or self.leaks(share)
        others = self.fresh.take(np.arange(copies.n_rows, len(self.copied))).released_only()
        return joined([copies, others])

    def planted(self, share: float, leak: Leak) -> Subject:
        """The subject with a release, and a generator, that leak this share and no more."""
        generator = PlantedGenerator(share, self.fresh, leak)
        if leak is Leak.ASSOCIATIONS:
            rng = child_rng(self.seed, "known answer", "release", f"{share:g}")
            release = generator.fit(self.known, FitContext(rng=rng)).sample(len(self.copied), rng)
        else:
            copies = self.leaks(share)
            others = self.fresh.take(np.arange(copies.n_rows)).released_only()
            release = self.release(share, leaking(leak, others, copies, self.known))
        return self.leaky(release, generator)

    def leaky(self, release: Table, generator: PlantedGenerator | None = None) -> Subject:
        """The subject in which this release stands for the candidate, and this generator for the plan's.

        Where chance divided train and control it also divided these parts of them, whose sizes are fixed.
        """
        return replace(
            self.subject,
            train=self.known,
            control=self.control,
            synthetic=release,
            generator=generator,
            random_split=self.subject.random_split and replace(self.subject.random_split, train=None),
            guarantee=None,
            planted=True,
        )

    def planted_leaks(self, shares: Sequence[float]) -> PlantedLeaks:
        """What the evidence says of it."""
        n_control = self.control.n_rows if self.control else 0
        return PlantedLeaks(self.known.n_rows, n_control, len(self.copied), tuple(shares))


def prepare_injection(subject: Subject, max_rows: int, seed: int) -> LeakInjector | PlantedLeaks:
    """Halve train, rows of one entity together, in the candidate's own sizes as far as the rows go.

    Args:
        max_rows: no part gets more rows than this, which bounds the cost of the check.

    Returns:
        The injector, or why there is none.
    """
    rng = child_rng(seed, "known answer", "ground")
    known, fresh = _halves(subject.train, rng)
    if not (len(known) and len(fresh)):
        return PlantedLeaks(reason="the training rows cannot be halved by entity")
    if min(len(known), len(fresh)) < FEWEST_ROWS:
        return PlantedLeaks(
            reason=f"half of train has fewer than {FEWEST_ROWS} rows; {2 * FEWEST_ROWS} are needed in all"
        )
    n_train, n_made = subject.train.n_rows, subject.synthetic.n_rows
    scale = min(len(known) / n_train, len(fresh) / max(n_made, len(fresh)), max_rows / max(n_train, n_made))
    least = min(n_train, len(known), max_rows, _WORTHWHILE)
    n_known = max(min(round(scale * n_train), len(known)), least)
    n_release = max(round(scale * n_made), min(n_made, len(fresh), _WORTHWHILE))
    n_known = max(min(n_known, n_release), min(FEWEST_ROWS, len(known)))
    copied = np.resize(rng.permutation(n_known), n_release)
    n_control = subject.control.n_rows if subject.control else 0
    rows = (
        known[rng.permutation(len(known))[:n_known]],
        rng.permutation(n_control)[:max_rows],
        fresh[rng.permutation(len(fresh))[:n_release]],
    )
    return LeakInjector(subject, seed, rows, copied)


def _halves(train: Table, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Positions of the rows of either half of the people, ascending."""
    who = persons(train)
    n = int(who.max()) + 1
    aside = (rng.permutation(n) < n // 2)[who]
    return np.flatnonzero(~aside), np.flatnonzero(aside)
