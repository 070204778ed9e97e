"""In which order the columns enter a vine, and whether each class of the target gets a vine of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from synth_audit.core.errors import DataError
from synth_audit.core.schema import Role
from synth_audit.generators.vine.column_codec import ColumnCodec
from synth_audit.kernels.ordering import central, least_important_first, sensitive_first

Root = Literal["auto", "simplified", "per_class"]
Rule = Literal["sensitive_first", "importance"]

MIN_CLASS_ROWS = 30
"""A class gets a vine of its own from this many rows on, and from some for each column (`ROWS_PER_COLUMN`).

Forests trained on releases of a vine per class are no worse than those of the simplified one with as few as
15 rows in the smallest class, and on four of five tables of 13 to 26 columns they are better with 30
(`benchmarks/vine_root.py --rows-per-class`). The double of 15 is asked for, as single samples differ.
"""

ROWS_PER_COLUMN = {"auto": 6, "per_class": 1}
"""So many rows of a class for each other column: one where a plan asks for a vine per class, as fewer were
not tried; six by itself, as with five such vines followed their people more closely and were of no more use.
"""


def ordered(
    codings: Sequence[ColumnCodec], rule: Rule | tuple[str, ...], threshold: float, rng: np.random.Generator
) -> list[ColumnCodec]:
    """The columns that vary, the first for the last trees, the last for the root of tree 1.

    Raises:
        DataError: the named order does not hold every column once, or importance has no target to go by.
    """
    if isinstance(rule, tuple):
        return [c for c in _as_named(codings, rule) if c.signal is not None]
    varying = [c for c in codings if c.signal is not None]
    if not varying:
        return []
    target = next((i for i, c in enumerate(varying) if Role.TARGET in c.column.roles), None)
    signals = np.column_stack([s for c in varying if (s := c.signal) is not None])
    if rule == "importance":
        if target is None:
            raise DataError(
                "columns are to be ordered by importance, but there is no target that varies",
                where="generator `vine`: order",
                expected="a column with `role: target` that has several values",
                fix="name a target, or order `sensitive_first`",
            )
        is_class = varying[target].labels is not None
        positions = least_important_first(signals, target, is_class=is_class, rng=rng)
    else:
        sensitive = [i for i, c in enumerate(varying) if Role.SENSITIVE in c.column.roles]
        if target is None:
            target = central(signals, [i for i in range(len(varying)) if i not in sensitive] or sensitive)
        positions = sensitive_first(signals, sensitive, target, threshold)
    return [varying[i] for i in positions]


def class_codes(codings: Sequence[ColumnCodec], root: Root) -> tuple[float, ...]:
    """Codes of the target's classes if each is to have a vine of its own; none if not.

    Args:
        codings: the columns that vary, in the vine's order.

    Raises:
        DataError: a root per class is asked for, but the target is no label, is not last, or has too few
            rows in some class.
    """
    if root == "simplified":
        return ()
    last = codings[-1] if codings else None
    if last is None or Role.TARGET not in last.column.roles or last.labels is None or not last.varies:
        return _no_classes(
            root,
            "a root per class needs a categorical or boolean target with several classes, last in the order",
        )
    codes, counts = np.unique(last.values[~np.isnan(last.values)], return_counts=True)
    needed = fewest_class_rows(len(codings) - 1, root)
    if counts.min() < needed:
        return _no_classes(root, f"a class of the target has fewer than {needed} rows")
    return tuple(codes.tolist())


def fewest_class_rows(n_columns: int, root: Root) -> int:
    """Fewest rows of a class for a vine of its own, with this many columns besides the target."""
    return max(MIN_CLASS_ROWS, ROWS_PER_COLUMN[root] * n_columns)


def _no_classes(root: Root, reason: str) -> tuple[float, ...]:
    if root == "auto":
        return ()
    raise DataError(
        reason,
        where="generator `vine`: root",
        expected=f"classes of at least {MIN_CLASS_ROWS} rows, and as many as there are other columns",
        fix="set `root: simplified`, or `auto` to choose by itself; merge rare classes at the source",
    )


def _as_named(codings: Sequence[ColumnCodec], names: tuple[str, ...]) -> list[ColumnCodec]:
    by_name = {c.column.name: c for c in codings}
    target = next((c.column.name for c in codings if Role.TARGET in c.column.roles), None)
    if target is not None and target not in names:
        names = (*names, target)
    twice = sorted({n for n in names if names.count(n) > 1})
    lacking = [n for n in by_name if n not in names]
    unknown = [n for n in names if n not in by_name]
    problems = [
        f"{what} {', '.join(map(repr, found))}"
        for what, found in (("repeats", twice), ("lacks", lacking), ("has the unknown", unknown))
        if found
    ]
    if problems:
        raise DataError(
            f"the order named for the vine {' and '.join(problems)}",
            where="generator `vine`: order",
            expected="every column that may be released once; the target may be left out and is the root",
            fix="name the columns in the order wanted, those for the last trees first",
        )
    return [by_name[n] for n in names]
