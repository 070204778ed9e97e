"""Families of Arrow types that several modules treat alike."""

from __future__ import annotations

import pyarrow as pa


def is_text(kind: pa.DataType) -> bool:
    """True for text in any layout; not for text behind a dictionary."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """True for bytes in any layout that Arrow compares and hashes."""
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )


def is_datetime(kind: pa.DataType) -> bool:
    """True for dates and timestamps."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
