"""When two texts are the same label, one by one and for a whole column."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_audit.table.label_forms import column_forms, standard_forms

ASCII = [chr(i) for i in range(128)]


@pytest.mark.parametrize("others", [[], ["Ａb", "ß ", "\u00a0x", "ﬁ", "É"]])
def test_a_column_has_the_forms_of_its_texts(others):
    texts = [None, "", *ASCII, *(f"{c}Xy{c}" for c in ASCII), *others, None]
    column = pa.chunked_array([texts[:5], [], texts[5:]], pa.string())
    assert column_forms(column).to_pylist() == standard_forms(texts)


@given(texts=st.lists(st.none() | st.text(max_size=6), max_size=20))
def test_whatever_the_texts_are(texts):
    column = pa.chunked_array([pa.array(texts, pa.string())])
    assert column_forms(column).to_pylist() == standard_forms(texts)


@pytest.mark.parametrize(("kind", "width"), [(pa.string(), 4), (pa.large_string(), 8)])
def test_a_part_of_a_longer_array_has_the_forms_of_its_own_texts(kind, width):
    """Where the texts do not start at the first byte of their buffer, as in what Arrow cuts off a file."""
    _, offsets, letters = pa.array(["what stands before", " Bachelors ", "MALE"], kind).buffers()
    part = pa.Array.from_buffers(kind, 2, [None, offsets.slice(width), letters])
    assert column_forms(pa.chunked_array([part])).to_pylist() == ["bachelors", "male"]
