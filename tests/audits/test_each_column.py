"""Each column predicted from the others: what a release loses, and what is left out."""

import numpy as np
import pytest

from synth_audit.audits.utility.each_column import EachColumn
from synth_audit.errors import NotApplicable

FAST = EachColumn(n_bootstrap=100)


def people(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return {
        "x": z,
        "y": 3 * z + rng.normal(size=n),
        "c": np.where(z + 0.5 * rng.normal(size=n) > 0, "ill", "well"),
        "noise": rng.normal(size=n),
    }


def shuffled(table, names, seed=5):
    rng = np.random.default_rng(seed)
    return table | {n: table[n][rng.permutation(len(table[n]))] for n in names}


@pytest.fixture(scope="module")
def three():
    return people(400, 0), people(300, 1), people(400, 2)


def test_a_copy_loses_nothing(three, subject_of, measure):
    train, control, _ = three
    found, findings = measure(FAST, subject_of(train, control, train))
    assert found["lost"].value == found["worst_loss"].value == 0
    assert found["lost"].interval.high == pytest.approx(0, abs=1e-12)
    assert findings.notes == ("Columns that real rows hardly predict from the others do not count: 1.",)
    assert {m.id.column for m in found.values()} == {"", *train}


def test_fresh_rows_lose_little_and_independent_columns_all(three, subject_of, measure):
    train, control, fresh = three
    found, _ = measure(FAST, subject_of(train, control, fresh))
    assert found["lost"].interval.high < 0.3
    found, _ = measure(FAST, subject_of(train, control, shuffled(train, list(train))))
    assert found["lost"].interval.low > 0.9
    losses = [m.value for m in found.values() if m.id.column in ("x", "y", "c")]
    assert found["worst_loss"].value == max(losses)


def test_labels_exchanged_lose_more_than_a_guess_would(three, subject_of, measure):
    train, control, fresh = three
    other = fresh | {"c": np.where(fresh["c"] == "ill", "well", "ill")}
    found, _ = measure(FAST, subject_of(train, control, other))
    assert found["worst_loss"].interval.low > 0.5
    [worst] = [m for m in found.values() if m.id.column == "c"]
    assert worst.value == found["worst_loss"].value


def test_only_the_first_columns_are_predicted(three, subject_of, measure):
    found, _ = measure(EachColumn(n_bootstrap=100, most_columns=2), subject_of(*three))
    assert {m.id.column for m in found.values()} == {"", "x", "y"}


def test_where_no_column_says_anything_there_is_nothing_to_lose(subject_of, measure):
    rng = np.random.default_rng(0)
    noise = [{"x": rng.normal(size=200), "c": rng.choice(["a", "b"], 200)} for _ in range(3)]
    with pytest.raises(NotApplicable, match="predict no column well"):
        measure(FAST, subject_of(*noise))
