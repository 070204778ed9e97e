"""Values that no training row has: room in which a release could carry real records spelled out.

Labels, spellings, finer digits and far numbers, column by column, beside as many as fresh rows would bring.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Bools, Codes, Floats
from synth_audit.audits._shared import descriptive
from synth_audit.column_kinds import number_kind
from synth_audit.column_kinds._bases import is_single
from synth_audit.encode.codes import distinct_labels, per_label
from synth_audit.encode.texts import Reading, greatest_similarity
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Findings
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.proportions import chance_of_more
from synth_audit.table.label_forms import column_forms
from synth_audit.table.people import entities_of, key_columns
from synth_audit.table.resolution import Resolution, ValueGrid, decimal_grids, resolution_of, time_grids
from synth_audit.table.schema import Column, nominal
from synth_audit.table.schema_inference import kind_of
from synth_audit.table.storage_types import MOST_EXACT
from synth_audit.table.table import Table

_MOST = 5_000
"""Real rows of each table whose nearest text is looked for."""

_MOST_RELEASED = 20_000
"""Rows of the release among which it is looked for."""

_NEAR_TEXT = 0.02
"""Share of control rows whose nearest text counts as near."""

NOVEL = descriptive(
    "novel",
    "Content that train cannot have had",
    unit="flag",
    help="1 where the release holds more that is new to a column than fresh rows of the same people would, "
    "0 where it does not. How much it is, is not told.",
)

FREE_TEXT = "free text"
"""Setting of the flag for columns of text that may not leave, or that copy training rows."""

CHANCE = 0.01
"""Of an honest release being refused here: half for all cells together, half for single columns."""

_FINER = 100
"""Two digits, 6.6 bits: no cell spells a record (one of Adult takes about 40 bits)."""

_ARITHMETIC = 1e-9
"""Quotients of powers of ten miss a whole number by less."""

_LONGER = 2
"""Times the longest known text from which on a text's length is odd."""

_NEVER_LONG = 16
"""Text of so many letters is no longer than labels may be."""

_HIDDEN = r"[\p{Cc}\p{Cf}\p{Co}]"
"""Characters that nobody sees."""

_FAR = 10.0
"""Spans of a column's numbers beyond its ends: one more digit in front."""


class Aspect(StrEnum):
    """In what a value can be new to a column."""

    LABEL = "labels"
    SPELLING = "spellings"
    FORM = "long or hidden text"
    CONSTANT = "constants"
    RESOLUTION = "finer digits"
    RANGE = "far numbers"
    MISSING = "missing values"


@dataclass(frozen=True, eq=False)
class Novelty:
    """Cells of a release that are new to a column in one aspect.

    Attributes:
        rows: of the release, shape (m,).
        usual: training rows that would be as new, had the rows of their entity not been there, shape (n,):
            fresh rows of the same people bring as many.
    """

    aspect: Aspect
    rows: Bools
    usual: Bools


_WHAT: Mapping[Aspect, tuple[str, str]] = {
    Aspect.LABEL: (
        "labels that neither train nor the plan has",
        "put labels of train in their place, or declare them under `categories`",
    ),
    Aspect.SPELLING: (
        "labels in other spellings than train's (case, blanks, look-alike letters)",
        "write labels as train does",
    ),
    Aspect.FORM: (
        "text far longer than any label of train, or with characters that nobody sees",
        "find out where it comes from, and write labels as train does",
    ),
    Aspect.CONSTANT: ("other values than the one of train", "keep it constant, or leave the column out"),
    Aspect.RESOLUTION: ("finer digits or times than train has", "round it as train is rounded"),
    Aspect.RANGE: ("numbers far beyond those of train", "clip it, or declare its `bounds`"),
    Aspect.MISSING: ("missing values, of which train has none", "fill them, or leave the column out"),
}

_NOT_DECLARED = (
    "holds free text, which leaves only if the plan says so: drop the column, give it `role: identifier`, or "
    "declare `release_text: true` for it"
)

_NOT_ATTACKED = (
    "holds free text, which leaves only if control rows tell that it copies nobody: set some aside"
)

