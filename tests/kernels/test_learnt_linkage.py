"""Linkage by learnt weights: cells, likeness, what is learnt, blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from synth_audit.kernels import linked_columns
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


def test_the_best_by_all_columns_but_one():
    weights = np.array([[5.0, 0, 1, 2], [0, 4, 1, 3]], np.float32)
    rows, weighs = _best_without(weights, weights.sum(axis=0))
    assert rows[:, 0].tolist() == [1, 0]
    assert weighs[:, 0].tolist() == [4, 5]


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
    assert {o.places.dtype.itemsize for o in blocks.orders} <= {1, 2}
    assert not blocks.places.size
    for person in range(300):
        (near, other), seen = blocks.of_person(person)
        mine = [c.people[person] for c in columns]
        assert (mine == (near - blocks.first_cells).T).all(axis=1).any()
        both = np.hstack([near, other]) - blocks.first_cells
        assert (blocks.cells_of(person, np.tile(np.arange(20), (3, 1))) == both).all()
        twice = {tuple(x) for x in near.T} & {tuple(x) for x in other.T}
        assert seen.sum() == len(twice) >= 1
    turned = Blocks.of([replace(c, mirrored=c.numeric) for c in columns])
    (near, _), _ = turned.of_person(int(first.argmax()))
    assert near[0].max() <= 20
    assert [places.shape for places in Blocks.of(columns[:2]).of_person(0)[0]] == [(2, 10)]
    assert [places.shape for places in Blocks.of(columns[1:2]).of_person(0)[0]] == [(1, 300)]
    weights = LinkageWeights.before(columns, blocks, labels_known=True)
    assert (weights.standing_out() > 0).all()
    assert weights.learnt().tables[1].shape == (3, 3)
