"""Tables as users have them: pandas frames, Arrow tables or files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from synth_audit.core.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    Frame: TypeAlias = pd.DataFrame | pa.Table | str | Path


def as_arrow(table: Frame, where: str) -> pa.Table:
    """Read a table given as pandas frame, Arrow table or file.

    Raises:
        DataError: a column mixes types, or the file cannot be read.
    """
    import pandas as pd
    import pyarrow as pa

    from synth_audit.core.plan import Plan
    from synth_audit.core.source import read
    from synth_audit.core.storage_types import plain

    if isinstance(table, pa.Table):
        return plain(table, where=where)
    if isinstance(table, (str, Path)):
        source = Plan.model_validate({"source": str(table)}).build_source()
        return plain(read(source, Path.cwd()), where=where)
    if not isinstance(table, pd.DataFrame):
        raise DataError(
            f"{where} is a {type(table).__name__}",
            where=where,
            expected="a pandas DataFrame, a pyarrow Table or the path of a file",
            fix="convert it first",
        )
    return _from_pandas(table, where)


def _from_pandas(frame: pd.DataFrame, where: str) -> pa.Table:
    import pandas as pd
    import pyarrow as pa

    from synth_audit.core.schema import check_names
    from synth_audit.core.storage_types import plain

    names = [str(name) for name in frame.columns]
    check_names(names, where=where)
    columns = {}
    for position, name in enumerate(names):
        values = frame.iloc[:, position]
        if isinstance(values.dtype, pd.SparseDtype):  # which Arrow does not read
            values = values.astype(values.dtype.subtype)
        try:
            columns[name] = pa.Array.from_pandas(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise DataError(
                f"column {name!r} mixes types, for example numbers and text, or holds what Arrow cannot",
                where=where,
                expected="values of one type in each column, such as numbers, text or dates",
                fix=f"convert it first, for example with `frame[{name!r}].astype('string')`",
            ) from None
    return plain(pa.table(columns), where=where)
