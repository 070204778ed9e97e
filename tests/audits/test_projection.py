"""Principal components: against a peer's definition, at the reference, at the floor, and in pictures."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from synth_audit.audits.fidelity.projection import NUMERIC, Projection
from synth_audit.errors import NotApplicable

QUICK = Projection(n_bootstrap=50)


def people(n, seed, width=4):
    """Numbers and labels that hang together."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    numbers = {f"x{i}": z + 0.7 * rng.normal(size=n) for i in range(width)}
    return {
        **numbers,
        "group": np.where(z + 0.5 * rng.normal(size=n) > 0, "high", "low").tolist(),
        "site": rng.choice(list("abc"), n).tolist(),
    }


def shuffled(columns, seed=0):
    rng = np.random.default_rng(seed)
    return {name: [values[i] for i in rng.permutation(len(values))] for name, values in columns.items()}


def peers_figures(real, made):
    """Each table standardised on its own, components of all columns; d / (2 (d − 1)) and 2 / π."""
    a, b = (PCA().fit(StandardScaler().fit_transform(t)) for t in (real, made))
    d = real.shape[1]
    gap = np.abs(a.explained_variance_ratio_ - b.explained_variance_ratio_).sum() * d / (2 * (d - 1))
    return gap, 2 / np.pi * np.arccos(min(1.0, abs(a.components_[0] @ b.components_[0])))


def test_numbers_on_their_own_scale_are_those_of_a_peer(subject_of, measure):
    real = load_wine().data
    rng = np.random.default_rng(0)
    made = (real + rng.normal(size=real.shape) * real.std(axis=0))[:150] * 3
    train, synthetic = ({f"c{i}": column for i, column in enumerate(t.T)} for t in (real, made))
    found, _ = measure(QUICK, subject_of(train, None, synthetic))
    gap, angle = peers_figures(real, made)
    assert found["eigenvalue_difference", NUMERIC].value == pytest.approx(gap, rel=1e-9)
    assert found["angle", NUMERIC].value == pytest.approx(angle, rel=1e-6)
    assert found["eigenvalue_difference"].reference is None


def test_numbers_alone_are_standardised_by_train(subject_of, measure):
    rng = np.random.default_rng(1)
    real = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3))
    made = rng.normal(size=(300, 3)) * [5, 1, 1] @ rng.normal(size=(3, 3))
    scaler = StandardScaler().fit(real)
    a, b = (PCA().fit(scaler.transform(t)) for t in (real, made))
    train, synthetic = ({f"c{i}": column for i, column in enumerate(t.T)} for t in (real, made))
    found, _ = measure(QUICK, subject_of(train, None, synthetic))
    gap = np.abs(a.explained_variance_ratio_ - b.explained_variance_ratio_).sum() * 3 / 4
    assert found["eigenvalue_difference"].value == pytest.approx(gap)
    turn = 2 / np.pi * np.arccos(abs(a.components_[0] @ b.components_[0]))
    assert found["angle"].value == pytest.approx(turn)


def test_control_as_the_release_is_exactly_at_the_reference(subject_of, measure):
    control = people(300, 2)
    found, _ = measure(QUICK, subject_of(people(900, 1), control, control))
    assert len(found) == 4
    for m in found.values():
        assert m.value == m.reference.value
        assert m.interval == m.reference.interval
        assert m.interval.low <= m.value <= m.interval.high
        assert m.interval.low < m.interval.high


def test_a_copy_in_another_order_is_at_zero(subject_of, measure):
    train = people(300, 1)
    order = np.random.default_rng(0).permutation(300)
    copy = {name: [values[i] for i in order] for name, values in train.items()}
    found, _ = measure(QUICK, subject_of(train, people(300, 2), copy))
    for m in found.values():
        assert m.value == pytest.approx(0, abs=1e-9)
        assert m.interval.high > 0


def test_independent_columns_are_at_the_floor(subject_of, measure):
    train = people(2000, 1)
    found, _ = measure(QUICK, subject_of(train, people(600, 2), shuffled(train)))
    for name in ("eigenvalue_difference", ("eigenvalue_difference", NUMERIC)):
        m = found[name]
        assert m.interval.low > 2 * m.reference.interval.high
    numeric = np.cov(StandardScaler().fit_transform(np.array([train[f"x{i}"] for i in range(4)]).T).T)
    shares = np.sort(np.linalg.eigvalsh(numeric))[::-1] / np.trace(numeric)
    floor = np.abs(shares - 0.25).sum() * 4 / 6
    assert found["eigenvalue_difference", NUMERIC].value == pytest.approx(floor, abs=0.05)


def test_a_larger_release_is_compared_at_the_size_of_control_too(subject_of, measure):
    found, _ = measure(QUICK, subject_of(people(900, 1), people(200, 2), people(900, 3)))
    for m in found.values():
        assert m.reference.candidate is not None
        assert m.reference.candidate.value != m.value


def test_a_release_of_one_row_is_as_far_as_can_be_and_says_nothing_else(subject_of, measure):
    found, _ = measure(QUICK, subject_of(people(300, 1), people(100, 2), people(1, 3)))
    for m in found.values():
        assert m.value == 1
        assert (m.interval.low, m.interval.high) == (0, 1)


def test_a_column_constant_in_the_release_only_counts(subject_of, measure):
    train, made = people(500, 1), people(500, 3)
    whole, _ = measure(QUICK, subject_of(train, None, made))
    flat, _ = measure(QUICK, subject_of(train, None, {**made, "x0": np.zeros(500)}))
    assert flat["eigenvalue_difference"].value > whole["eigenvalue_difference"].value
    assert math.isfinite(flat["angle", NUMERIC].value)


