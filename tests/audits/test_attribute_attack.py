"""What an attacker learns from one table: groups, guesses beyond a line, and what tests do not find."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy._attribute_secrets import SecretRows
from synth_audit.audits.privacy.attribute_attack import BINS, Attack
from synth_audit.encode.cells import column_grouping
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


def table(columns, schema=None):
    data = pa.table(columns)
    return read_table(data, schema or infer_schema(data, {}), where="train")


def rows(known, answers, *groups):
    return SecretRows(
        np.asarray(known, dtype=float), np.asarray(answers, dtype=float)[:, None], np.ones(1), groups
    )


def grouping_of(train, name):
    return column_grouping(train, train.schema[name], bins=BINS)


def test_numbers_fall_into_quantile_bins_of_train():
    train = table({"x": np.arange(800.0)})
    grouping = grouping_of(train, "x")
    assert np.bincount(grouping.of(train)).tolist() == [0, *[100] * BINS]
    other = table({"x": [-5.0, None, 1e9]}, train.schema)
    assert grouping.of(other).tolist() == [1, 0, BINS]
    assert grouping.size == BINS + 1


def test_labels_are_groups_and_those_that_train_lacks_are_one_of_their_own():
    train = table({"x": ["b", "a", None, "b"], "y": [1.5, 2.5, 3.5, 4.5]})
    grouping = grouping_of(train, "x")
    assert grouping.of(train).tolist() == [2, 1, 0, 2]
    other = table({"x": ["z", "a", "0", None], "y": [1.5, 2.5, 3.5, 4.5]}, train.schema)
    assert grouping.of(other).tolist() == [3, 1, 3, 0]
    assert grouping.size == 4


def test_a_column_without_a_value_is_one_group():
    train = table({"x": pa.nulls(3, pa.float64()), "y": [1.0, 2.0, 3.5]})
    for name in train.names:
        grouping = grouping_of(train, name)
        assert grouping.of(train).max() < grouping.size
    assert grouping_of(train, "x").of(train).tolist() == [0, 0, 0]


@pytest.fixture
def bend():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    x[:, 0] = np.resize([-1, 1], 1000) * np.abs(x[:, 0])
    groups = tuple(np.searchsorted([-1.0, -0.3, 0.3, 1.0], column) for column in x.T)
    return rows(x, np.abs(x[:, 0]) + 0.2 * x[:, 1], *groups)


def test_groups_follow_a_bend_that_the_line_leaves(bend):
    line = Attack.learnt(bend)
    both = Attack.learnt(bend, (5, 5))
    assert (line.used, both.used) == ((), (0,))
    explained = [np.corrcoef(a.guess(bend)[:, 0], bend.answers[:, 0])[0, 1] ** 2 for a in (line, both)]
    assert explained[0] < 0.2
    assert explained[1] > 0.7
    assert both.guess(bend) - line.guess(bend) == pytest.approx(
        both.slopes * both.means[0].at(bend.groups[0])
    )


def test_chance_is_not_believed():
    """Neither by a line nor by many groups, in as many tables as the tests promise."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        groups = (rng.integers(0, 30, 150), rng.integers(0, 4, 150))
        drawn = rows(rng.normal(size=(150, 5)), rng.normal(size=150), *groups)
        found.append(len(Attack.learnt(drawn, (30, 4)).parts))
    assert np.mean(found) < 0.02 + 3 * np.sqrt(0.02 / 300)


def test_what_another_found_and_this_did_not_are_tests_of_this(bend):
    known = Attack.learnt(bend, (5, 5))
    few = Attack.learnt(bend.take(np.arange(1000) < 8), (5, 5))
    assert known.parts == {0, 1}
    assert few.parts == frozenset()
    (used, free, _), (groups, _, each) = few.not_in(known)
    assert (used, free, groups <= 4, each) == (2, 7, True, 0.005)
    assert known.not_in(known) == ()
    assert known.not_in(few) == ()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_rows_teach_nothing(n, bend):
    few = Attack.learnt(bend.take(np.arange(1000) < n), (5, 5))
    assert few.parts == frozenset()
    assert not few.guess(bend).any()


def test_constant_columns_and_secrets_teach_nothing():
    flat = rows(np.ones((50, 2)), np.ones(50), np.zeros(50, dtype=np.int64))
    attack = Attack.learnt(flat, (3,))
    assert attack.parts == frozenset()
    assert not attack.guess(flat).any()
