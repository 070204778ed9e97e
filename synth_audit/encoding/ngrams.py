"""Texts as short vectors that are near for texts of much the same letters."""

from __future__ import annotations

from collections.abc import Sequence

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


def ngram_vectors(texts: Sequence[str]) -> Floats32:
    """Vectors of length 1 (0 for a text without letters), shape (n, :data:`WIDTH`).

    Counts of runs of two to four letters within words are hashed to 4,096 buckets (Weinberger et al. 2009),
    divided by their Euclidean length, and projected on random normal directions (Johnson & Lindenstrauss):
    differences of coordinates have the distance of the counts as scale.

    Args:
        texts: in standard form.
    """
    from sklearn.feature_extraction.text import HashingVectorizer  # here: a code location must not load it

    if not texts:
        return np.empty((0, WIDTH), dtype=np.float32)
    counted = HashingVectorizer(
        analyzer="char_wb", ngram_range=_N_GRAMS, n_features=_BUCKETS, lowercase=False, dtype=np.float32
    ).transform([text[:_LONGEST] for text in texts])
    directions = np.random.default_rng(_SEED).standard_normal((_BUCKETS, WIDTH)).astype(np.float32)
    vectors = np.asarray(counted @ directions, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Floats32 = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return made