_COPIED = (
    "holds texts of training rows, word for word or nearly, more often than of control rows: drop the "
    "column, or make its texts anew"
)


@dataclass(frozen=True, kw_only=True)
class NovelContent:
    """Flags content of a release that is new to a column: nobody's distance to anybody shows what it says.

    New is, column by column: a label that neither train nor the plan has in these very letters; another value
    in a column that is constant or wholly missing in train; digits or times finer than train's, and, under a
    privacy budget, than the plan's ``precision``; a number more than ten spans of train's beyond its ends; a
    missing value where train has none, unless all of the column are; text twice as long as the longest label,
    or with characters that nobody sees.

    Libraries round a column to the most decimals of any training number. Decimals that few training numbers
    have are therefore not new in any row, up to two digits below the column's resolution, unless the plan
    declares a ``precision``.

    Fresh rows of the same people bring new labels too: as many, on average, as training rows have one that no
    other has (Good 1953). So a flag is 1 where ``P(X ≥ k) < α``, ``X ~ Binomial(k + f, m / (m + n))``: k rows
    of m in the release are new, f of n in train would have been, had their entity not been there. That is
    asked of every column in every aspect (α = 0.005 over their number), of all rows that are new in any, and
    of all new cells but gaps (α = 0.0025 each). Of text that no label looks like not one cell is let pass.
    Control rows make nothing known.

    Free text, of which half of the rows have one of their own, leaves only if the plan declares
    ``release_text`` for its column, whatever kind it declares, and control rows are no farther from the texts
    of the release than training rows are.

    Source: Good 1953 (unseen species); Przyborowski & Wilenski 1940 (comparison of two rates).
    """

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Novel content",
        question="Does the release hold anything that no training row can have had?",
        threat_model="Whoever made the release spelt real records into labels, digits, times or gaps that "
        "the table never had, and whoever knows of it reads them there.",
        not_covered="Messages in values that train has as well, such as the choice of labels: only "
        "differential privacy bounds these. A few cells may be new, as they are in fresh rows.",
        quantities=(NOVEL,),
        risk="singling out",
        cost="seconds",
        source="Good 1953; Przyborowski & Wilenski 1940",
    )

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Compare every column with train; control rows are read for free text alone."""
        release = _Release.of(subject)
        text = dict(_held_text(subject, context))
        flagged = {name: aspects for name, aspects in release.flagged() if aspects}
        spread = release.spread()
        measured = [
            NOVEL.at(bool(flagged or text or spread)),
            *(NOVEL.at(any(a in x for x in flagged.values()), setting=str(a)) for a in Aspect),
            NOVEL.at(bool(text), setting=FREE_TEXT),
            *(NOVEL.at(c.name in {*flagged, *text}, column=c.name) for c in subject.features),
        ]
        idle = [
            f"column {c.name!r} is declared with a finer `precision` than train has, which counts only under "
            "a privacy budget: digits beyond train's are room to spell records in"
            for c in subject.features
            if _as_counted(c, subject) is not c
        ]
        return Findings(tuple(measured), notes=(*idle, *_notes(release, flagged, text, spread=spread)))


def copied(subject: Subject, column: Column, chance: float, rng: np.random.Generator) -> bool:
    """Whether training rows find their text in the release, or one like it, more often than control rows.

    Two comparisons of rates: of texts that one real row alone holds, how many stand in the release (labels
    equal in standard form); and how many rows have a text as near as 2 % of the control rows have, by the
    cosine of their runs of letters.

    Args:
        chance: of an honest release being accused. rng: draws the rows that are looked up.
    """
    control = subject.control
    assert control is not None
    train, made, name = subject.train, subject.synthetic, column.name
    if _found_once(train, control, made, name) < chance / 2:
        return True
    release = _forms(made.sample(_MOST_RELEASED, rng), name)
    real, strangers = (_forms(table.sample(_MOST, rng), name) for table in (train, control))
    if not (release and strangers and real):
        return False
    of_train, of_control = (greatest_similarity(texts, release) for texts in (real, strangers))
    near = np.quantile(of_control, 1 - _NEAR_TEXT, method="lower")
    close, strange = int((of_train >= near).sum()), int((of_control >= near).sum())
    return chance_of_more(close, strange, len(of_train), len(of_control)) < chance / 2


def _forms(table: Table, name: str) -> list[str]:
    """The texts of a column in standard form."""
    found: list[str] = column_forms(table.texts(name)).drop_null().to_pylist()
    return found


def _found_once(train: Table, control: Table, made: Table, name: str) -> float:
    """Chance that so many of the texts found in the release are train's, of those that one real row holds."""
    forms = [column_forms(table.texts(name)) for table in (train, control)]
    counted = pa.chunked_array([x for column in forms for x in column.chunks]).drop_null().value_counts()
    once = counted.filter(pc.equal(counted.field("counts"), 1)).field("values")
    taken = once.filter(pc.is_in(once, value_set=column_forms(made.texts(name)).unique()))
    copies, twins = (int(pc.sum(pc.is_in(x, value_set=taken)).as_py() or 0) for x in forms)
    return chance_of_more(copies, twins, train.n_rows, control.n_rows)


