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
        form, n = Counter(map(_form_of, distinct)).most_common(1)[0]
        able = n >= LEAST_READ * len(distinct) and 2 <= form.count("#") <= _MOST_NUMBERS
        return cls(form) if able else None

    def numbers(self, labels: Sequence[str | None]) -> Floats:
        """The numbers of labels in standard form; NaN for those of another form, shape (n, width)."""
        found = np.full((len(labels), self.width), np.nan)
        for i, label in enumerate(labels):
            if label is not None and _form_of(label) == self.form:
                found[i] = [_value(text) for text in _NUMBER.findall(label)]
        return found


def _form_of(text: str) -> str:
    """What stands between a text's numbers, each of which is a ``#``; empty for what is too long."""
    return "" if len(text) > _LONGEST or "#" in text else _NUMBER.sub("#", text)


def _value(text: str) -> float:
    value = float(text.replace("\N{MINUS SIGN}", "-").replace(",", "."))
    return value if np.isfinite(value) else np.nan
