"""By how much the words that a text shares with one other tell more than those shared with the next ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats, Integers, Positions

_COMMON = 0.2
"""A word that more texts have tells nothing of anybody."""

_RAREST = 24
"""Words of a person's text that are looked for: the rarest."""

_FIRST, _LAST = 4, 8
"""The best text must stand out from those at these places."""

_CELLS = 10_000_000
"""Pairs of a person and a text that are compared together."""


@dataclass(frozen=True, eq=False)
class Words:
    """Different words of texts.

    Attributes:
        starts: of each text's words among all, shape (n + 1,). codes: of the words, 0 … k−1, shape (words,).
    """

    starts: Positions
    codes: Integers

    @property
    def texts(self) -> Positions:
        """Which text each word is of, shape (words,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def standing_out_in_words(release: Words, people: Words) -> Floats:
    """By how much one text of the release stands out to each person by the words they share, shape (n,).

    Words shared tell ``Σ −log2(share of the release's texts that have it)``, those of one text in five and of
    more nothing. The best is compared with the mean of the fifth to eighth best. Of a person's words the 24
    rarest count.
    """
    from scipy.sparse import csr_matrix  # here, since a code location must not load it

    n, m = (len(x.starts) - 1 for x in (people, release))
    size = 1 + int(max(release.codes.max(initial=0), people.codes.max(initial=0)))
    share = np.bincount(release.codes, minlength=size) / max(1, m)
    bits = np.where((share > 0) & (share <= _COMMON), -np.log2(np.maximum(share, 1 / (m + 1))), 0.0)
    order = np.lexsort((-bits[people.codes], people.texts))
    texts, codes = people.texts[order], people.codes[order]
    kept = (np.arange(len(codes)) - people.starts[texts] < _RAREST) & (bits[codes] > 0)
    told = csr_matrix((bits[codes[kept]], (texts[kept], codes[kept])), (n, size))
    there = csr_matrix((np.ones(len(release.codes)), (release.codes, release.texts)), (size, m))
    found, at_once, last = np.empty(n), max(1, _CELLS // m), min(_LAST, m)
    for start in range(0, n, at_once):
        shared = (told[start : start + at_once] @ there).toarray()
        best = np.sort(np.partition(shared, m - last, axis=1)[:, m - last :], axis=1)
        found[start : start + at_once] = best[:, -1] - best[:, : max(1, last - _FIRST)].mean(axis=1)
    return found
