"""What the columns of a table may be for, by their names and by how values repeat: proposals with reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Codes
from synth_audit.core.arrow_values import n_distinct
from synth_audit.core.parts import TIME, NumberPart
from synth_audit.core.schema import Column, Role, nominal
from synth_audit.core.table import Table
from synth_audit.encoding.codes import cells_of, codes

_KEY = re.compile(r"(^|_)(id|ids|key|uuid|guid|mrn|ssn|nhs|pesel|cpr|bsn|iban|msisdn)$|number$|_no$|_nr$")
_OUTCOME = re.compile(
    r"target|label|class|outcome|response|y|diagnosis|survived|death|died|mortality|churn|default|fraud|"
    r"readmitted|event|status"
)
_SPECIAL = re.compile(
    r"(^|_)(income|salary|wage|debt|credit|race|ethnic\w*|relig\w*|politic\w*|union|sexual\w*|orientation|gender|"
    r"disab\w*|hiv|aids|pregnan\w*|abortion|genetic\w*|mutation|psych\w*|addict\w*|alcohol\w*|drug\w*|"
    r"diagnos\w*|disease|icd\w*|criminal\w*|convict\w*|arrest\w*|health\w*|illness)(_|$)"
)
"""Words of special categories of data (GDPR, articles 9 and 10) and of what people keep to themselves."""

_FEW_ROWS_EACH = 50
"""A key of more rows than this is rather a site or a group than a person."""

_FEWER_ROWS_EACH = 20
"""The same of a column that is not named as a key is."""

_FEWEST_REPEATED = 20
"""Values of such a column that must repeat."""

_TOLD, _ALIKE, _VARIED = 3, 0.95, 0.8
"""So many other columns must be the same in nearly all rows of a key, though few rows agree in them."""


@dataclass(frozen=True)
class RoleProposal:
    """A role for a column, and why."""

    role: Role
    reason: str


def proposed_roles(table: Table) -> dict[str, RoleProposal]:
    """Roles for the columns that seem to have one, none of them more than a proposal.

    What the reasons say rests on names of columns, and on whether values repeat; no value is in them.
    """
    found: dict[str, RoleProposal] = {}
    for column in table.schema:
        proposal = _key_role(table, column) or _meaning(column)
        second_target = (
            proposal is not None
            and proposal.role is Role.TARGET
            and any(p.role is Role.TARGET for p in found.values())
        )
        if proposal and not second_target:
            found[column.name] = proposal
    if not any(p.role is Role.SPLIT_KEY or p.reason.startswith("named") for p in found.values() if _keys(p)):
        found.update(_unnamed_key(table))
    return found


def _keys(proposal: RoleProposal) -> bool:
    return proposal.role in (Role.SPLIT_KEY, Role.IDENTIFIER)


def _unnamed_key(table: Table) -> dict[str, RoleProposal]:
    """The column whose rows agree in most others, as rows of one person do, where that is no chance."""
    codes_of = {c.name: codes([table], c)[0] for c in table.schema.features}
    varied = {name: c for name, c in codes_of.items() if _agreement(c) < _VARIED}
    most, best = _TOLD - 1, ""
    for column in table.schema.features:
        key = codes_of[column.name]
        distinct = int(key.max(initial=-1)) + 1
        if table.n_rows / _FEWER_ROWS_EACH < distinct < table.n_rows and column.kind.groups(
            table.column(column.name)
        ):
            told = sum(_told(key, other) and not _told(other, key) for other in varied.values())
            if told > most and not _reads_as_dates(table, column):
                most, best = told, column.name
    if not best:
        return {}
    reason = f"values repeat, and rows of one agree in {most} other columns: are they one person's?"
    return {best: RoleProposal(Role.SPLIT_KEY, reason)}


def _reads_as_dates(table: Table, column: Column) -> bool:
    """Whether labels of a column are moments, by which the columns of their parts follow, as of nobody."""
    parts = column.kind.parts([cells_of(table, column)]) if nominal([column]) else ()
    return any(isinstance(part, NumberPart) and part.unit == TIME for part in parts)


def _agreement(of: Codes) -> float:
    """How often two rows agree."""
    shares = np.bincount(of + 1) / max(1, len(of))
    return float((shares**2).sum())


def _told(key: Codes, other: Codes) -> bool:
    """Whether nearly all rows of a value of the key that repeats have the same other value."""
    rows = np.flatnonzero(key >= 0)
    order = rows[np.argsort(key[rows], kind="stable")]
    _, starts, n = np.unique(key[order], return_index=True, return_counts=True)
    if (n > 1).sum() < _FEWEST_REPEATED:
        return False
    ends = [bound.reduceat(other[order], starts) for bound in (np.minimum, np.maximum)]
    return bool(n[(n > 1) & (ends[0] == ends[1])].sum() >= _ALIKE * n[n > 1].sum())


def _key_role(table: Table, column: Column) -> RoleProposal | None:
    n = table.n_rows
    if not column.released:
        return RoleProposal(Role.IDENTIFIER, "more labels than categories can be")
    distinct = n_distinct(table.column(column.name))
    named = bool(_KEY.search(_words(column.name)))
    if n > 1 and distinct == n and not table.n_missing(column.name):
        if column.kind.like_identifier(n, n, n):
            mend = "; it reads as dates, of which new ones are drawn if they are stored as such"
            return RoleProposal(
                Role.IDENTIFIER, f"each row has its own value{mend if _reads_as_dates(table, column) else ''}"
            )
        if named and pa.types.is_integer(column.storage):
            return RoleProposal(Role.IDENTIFIER, "named as a key is, and each row has its own value")
    if named and n > distinct > n / _FEW_ROWS_EACH and distinct > 1:
        return RoleProposal(
            Role.SPLIT_KEY,
            "named as a key is, and values repeat: all rows of one stay on one side of the split",
        )
    return None


def _meaning(column: Column) -> RoleProposal | None:
    name = _words(column.name)
    if _OUTCOME.fullmatch(name):
        return RoleProposal(Role.TARGET, "named as outcomes are: usefulness is tested by predicting it")
    if _SPECIAL.search(name):
        return RoleProposal(
            Role.SENSITIVE, "named as what people keep to themselves: attacks try to learn it"
        )
    return None


def _words(name: str) -> str:
    """A name in small letters with one underscore between words, however it is written."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"\W+", "_", apart).strip("_").lower()
