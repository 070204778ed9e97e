from __future__ import annotations

import pyarrow as pa
import pytest

from synth_audit.table.arrow import is_binary, is_text


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_in_any_layout(kind):
    assert is_text(kind)
    assert not is_binary(kind)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(4)])
def test_bytes_in_any_layout(kind):
    assert is_binary(kind)
    assert not is_text(kind)


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.int64(), pa.null()])
def test_neither(kind):
    assert not is_text(kind)
    assert not is_binary(kind)
