"""Libraries round a column to the most decimals that it has, and records hide beyond these."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.fidelity.novel_content import NovelContent

N = 300


def ages(rng):
    """Whole numbers but one."""
    return np.rint(rng.normal(60, 12, N)) + np.where(np.arange(N) == 7, 0.5, 0)


def doses(rng):
    """Halves."""
    return np.rint(rng.normal(60, 12, N)) / 2


def assays(rng):
    """Three digits each, so that small numbers have more decimals than large ones."""
    return np.array([float(f"{x:.3g}") for x in np.exp(rng.normal(0, 0.8, N))])


COLUMNS = {"ages": ages, "doses": doses, "assays": assays}


@pytest.fixture(params=COLUMNS)
def train(request):
    """A column of training values."""
    return COLUMNS[request.param](np.random.default_rng(1))


def decimals(values):
    """As libraries find them: the fewest at which rounding changes no number."""
    return next(k for k in range(15) if (np.round(values, k) == values).all())


def drawn(train, more=0):
    """Numbers of a model, rounded to the most decimals that train has, or to more."""
    rng = np.random.default_rng(2)
    noisy = rng.choice(train, N) * np.exp(rng.normal(0, 0.05, N))
    return np.round(noisy, decimals(train) + more)


@pytest.fixture
def refused(subject_of, measure):
    """Whether a release of numbers is flagged for finer digits."""

    def run(made, train, **spec):
        subject = subject_of({"x": pa.array(train)}, None, {"x": pa.array(made)}, x=spec)
        found, _ = measure(NovelContent(), subject)
        return bool(found["novel", "finer digits"].value)

    return run


def test_what_a_library_rounds_to_the_most_decimals_passes(refused, train):
    assert not refused(drawn(train), train)


@pytest.mark.parametrize("more", [1, 2, 6])
def test_digits_beyond_the_most_decimals_are_flagged(refused, train, more):
    assert refused(drawn(train, more), train)


@pytest.mark.parametrize("copied", [True, False])
def test_records_hidden_below_the_finest_digits_of_one_row_in_twenty_are_flagged(refused, train, copied):
    base = train if copied else drawn(train)
    hidden = np.random.default_rng(3).integers(1, 2**20, N) * 10.0 ** -(decimals(train) + 7)
    assert refused(base + np.where(np.arange(N) % 20, 0, hidden), train)


def test_one_number_of_many_decimals_opens_no_room_for_them(refused):
    train = ages(np.random.default_rng(1))
    train[7] = 61.123456
    assert refused(drawn(train), train)


def test_a_declared_precision_leaves_no_room(refused):
    train = ages(np.random.default_rng(1))
    assert refused(drawn(train), train, precision=1)
    assert not refused(np.rint(drawn(train)), train, precision=1)
