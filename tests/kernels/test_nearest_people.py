"""By how much rows are nearer to one person than to the next: naive twins, few people, what density hides."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels import linked_columns, nearest_people
from synth_audit.kernels.learnt_linkage import LinkageWeights
from synth_audit.kernels.linked_columns import Blocks, LinkedColumn
from synth_audit.kernels.nearest_people import NearestPeople


def linked_by(numbers_release, numbers_people):
    columns = [
        LinkedColumn.of(np.concatenate([r, p]), len(r), numeric=True)
        for r, p in zip(numbers_release.T, numbers_people.T, strict=True)
    ]
    weights = LinkageWeights.before(columns, Blocks.of(columns), labels_known=True)
    among = NearestPeople(weights.blocks)
    return weights, weights.standing_out(nearest=among), among


@pytest.mark.parametrize("rows", [150, 400])
def test_naive_twin(rows, monkeypatch):
    monkeypatch.setattr(linked_columns, "BLOCK", 100)  # of 400 rows two blocks are compared with each
    monkeypatch.setattr(nearest_people, "_FEWEST", 2)
    rng = np.random.default_rng(rows)
    weights, _, among = linked_by(rng.normal(size=(rows, 3)), rng.normal(size=(40, 3)))
    pairs = np.full((40, rows), -np.inf)
    order = [np.argsort(c.release, kind="stable") for c in weights.columns]
    by = sorted(range(3), key=lambda k: -weights.columns[k].telling)[:2]
    for person in range(40):
        total = sum(
            t[c.people[person], c.release] for c, t in zip(weights.columns, weights.tables, strict=True)
        )
        near = np.arange(rows)
        if rows > 200:
            starts = weights.blocks.starts[:, person]
            near = np.unique([order[k][s : s + 100] for k, s in zip(by, starts, strict=True)])
        pairs[person, near] = total[near]
    usual = np.sort(pairs, axis=0)[-4:-1].mean(axis=0)
    usual[~np.isfinite(usual)] = np.inf
    expected = np.maximum(0.0, (pairs - usual).max(axis=1))
    assert among.standing_out() == pytest.approx(expected, abs=1e-4)


def test_few_people_are_no_next_ones():
    rng = np.random.default_rng(0)
    _, _, among = linked_by(rng.normal(size=(50, 2)), rng.normal(size=(63, 2)))
    assert not among.able
    _, _, among = linked_by(rng.normal(size=(50, 2)), rng.normal(size=(64, 2)))
    assert among.able


def test_whoever_left_many_rows_stands_out_among_people_alone():
    rng = np.random.default_rng(1)
    people, others = (rng.normal(size=(n, 4)) for n in (300, 120))
    copied = np.repeat(people[:20], 9, axis=0)
    copied += 0.05 * rng.normal(size=copied.shape)
    _, among_rows, among = linked_by(np.vstack([copied, others]), people)
    found = [(x[:20] > np.quantile(x[20:], 0.98)).mean() for x in (among_rows, among.standing_out())]
    assert found[0] < 0.2
    assert found[1] > 0.8
