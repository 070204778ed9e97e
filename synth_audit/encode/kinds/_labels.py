"""What kinds of labels have in common, and what statistics, models and attackers ask of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Codes, Floats, Floats32, Labels, Positions, Target
from synth_audit.encode.cells import AnchoredCells, SharedCells, shared_label_cells
from synth_audit.encode.codes import (
    Vocabulary,
    by_frequency,
    codes,
    distinct_labels,
    most_frequent,
    split_rows,
)
from synth_audit.encode.facets import MarginMethod, Novelty
from synth_audit.encode.novelty import exact_decimals, label_novelties, read_novelties
from synth_audit.encode.predictors import Coding, Equality, label_coding
from synth_audit.encode.ranks import RankScale
from synth_audit.encode.texts import WIDTH, Composite, Reading, ngram_vectors
from synth_audit.encode.univariate import Categories
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.stats.margins import Margin, stepwise_margin
from synth_audit.stats.resampling import rarest
from synth_audit.table.arrow import values_of
from synth_audit.table.kind import Disturbance, Domain, Kind, LabelPart, NumberPart, Part, Scale, VectorPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_FEW_LABELS = 30
"""A column of more labels than this counts as one of many."""

_LABEL_AMONG_MANY = 0.1
"""Weight of the label, beside other parts, in a column of more labels than that."""

_MANY_LABELS, _OFTEN_NEW = 100, 0.05
"""More labels than this, and than this share of the rows, are names, lists or codes rather than groups."""

_MOSTLY_ITS_OWN = 0.5
"""Share of rows with a label of their own from which a category looks like a name."""


class TextLabels(Kind):
    """Labels: two values are equal or not; categories and their frequencies.

    What is asked of a column takes and returns what it does of numbers; see :class:`._numbers.Numbers`.
    """

    most_labels = 10_000
    scale = Scale.NOMINAL
    domain_terms = frozenset({"categories"})

    def anchored_cells(
        self, train: Table, column: Column, *, most_cells: int, most_labels: int
    ) -> AnchoredCells:
        """A cell for each of the most frequent labels of train, one for its others, one for labels that train
        lacks, and one for missing."""
        vocabulary = Vocabulary.of(column.name, train)
        frequent = most_frequent(vocabulary.counts(train), most_labels)
        rarer = int(frequent.sum())
        cells = np.append(np.where(frequent, np.cumsum(frequent) - 1, rarer), [rarer + 1, rarer + 2])
        return AnchoredCells(rarer + 3, lambda table: cells[vocabulary.places(table)])

    def shared_cells(
        self, tables: Sequence[Table], real: Sequence[Table], column: Column, *, most: int, fewest: int
    ) -> SharedCells:
        """One for each label."""
        return shared_label_cells(tables, column)

    def grouping(self, train: Table, column: Column, *, bins: int) -> AnchoredCells:
        """Labels of train by their texts; 0 is of missing values, the last of labels that train lacks."""
        vocabulary = Vocabulary.of(column.name, train)
        return AnchoredCells(len(vocabulary.labels) + 2, lambda table: 1 + vocabulary.places(table))

    def outlying(self, table: Table, column: Column, tail: float) -> Positions:
        """Rows of the rarest labels."""
        return rarest(codes([table], column)[0], tail)

    def univariate(self, train: Table, column: Column, method: MarginMethod) -> Categories:
        """Frequencies."""
        return Categories.of(train, column.name)

    def margin(self, column: Column, values: Floats, method: MarginMethod) -> Margin:
        """Frequencies of the codes, and nothing between them."""
        return stepwise_margin(values)

    def rank_scale(
        self, train: Table, column: Column, response: Floats | None, *, own_order: bool
    ) -> RankScale:
        """Nominal labels have no order of their own: on this one, ranks show most of what they say about the
        response."""
        return RankScale.sorted_by(train, column.name, response)

    def response(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_classes: int, far: float
    ) -> tuple[list[Target], int]:
        """A target, missing nowhere, as classes, the most frequent of train first; and how many there are.

        Args:
            most_classes: classes beyond, by falling frequency in train, are one together.
        """
        *found, everyone = (np.minimum(y, most_classes - 1) for y in _ranked([*tables, train], column))
        return [*found], 1 + max(int(y.max()) for y in (*found, everyone))

    def features(
        self, tables: Sequence[Table], train: Table, column: Column, *, most_labels: int, far: float
    ) -> list[Floats]:
        """A predictor, an indicator for each label; a constant of train is 0; shape (n, k) for each table.

        Args:
            most_labels: indicators; the rarer labels are one together.
        """
        *found, everyone = _ranked([*tables, train], column)
        if everyone.min() == everyone.max():
            return [np.zeros((t.n_rows, 1)) for t in tables]
        used, position = np.unique(np.minimum(np.concatenate(found), most_labels - 1), return_inverse=True)
        joint = np.zeros((len(position), len(used)))
        joint[np.arange(len(position)), position] = 1.0
        return split_rows(joint, tables)

    def coding(self, train: Table, column: Column, start: int) -> Coding | None:
        """Indicators of the frequent labels."""
        return label_coding(train, column, start)

    def secret(
        self, tables: Sequence[Table], column: Column, tolerance: float
    ) -> tuple[list[Floats], Equality]:
        """Given by codes that the tables share, guessed right when equal."""
        return [np.where(x == MISSING, np.nan, x) for x in codes(tables, column)], Equality()

    def plain(self, values: pa.ChunkedArray) -> Floats | Labels:
        """Labels, None where missing."""
        return np.asarray(self.labels(values).to_numpy(), dtype=object)

    @property
    def part(self) -> LabelPart:
        """A label."""
        return LabelPart(self.codes)

    def parts(self, reference: Sequence[pa.ChunkedArray]) -> tuple[Part, ...]:
        """A label; numbers, where the labels read as such, as dates or quantities; letters of many labels.

        The label weighs a half where there are few, which may be codes; where there are many, equal ones
        are equal numbers as well, and that two are not equal says little.
        """
        forms = sorted({form for v in reference for form in distinct_labels(self, v)[1] if form is not None})
        others = self._numbers_in(forms)
        others += self._letters_of(len(forms), sum(map(len, reference)), read=bool(others))
        if not others:
            return (self.part,)
        alone = _LABEL_AMONG_MANY if len(forms) > _FEW_LABELS else 0.5
        rest = (replace(part, weight=(1 - alone) / len(others)) for part in others)
        return (replace(self.part, weight=alone), *rest)

    def _numbers_in(self, forms: Sequence[str]) -> tuple[Part, ...]:
        """The numbers that labels hold: one by a convention, or several by their places."""
        found = Reading.of(forms)
        if found is not None and not found.middles:
            return (NumberPart(partial(self._read, found), unit=found.difference_unit),)
        if (several := Composite.of(forms)) is not None:
            return tuple(NumberPart(partial(self._read_at, several, i)) for i in range(several.width))
        return () if found is None else (NumberPart(partial(self._read, found), unit=found.difference_unit),)

    def _letters_of(self, distinct: int, rows: int, *, read: bool) -> tuple[Part, ...]:
        """Of names and lists, where no number is read: in another order the same, misspelt they are near."""
        many = not read and distinct > _MANY_LABELS and distinct >= _OFTEN_NEW * rows
        return (VectorPart(partial(self._vectors, form=_words), WIDTH),) if many else ()

    def _read(self, reading: Reading, values: pa.ChunkedArray) -> Floats:
        rows, forms = distinct_labels(self, values)
        return np.append(reading.numbers(forms), np.nan)[rows]

    def _read_at(self, composite: Composite, place: int, values: pa.ChunkedArray) -> Floats:
        rows, forms = distinct_labels(self, values)
        return np.append(composite.numbers(forms)[:, place], np.nan)[rows]

    def _vectors(self, values: pa.ChunkedArray, form: Callable[[str], str] = str) -> Floats32:
        rows, texts = distinct_labels(self, values)
        known = np.full((len(texts) + 1, WIDTH), np.nan, dtype=np.float32)
        present = [i for i, text in enumerate(texts) if text is not None]
        known[present] = ngram_vectors([form(text) for text in texts if text is not None])
        return known[rows]

    def codes(self, values: Sequence[pa.ChunkedArray]) -> list[Codes]:
        """Numbered by how often all the tables together hold them, the most frequent first, and in the order
        of their texts where that is equal; texts of one standard form are one label.

        Never in order of appearance, which would tell from a code which of the tables a value came from.
        """
        coded = [distinct_labels(self, v) for v in values]
        often: Counter[str] = Counter()
        for rows, texts in coded:
            counts = np.bincount(rows[rows != MISSING], minlength=len(texts)).tolist()
            for text, n in zip(texts, counts, strict=True):
                if text is not None and n:
                    often[text] += n
        place: dict[str | None, int] = {
            text: i for i, text in enumerate(sorted(often, key=lambda t: (-often[t], t)))
        }
        return [
            np.array([*(place.get(text, MISSING) for text in texts), MISSING], dtype=np.int64)[rows]
            for rows, texts in coded
        ]

    def domain(self, values: pa.ChunkedArray) -> Domain:
        """The labels, sorted."""
        found = self.labels(values).unique().to_pylist()
        return Domain(categories=tuple(sorted(x for x in found if x is not None)))

    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """Labels in the type that they were read from."""
        return values_of(pa.array(values, type=pa.string()), storage)

    def disturbed(
        self, values: Floats | Labels, domain: Domain, how: Disturbance, rng: np.random.Generator
    ) -> Floats | Labels:
        """Redrawn with probability ``flip``, evenly from the other labels of the column."""
        known = np.array(domain.categories or (), dtype=object)
        if len(known) < 2:
            return values
        position = {label: i for i, label in enumerate(known)}
        old = np.array([position.get(x, 0) for x in values], dtype=np.int64)
        moved = (old + rng.integers(1, len(known), len(values))) % len(known)
        flips = (rng.random(len(values)) < how.flip) & (values != None)  # noqa: E711 (elementwise)
        return np.where(flips, known[moved], values)

    def novelties(
        self, column: Column, train: pa.ChunkedArray, values: pa.ChunkedArray, entities: Codes | None
    ) -> tuple[Novelty, ...]:
        """New labels; and where labels read as numbers or dates, finer ones, and text among them."""
        declared = column.declared_categories or ()
        known, given = (self.labels(exact_decimals(x)).cast(pa.large_string()) for x in (train, values))
        found = label_novelties(known, given, declared, entities)
        reading = Reading.of([x for x in distinct_labels(self, train)[1] if x is not None])
        if reading is None or declared:
            return found
        numbers, made = (self._read(reading, x) for x in (train, values))
        return (*found, *read_novelties(numbers, made, reading.dates, known, given, entities))


def _ranked(tables: Sequence[Table], column: Column) -> list[Codes]:
    """Labels as place by falling frequency in the last table, ties by their codes; missing is a label."""
    joint = codes(tables, column)
    return by_frequency(joint, joint[-1])


def names_rows(distinct: int, present: int) -> bool:
    """True for labels that half of the rows have for themselves."""
    return distinct >= present * _MOSTLY_ITS_OWN


def _words(text: str) -> str:
    """A label's words without what stands between them, which would count as letters."""
    return " ".join(re.findall(r"\w+", text))
