"""Differences as columns: of dates and of numbers of one sort, in any spelling, and of nothing else."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy._known_columns import known_columns
from synth_audit.audits.privacy.partial_knowledge import column_sets
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

N = 60
RNG = np.random.default_rng(0)
START = [datetime(2020, 1, 1) + timedelta(days=int(d)) for d in RNG.integers(0, 900, N)]
STAYS = RNG.integers(1, 30, N)
END = [s + timedelta(days=int(d)) for s, d in zip(START, STAYS, strict=True)]


def differences_of(columns):
    data = pa.table(columns)
    schema = infer_schema(data, {})
    tables = [read_table(data, schema, where="train")]
    known = list(known_columns(tables, schema.features, tables))
    return known, {c.name: c for c in column_sets.differences(known, tables, schema.features, tables)}


def test_the_time_between_two_dates_is_a_column_whichever_way_they_are_written():
    text = [f"{d:%d.%m.%Y}" for d in END]
    known, found = differences_of({"from": START, "k": ["a", "b"] * 30, "to": text})
    [(name, column)] = found.items()
    assert name == "to less from"
    assert tuple(known[i].name for i in column.parents) == ("from", "to")
    order = np.argsort(STAYS, kind="stable")
    assert (np.diff(column.levels[0][column.ranks[order, 0]]) >= 0).all()
    assert np.corrcoef(column.levels[0][column.ranks[:, 0]], STAYS)[0, 1] > 0.999


def test_a_difference_is_missing_where_either_is():
    _, found = differences_of({"a": [None, *START[1:]], "b": [*END[:-1], None]})
    missing = np.isnan(found["b less a"].secret())
    assert np.flatnonzero(missing).tolist() == [0, N - 1]


@pytest.mark.parametrize(
    ("second", "taken"),
    [
        (RNG.integers(70, 160, N), True),
        (RNG.integers(70, 160, N) / 10, False),  # another range, and given more finely
        (RNG.integers(1000, 2000, N), False),
        ([f"{x} mg" for x in RNG.integers(80, 150, N)], False),
        ([f"I{x}" for x in RNG.integers(10, 90, N)], False),
    ],
)
def test_numbers_are_of_one_sort_where_unit_resolution_and_range_agree(second, taken):
    _, found = differences_of({"a": RNG.integers(80, 150, N), "b": second})
    assert list(found) == (["b less a"] if taken else [])


def test_dates_come_first_and_there_are_so_many_at_most():
    numbers = {f"n{i}": RNG.integers(0, 50, N) for i in range(6)}
    dates = {
        f"d{i}": [s + timedelta(days=i * int(x)) for s, x in zip(START, STAYS, strict=True)] for i in range(4)
    }
    _, found = differences_of(numbers | dates)
    assert len(found) == 6 + column_sets.MOST_NUMBERS
    assert sum(name.startswith("d") for name in found) == 6
    more = {
        f"d{i}": dates["d1"]
        if i == 1
        else [s + timedelta(days=i * int(x)) for s, x in zip(START, STAYS, strict=True)]
        for i in range(7)
    }
    assert len(differences_of(more)[1]) == column_sets.MOST_DIFFERENCES
