"""Texts as short vectors that are near for texts of much the same letters."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from synth_audit.core.arrays import Floats32

WIDTH = 16
"""Numbers of a vector."""

_N_GRAMS = 2, 4
"""Lengths of the runs of letters that are counted, within words."""

_BUCKETS = 2**12
_LONGEST = 2_000
"""Letters of a text that are looked at."""

_SEED = 20_240_301
"""Of the projection, which is the same for every table and run, so that no data move it."""


_BLOCK = 200
"""Texts that are compared at once."""

_MOST_KEPT = 2**17
"""Vectors that are kept in a process: 8 MiB, and as much again for the hashes of their texts."""


def ngram_vectors(texts: Sequence[str]) -> Floats32:
    """Vectors of length 1 (0 for a text without letters), shape (n, :data:`WIDTH`).

    Counts of runs of two to four letters within words are hashed to 4,096 buckets (Weinberger et al. 2009),
    divided by their Euclidean length, and projected on random normal directions (Johnson & Lindenstrauss):
    differences of coordinates have the distance of the counts as scale. The vector of a text is made once:
    one view of a table after the other asks for those of the same notes.

    Args:
        texts: in standard form.
    """
    return _KEPT.vectors([text[:_LONGEST] for text in texts])


def greatest_similarity(texts: Sequence[str], others: Sequence[str]) -> Floats32:
    """The cosine of the counts of each text with those of the most similar other one, in [-1, 1], shape (n,).

    Of the counts themselves and not of their projection, in which one text among thousands of strangers lies
    as near by chance as a reworded one.

    Args:
        texts, others: in standard form; there is at least one other.
    """
    counts, reference = _counted(texts), _counted(others).T.tocsr()
    found = np.zeros(len(texts), dtype=np.float32)
    for start in range(0, len(texts), _BLOCK):
        rows = slice(start, start + _BLOCK)
        found[rows] = (counts[rows] @ reference).max(axis=1).toarray().ravel()
    return found


class _KeptVectors:
    """Vectors of texts met before, by the hash of each; all go when there is no room for more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._place: dict[bytes, int] = {}
        self._vectors = np.empty((0, WIDTH), dtype=np.float32)
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str]) -> Floats32:
        """Vectors of cut texts, made where they are not known."""
        keys = [_digest(text) for text in texts]
        with self._lock:
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._place}
            if len(self._place) + len(new) > self._most:
                new = dict(zip(keys, texts, strict=True))
                self._place, self._vectors = {}, self._vectors[:0]
            place, known = self._place, self._vectors
            if new:
                place = place | {key: len(place) + i for i, key in enumerate(new)}
                known = np.concatenate([known, _made(list(new.values()))])
            if len(place) <= self._most:
                self._place, self._vectors = place, known
        found: Floats32 = known[[place[key] for key in keys]]
        return found


_KEPT = _KeptVectors(_MOST_KEPT)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _made(texts: Sequence[str]) -> Floats32:
    """Each vector depends on its own text alone, whatever stands beside it."""
    if not texts:
        return np.empty((0, WIDTH), dtype=np.float32)
    counted = _counted(texts)
    directions = np.random.default_rng(_SEED).standard_normal((_BUCKETS, WIDTH)).astype(np.float32)
    vectors = np.asarray(counted @ directions, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Floats32 = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return made


def _counted(texts: Sequence[str]) -> Any:
    """Signed counts in their buckets, of length 1 each; a sparse matrix."""
    from sklearn.feature_extraction.text import HashingVectorizer  # here: a code location must not load it

    return HashingVectorizer(
        analyzer="char_wb", ngram_range=_N_GRAMS, n_features=_BUCKETS, lowercase=False, dtype=np.float32
    ).transform([text[:_LONGEST] for text in texts])
