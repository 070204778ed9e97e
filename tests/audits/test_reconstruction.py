"""A forest that learns a secret from release rows: what it remembers, and where the margin takes over."""

import numpy as np

from synth_audit.audits.privacy._secrets import Equality, GuessTolerance
from synth_audit.audits.privacy.inference import _threshold, reconstructed
from synth_audit.neighbours.gower import Mixed

N = 300


def rows(n, seed):
    """Two numbers and a label."""
    rng = np.random.default_rng(seed)
    return Mixed.of(rng.normal(size=(n, 2)), rng.integers(0, 3, (n, 1)), np.ones(3))


def test_a_secret_that_known_columns_tell_is_learnt():
    known, asked = rows(N, 0), rows(N, 1)
    secrets = (known.numbers[:, 0] > 0).astype(float)
    guesses = reconstructed(Equality(), known, secrets, asked, 10, 0)
    assert (guesses == (asked.numbers[:, 0] > 0)).mean() > 0.9


def test_rows_that_were_learnt_are_remembered_and_others_are_not():
    """A coin that only the very row tells, beside a part that the columns tell."""
    known, asked = rows(N, 0), rows(N, 1)
    rng = np.random.default_rng(2)
    secrets = 2.0 * (known.numbers[:, 0] > 0) + rng.integers(0, 2, N)
    both = known.followed_by(asked)
    guesses = reconstructed(Equality(), known, secrets, both, 10, 0)
    truth = 2.0 * (asked.numbers[:, 0] > 0) + rng.integers(0, 2, N)
    remembered, strangers = (guesses[:N] == secrets).mean(), (guesses[N:] == truth).mean()
    assert remembered > 0.75
    assert strangers < 0.6


def test_where_columns_say_nothing_the_commonest_value_is_guessed():
    known, asked = rows(N, 0), rows(N, 1)
    secrets = (np.random.default_rng(2).random(N) < 0.1).astype(float)
    guesses = reconstructed(Equality(), known, secrets, asked, 10, 0)
    assert (guesses == 0).mean() > 0.97


def test_a_number_is_guessed_by_the_median_of_its_part():
    known = rows(N, 0)
    secrets = known.numbers[:, 0] * 100
    judge = GuessTolerance.from_train(secrets, 0.05)
    guesses = reconstructed(judge, known, secrets, known, 20, 0)
    assert judge.right(guesses, secrets).mean() > 0.7
    assert set(guesses) <= set(secrets), "values that occur"


def test_one_value_or_one_row_needs_no_forest():
    known = rows(N, 0)
    assert set(reconstructed(Equality(), known, np.full(N, 3.0), known, 10, 0)) == {3.0}
    one = known.take(np.array([4]))
    assert set(reconstructed(Equality(), one, np.array([2.0]), known, 10, 0)) == {2.0}


def test_the_same_seed_gives_the_same_guesses():
    known, asked = rows(N, 0), rows(N, 1)
    secrets = known.labels[:, 0].astype(float)
    runs = [reconstructed(Equality(), known, secrets, asked, 5, seed).tolist() for seed in (1, 1)]
    assert runs[0] == runs[1]


def test_the_threshold_is_where_most_rows_are_guessed():
    """The forest is right where it is sure, and wrong elsewhere, where the commonest class is right."""
    votes = np.array([[0.1, 0.9]] * 5 + [[0.4, 0.6]] * 5)
    classes = np.array([1] * 5 + [0] * 5)
    assert 0.6 < _threshold(votes, classes, 0) <= 0.9
    assert _threshold(votes, np.zeros(10, int), 0) == np.inf
    assert _threshold(votes, np.ones(10, int), 0) == 0.6
    assert _threshold(votes[:0], classes[:0], 0) == np.inf
