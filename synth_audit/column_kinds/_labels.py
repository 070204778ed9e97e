"""What kinds of labels have in common."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Codes, Floats, Floats32, Labels
from synth_audit.encode.codes import distinct_labels, per_label
from synth_audit.encode.texts import WIDTH, Composite, Reading, ngram_vectors
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.table.arrow import values_of
from synth_audit.table.kind import Disturbance, Domain, Kind, LabelPart, NumberPart, Part, Scale, VectorPart

_FEW_LABELS = 30
"""A column of more labels than this counts as one of many."""

_LABEL_AMONG_MANY = 0.1
"""Weight of the label, beside other parts, in a column of more labels than that."""

_MANY_LABELS, _OFTEN_NEW = 100, 0.05
"""More labels than this, and than this share of the rows, are names, lists or codes rather than groups."""

_MOSTLY_ITS_OWN = 0.5
"""Share of rows with a label of their own from which a category looks like a name."""


class TextLabels(Kind):
    """Labels: two values are equal or not; categories and their frequencies."""

    most_labels = 10_000
    scale = Scale.NOMINAL
    domain_terms = frozenset({"categories"})

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
        if found is None or found.middles:
            if (several := Composite.of(forms)) is not None:
                each = (partial(several.number, i) for i in range(several.width))
                return tuple(NumberPart(partial(per_label, self, number)) for number in each)
            if found is None:
                return ()
        return (NumberPart(partial(per_label, self, found.numbers), unit=found.difference_unit),)

    def _letters_of(self, distinct: int, rows: int, *, read: bool) -> tuple[Part, ...]:
        """Of names and lists, where no number is read: in another order the same, misspelt they are near."""
        many = not read and distinct > _MANY_LABELS and distinct >= _OFTEN_NEW * rows
        vectors = partial(per_label, self, partial(self._vectors, form=_words))
        return (VectorPart(vectors, WIDTH),) if many else ()

    def _vectors(self, texts: Sequence[str | None], form: Callable[[str], str] = str) -> Floats32:
        known = np.full((len(texts), WIDTH), np.nan, dtype=np.float32)
        present = [i for i, text in enumerate(texts) if text is not None]
        known[present] = ngram_vectors([form(text) for text in texts if text is not None])
        return known

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


def names_rows(distinct: int, present: int) -> bool:
    """True for labels that half of the rows have for themselves."""
    return distinct >= present * _MOSTLY_ITS_OWN


def _words(text: str) -> str:
    """A label's words without what stands between them, which would count as letters."""
    return " ".join(re.findall(r"\w+", text))
