"""Sketches tell how many people differ, whatever the order of rows; one with many rows is one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.table.people import PeopleSketch
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

KEY = bytes(32)


def people(*numbers, keyed=False, twice=False):
    numbers = [*numbers, *numbers] if twice else list(numbers)
    data = pa.table({"id": pa.array(numbers, pa.int64()), "x": [n % 7 for n in range(len(numbers))]})
    columns = {"id": ColumnSpec(role="split_key")} if keyed else {}
    return read_table(data, infer_schema(data, columns), where="people")


def sketch(*tables, key=KEY):
    return PeopleSketch.of(tables, key)


def test_one_person_more_is_one_and_none_is_none():
    few = sketch(people(*range(300), keyed=True))
    assert few.people == 300
    assert few.differing(sketch(people(*reversed(range(300)), keyed=True))) == 0
    assert few.differing(sketch(people(*range(301), keyed=True))) == 1
    assert few == sketch(people(*range(100), keyed=True), people(*range(100, 300), keyed=True))
    assert few.differing(sketch(people(*range(300), keyed=True), key=bytes(31) + b"1")) > 100


@pytest.mark.parametrize("n", [5, 20, 100, 1000])
def test_the_number_that_differ_is_told_to_a_few_standard_errors(n):
    found = sketch(people(*range(2000))).differing(sketch(people(*range(n), *range(5000, 7000 - n))))
    assert found == pytest.approx(2 * (2000 - n), rel=4 * (2 / 256) ** 0.5)
    near = sketch(people(*range(2000), keyed=True))
    assert near.differing(sketch(people(*range(2000 + n), keyed=True))) == pytest.approx(n, rel=0.4)
    assert near.shared(sketch(people(*range(2000 + n), keyed=True))) == pytest.approx(2000, abs=0.2 * n)


def test_a_person_with_several_rows_is_one_where_there_is_a_key():
    once, twice = people(*range(50), keyed=True), people(*range(50), keyed=True, twice=True)
    assert sketch(once) == sketch(twice)
    rows = people(*range(50))
    doubled = read_table(pa.concat_tables([rows.data, rows.data]), rows.schema, where="people")
    assert sketch(doubled).people == 100


def test_equal_rows_that_leave_are_as_many_people():
    known = people(*range(200))
    places = np.array([*range(200), *[7] * 12])
    rows = known.take(places)
    assert sketch(rows).people == 212
    assert sketch(rows).differing(sketch(known.take(places[:206]))) == pytest.approx(6, rel=0.4)
    assert sketch(rows) == sketch(known.take(places[::-1]))
