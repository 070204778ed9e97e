"""Blocks of columns that tell little each: found among many, and of no evidence where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy.partial_knowledge.weak_blocks import few_labels, weak_blocks

BLOCK = list(range(3, 15))


def answers(rng, n):
    """Twenty-four answers of two or three, which hang together in both halves of the columns."""
    mood = rng.normal(size=(n, 1))
    return (rng.normal(size=(n, 24)) + 0.7 * mood > np.linspace(-1, 1, 24)).astype(np.int64)


@pytest.mark.parametrize(("share", "columns"), [(0.5, BLOCK), (0.0, [])])
def test_a_block_of_answers_is_found_and_nothing_where_there_is_none(share, columns):
    rng = np.random.default_rng(1)
    people, release = answers(rng, 700), answers(rng, 600)
    rows = rng.permutation(600)[: round(600 * share)]
    release[np.ix_(rows, columns)] = people[: len(rows)][:, columns]
    best = weak_blocks(release, people, np.random.default_rng(0))[0]
    if columns:
        assert set(best.order[: len(columns)].tolist()) == set(columns)
        assert best.size == pytest.approx(len(columns), abs=1)
        assert best.evidence > 10
    else:
        assert best.evidence < 7
    assert sorted(best.order.tolist()) == list(range(24))


def test_the_rarest_labels_are_one():
    assert few_labels(np.array([7, 7, 7, 2, 2, 9, 4]), 3).tolist() == [0, 0, 0, 1, 1, 2, 2]
