"""Copies counted by hand."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy import partial_knowledge
from synth_audit.audits.privacy.exact_match import ExactMatch
from synth_audit.audits.privacy.partial_knowledge import MOST_VOTES, NearestRows, combined
from synth_audit.stats.proportions import proportion_difference, proportion_interval

TRAIN = {"n": [1, 2, 3, 3], "k": ["a", "b", "c", "c"], "x": [0.5, None, 1.5, 1.5]}
CONTROL = {"n": [1, 2, 9, 9, 9], "k": ["a", "b", "c", "c", "c"], "x": [0.5, None, 1.5, 1.5, 1.5]}
SYNTHETIC = {
    "n": [3, 3, 2, 2, 1, 7],
    "k": ["c", "c", "b", None, "a", "a"],
    "x": [1.5, 1.5, None, None, 0.6, 0.5],
}


def test_shares_are_counted_by_rows(subject_of, measure):
    found, _ = measure(ExactMatch(), subject_of(TRAIN, CONTROL, SYNTHETIC))
    assert found["share"].value == 3 / 6
    assert found["control_share"].value == 2 / 5
    assert found["excess"].value == pytest.approx(3 / 6 - 2 / 5)
    assert found["share"].interval == proportion_interval(3, 6, 0.95)
    assert found["excess"].interval == proportion_difference(3, 6, 2, 5, 0.95)
    assert found["share"].n_achieved == 6


def test_the_worst_column_to_leave_out(subject_of, measure):
    found, _ = measure(ExactMatch(), subject_of(TRAIN, CONTROL, SYNTHETIC))
    # Left out n: 4 of 6 against all 5 control rows; k: 4 of 6 against 2 of 5; x: 4 of 6 against 2 of 5.
    worst = found["all_but_one_excess"]
    assert worst.value == pytest.approx(4 / 6 - 2 / 5)
    corrected = proportion_difference(4, 6, 2, 5, 1 - 0.05 / 3)
    assert (worst.interval.low, worst.interval.high) == (corrected.low, corrected.high)
    assert worst.interval.level == 0.95


def test_without_control_nothing_is_subtracted(subject_of, measure):
    found, _ = measure(ExactMatch(), subject_of(TRAIN, None, TRAIN))
    assert set(found) == {"share", "identifier_reuse"}
    assert found["share"].value == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"n": pa.array([1.0, 2.0, 3.0, 3.0])},
        {"k": pa.array(["a", "b", "c", "c"]).dictionary_encode()},
        {"x": pa.array([0.5, float("nan"), 1.5, 1.5], pa.float32(), from_pandas=False)},
        {"flag": pa.array([1, 0, 1, 1])},
        {"k": ["A", " b", "C ", "Ｃ"]},
    ],
)
def test_a_copy_in_other_storage_types_or_spelling_is_a_copy(changed, subject_of, measure):
    train = TRAIN | {"flag": [True, False, True, True]}
    found, _ = measure(ExactMatch(), subject_of(train, None, train | changed))
    assert found["share"].value == 1


def test_identifiers_do_not_make_rows_different(subject_of, measure):
    train, release = TRAIN | {"id": ["p", "q", "r", "s"]}, TRAIN | {"id": ["p", "new", None, "r"]}
    found, _ = measure(ExactMatch(), subject_of(train, None, release, id={"role": "identifier"}))
    assert found["share"].value == 1
    assert found["identifier_reuse"].value == 2 / 4


@pytest.mark.parametrize(("site", "reused"), [(["p1", "p2", "p9"], 2 / 3), (["a", "b", "b"], 0.0)])
def test_an_identifier_in_another_column_is_still_one(site, reused, subject_of, measure):
    real = {"id": ["p1", "p2", "p3"], "site": ["a", "b", "b"], "x": [1.0, 2.0, 3.0]}
    made = {"site": site, "x": [1.5, 2.5, 3.5]}
    found, _ = measure(ExactMatch(), subject_of(real, None, made, id={"role": "identifier"}))
    assert found["identifier_reuse"].value == pytest.approx(reused)


def test_small_numbers_that_happen_to_be_keys_are_no_identifiers(subject_of, measure):
    real = {"id": [1, 2, 3], "age": [1, 2, 60], "x": [1.0, 2.0, 3.5]}
    made = {"age": [1, 2, 3], "x": [9.0, 8.0, 7.0]}
    found, _ = measure(ExactMatch(), subject_of(real, None, made, id={"role": "identifier"}))
    assert found["identifier_reuse"].value == 0


@pytest.mark.parametrize(
    ("first", "copied", "reused"),
    [(0, 1, 0.0), (0, 150, 150 / 400), (10**8, 1, 1 / 400), (10**8, 4, 4 / 400)],
    ids=["a number by chance", "row numbers", "one key of nine digits", "keys"],
)
def test_numbers_among_which_keys_are_dense_hold_some_by_chance(first, copied, reused, subject_of, measure):
    rng = np.random.default_rng(1)
    keys = first + 7 * np.arange(400)
    beside = first + rng.integers(0, 2800, 400)
    amounts = np.where(beside % 7 == first % 7, beside + 1, beside)  # nobody's key
    if first:
        amounts = amounts * 10 % 999_999_999
    made = amounts[::-1].copy()
    made[:copied] = keys[50 : 50 + copied]
    found, _ = measure(
        ExactMatch(),
        subject_of({"id": keys, "paid": amounts}, None, {"paid": made}, id={"role": "identifier"}),
    )
    assert found["identifier_reuse"].value == pytest.approx(reused)


def test_a_missing_identifier_identifies_nobody(subject_of, measure):
    train = {"id": ["p", None], "n": [1, 2]}
    found, _ = measure(
        ExactMatch(), subject_of(train, None, {"id": [None, None], "n": [1, 2]}, id={"role": "identifier"})
    )
    assert found["identifier_reuse"].value == 0
    found, _ = measure(ExactMatch(), subject_of(train, None, {"n": [1, 2]}, id={"role": "identifier"}))
    assert found["identifier_reuse"].value == 0


@pytest.mark.parametrize(("kept", "made"), [([7, 8], [7.0, 9.0]), (["7", "8"], [7, 9]), ([7, 8], ["7", "9"])])
def test_an_identifier_in_another_type_is_still_one(kept, made, subject_of, measure):
    subject = subject_of(
        {"id": kept, "n": [1, 2]},
        None,
        {"id": made, "n": [1, 2]},
        id={"role": "identifier", "kind": "categorical"},
    )
    found, _ = measure(ExactMatch(), subject)
    assert found["identifier_reuse"].value == 0.5


@pytest.fixture(scope="module")
def dense():
    """People of three small columns, of whom a third are alike by nature and the rest are rare."""
    rng = np.random.default_rng(4)
    skewed = lambda k, n: np.minimum(rng.geometric(4 / k, n), k)  # noqa: E731
    rows = np.column_stack([skewed(k, 4_500) for k in (12, 16, 24, 30)])
    return [dict(zip("abcd", part.T, strict=True)) for part in np.split(rows, [2_000, 2_500])]


def test_rows_that_strangers_share_by_nature_hardly_count(dense, subject_of, measure):
    train, control, fresh = dense
    honest, _ = measure(ExactMatch(), subject_of(train, control, fresh))
    natural, n = honest["control_share"].value, 2_000
    plain = proportion_difference(honest["share"].value * n, n, natural * 500, 500, 0.95)
    width = lambda x: x.high - x.low  # noqa: E731
    assert natural > 0.05
    assert width(honest["excess"].interval) < 0.75 * width(plain)
    assert honest["excess"].interval.low < 0 < honest["excess"].interval.high


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_copies_count_whole_beside_natural_twins(share, dense, subject_of, measure):
    train, control, fresh = dense
    n = int(share * 2_000)
    leak = {c: np.concatenate([train[c][:n], fresh[c][n:]]) for c in train}
    found, _ = measure(ExactMatch(), subject_of(train, control, leak))
    for name in ("excess", "unique_excess", "record_excess"):
        assert share / 2 < found[name].value <= 1
        assert found[name].interval.low > 0


def nearest_of(labels, numbers, m):
    placed = [np.unique(x, return_inverse=True) for x in np.asarray(numbers, float).T]
    return NearestRows.of([np.asarray(x) for x in labels], [r for _, r in placed], [x for x, _ in placed], m)


def twin(labels, numbers, m):
    """Distance, and rows at it, of every person."""
    found = []
    for x in range(m, len(numbers)):
        alike = np.array([all(c[x] == c[r] for c in labels) for r in range(m)])
        apart = np.where(alike, np.abs(numbers[:m] - numbers[x]).sum(axis=1), np.inf)
        least = apart.min()
        found.append((least, set(np.flatnonzero(apart <= least + 1e-9)) if np.isfinite(least) else set()))
    return found


def rows_of(matches, person):
    return {
        int(r)
        for place in matches.found[person]
        if place >= 0
        for r in matches.order[matches.starts[place] : matches.starts[place + 1]]
    }


@pytest.mark.parametrize("n_labels", [0, 1, 2])
@pytest.mark.parametrize("n_numbers", [0, 1, 2, 3])
@pytest.mark.parametrize("grain", [1.0, 0.0])
@pytest.mark.parametrize("large", [2**18, 20])
def test_the_nearest_rows_are_those_of_a_slow_twin(n_labels, n_numbers, grain, large, monkeypatch):
    if not n_labels + n_numbers:
        return
    monkeypatch.setattr(partial_knowledge, "_LARGE", large)
    rng = np.random.default_rng(n_labels * 10 + n_numbers)
    n, m = 160, 100
    labels = [rng.integers(0, 4, n) for _ in range(n_labels)]
    numbers = rng.normal(size=(n, n_numbers)) * 3
    if grain:
        numbers = np.rint(numbers)
    matches = nearest_of(labels, numbers, m)
    for person, (distance, rows) in enumerate(twin(labels, numbers, m)):
        assert matches.distance[person] == pytest.approx(distance)
        several = len({tuple(numbers[r]) for r in rows})
        if several <= 2:
            assert rows_of(matches, person) == rows
            assert matches.crowd[person] == (len(rows) or m + 1)
        else:
            assert rows_of(matches, person) < rows or len(rows_of(matches, person)) >= 3
            assert matches.crowd[person] == m + 1, "it is not known who else is as near"


def test_a_guess_is_what_all_nearest_rows_agree_on():
    numbers = [[0.0], [0.0], [2.0], [2.0], [5.0], [0.0], [1.0], [2.0], [4.9]]
    secrets = np.array([[1.0, 7.0], [1.0, 8.0], [1.0, 7.0], [1.0, 7.02], [3.0, 9.0]])
    matches = nearest_of([], numbers, 5)
    guesses = matches.guesses(np.arange(4), secrets.__getitem__, 0.045)
    expected = [[1.0, np.nan], [1.0, np.nan], [1.0, 7.01], [3.0, 9.0]]
    assert guesses == pytest.approx(np.array(expected), nan_ok=True)
    assert matches.crowd.tolist() == [2, 4, 2, 1]


def test_who_is_claimed_is_as_near_as_the_nearest_strangers():
    rng = np.random.default_rng(0)
    release, train, control = rng.normal(size=(300, 1)), rng.normal(size=(100, 1)), rng.normal(size=(100, 1))
    matches = nearest_of([], np.vstack([release, train, control]), 300)
    stranger = np.arange(200) >= 100
    claimed = matches.claimed(stranger, 0.05)
    assert claimed[stranger].sum() == 5
    assert matches.distance[claimed].max() <= np.sort(matches.distance[stranger])[4]


def test_claims_do_not_reach_far_into_a_tie():
    labels = [np.repeat([0, 1], [40, 40])]
    matches = nearest_of(labels, np.empty((80, 0)), 40)
    none_there = matches.claimed(np.arange(40) >= 20, 0.05)
    assert not none_there.any(), "nobody's labels are in the release"
    labels = [np.zeros(80, np.int64)]
    matches = nearest_of(labels, np.empty((80, 0)), 40)
    assert not matches.claimed(np.arange(40) >= 20, 0.05).any(), "everybody is as near"


def test_a_claim_does_not_rest_on_a_crowd():
    n = MOST_VOTES + 1
    matches = nearest_of([np.zeros(n + 4, np.int64)], np.empty((n + 4, 0)), n)
    assert not matches.claimed(np.arange(4) >= 2, 0.5).any()


@pytest.mark.parametrize("most", [2**62, 50])
def test_combined_codes_are_equal_for_equal_rows_and_keep_the_order(most):
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, k, 200) for k in (5, 7, 9)]
    found = combined(codes, 200, most)
    keys = list(zip(*codes, strict=True))
    order = sorted(range(200), key=lambda i: keys[i])
    assert (np.diff(found[order]) >= 0).all()
    assert len(np.unique(found)) == len(set(keys))
    assert combined([], 3, most).tolist() == [0, 0, 0]
