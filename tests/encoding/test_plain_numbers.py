"""Numbers of texts in one of several units, by their places among those of the unit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.table import read_table
from synth_audit.encoding.plain_numbers import numbers_in_text

N = 400
KILOS = np.random.default_rng(1).normal(78, 12, 2 * N)


def tables_of(*texts):
    found = [pa.table({"weight": x}) for x in texts]
    schema = infer_schema(found[0], {})
    return [read_table(x, schema, where="train") for x in found], schema.columns


def in_unit(kilos, pounds):
    return [f"{2.20462 * x:.1f} lb" if p else f"{x:.1f} kg" for x, p in zip(kilos, pounds, strict=True)]


def test_a_number_keeps_its_place_in_another_unit():
    pounds = np.random.default_rng(2).random(N) < 0.5
    tables, columns = tables_of(*(in_unit(KILOS[:N], p) for p in (pounds, ~pounds)))
    as_written, places = numbers_in_text(tables, columns, tables[:1])
    train, other = np.split(places.read(), 2)
    assert np.abs(train - other).max() < 0.15
    assert (np.abs(train - other) < 0.05).mean() > 0.5
    written, otherwise = np.split(as_written.read(), 2)
    assert np.corrcoef(written, otherwise)[0, 1] < 0.5


@pytest.mark.parametrize("pounds", [np.zeros(N, bool), np.arange(N) < 10])
def test_one_unit_needs_no_places(pounds):
    tables, columns = tables_of(in_unit(KILOS[:N], pounds))
    assert len(numbers_in_text(tables, columns, tables)) <= 1


def test_places_do_not_tell_who_is_in_train():
    pounds = np.random.default_rng(3).random(2 * N) < 0.5
    texts = np.array(in_unit(KILOS, pounds))
    (train, control), columns = tables_of(texts[:N], texts[N:])
    read = [
        numbers_in_text([train, control], columns, reference)[1].read()
        for reference in ([train, control], [control, train])
    ]
    assert np.array_equal(*read)
