"""Row numbers that pandas writes beside a table's columns: no data, but a trace of where each row is from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

WRITTEN_AS = "__index_level_0__"
"""What an index without a name is called in Parquet."""

_UNNAMED = re.compile(r"__index_level_\d+__|Unnamed: 0")
"""The names that Parquet files have it under, and that pandas reads back from CSV."""


def index_columns(names: Iterable[str], declared: Collection[str] = ()) -> tuple[str, ...]:
    """The columns that are an index without a name, and that no plan declares as a column of the table.

    Row numbers of a release that was cut from train would name the rows it was made of, and those of train
    look like numbers that no generator can follow. So they are read in no table.
    """
    return tuple(name for name in names if _UNNAMED.fullmatch(name) and name not in declared)
