"""Words: does one text share unusually many rare words with the person's?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.audits.recognition.matching import AT_ONCE, FIRST, LAST
from synth_audit.audits.recognition.people import PooledPeople, PooledWords
from synth_audit.audits.recognition.view import Score, ViewInfo


@dataclass(frozen=True, kw_only=True)
class TextWords:
    """Texts of much the same words, in whatever order.

    A pair of texts weighs the sum of ``-log2`` of the share of texts that hold each word they share. The
    score is the margin of the best text over the mean of the fifth to eighth best.

    Source: inverse document frequencies, Spärck Jones 1972.
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Shared words of texts",
        finds="a text that shares unusually many rare words",
        source="Spärck Jones 1972",
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score each column of texts."""
        for column in pool.words:
            yield Score(column.name, _margins(column, pool.repeats), (column.name,))


def _margins(column: PooledWords, repeats: int) -> Floats:
    texts = [*column.people, *column.release]
    holding = np.bincount(np.concatenate([np.empty(0, np.intp), *texts]), minlength=1)
    bits = -np.log2(np.maximum(holding, 1) / len(texts))
    people, release = (_sparse(side, len(bits)) for side in (column.people, column.release))
    told = (people.multiply(bits)).tocsr()
    m = len(column.release)
    kept, size = min(LAST * repeats, m), max(1, AT_ONCE // m)
    found = np.empty(len(column.people))
    for start in range(0, len(found), size):
        shared = (told[start : start + size] @ release.T).toarray()
        top = np.sort(np.partition(shared, m - kept, axis=1)[:, m - kept :], axis=1)
        found[start : start + size] = top[:, -1] - top[:, : max(1, kept - FIRST * repeats)].mean(axis=1)
    return found


def _sparse(texts: Sequence[Positions], words: int) -> Any:
    """Which words each text holds, shape (texts, words)."""
    from scipy.sparse import csr_matrix  # lazy import: keeps the CLI's start fast

    starts = np.cumsum([0, *map(len, texts)])
    held = np.concatenate([np.empty(0, np.intp), *texts])
    return csr_matrix((np.ones(len(held)), held, starts), shape=(len(texts), words))