@dataclass(frozen=True, eq=False)
class _Release:
    """What is new in the columns of a release of m rows, beside n training rows."""

    novelties: Mapping[str, tuple[Novelty, ...]]
    n_rows: int
    n_train: int

    @classmethod
    def of(cls, subject: Subject) -> Self:
        train, made = subject.train, subject.synthetic
        entities = _entities(train)
        found = {
            c.name: (
                *column_novelties(
                    _as_counted(c, subject), train.column(c.name), made.column(c.name), entities
                ),
                _missing(c, train, made),
            )
            for c in subject.features
        }
        return cls(found, made.n_rows, train.n_rows)

    def flagged(self) -> Iterator[tuple[str, tuple[Aspect, ...]]]:
        """Of each column, the aspects in which more is new than fresh rows would bring."""
        asked = sum(map(len, self.novelties.values()))
        for name, novelties in self.novelties.items():
            yield name, tuple(n.aspect for n in novelties if self._more(n, CHANCE / 2 / asked))

    def spread(self) -> bool:
        """Whether more rows hold anything new than fresh rows would, or more cells that say much.

        A gap says little, and gaps come together in one row.
        """
        rows, usual = np.zeros(self.n_rows, dtype=bool), np.zeros(self.n_train, dtype=bool)
        cells, usual_cells = 0, 0
        for novelty in (n for novelties in self.novelties.values() for n in novelties):
            rows |= novelty.rows
            usual |= novelty.usual
            if novelty.aspect is not Aspect.MISSING:
                cells += int(novelty.rows.sum())
                usual_cells += int(novelty.usual.sum())
        by_cells = chance_of_more(cells, usual_cells, self.n_rows, self.n_train)
        return min(by_cells, self._chance(rows, usual)) < CHANCE / 4

    def _more(self, novelty: Novelty, chance: float) -> bool:
        if novelty.aspect is Aspect.FORM:  # of which not one cell is let pass
            return bool(novelty.rows.any())
        return self._chance(novelty.rows, novelty.usual) < chance

    def _chance(self, rows: Bools, usual: Bools) -> float:
        return chance_of_more(int(rows.sum()), int(usual.sum()), self.n_rows, self.n_train)


def _held_text(subject: Subject, context: RunContext) -> Iterator[tuple[str, str]]:
    """The columns of free text that may not leave, and why."""
    columns = [c for c in subject.features if _free_text(c, subject.train)]
    for column in columns:
        if not column.release_text:
            yield column.name, _NOT_DECLARED
        elif subject.control is None:
            yield column.name, _NOT_ATTACKED
        elif copied(subject, column, CHANCE / len(columns), context.rng):
            yield column.name, _COPIED


def _free_text(column: Column, train: Table) -> bool:
    """Also where the plan calls it categorical: another name must not let it leave unasked."""
    if column.kind.as_it_is or not nominal([column]):
        return column.kind.as_it_is
    found = kind_of(train.column(column.name))
    return found is not None and found.as_it_is


