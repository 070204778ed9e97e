"""Column kinds: one file each, which derives from what kinds of numbers or of labels have in common."""

from synth_audit.column_kinds._bases import Numbers, TextLabels
from synth_audit.errors import PluginError
from synth_audit.table.schema import Column


def number_kind(column: Column) -> Numbers | None:
    """The kind of a column of numbers; None for labels.

    Raises:
        PluginError: it is an outside plug-in that derives from neither.
    """
    kind = column.kind
    if isinstance(kind, (Numbers, TextLabels)):
        return kind if isinstance(kind, Numbers) else None
    raise PluginError(
        f"the kind {kind.name!r} does not say how its columns are compared",
        where=f"column {column.name!r}",
        expected="a kind of numbers or of labels",
        fix="derive it from `_bases.Numbers` or `_bases.TextLabels` of `synth_audit.column_kinds`",
    )
