"""The logistic discriminator against a peer, closed forms and its null."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression

from synth_audit.audits.fidelity.propensity import (
    FEWEST_ROWS,
    MOST_TERMS,
    Propensity,
    PropensityFit,
    propensity_terms,
)
from synth_audit.encode.codes import by_frequency
from synth_audit.errors import NotApplicable


def standardised(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def fitted(first, second):
    return PropensityFit.of(
        standardised(np.vstack([first, second])), np.arange(len(first) + len(second)) >= len(first)
    )


def test_scores_agree_with_a_peers():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(300, 4)), rng.normal(0.4, 1.3, size=(150, 4))
    found = fitted(first, second)
    x = np.vstack([first, second])
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, found.second)
    assert found.scores == pytest.approx(peer.predict_proba(x)[:, 1], abs=1e-4)
    assert found.scores.mean() == pytest.approx(found.share, abs=1e-9)


def test_one_indicator_by_hand():
    """A saturated model gives each cell its own share of second rows."""
    first, second = np.repeat([[0.0], [1.0]], [60, 40], axis=0), np.repeat([[0.0], [1.0]], [30, 70], axis=0)
    found = fitted(first, second)
    assert found.rank == 1
    by_hand = (90 * (30 / 90 - 0.5) ** 2 + 110 * (70 / 110 - 0.5) ** 2) / 200
    assert found.squared_error == pytest.approx(by_hand, rel=1e-4)
    assert found.expected == pytest.approx(0.25 / 200)
    assert found.expected_resampled == pytest.approx(0.125 / 200)


def test_the_expectations_differ_by_the_share_of_the_first_table():
    rng = np.random.default_rng(0)
    found = fitted(rng.normal(size=(300, 3)), rng.normal(size=(100, 3)))
    assert found.share == 0.25
    assert found.expected == pytest.approx(0.25 * 0.75 * 3 / 400)
    assert found.expected_resampled == pytest.approx(3 * 0.75**2 * 0.25 / 400)


def test_collinear_and_constant_terms_count_once():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    second = np.arange(400) >= 150
    plain = PropensityFit.of(standardised(x), second)
    more = standardised(np.column_stack([x, x[:, 0] + x[:, 1], x[:, 2] + 1e-12 * rng.normal(size=400)]))
    double = PropensityFit.of(np.column_stack([more, np.zeros(400)]), second)
    assert (plain.rank, double.rank) == (3, 3)
    assert double.scores == pytest.approx(plain.scores, abs=1e-6)


def test_tables_that_never_meet_are_told_apart_without_fail():
    x = np.random.default_rng(0).normal(size=(200, 5))
    found = fitted(x[:100], x[100:] + 50)
    assert found.squared_error == pytest.approx(0.25, rel=1e-2)
    assert found.standard_error() > 0
    assert np.isfinite(found.standard_error())


def test_a_copy_in_any_order_is_not_told_apart_at_all():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5))
    found = fitted(x, rng.permutation(x))
    assert found.squared_error == pytest.approx(0, abs=1e-20)
    assert found.standard_error() > 0


def test_no_term_that_varies_leaves_nothing_to_expect():
    found = PropensityFit.of(np.zeros((20, 3)), np.arange(20) >= 10)
    assert (found.rank, found.squared_error, found.expected) == (0, 0, 0)


def halves(x, n, rng):
    order = rng.permutation(len(x))
    return x[order[:n]], x[order[n:]]


def real_design():
    x = load_breast_cancer().data[:, :20]  # near-collinear: radius, perimeter and area
    return standardised(np.column_stack([x, x[:, 0] > 14, np.digitize(x[:, 1], [16, 19, 22]) == 1]))


def ratios(repeats, n, seed=0):
    x, rng = real_design(), np.random.default_rng(seed)
    found = [fitted(*halves(x, n, rng)) for _ in range(repeats)]
    return np.array([f.squared_error / f.expected for f in found]), found


@pytest.mark.parametrize("n", [284, 450])
def test_two_halves_of_a_table_are_at_the_null(n):
    ratio, _ = ratios(50, n)
    assert ratio.mean() == pytest.approx(1, abs=4 * np.sqrt(2 / 22 / 50))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "room"), [(284, 0.05), (450, 0.1)]
)  # 450: 5 rows of the smaller part for a term
def test_two_halves_of_a_table_are_at_the_null_in_a_thousand_repeats(n, room):
    ratio, found = ratios(1000, n)
    rank = found[0].rank
    assert ratio.mean() == pytest.approx(1, abs=room)
    assert ratio.std() == pytest.approx(np.sqrt(2 / rank), rel=0.15)
    held = [abs(f.squared_error - f.expected) <= 1.96 * f.standard_error() for f in found]
    assert np.mean(held) >= 0.95


def test_rows_drawn_from_the_first_table_are_at_the_other_null():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(60):
        first = rng.normal(size=(300, 8))
        found.append(fitted(first, first[rng.integers(0, 300, 600)]))
    assert np.mean([f.squared_error / f.expected_resampled for f in found]) == pytest.approx(1, abs=0.2)
    assert np.mean([f.squared_error / f.expected for f in found]) == pytest.approx(1 / 3, abs=0.1)


@pytest.mark.parametrize("shift", [0.1, 0.5, 1.5])
def test_the_standard_error_is_that_of_new_samples(shift):
    rng = np.random.default_rng(0)
    found = [fitted(rng.normal(size=(250, 3)), rng.normal(shift, 1, (250, 3))) for _ in range(150)]
    spread = np.std([f.squared_error for f in found])
    assert spread == pytest.approx(np.mean([f.standard_error() for f in found]), rel=0.35)


def test_the_same_rows_give_the_same_bits():
    x = real_design()
    one, two = (PropensityFit.of(x, np.arange(len(x)) % 3 == 0) for _ in range(2))
    assert np.array_equal(one.scores, two.scores)
    assert one.standard_error() == two.standard_error()


def test_terms_are_numbers_gaps_and_labels(tables_of):
    n = 50
    first = {"x": [None] * 5 + [float(i) for i in range(n - 5)], "k": ["a", "b"] * (n // 2), "c": [1.0] * n}
    second = {"x": [float(i) for i in range(n)], "k": ["a"] * (n - 1) + ["new"], "c": [1.0] * n}
    tables = tables_of(first, second)
    design = propensity_terms(tables, tables[0].schema.features)
    assert design.shape == (2 * n, 3 + 3)  # x, c, x missing; three labels, of which one is redundant
    assert PropensityFit.of(design, np.arange(2 * n) >= n).rank == 4
    assert design.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert (design[:5, 0] == 0).all()  # missing is the mean
    assert (design[:, 1] == 0).all()
    assert len(np.unique(design[:, 2])) == 2
    assert len({tuple(row) for row in design[[45, 46, -1], 3:]}) == 3


def test_a_table_of_many_labels_has_no_more_terms_than_its_rows_allow(tables_of):
    rng = np.random.default_rng(0)
    frames = [{f"k{i}": rng.choice(list("abcdefghij"), n) for i in range(30)} for n in (300, 300)]
    tables = tables_of(*frames)
    assert propensity_terms(tables, tables[0].schema.features).shape[1] == 60
    wide = [{f"k{i}": rng.choice(list("ab"), 40) for i in range(MOST_TERMS + 1)} for _ in range(2)]
    tables = tables_of(*wide)
    assert propensity_terms(tables, tables[0].schema.features).shape[1] == MOST_TERMS + 1


def test_labels_by_falling_frequency_missing_among_them():
    joint = np.array([0, 1, 1, -1, -1, -1])
    assert by_frequency([joint], joint)[0].tolist() == [2, 1, 1, 0, 0, 0]


def test_a_difference_in_means_shows_and_one_in_dependence_does_not():
    x = load_wine().data[:, :3]
    rng = np.random.default_rng(0)
    rows = standardised(x[rng.integers(0, len(x), 2000)])
    shuffled = np.column_stack([rng.permutation(column) for column in rows.T])
    alone = fitted(rows, shuffled)
    assert alone.squared_error < alone.expected
    moved = fitted(rows, rows + np.array([0.3, 0, 0]))
    assert moved.squared_error > 10 * moved.expected


QUICK = Propensity(trees=20, folds=3)


@pytest.fixture(scope="module")
def cells():
    """Columns of several kinds that depend on each other."""
    frame = load_breast_cancer(as_frame=True).frame.sample(frac=1, random_state=0)
    columns = {name: frame[name].to_numpy() for name in ("mean radius", "mean texture", "mean area")}
    columns["grade"] = np.array(["low", "mid", "high"])[np.digitize(frame["mean concavity"], [0.05, 0.12])]
    columns["ill"] = frame["target"].to_numpy() == 0
    gaps = frame["mean smoothness"].to_numpy()
    return columns | {"smooth": np.where(gaps > 0.11, np.nan, gaps)}


def part(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


@pytest.fixture(scope="module")
def real(cells):
    return part(cells, slice(0, 250)), part(cells, slice(250, 400))


def shuffled(columns, rng):
    return {name: rng.permutation(values) for name, values in columns.items()}


def covers(m, value):
    return m.interval.low <= value <= m.interval.high


def test_fresh_real_rows_are_at_the_null(cells, real, subject_of, measure):
    found, _ = measure(QUICK, subject_of(*real, part(cells, slice(400, None))))
    assert covers(found["c2st_auroc"], 0.5)
    assert covers(found["pmse_ratio"], 1)
    assert found["pmse_ratio_resampled"].value > found["pmse_ratio"].value
    assert all(("giveaway", name) in found for name in cells)


def test_control_as_the_candidate_comes_out_at_its_reference(real, subject_of, measure):
    train, control = real
    found, findings = measure(QUICK, subject_of(train, control, control))
    for m in found.values():
        assert m.reference.value == m.value
        assert m.reference.interval == m.interval
    [roc] = findings.series
    assert set(roc.lines) == {"the release", "control rows"}


def test_a_copy_in_any_order_is_not_told_apart_by_the_logistic_model(real, subject_of, measure):
    train, _ = real
    order = np.random.default_rng(0).permutation(250)
    found, _ = measure(QUICK, subject_of(train, None, part(train, order)))
    assert found["pmse"].value == pytest.approx(0, abs=1e-12)
    assert found["pmse_ratio"].value == pytest.approx(0, abs=1e-9)
    assert found["c2st_auroc"].value < 0.5
    assert found["pmse"].interval.low < 0 < found["pmse"].interval.high


def test_shuffled_columns_are_told_apart_by_the_trees_alone(real, subject_of, measure):
    train, control = real
    found, _ = measure(QUICK, subject_of(train, control, shuffled(train, np.random.default_rng(0))))
    assert found["c2st_auroc"].interval.low > found["c2st_auroc"].reference.interval.high
    assert found["c2st_auroc"].value > 0.8
    assert found["pmse_ratio"].value < 1


def test_the_column_that_differs_is_named(real, subject_of, measure):
    train, control = real
    moved = {**control, "smooth": control["smooth"] + 0.05}
    found, _ = measure(QUICK, subject_of(train, None, moved))
    gives = {name: found["giveaway", name].value for name in moved}
    assert max(gives, key=gives.get) == "smooth"
    assert found["giveaway", "smooth"].interval.low > 0
    assert found["pmse_ratio"].interval.low > 1


def test_a_label_of_the_release_only_and_a_gap_of_it_only_are_seen(real, subject_of, measure):
    train, control = real
    for change in ({"grade": np.full(150, "none")}, {"mean area": np.full(150, np.nan)}):
        found, _ = measure(QUICK, subject_of(train, None, {**control, **change}))
        assert found["c2st_auroc"].value > 0.99
        assert found["pmse"].value > 0.2
        assert found["c2st_auroc"].interval.low < found["c2st_auroc"].interval.high


def test_a_column_that_only_the_release_varies_or_holds_constant(real, subject_of, measure):
    train, control = real
    varied, _ = measure(
        QUICK, subject_of({**train, "site": np.ones(250)}, None, {**control, "site": control["mean area"]})
    )
    assert varied["c2st_auroc"].value > 0.99
    constant, _ = measure(QUICK, subject_of(train, None, {**control, "mean area": np.full(150, 5e200)}))
    assert constant["c2st_auroc"].value > 0.99


def test_no_column_that_varies_is_nothing_to_tell(subject_of, measure):
    same = {"x": np.ones(50), "k": ["a"] * 50, "no": [None] * 50}
    with pytest.raises(NotApplicable, match="no column has two"):
        measure(QUICK, subject_of(same, same, same, no={"kind": "continuous"}))


def test_few_rows(real, subject_of, measure):
    train, control = real
    ten, nine = part(train, slice(0, FEWEST_ROWS)), part(train, slice(0, FEWEST_ROWS - 1))
    found, _ = measure(QUICK, subject_of(ten, nine, ten))
    assert found["c2st_auroc"].reference is None
    assert all(np.isfinite([m.value, m.interval.low, m.interval.high]).all() for m in found.values())
    for few in ((nine, control, ten), (train, control, nine)):
        with pytest.raises(NotApplicable, match="at least 10 rows"):
            measure(QUICK, subject_of(*few))


def test_no_more_rows_are_taken_than_asked_for(real, subject_of, measure):
    train, _ = real
    many = {name: np.concatenate([values] * 4) for name, values in train.items()}
    found, _ = measure(Propensity(trees=5, folds=2, most_rows=100), subject_of(many, None, many))
    # Two samples of 100 out of 250 rows: the expectation of pMSE gives away how many there were.
    assert found["pmse"].value / found["pmse_ratio"].value == pytest.approx(0.25 * 8 / 200, rel=0.01)
    assert (found["c2st_auroc"].n_requested, found["c2st_auroc"].n_achieved) == (1000, 100)


def test_the_picture_counts_real_rows_in_steps(real, subject_of, measure):
    train, control = real
    _, findings = measure(QUICK, subject_of(train, control, control, suppression=20))
    [roc] = findings.series
    assert len(roc.x) == 250 // 20 + 1
    told = np.array(roc.lines["control rows"][:-1]) * 150
    assert told == pytest.approx(np.rint(told / 20) * 20)
    for line in roc.lines.values():
        assert line[-1] == 1
        assert (np.diff(line) >= 0).all()