def _entities(train: Table) -> Codes | None:
    """Whose each training row is, where the table says so."""
    if not key_columns(train.schema):
        return None
    coded = pa.array(entities_of(train), pa.binary()).dictionary_encode()
    return np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _as_counted(column: Column, subject: Subject) -> Column:
    """The column without a precision finer than train's, unless the release has a guarantee."""
    if subject.guarantee is None and column.declared_too_finely:
        return replace(column, declared_resolution=None)
    return column


def _missing(column: Column, train: Table, made: Table) -> Novelty:
    """Gaps in a column that has none in train; a single gap of train would have been one.

    A column that is nothing but gaps, as some generators leave one of whose labels none may be learnt, says
    nothing of anybody.
    """
    own, gaps = train.missing(column.name), made.missing(column.name)
    return Novelty(Aspect.MISSING, gaps & (not own.any()) & (not gaps.all()), own & (own.sum() == 1))


def _notes(
    release: _Release, flagged: Mapping[str, tuple[Aspect, ...]], text: Mapping[str, str], *, spread: bool
) -> Iterator[str]:
    """What each column holds and what to do about it; no count and no value."""
    for name, aspects in flagged.items():
        for aspect in dict.fromkeys(aspects):
            what, fix = _WHAT[aspect]
            yield f"column {name!r} holds {what}: {fix}"
    for name, why in text.items():
        yield f"column {name!r} {why}"
    noticed = [name for name, of in release.novelties.items() if any(n.rows.any() for n in of)]
    some = [name for name in noticed if name not in flagged]
    if set(some) - set(text):
        named = ", ".join(map(repr, some))
        yield (
            f"new content in {named}: no more in any one of them than fresh rows of the same people would "
            f"bring{', but more in all together' if spread else ''}; declared `categories`, `precision` and "
            "`bounds` would leave no room for it"
        )


def column_novelties(
    column: Column, train: pa.ChunkedArray, values: pa.ChunkedArray, entities: Codes | None
) -> tuple[Novelty, ...]:
    """What cells of a release are new to a column of train.

    Of labels new ones, and where labels read as numbers or dates, finer ones, and text among them.

    Args:
        train, values: the column in train, shape (n,), and in the release, shape (m,).
        entities: whose each training row is, shape (n,); None where each is somebody's only one.
    """
    if kind := number_kind(column):
        if pa.types.is_float32(train.type) and pa.types.is_float64(values.type):
            # Numbers that were widened, each of them, as the 32 bits that train has; others as they are.
            narrow = values.cast(train.type, safe=False)
            widened = pc.all(pc.equal(narrow.cast(values.type), values)).as_py() is not False
            values = narrow if widened else values
        bounded, single = column.declared_bounds is not None, is_single(values.type)
        known, given = kind.plain(train), kind.plain(values)
        own, declared = column.inferred_resolution, column.declared_resolution
        room = FinestDigits.of(known, own, single=single) if kind.decimal and own and not declared else None
        resolutions = [own, *(x for x in (declared, room) if x is not None)]
        return _number_novelties(known, given, resolutions, entities, bounded=bounded, single=single)
    labels, made = (column.kind.labels(_exact_decimals(x)).cast(pa.large_string()) for x in (train, values))
    found = _label_novelties(labels, made, column.declared_categories or (), entities)
    reading = Reading.of([x for x in distinct_labels(column.kind, train)[1] if x is not None])
    if reading is None or column.declared_categories:
        return found
    numbers, read = (per_label(column.kind, reading.numbers, x) for x in (train, values))
    return (*found, *_read_novelties(numbers, read, reading.dates, labels, made, entities))