@pytest.mark.parametrize("sizes", [(10, 10, 10), (10, 3, 40), (500, 7, 20)])
def test_few_rows_and_unequal_sizes(sizes, subject_of, measure):
    tables = [people(n, seed) for seed, n in enumerate(sizes)]
    found, _ = measure(QUICK, subject_of(*tables))
    assert all(0 <= m.value <= 1 and m.finite for m in found.values())


def test_two_hundred_columns(subject_of, measure):
    found, _ = measure(QUICK, subject_of(people(200, 0, width=198), None, people(200, 2, width=198)))
    assert found["angle"].value < 0.1


def test_one_varying_column_has_no_directions(subject_of, measure):
    columns = {"x": np.arange(50.0), "same": ["s"] * 50}
    with pytest.raises(NotApplicable, match="fewer than two columns"):
        measure(QUICK, subject_of(columns, None, columns))


def drawn(subject, measure, **settings):
    _, findings = measure(Projection(n_bootstrap=50, **settings), subject)
    return {s.id.setting: s for s in findings.series}, findings.notes


def shares(series):
    return np.array(list(series.lines.values()))


def test_one_density_for_each_table_on_the_same_cells(subject_of, measure):
    subject = subject_of(people(6000, 1), people(3000, 2), people(5000, 3))
    series, notes = drawn(subject, measure)
    assert list(series) == ["train", "control", "synthetic"]
    assert {s.kind for s in series.values()} == {"density"}
    assert len({(s.x, tuple(s.lines)) for s in series.values()}) == 1
    train = series["train"]
    assert len(train.x) == len(train.lines) == 17  # 6,000 rows, 20 for each cell
    for s, n in zip(series.values(), (6000, 3000, 5000), strict=True):
        told = shares(s)[np.isfinite(shares(s))] * n
        assert told.min() >= 10 - 1e-9
        assert 0.8 * n < told.sum() < 0.99 * n
    assert "mostly from" in notes[0]
    assert notes[2].startswith("Outside the picture lie 2\u00a0% of train")


def test_cells_of_few_rows_are_withheld_and_cannot_be_worked_out(subject_of, measure):
    series, _ = drawn(subject_of(people(1500, 1), people(500, 2), people(800, 3), suppression=25), measure)
    for s, n in zip(series.values(), (1500, 500, 800), strict=True):
        told = np.rint(shares(s)[np.isfinite(shares(s))] * n)
        assert (told >= 25).all()
        assert np.isnan(shares(s)).any()


def test_no_outlier_shows_where_it_is(subject_of, measure):
    """Five people lie 40 or 60 standard deviations out; the picture ends where the crowd does."""
    train = people(3000, 1)
    found = []
    for factor in (1.0, 1.5):
        moved = {name: list(values) for name, values in train.items()}
        for i in range(5):
            moved["x0"][i] = 40.0 * factor
        subject = subject_of(moved, None, people(3000, 3), x0={"bounds": [-5, 500]})
        found.append(drawn(subject, measure)[0]["train"])
    near, far = (np.array(s.x) for s in found)
    assert near.max() < 5
    assert far.max() < 5


def test_there_is_no_picture_of_few_rows(subject_of, measure):
    series, notes = drawn(subject_of(people(200, 1), None, people(200, 3)), measure)
    assert not series
    assert "too few rows" in notes[-1]


def test_there_is_no_picture_of_a_line(subject_of, measure):
    def columns(seed):
        rng = np.random.default_rng(seed)
        flag = rng.random(2000) < 0.5
        return {"a": flag.tolist(), "b": np.where(flag, "x", "y").tolist()}

    series, notes = drawn(subject_of(columns(1), None, columns(2)), measure)
    assert not series
    assert "one line" in notes[-1]


def test_without_control_there_are_two_pictures(subject_of, measure):
    series, _ = drawn(subject_of(people(2000, 1), None, people(2000, 3)), measure)
    assert list(series) == ["train", "synthetic"]


def test_large_tables_are_read_in_part_and_it_is_said(subject_of, measure):
    subject = subject_of(people(1500, 1), people(1200, 2), people(1400, 3))
    audit = Projection(n_bootstrap=50, most_rows=1000)
    (found, findings), (whole, _) = measure(audit, subject), measure(QUICK, subject)
    assert findings.notes[-1].startswith("Read from 1,000 random rows of each larger table")
    angle = found["angle"]
    assert angle.n_requested == 1400
    assert angle.n_achieved == 1000
    assert angle.reference is not None
    assert 0 < abs(angle.value - whole["angle"].value) < 0.1
    assert measure(audit, subject)[0] == found


@pytest.mark.slow
def test_intervals_cover_the_distance_of_the_populations(subject_of, measure):
    """Two populations whose components are known; 95 % intervals of 200 pairs of samples."""
    first = np.array([[1, 0.8, 0.1], [0.8, 1, 0.1], [0.1, 0.1, 1]])
    second = np.array([[1, 0.2, 0.1], [0.2, 1, 0.6], [0.1, 0.6, 1]])
    (a, u), (b, v) = (np.linalg.eigh(c) for c in (first, second))
    true = {
        "eigenvalue_difference": np.abs(a - b).sum() / 3 * 3 / 4,
        "angle": 2 / np.pi * np.arccos(abs(u[:, -1] @ v[:, -1])),
    }
    covered = dict.fromkeys(true, 0)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        tables = [rng.multivariate_normal(np.zeros(3), c, 400) for c in (first, second)]
        train, synthetic = ({f"c{i}": x for i, x in enumerate(t.T)} for t in tables)
        found, _ = measure(QUICK, subject_of(train, None, synthetic), seed=seed)
        for name, value in true.items():
            interval = found[name, NUMERIC].interval
            covered[name] += interval.low <= value <= interval.high
    assert min(covered.values()) >= 180
