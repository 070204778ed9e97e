"""Associations against peers, slow twins and closed forms; replicates against leaving rows out by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from synth_audit.stats import association
from synth_audit.stats.association import (
    JackknifeRows,
    contingency,
    correlation_ratio,
    cramers_v,
    normalised_information,
    pearson,
    rows_apart,
    spearman,
    variance_shares,
)

SIZES = np.array([4, 3, 6])


@st.composite
def samples(draw):
    """Rows of three label columns and three numbers of few values, some of them missing."""
    n = draw(st.integers(3, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cells = np.column_stack([rng.integers(0, draw(st.integers(1, int(k))), n) for k in SIZES])
    numbers = np.round(rng.normal(size=(n, 3)) + cells[:, :1], draw(st.integers(0, 2)))
    numbers[rng.random((n, 3)) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    return cells, numbers


def rows(cells, numbers, n_groups=1, sizes=SIZES):
    return JackknifeRows.of(cells, sizes, numbers, n_groups)


def whole(replicates):
    assert len(replicates) == 1
    return replicates[0]


def cells_only(cells, n_groups=1, sizes=SIZES):
    return rows(cells, np.empty((len(cells), 0)), n_groups, sizes)


def slow_correlation(a, b):
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    if len(a) < 2 or a.min() == a.max() or b.min() == b.max():
        return 0.0
    return np.corrcoef(a, b)[0, 1]


@settings(deadline=None)
@given(sample=samples())
def test_pearson_agrees_with_its_definition(sample):
    found = whole(pearson(rows(*sample)))
    for i, a in enumerate(sample[1].T):
        for j, b in enumerate(sample[1].T):
            assert found[i, j] == pytest.approx(slow_correlation(a, b), abs=1e-9)


@settings(deadline=None)
@given(sample=samples())
def test_spearman_is_pearson_of_ranks(sample):
    ranks = pd.DataFrame(sample[1]).rank().to_numpy()
    found = whole(spearman(rows(*sample)))
    for i, a in enumerate(ranks.T):
        for j, b in enumerate(ranks.T):
            assert found[i, j] == pytest.approx(slow_correlation(a, b), abs=1e-9)


def test_spearman_agrees_with_scipy():
    x = np.random.default_rng(0).normal(size=(60, 3)).round(1) + np.arange(60)[:, None] / 30
    found = whole(spearman(rows(np.zeros((60, 3), dtype=int), x)))
    assert found == pytest.approx(stats.spearmanr(x).statistic)


def slow_v(a, b, *, corrected):
    table = np.array([[np.sum((a == x) & (b == y)) for y in set(b)] for x in set(a)])
    n, (r, k) = len(a), table.shape
    if min(r, k) < 2:
        return 0.0
    phi2 = stats.chi2_contingency(table, correction=False).statistic / n
    if corrected:
        phi2 = max(0.0, phi2 - (r - 1) * (k - 1) / (n - 1))
        r, k = r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)
    return np.sqrt(phi2 / (min(r, k) - 1)) if min(r, k) - 1 > 1e-9 else 0.0


@settings(deadline=None)
@given(sample=samples(), corrected=st.booleans())
def test_cramers_v_agrees_with_scipys_chi_square(sample, corrected):
    cells, _ = sample
    found = whole(cramers_v(contingency(cells_only(cells)), corrected=corrected))
    for i, a in enumerate(cells.T):
        for j, b in enumerate(cells.T):
            assert found[i, j] ** 2 == pytest.approx(slow_v(a, b, corrected=corrected) ** 2, abs=1e-9)


@settings(deadline=None)
@given(sample=samples())
def test_information_agrees_with_a_peer(sample):
    cells, _ = sample
    found = whole(normalised_information(contingency(cells_only(cells)), corrected=False))
    for i, a in enumerate(cells.T):
        for j, b in enumerate(cells.T):
            constant = len(set(a)) == len(set(b)) == 1  # the peer says 1, where nothing can be told
            expected = 0.0 if constant else normalized_mutual_info_score(a, b)
            assert found[i, j] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [60, 400, 20_000])
@pytest.mark.parametrize(("r", "k"), [(2, 2), (2, 30), (12, 12), (40, 40)])
@pytest.mark.parametrize("together", [0.0, 0.5])
def test_corrected_information_agrees_with_a_peer(n, r, k, together):
    """The peer's correction is exact for fixed margins and takes time in proportion to n and to the cells."""
    rng = np.random.default_rng(n + r)
    a = np.minimum(rng.geometric(2 / r, n), r) - 1
    b = np.where(rng.random(n) < together, a * k // r, rng.integers(0, k, n))
    counts = contingency(cells_only(np.column_stack([a, b]), sizes=np.array([r, k])))
    found = whole(normalised_information(counts))[0, 1]
    room = 0.01 if n == 60 else 0.004
    assert found == pytest.approx(max(0.0, adjusted_mutual_info_score(a, b)), abs=room)


def slow_eta2(labels, y, *, corrected):
    known = ~np.isnan(y)
    labels, y = labels[known], y[known]
    n, k = len(y), len(set(labels))
    total = ((y - y.mean()) ** 2).sum() if n else 0.0
    if n < 2 or total < 1e-12:
        return 0.0
    within = sum(((y[labels == c] - y[labels == c].mean()) ** 2).sum() for c in set(labels))
    if not corrected:
        return 1 - within / total
    return max(0.0, 1 - (within / (n - k)) / (total / (n - 1))) if n > k else 0.0


@settings(deadline=None)
@given(sample=samples(), corrected=st.booleans())
def test_the_correlation_ratio_agrees_with_its_definition(sample, corrected):
    cells, numbers = sample
    labels = np.array([2, 0])
    found = whole(correlation_ratio(variance_shares(rows(*sample), labels), corrected=corrected))
    for i, a in enumerate(labels):
        for j, y in enumerate(numbers.T):
            expected = slow_eta2(cells[:, a], y, corrected=corrected)
            assert found[i, j] ** 2 == pytest.approx(expected, abs=1e-9)


MEASURES = {
    "pearson": pearson,
    "spearman": spearman,
    "cramers_v": lambda r: cramers_v(contingency(r)),
    "plain v": lambda r: cramers_v(contingency(r), corrected=False),
    "information": lambda r: normalised_information(contingency(r)),
    "plain information": lambda r: normalised_information(contingency(r), corrected=False),
    "eta": lambda r: correlation_ratio(variance_shares(r, np.arange(3))),
    "plain eta": lambda r: correlation_ratio(variance_shares(r, np.arange(3)), corrected=False),
}

every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


def a_sample(n=90, seed=0):
    rng = np.random.default_rng(seed)
    cells = np.column_stack([rng.integers(0, k, n) for k in SIZES])
    numbers = rng.normal(size=(n, 4)).round(1) + cells[:, [0]]
    numbers[rng.random((n, 4)) < 0.1] = np.nan
    return cells, numbers


@every_measure
def test_replicates_leave_out_one_group_each(measure):
    cells, numbers = a_sample()
    found = measure(rows(cells, numbers, n_groups=4))
    assert len(found) == 5
    assert found[0] == pytest.approx(whole(measure(rows(cells, numbers))), abs=1e-9)
    for k, group in enumerate(rows(cells, numbers, n_groups=4).groups):
        rest = [np.delete(part, np.arange(90)[group], axis=0) for part in (cells, numbers)]
        room = 0.02 if measure is MEASURES["information"] else 1e-9  # by chance as in the whole table
        assert found[k + 1] == pytest.approx(whole(measure(rows(*rest))), abs=room)


@every_measure
def test_blocks_change_no_number(measure, monkeypatch):
    cells, numbers = a_sample()
    before = measure(rows(cells, numbers, n_groups=3))
    monkeypatch.setattr(association, "_MOST_CELLS", 5)
    monkeypatch.setattr(association, "_MOST_ROWS", 7)
    assert measure(rows(cells, numbers, n_groups=3)) == pytest.approx(before, abs=1e-12)


@every_measure
def test_the_number_of_threads_changes_no_bit(measure):
    cells, numbers = a_sample(5000)
    found = []
    for n in (1, 4):
        with threadpool_limits(n):
            found.append(measure(rows(cells, numbers, n_groups=5)))
    assert np.array_equal(*found)


@every_measure
def test_independent_columns_have_none(measure):
    rng = np.random.default_rng(0)
    cells = np.column_stack([rng.integers(0, k, 40_000) for k in SIZES])
    found = whole(measure(rows(cells, rng.normal(size=(40_000, 3)))))
    square = len(found) == found.shape[1]
    off = found[~np.eye(len(found), dtype=bool)] if square else found
    assert np.abs(off).max() < 0.03


def test_groups_are_random_equal_and_hold_every_row():
    cells = np.arange(103)[:, None]
    made = JackknifeRows.of(cells, np.array([103]), np.empty((103, 0)), 20, np.random.default_rng(0))
    assert sorted(made.cells[:, 0].tolist()) == list(range(103))
    assert {s.stop - s.start for s in made.groups} == {5, 6}
    assert made.groups[0].start == 0
    assert all(a.stop == b.start for a, b in zip(made.groups, made.groups[1:], strict=False))
    assert made.cells[:, 0].tolist() != list(range(103))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_there_are_no_more_groups_than_rows(n):
    made = JackknifeRows.of(np.zeros((n, 1), dtype=int), np.array([1]), np.empty((n, 0)), 20)
    assert len(made.groups) == n
    assert len(made.left_out) == (n + 1 if n > 1 else 1)


def test_the_same_labels_under_other_names_are_wholly_associated():
    a = np.arange(60) % 3
    counts = contingency(cells_only(np.column_stack([a, (a + 1) % 3, a])))
    assert whole(cramers_v(counts)) == pytest.approx(np.ones((3, 3)))
    assert whole(cramers_v(counts, corrected=False)) == pytest.approx(np.ones((3, 3)))
    assert whole(normalised_information(counts, corrected=False)) == pytest.approx(np.ones((3, 3)))


def test_the_correction_takes_out_what_chance_adds():
    """Many labels in few rows: the plain measures see a strong association of noise."""
    rng = np.random.default_rng(0)
    cells, y = rng.integers(0, 40, (400, 2)), rng.normal(size=(400, 1))
    made = rows(cells, y, sizes=np.array([40, 40]))
    for corrected, low, high in ((False, 0.25, 0.5), (True, 0.0, 0.2)):
        values = [
            whole(cramers_v(contingency(made), corrected=corrected))[0, 1],
            whole(correlation_ratio(variance_shares(made, np.array([0])), corrected=corrected))[0, 0],
            whole(normalised_information(contingency(made), corrected=corrected))[0, 1],
        ]
        assert all(low <= v <= high for v in values), values


def test_means_of_labels_by_hand():
    """Means 0 and 2 around 1, each label spread by ±1: half of the variance lies between the labels."""
    y = np.array([-1.0, 1.0, 1.0, 3.0])[:, None]
    made = rows(np.array([[0], [0], [1], [1]]), y, sizes=np.array([2]))
    shares = variance_shares(made, np.array([0]))
    assert whole(correlation_ratio(shares, corrected=False))[0, 0] ** 2 == pytest.approx(0.5)
    assert whole(correlation_ratio(shares))[0, 0] ** 2 == pytest.approx(1 - 0.5 * 3 / 2)


@pytest.mark.parametrize("shift", [0.0, 1e15])
def test_scale_and_shift_of_numbers_do_not_matter(shift):
    cells, numbers = a_sample()
    numbers = np.round(numbers)  # which a large shift does not blur
    moved = numbers * 1e3 + shift
    for measure in (pearson, spearman, MEASURES["eta"]):
        assert measure(rows(cells, moved)) == pytest.approx(measure(rows(cells, numbers)), abs=1e-3)


def test_huge_numbers_have_room():
    cells, numbers = a_sample()
    numbers[0, 0], numbers[1, 1] = 1e300, -1e308
    for measure in (pearson, spearman, MEASURES["eta"]):
        assert np.isfinite(measure(rows(cells, numbers, n_groups=9))).all()
    assert whole(pearson(rows(cells, np.column_stack([numbers[:, 0]] * 2))))[0, 1] == pytest.approx(1)


def test_what_does_not_vary_has_no_association():
    cells, numbers = a_sample()
    cells[:, 0] = 2
    numbers[:, 0], numbers[:, 1] = 0.1, np.nan
    made = rows(cells, numbers, n_groups=3)
    for found in (pearson(made), spearman(made)):
        assert not found[:, :2].any()
        assert found[:, 2, 3].any()
    assert not cramers_v(contingency(made))[:, 0].any()
    assert not normalised_information(contingency(made))[:, 0].any()
    ratios = correlation_ratio(variance_shares(made, np.arange(3)))
    assert not ratios[:, 0].any()
    assert not ratios[:, :, :2].any()


def test_a_number_that_varies_in_one_group_only_does_not_without_it():
    cells, numbers = a_sample()
    numbers[:] = 0.1
    numbers[:5] += np.arange(5)[:, None]
    found = correlation_ratio(variance_shares(rows(cells, numbers, n_groups=3), np.arange(3)))
    assert not found[1].any()
    assert not pearson(rows(cells, numbers, n_groups=3))[1].any()
    assert not spearman(rows(cells, numbers, n_groups=3))[1].any()


def test_tables_of_one_kind_only():
    cells, numbers = a_sample()
    assert pearson(cells_only(cells, 3)).shape == (4, 0, 0)
    assert spearman(cells_only(cells, 3)).shape == (4, 0, 0)
    assert correlation_ratio(variance_shares(cells_only(cells, 3), np.arange(3))).shape == (4, 3, 0)
    shares = variance_shares(rows(cells, numbers, 3), np.array([], dtype=int))
    assert correlation_ratio(shares).shape == (4, 0, 4)


@settings(deadline=None)
@given(sample=samples(), seed=st.integers(0, 99))
def test_rows_apart_by_counting(sample, seed):
    cells, _ = sample
    present = np.random.default_rng(seed).random(cells.shape) < 0.8
    missing = np.array([-1, 2, 5])
    found = rows_apart(cells_only(cells), present, missing)
    for i in range(3):
        for j in range(3):
            held = [c for c, seen in zip(cells[:, i], present[:, j], strict=True) if seen and c != missing[i]]
            assert found[i, j] == len(held) - max((held.count(c) for c in held), default=0)