@dataclass(frozen=True)
class FinestDigits:
    """Digits finer than a column's resolution that a release may have: those that some training numbers have.

    Attributes:
        resolution: of most training numbers.
        finest: the grid of all of them.
    """

    resolution: Resolution
    finest: ValueGrid

    @classmethod
    def of(cls, train: Floats, resolution: Resolution, *, single: bool = False) -> Self | None:
        """The coarsest power of ten, or the resolution's own whole step, that all numbers are multiples of.

        Args:
            train: shape (n,), NaN where missing. single: stored as float32.

        Returns:
            None where none is at most 100 times finer than the resolution, which then counts alone.
        """
        largest, own = np.nanmax(np.abs(train), initial=0.0), resolution.grid
        least = own.step / _FINER * (1 - _ARITHMETIC)
        decimal = (grid for grid in decimal_grids() if least <= grid.step <= own.step)
        for grid in (*([own] if own.denominator == 1 else []), *decimal):
            told_apart = largest < MOST_EXACT / grid.denominator
            if told_apart and Resolution(grid).holds(train, single=single).all():
                return cls(resolution, grid)
        return None

    def holds(self, values: Floats, *, single: bool = False) -> Bools:
        """True for numbers on the finest grid where it is at most 100 times finer than the resolution."""
        near = self._steps(values) <= _FINER * self.finest.step * (1 + _ARITHMETIC)
        held: Bools = near & Resolution(self.finest).holds(values, single=single)
        return held

    def _steps(self, values: Floats) -> Floats:
        """The resolution's step at each number; large where digits are counted and the number is large."""
        step, digits = self.resolution.grid.step, self.resolution.digits
        if digits is None:
            return np.full(len(values), step)
        with np.errstate(divide="ignore"):
            size = np.floor(np.log10(np.abs(values)))
        return np.fmax(step, 10.0 ** (size + 1 - digits))


def _label_novelties(
    train: pa.ChunkedArray,
    values: pa.ChunkedArray,
    declared: Sequence[str],
    entities: Codes | None,
) -> tuple[Novelty, ...]:
    """New labels, new spellings of known ones, and text that no label of train looks like.

    A label is known in the very letters that train or the plan has it in: case, blanks and look-alikes can
    carry bits.

    Args:
        train, values: labels as text, shapes (n,) and (m,). declared: the plan's; where there are some, what
            it leaves out is none of fresh people's either.
        entities: whose each training row is, shape (n,); None where each is somebody's only one.
    """
    own = train.unique().drop_null()
    known = pa.concat_arrays([own.cast(values.type), pa.array(declared, values.type)])
    new, nobody = _is_not_in(values, known), np.zeros(len(train), dtype=bool)
    if len(known) <= 1:
        return (Novelty(Aspect.CONSTANT, new, nobody),)
    alone = nobody if declared else held_by_one(train, entities)
    respelt = new & ~_is_not_in(column_forms(values), column_forms(pa.chunked_array([known])).unique())
    own_respelt = alone & _spelt_otherwise_too(train)
    return (
        Novelty(Aspect.LABEL, new & ~respelt, alone & ~own_respelt),
        Novelty(Aspect.SPELLING, respelt, own_respelt),
        Novelty(Aspect.FORM, new & _unlike(values, known), nobody),
    )


def _number_novelties(
    train: Floats,
    values: Floats,
    resolutions: Sequence[Resolution | FinestDigits | None],
    entities: Codes | None,
    *,
    bounded: bool,
    single: bool,
) -> tuple[Novelty, ...]:
    """Other numbers than a constant, digits beyond the column's resolution, and numbers far out.

    A number that train holds is never new, nor is any where the plan declares what may occur.

    Args:
        train, values: shapes (n,) and (m,), NaN where missing.
        resolutions: the column's in train, and the plan's or the finest digits of train; None where nothing
            finer could be told.
        bounded: the plan declares the ends of the column. single: the release stores float32.
    """
    distinct = np.unique(train[~np.isnan(train)])
    new = ~np.isnan(values) & ~np.isin(values, distinct)
    nobody = np.zeros(len(train), dtype=bool)
    if len(distinct) <= 1:
        free = bounded and len(distinct) == 0
        return (Novelty(Aspect.CONSTANT, new & (not free), nobody),)
    found = []
    if None not in resolutions:
        held = ([r.holds(x, single=single) for r in resolutions if r is not None] for x in (values, train))
        finer, off = (~np.any(parts, axis=0) for parts in held)
        alone = _of_one(np.unique(train, return_inverse=True)[1], entities) & ~np.isnan(train)
        found.append(Novelty(Aspect.RESOLUTION, new & finer, off & alone))
    if not bounded:
        far = new & _far(values, distinct[0], distinct[-1])
        found.append(Novelty(Aspect.RANGE, far, _far_alone(train, distinct)))
    return tuple(found)


