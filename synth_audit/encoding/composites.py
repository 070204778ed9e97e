"""Text that holds several numbers, such as "52.37,4.90" or "132/84": each is read by its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.encoding.readings import LEAST_READ

_NUMBER = re.compile(r"(?:(?<![\w.)])[-+\N{MINUS SIGN}])?\d+(?:[.,]\d+)?")
"""A sign behind a digit or a letter stands between two numbers instead."""

_LONGEST = 200
"""Letters of a text that is read; a longer one is no composite."""

_MOST_READ = 2000
"""Letters of a free text in which numbers are looked for."""

FEWEST_LABELS, _MOST_NUMBERS = 30, 6
"""Labels that a composite has more of, fewer being groups such as bands of ages; most numbers of a text."""


@dataclass(frozen=True)
class Composite:
    """How texts of several numbers are read.

    Attributes:
        form: what stands between the numbers, each of which is a ``#``; a text of another form is not read.
    """

    form: str

    @property
    def width(self) -> int:
        """How many numbers a text has."""
        return self.form.count("#")

    @classmethod
    def of(cls, labels: Sequence[str]) -> Composite | None:
        """The form of at least 90 % of the distinct labels, with two to six numbers; None without one.

        Args:
            labels: those of real rows, in standard form.
        """
        distinct = dict.fromkeys(labels)
        if len(distinct) <= FEWEST_LABELS:
            return None
        form, n = Counter(map(form_of, distinct)).most_common(1)[0]
        able = n >= LEAST_READ * len(distinct) and 2 <= form.count("#") <= _MOST_NUMBERS
        return cls(form) if able else None

    def numbers(self, labels: Sequence[str | None]) -> Floats:
        """The numbers of labels in standard form; NaN for those of another form, shape (n, width)."""
        found = np.full((len(labels), self.width), np.nan)
        for i, label in enumerate(labels):
            if label is not None and form_of(label) == self.form:
                found[i] = [_value(text) for text in _NUMBER.findall(label)]
        return found


def numbers_of_texts(texts: Sequence[str | None]) -> Floats:
    """The first six numbers of each text, whatever stands between; NaN without, shape (n, 6)."""
    found = np.full((len(texts), _MOST_NUMBERS), np.nan)
    for i, text in enumerate(texts):
        if text is not None:
            values = [_value(x) for x in _NUMBER.findall(text[:_MOST_READ])[:_MOST_NUMBERS]]
            found[i, : len(values)] = values
    return found


def form_of(text: str) -> str:
    """What stands between a text's numbers, each of which is a ``#``; empty for what is too long."""
    return "" if len(text) > _LONGEST or "#" in text else _NUMBER.sub("#", text)


def _value(text: str) -> float:
    value = float(text.replace("\N{MINUS SIGN}", "-").replace(",", "."))
    return value if np.isfinite(value) else np.nan
