"""Words of the texts of people and of a release, so that texts of much the same words are found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.parts import VectorPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.core.text_form import column_forms
from synth_audit.encoding.codes import cells_of
from synth_audit.kernels.shared_words import Words, standing_out_in_words

_WORD = re.compile(r"\w+")

_FEWEST = 4
"""Different words that half of the texts must have."""

_MOST = 100_000
"""Texts of the release that are compared, evenly taken where there are more."""

_LONGEST = 2000
"""Letters of a text that are read."""


def told_by_words(
    tables: Sequence[Table], columns: Sequence[Column], reference: Sequence[Table], asked: Positions
) -> Iterator[Floats]:
    """For each column of texts by how much one of the release stands out to people by the words it shares.

    Args:
        tables: the release, train, control. asked: people, of train first; the others are not looked up.
    """
    for column in columns:
        parts = column.kind.parts([cells_of(t, column) for t in reference])
        if any(isinstance(part, VectorPart) for part in parts):
            release, *people = ([*_words(t, column)] for t in tables)
            real = [words for of in people for words in of]
            if np.median([len(words) for words in real]) >= _FEWEST:
                numbered: dict[str, int] = {}
                some = np.unique(np.linspace(0, len(release) - 1, min(len(release), _MOST)).astype(np.intp))
                yield standing_out_in_words(
                    _coded([release[i] for i in some], numbered), _coded([real[i] for i in asked], numbered)
                )


def _words(table: Table, column: Column) -> Iterator[set[str]]:
    for text in column_forms(column.kind.labels(cells_of(table, column))).to_pylist():
        yield set() if text is None else set(_WORD.findall(text[:_LONGEST]))


def _coded(texts: Sequence[set[str]], numbered: dict[str, int]) -> Words:
    codes = [[numbered.setdefault(word, len(numbered)) for word in sorted(words)] for words in texts]
    starts = np.cumsum([0, *map(len, codes)])
    return Words(starts, np.array([code for of in codes for code in of], np.int64))