def _read_novelties(
    train: Floats,
    values: Floats,
    dates: bool,
    known: pa.ChunkedArray,
    given: pa.ChunkedArray,
    entities: Codes | None,
) -> tuple[Novelty, ...]:
    """Finer digits in labels that read as numbers, and labels that do not read so.

    Args:
        train, values: as they are read, NaN where they are not. dates: they are dates, in microseconds.
        known, given: the labels themselves.
    """
    resolution = resolution_of(train, time_grids() if dates else decimal_grids(), decimal=not dates)
    unread = np.isnan(values) & _is_not_in(given, known.unique().drop_null())
    alone = held_by_one(known, entities) & np.isnan(train)
    numbers = _number_novelties(train, values, [resolution], entities, bounded=False, single=False)
    return (*numbers, Novelty(Aspect.LABEL, unread, alone))


def _exact_decimals(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals that float64 cannot hold apart as text, so that no digit of a label is lost; others as they
    are."""
    if not (pa.types.is_decimal(values.type) and values.type.scale):
        return values
    back = values.cast(pa.float64()).cast(values.type, safe=False)
    return values if pc.all(pc.equal(values, back)).as_py() is not False else values.cast(pa.string())


def _far(values: Floats, low: float, high: float) -> Bools:
    with np.errstate(over="ignore", invalid="ignore"):
        room = _FAR * (high - low)
        beyond: Bools = (values > high + room) | (values < low - room)
    return beyond


def _far_alone(train: Floats, distinct: Floats) -> Bools:
    """Rows at an end that would lie far out, were they not there."""
    if len(distinct) < 3:
        return np.zeros(len(train), dtype=bool)
    ends = [
        end
        for end, rest in ((distinct[0], distinct[1:]), (distinct[-1], distinct[:-1]))
        if _far(np.array([end]), rest[0], rest[-1])[0]
    ]
    return np.isin(train, ends)


def held_by_one(train: pa.ChunkedArray, entities: Codes | None) -> Bools:
    """True where no other entity has the label."""
    encoded = train.combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False))
    present = codes < len(encoded.dictionary)
    return _of_one(codes.astype(np.int64), entities) & present


def _of_one(codes: Codes, entities: Codes | None) -> Bools:
    """True for rows whose code no row of another entity has."""
    if entities is None:
        found = np.bincount(codes) == 1
    else:
        size = int(codes.max(initial=0)) + 1
        first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
        np.minimum.at(first, codes, entities)
        np.maximum.at(last, codes, entities)
        found = first == last
    return np.asarray(found[codes], dtype=bool)


def _spelt_otherwise_too(train: pa.ChunkedArray) -> Bools:
    """True for labels that train has in another spelling as well."""
    spellings = column_forms(pa.chunked_array([train.unique().drop_null()])).value_counts()
    several = spellings.filter(pc.greater(spellings.field("counts"), 1)).field("values")
    found = pc.is_in(column_forms(train), value_set=several)
    return np.asarray(pc.and_(found, pc.is_valid(train)).to_numpy(), dtype=bool)


def _unlike(values: pa.ChunkedArray, known: pa.Array) -> Bools:
    """Text much longer than every known label, or with characters that nobody sees and no label has."""
    longest = pc.max(pc.utf8_length(known)).as_py() or 0
    odd = pc.greater(pc.utf8_length(values), max(_LONGER * longest, _NEVER_LONG))
    if not pc.any(pc.match_substring_regex(known, _HIDDEN)).as_py():
        odd = pc.or_(odd, pc.match_substring_regex(values, _HIDDEN))
    return np.asarray(odd.fill_null(False).to_numpy(), dtype=bool)


def _is_not_in(values: pa.ChunkedArray, known: pa.Array) -> Bools:
    """True where there is a value and it is none of those known."""
    new = pc.and_(pc.is_valid(values), pc.invert(pc.is_in(values, value_set=known)))
    return np.asarray(new.to_numpy(), dtype=bool)
