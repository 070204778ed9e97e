"""Models of overlapping tables, beside sums over every combination of cells."""

from itertools import combinations

import numpy as np
import pytest

from synth_audit.generators._marginal.marginals import (
    CellMerging,
    JunctionTree,
    Measured,
    counted,
    drawn_rows,
    estimated_total,
    fitted,
)

SIZES = (2, 3, 4, 2, 3)
CYCLE = [(0, 1), (1, 2), (2, 3), (0, 3)]


def rows(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, SIZES[0], n)]
    for size in SIZES[1:]:
        codes.append(np.where(rng.random(n) < 0.6, codes[-1] % size, rng.integers(0, size, n)))
    return np.stack(codes, axis=1)


def exact(codes, tables, deviation=1.0):
    return [Measured(r, counted(codes, SIZES, r), np.array(deviation)) for r in tables]


def whole(model):
    """All columns together, as the product of the cliques over what they share."""
    joint = np.ones(SIZES)
    for clique, shared, counts in zip(
        model.tree.cliques, model.tree.separators, model.marginals, strict=True
    ):
        shape = [SIZES[a] if a in clique else 1 for a in range(len(SIZES))]
        over = tuple(i for i, a in enumerate(clique) if a not in shared)
        below = counts.sum(axis=over)
        under = [SIZES[a] if a in shared else 1 for a in range(len(SIZES))]
        joint = joint * counts.reshape(shape) / below.reshape(under)
    return joint * model.marginals[0].sum()


@pytest.mark.parametrize("seed", range(30))
def test_cliques_that_share_a_column_hang_together(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    pairs = [p for p in combinations(range(d), 2) if rng.random() < 0.35]
    tree = JunctionTree.of(rng.integers(1, 6, d).tolist(), pairs)
    assert all(tree.holder(p) is not None for p in pairs)
    for column in range(d):
        held = [i for i, clique in enumerate(tree.cliques) if column in clique]
        assert held
        assert sum(tree.parents[i] not in held for i in held) == 1, "one of them is the top of the others"
    assert all(parent < i for i, parent in enumerate(tree.parents))


def test_what_is_measured_without_noise_is_what_the_model_has():
    codes = rows()
    model = fitted(JunctionTree.of(SIZES, CYCLE), exact(codes, CYCLE), 3000.0, iterations=3000, tolerance=0)
    for r in CYCLE:
        assert np.abs(model.marginal(r) - counted(codes, SIZES, r)).sum() / 3000 < 0.01
    lone = model.marginal((4,))
    assert lone == pytest.approx(np.full(3, 1000.0)), "of what was not measured nothing is known"


def test_counts_of_columns_that_share_no_clique_are_those_of_all_columns_together():
    tables = [(0, 1), (1, 2), (2, 3), (3, 4)]
    model = fitted(JunctionTree.of(SIZES, tables), exact(rows(), tables), 3000.0, iterations=100)
    joint = whole(model)
    for r in [*combinations(range(5), 2), *combinations(range(5), 3), (0, 1, 2, 3, 4)]:
        naive = joint.sum(axis=tuple(a for a in range(5) if a not in r))
        assert model.marginal(r) == pytest.approx(naive, rel=1e-6, abs=1e-6)


def test_rows_are_drawn_from_the_model():
    model = fitted(JunctionTree.of(SIZES, CYCLE), exact(rows(), CYCLE), 3000.0, iterations=200)
    made = drawn_rows(model.conditionals(), 40_000, np.random.default_rng(0))
    for r in combinations(range(5), 2):
        assert counted(made, SIZES, r) / 40_000 == pytest.approx(model.marginal(r) / 3000, abs=0.012)


def test_the_more_precise_table_counts_for_more_and_a_model_goes_on_from_another():
    counts = [np.array([90.0, 10]), np.array([10.0, 90])]
    measured = [
        Measured((0,), c, np.array(deviation)) for c, deviation in zip(counts, (1.0, 3.0), strict=True)
    ]
    tree = JunctionTree.of((2,), [])
    model = fitted(tree, measured, 100.0, iterations=300, tolerance=0)
    assert model.marginal((0,)) == pytest.approx([82, 18], abs=0.1)
    assert fitted(tree, measured, 100.0, iterations=1, start=model).marginal((0,)) == pytest.approx(
        [82, 18], abs=0.1
    )
    assert estimated_total(measured) == pytest.approx(100)


def test_only_cells_that_noise_hides_are_merged_and_drawn_by_their_counts():
    merging = CellMerging.of([np.array([50.0, 2, -1, 30, 6]), np.array([5.0, 90])], 2.0)
    assert merging.sizes == (3, 2)
    assert merging.merged[0].tolist() == [0, 2, 2, 1, 2]
    assert merging.counts(np.array([50.0, 2, -1, 30, 6]), 0).tolist() == [50, 30, 7]
    made = merging.drawn(np.array([[0, 0], [1, 1], [2, 0]] * 4000), np.random.default_rng(0))
    found = np.bincount(made[:, 0], minlength=5) / 4000
    assert found == pytest.approx([1, 0.25, 0, 1, 0.75], abs=0.03)
    assert (merging.codes(made) == np.array([[0, 0], [1, 1], [2, 0]] * 4000)).all()


def test_cells_without_any_count_are_drawn_alike():
    merging = CellMerging.of([np.array([-3.0, -1, -2])], 1.0)
    assert merging.sizes == (1,)
    made = merging.drawn(np.zeros((3000, 1), dtype=np.int64), np.random.default_rng(0))
    assert np.bincount(made[:, 0]) / 3000 == pytest.approx([1 / 3] * 3, abs=0.04)
