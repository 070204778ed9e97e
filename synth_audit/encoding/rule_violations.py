"""Which rows break a rule: the rule as one comparison of plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Labels
from synth_audit.core.parts import NumberPart
from synth_audit.core.rules import Determines, OneOf, Ordered, Rule, Within
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.encoding.row_groups import row_groups
from synth_audit.kernels.coordinates import MISSING


@dataclass(frozen=True, eq=False)
class Question:
    """One rule put to the rows of one table.

    Attributes:
        operands: what is compared, one or two arrays of shape (n,): float64 with NaN, or labels with None.
            Of a dependency, code numbers of the value found and of the value expected.
        allowed: what a rule ``in`` allows, of the type of its operand; empty for the others.
        asked: True where all values that the rule needs are there, shape (n,).
        whole: of a dependency, True where the determinants are there, shape (n,); else None.
        unseen: the part of these whose combination train does not hold.
    """

    rule: Rule
    operands: tuple[Floats | Labels, ...]
    allowed: tuple[float | str, ...]
    asked: Bools
    whole: Bools | None = None
    unseen: Bools | None = None

    @property
    def broken(self) -> Bools:
        """True where the rule can be asked and does not hold, shape (n,)."""
        fails: Bools = self.asked & self._fails()
        return fails

    def _fails(self) -> Any:
        first, last = self.operands[0], self.operands[-1]
        match self.rule:
            case Within():
                return ~_inside(self.rule, np.asarray(first, dtype=np.float64))
            case OneOf():
                return ~_among(first, self.allowed)
            case Ordered(operator="<"):
                return first >= last
            case Ordered(operator="<="):
                return first > last
        return first != last


def put(rule: Rule, table: Table, train: Table) -> Question:
    """Ask the rows of a table whether they obey a rule.

    Only a dependency looks at ``train``: a row breaks ``a -> b`` when its b is not one that train holds most
    often beside its a. Rows without the values that a rule needs, or with determinants that train does not
    hold, are not asked.
    """
    match rule:
        case Within():
            return _question(rule, (_numbers(table, rule.column),))
        case OneOf():
            operand, values = _allowed(rule, table)
            return _question(rule, (operand,), values)
        case Ordered():
            names = (rule.left, rule.right)
            ranked = rule.operator != "==" or all(table.schema[n].kind.order for n in names)
            read = _numbers if ranked else Table.labels
            return _question(rule, tuple(read(table, n) for n in names))
    return _determined(rule, table, train)


def _question(
    rule: Rule, operands: tuple[Floats | Labels, ...], allowed: tuple[float | str, ...] = ()
) -> Question:
    from pandas import isna  # here, since a code location must not load it

    missing = np.any([isna(x) for x in operands], axis=0)
    return Question(rule, operands, allowed, ~missing)


def _numbers(table: Table, name: str) -> Floats:
    """A column as numbers; of one that has no type in train nothing can be asked."""
    part = table.schema[name].kind.part
    if isinstance(part, NumberPart):
        return part.read(table.column(name))
    return np.full(table.n_rows, np.nan)


def _inside(rule: Within, x: Floats) -> Bools:
    inside = np.ones(len(x), dtype=bool)
    if rule.low is not None:
        inside &= (x > rule.low) if rule.strict_low else (x >= rule.low)
    if rule.high is not None:
        inside &= (x < rule.high) if rule.strict_high else (x <= rule.high)
    return inside


def _among(x: Floats | Labels, values: Sequence[float | str]) -> Bools:
    from pandas import factorize

    numbers, distinct = factorize(x)  # missing is −1, and then it does not matter what it is taken for
    allowed = set(values)
    known = np.array([v in allowed for v in distinct.tolist()] + [False])
    return np.asarray(known[numbers], dtype=bool)


def _allowed(rule: OneOf, table: Table) -> tuple[Floats | Labels, tuple[float | str, ...]]:
    kind = table.schema[rule.column].kind
    return kind.plain(table.column(rule.column)), kind.plain_meant(rule.allowed)


def _determined(rule: Determines, table: Table, train: Table) -> Question:
    """The dependent values found and expected as code numbers, NaN where there are none."""
    columns = [table.schema[name] for name in rule.determinants]
    of_train, groups = row_groups([train, table], columns)
    learnt, found = codes([train, table], table.schema[rule.dependent])
    complete, whole = (
        ~np.any([t.missing(name) for name in rule.determinants], axis=0) for t in (train, table)
    )
    width = 1 + max(int(v.max(initial=0)) for v in (learnt, found))
    known = complete & (learnt != MISSING)
    pairs, counts = np.unique(of_train[known] * width + learnt[known], return_counts=True)
    most = np.zeros(1 + max(int(g.max(initial=0)) for g in (of_train, groups)), dtype=np.int64)
    np.maximum.at(most, pairs // width, counts)
    usual = pairs[counts == most[pairs // width]]
    expected = np.full(len(most), np.nan)
    expected[usual // width] = usual % width
    # Where train holds several equally often, a row with any of them has what is expected of it.
    fits = (found != MISSING) & np.isin(groups * width + found, usual)
    operands = (
        np.where(found == MISSING, np.nan, found),
        np.where(fits, found, np.where(whole, expected[groups], np.nan)),
    )
    asked = whole & (found != MISSING) & (most[groups] > 0)
    return Question(rule, operands, (), asked, whole, whole & (most[groups] == 0))
