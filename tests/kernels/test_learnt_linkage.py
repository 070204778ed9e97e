"""Linkage by learnt weights: cells, likeness, what is learnt, blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from synth_audit.kernels import linked_columns
from synth_audit.kernels.compared_rows import compared
from synth_audit.kernels.learnt_linkage import LinkageWeights, _best_without
from synth_audit.kernels.linked_columns import Blocks, LinkedColumn


def column(release, people, *, numeric=True):
    return LinkedColumn.of(np.array([*release, *people], float), len(release), numeric)


def test_numbers_keep_their_order_and_are_cut_where_there_are_many():
    values = np.random.default_rng(0).normal(size=5000)
    cut = LinkedColumn.of(values, 4000, numeric=True)
    assert cut.size <= 256
    order = np.argsort(values[:4000])
    assert (np.diff(cut.release[order]) >= 0).all()
    assert column([3, 1, 2], [2, 9]).people.tolist() == [1, 3]


def test_rare_labels_are_one_and_weigh_nothing():
    one = column([1, 1, 1, 1, 2, 3, 3, 3, 3], [1, 3, 4], numeric=False)
    assert one.people.tolist() == [1, 2, 0]
    assert one.nameless == 0
    [table] = LinkageWeights.before([one], Blocks.of([one]), labels_known=True).tables
    assert not table[0].any()
    assert not table[:, 0].any()
    assert table[1, 1] == pytest.approx(np.log(0.5 + 0.5 * 9 / 4), abs=1e-6)
    assert table[1, 2] == pytest.approx(np.log(0.5))


def test_likeness_is_the_share_of_rows_as_near_by_rank():
    one = column(range(8), range(8))
    # 3 itself is an eighth of the rows, 2 to 4 are three eighths, 1 to 5 five eighths.
    assert one.levels[3, :6].tolist() == [0, 0, 1, 3, 1, 0]
    assert replace(one, mirrored=True).levels[0].tolist() == one.levels[7].tolist()


def rows_one_by_one(weights, person):
    """Rows compared with a person and what they weigh in each column, shape (d, rows): row by row."""
    blocks, m = weights.blocks, len(weights.columns[0].release)
    at = [k * m + s[person] + i for k, s in enumerate(blocks.starts) for i in range(blocks.width)]
    cells = blocks.places[:, at] - blocks.first_cells
    return cells, np.array(
        [t[c.people[person], x] for t, c, x in zip(weights.tables, weights.columns, cells, strict=True)]
    )


def test_the_best_by_all_columns_but_one():
    columns = [column([0, 1, 2, 3], [0]), column([0, 1, 2, 3], [0])]
    tables = np.zeros((2, 4, 4), np.float32)
    tables[:, 0] = [[5, 0, 1, 2], [0, 4, 1, 3]]
    blocks = Blocks.of(columns)
    [some] = compared(columns, blocks, tables, lightest=True)
    rows, weighs = _best_without(some, blocks)
    assert rows[0, :, 0].tolist() == [1, 0]
    assert weighs[0, :, 0].tolist() == [4, 5]
    assert some.total.tolist() == [[5, 4, 2, 5]]
    assert some.lightest.tolist() == [[0, 0, 1, 2]]


def test_what_stands_for_what_is_learnt_from_the_other_columns():
    rng = np.random.default_rng(1)
    n = 300
    numbers = [rng.normal(size=n) for _ in range(3)]
    labels = rng.integers(4, size=n)
    meant = np.array([2, 3, 1, 0])
    columns = [column(x, x) for x in numbers]
    columns.append(column(meant[labels], labels, numeric=False))
    weights = LinkageWeights.before(columns, Blocks.of(columns), labels_known=False)
    assert not weights.tables[-1].any()
    learnt = weights.learnt()
    assert learnt.tables[-1].argmax(axis=1).tolist() == meant.tolist()
    assert learnt.standing_out().mean() > weights.standing_out().mean()
    out, again = weights.standing_out_and_learnt()
    assert out.tolist() == weights.standing_out().tolist()
    assert all((a == b).all() for a, b in zip(again.tables, learnt.tables, strict=True))


def test_of_many_rows_those_near_in_a_number_are_compared(monkeypatch):
    monkeypatch.setattr(linked_columns, "BLOCK", 10)
    rng = np.random.default_rng(2)
    first, second, label = rng.normal(size=300), rng.normal(size=300), rng.integers(3, size=300)
    columns = [column(first, first), column(label, label, numeric=False), column(second, second)]
    blocks = Blocks.of(columns)
    assert blocks.compared == 20
    assert blocks.places.dtype.itemsize <= 2
    weights = LinkageWeights.before(columns, blocks, labels_known=True)
    met = []
    for some in compared(columns, blocks, weights.tables, lightest=True):
        met += some.people.tolist()
        for person, total, least in zip(some.people, some.total, some.lightest, strict=True):
            cells, own = rows_one_by_one(weights, person)
            mine = [c.people[person] for c in columns]
            near, other = cells[:, :10], cells[:, 10:]
            assert (mine == near.T).all(axis=1).any()
            asked = np.tile(np.arange(20), (1, 3, 1))
            assert (blocks.places_of(np.array([person]), asked)[0] - blocks.first_cells == cells).all()
            twice = {tuple(x) for x in near.T} & {tuple(x) for x in other.T}
            [seen] = blocks.seen_before(np.array([person]))
            assert seen.sum() == len(twice) >= 1
            assert (least == own.min(axis=0)).all()
            assert total[:10] == pytest.approx(own.sum(axis=0)[:10], abs=1e-5)
            assert total[10:] == pytest.approx(own.sum(axis=0)[10:] - 1e5 * seen)
    assert sorted(met) == list(range(300))
    turned = Blocks.of([replace(c, mirrored=c.numeric) for c in columns])
    largest = np.array([first.argmax()])
    assert turned.places_of(largest, np.arange(10)[None])[0, 0].max() <= 20
    assert Blocks.of(columns[:2]).compared == 10
    assert Blocks.of(columns[1:2]).compared == 300
    assert (weights.standing_out() > 0).all()
    assert weights.learnt().tables[1].shape == (3, 3)
