"""Balls around a centre against closed forms and loops that anyone can check."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from synth_audit.audits.fidelity import coverage
from synth_audit.audits.fidelity.coverage import Support, bootstrap_weights, squared_radii, strangers, tamed
from synth_audit.neighbours.coordinates import Coordinates

pytestmark = pytest.mark.usefixtures("two_threads")


def points(dense, labels=None):
    dense = np.asarray(dense, dtype=np.float64)
    return Coordinates.of(dense, None if labels is None else np.asarray(labels, dtype=np.int64))


def one_hot(codes, used):
    return (np.asarray(codes)[:, None] == np.asarray(used)).astype(float)


@pytest.mark.parametrize("few", [1, 64])
def test_radii_are_those_of_one_hot_rows(few, monkeypatch):
    monkeypatch.setattr(coverage, "_FEW_LABELS", few)
    rng = np.random.default_rng(0)
    rows, reference = (points(rng.normal(size=(n, 3)), rng.integers(-1, 4, (n, 2))) for n in (20, 30))
    weights = rng.dirichlet(np.ones(30), size=4)
    plain = [
        np.hstack([p.numbers, *(one_hot(p.labels[:, c], range(-1, 4)) for c in range(2))])
        for p in (rows, reference)
    ]
    found = squared_radii(rows, reference, weights)
    assert found.shape == (4, 20)
    for w, radii in zip(weights, found, strict=True):
        centre = sum(share * row for share, row in zip(w, plain[1], strict=True))
        assert radii == pytest.approx([np.sum((row - centre) ** 2) for row in plain[0]], abs=1e-8)
    middle = plain[1].mean(axis=0)
    assert squared_radii(rows, reference)[0] == pytest.approx(
        [np.sum((row - middle) ** 2) for row in plain[0]], abs=1e-8
    )


def test_a_label_that_the_reference_lacks_is_as_far_as_can_be():
    rows, reference = points(np.zeros((2, 1)), [[0], [9]]), points(np.zeros((4, 1)), [[0], [0], [1], [1]])
    assert squared_radii(rows, reference)[0] == pytest.approx([0.5, 1.5])


def share_by_hand(reference, other, alpha):
    """Grow the ball one radius at a time; of the last, take the part that makes up alpha."""
    inside = 0.0
    for radius in sorted(set(reference)):
        at = np.mean(reference == radius)
        if inside + at >= alpha - 1e-12:
            part = (alpha - inside) / at
            return np.mean(other < radius) + part * np.mean(other == radius)
        inside += at
    return float(np.mean(other <= max(reference)))


radii = st.integers(1, 12).flatmap(lambda n: hnp.arrays(np.float64, n, elements=st.integers(0, 5).map(float)))


@settings(max_examples=60, deadline=None)
@given(radii, radii)
def test_shares_and_integral_are_as_by_hand_with_any_ties(reference, other):
    found = Support.of(reference, other)
    alphas = (np.arange(4000) + 0.5) / 4000
    shares = found.share_within(alphas)
    some = alphas[::400]
    assert shares[::400] == pytest.approx([share_by_hand(reference, other, a) for a in some], abs=1e-9)
    assert found.integral() == pytest.approx(1 - 2 * np.mean(np.abs(shares - alphas)), abs=2e-3)
    assert -1e-12 <= found.integral() <= 1


def test_weights_are_repetitions():
    reference, other = np.array([1.0, 2, 2, 5]), np.array([0.0, 2, 3])
    times, often = np.array([1, 3, 2, 1]), np.array([2, 1, 4])
    weighted = Support.of(reference, other, times / 7, often.astype(float))
    repeated = Support.of(np.repeat(reference, times), np.repeat(other, often))
    assert weighted.integral() == pytest.approx(repeated.integral(), abs=1e-12)


@pytest.mark.parametrize("times", [1, 3])
def test_equal_samples_score_one_with_whatever_ties(times):
    rng = np.random.default_rng(1)
    radii = rng.integers(0, 4, 100).astype(float)
    found = Support.of(radii, np.tile(rng.permutation(radii), times))
    assert found.integral() == pytest.approx(1.0, abs=1e-12)
    assert found.share_within(np.array([0.03, 0.5, 1.0])) == pytest.approx([0.03, 0.5, 1.0])


def test_all_inside_or_all_outside_scores_nothing():
    reference = np.linspace(1, 2, 1000)
    assert Support.of(reference, np.full(5, 0.5)).integral() == pytest.approx(0.0, abs=1e-12)
    assert Support.of(reference, np.full(5, 3.0)).integral() == pytest.approx(0.0, abs=1e-12)
    assert Support.of(reference, np.full(5, 3.0)).share_within(np.array([1.0])) == 0.0


@pytest.mark.parametrize(("d", "s"), [(1, 0.5), (3, 1.3), (10, 0.9)])
def test_gaussians_of_another_width_have_the_shares_of_chi_square(d, s):
    """Radii of N(0, I) are χ², those of N(0, s² I) are s² χ²: P_α = F(F⁻¹(α) / s²)."""
    from scipy.stats import chi2

    rng = np.random.default_rng(2)
    real, made = (points(w * rng.normal(size=(20_000, d))) for w in (1.0, s))
    alphas = np.array([0.05, 0.2, 0.5, 0.8, 0.95])
    found = Support.of(squared_radii(real, real)[0], squared_radii(made, real)[0])
    assert found.share_within(alphas) == pytest.approx(chi2.cdf(chi2.ppf(alphas, d) / s**2, d), abs=0.015)
    grid = (np.arange(1000) + 0.5) / 1000
    truth = 1 - 2 * np.mean(np.abs(chi2.cdf(chi2.ppf(grid, d) / s**2, d) - grid))
    assert found.integral() == pytest.approx(truth, abs=0.02)


def test_noise_pulls_the_score_of_equal_distributions_down_as_a_brownian_bridge_does():
    """P_α − α is √(1/n + 1/m) times a bridge, whose E ∫|B| = √(2/π) ∫ √(α (1 − α)) dα = √(2/π) π/8."""
    rng = np.random.default_rng(3)
    n, m = 300, 200
    found = [Support.of(rng.random(n), rng.random(m)).integral() for _ in range(400)]
    expected = 1 - 2 * np.sqrt(2 / np.pi) * np.pi / 8 * np.sqrt(1 / n + 1 / m)
    assert np.mean(found) == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("size", [400, 60])
def test_bootstrap_weights_make_means_vary_as_those_of_the_whole_sample(size):
    rng = np.random.default_rng(4)
    n = 400
    part = rng.normal(size=size)
    weights = bootstrap_weights(n, size, 4000, rng)
    assert weights.shape == (4000, size)
    assert weights.min() > 0
    assert weights.sum(axis=1) == pytest.approx(1.0)
    assert np.std(weights @ part) == pytest.approx(np.std(part) / np.sqrt(n), rel=0.06)


def test_absurd_values_are_drawn_in_and_all_others_left_alone():
    rows = tamed(points([[-3.0, 10.0], [1e308, -20.0], [np.inf, 0.0]]))
    assert rows.numbers[0].tolist() == [-3.0, 10.0]
    assert rows.numbers[1] == pytest.approx([10 + np.log(1e307), -10 - np.log(2)])
    assert np.isfinite(rows.numbers).all()
    line = tamed(points(np.linspace(-50, 50, 1001)[:, None])).numbers.ravel()
    assert (np.diff(line) > 0).all()


def far_by_hand(made, train):
    """For each made row the answers that the training rows nearest to it give."""
    answers = []
    for s in made:
        distances = np.round([np.sqrt(np.sum((s - t) ** 2)) for t in train], 9)
        nearest = np.flatnonzero(distances == distances.min())
        own = [min(np.round(np.sqrt(np.sum((train[i] - u) ** 2)), 9) for j, u in enumerate(train) if j != i)
               for i in nearest]  # fmt: skip
        answers.append({i: bool(distances.min() > d) for i, d in zip(nearest, own, strict=True)})
    return answers


tables = st.tuples(st.integers(1, 8), st.integers(2, 9), st.integers(1, 3)).flatmap(
    lambda s: st.tuples(
        hnp.arrays(np.float64, (s[0], s[2]), elements=st.integers(-2, 2).map(float)),
        hnp.arrays(np.float64, (s[1], s[2]), elements=st.integers(-2, 2).map(float)),
    )
)


@settings(max_examples=60, deadline=None)
@given(tables, st.integers(0, 5))
def test_strangers_are_those_found_by_hand(pair, seed):
    made, train = pair
    found = strangers(points(made), points(train), np.random.default_rng(seed))
    for i, answers in enumerate(far_by_hand(made, train)):
        assert found[1][i] in answers
        assert found[0][i] == answers[found[1][i]]


def test_ties_are_settled_by_lot_whatever_the_order():
    """A row between two training rows, of which one has a neighbour nearer than it and one has not."""
    train = points([[-1.0], [1.0], [1.5]])
    made = points(np.zeros((2000, 1)))
    forward = strangers(made, train, np.random.default_rng(0))
    backward = strangers(made, train.take(np.array([2, 1, 0])), np.random.default_rng(0))
    for found in (forward, backward):
        assert found[0].mean() == pytest.approx(0.5, abs=0.05)
    assert set(forward[1]) == {0, 1}
    again = strangers(made, train, np.random.default_rng(0))
    assert np.array_equal(again[1], forward[1])


def test_ties_between_labels_are_settled_by_lot_too():
    train = points(np.zeros((4, 1)), [[0, 0], [0, 1], [5, 5], [5, 6]])
    made = points(np.zeros((400, 1)), np.tile([[0, 9]], (400, 1)))
    found = strangers(made, train, np.random.default_rng(0))
    assert set(found[1]) == {0, 1}
    assert not found[0].any()


def test_copies_are_not_authentic_and_doubles_make_no_difference():
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 3, (200, 3)).astype(float)
    train = points(rows)
    assert not strangers(train, train, rng)[0].any()
    assert not strangers(train.take(rng.permutation(200)), train, rng)[0].any()
    doubled = points(np.vstack([rows, rows]))
    assert not strangers(train, doubled, rng)[0].any()
    beside = strangers(points(rows + 0.01), doubled, rng)
    assert beside[0].all()


def test_blocks_do_not_change_an_answer(monkeypatch):
    rng = np.random.default_rng(6)
    made, train = (points(rng.integers(0, 3, (n, 2)).astype(float)) for n in (60, 50))
    whole = strangers(made, train, np.random.default_rng(0))
    monkeypatch.setattr(coverage, "_BLOCK", 70)
    parts = strangers(made, train, np.random.default_rng(0))
    assert np.array_equal(whole[1], parts[1])
    assert np.array_equal(whole[0], parts[0])
