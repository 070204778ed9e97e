"""What the columns of a table may be for, by their names and by how values repeat: proposals with reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.core.schema import Column, Role
from synth_audit.core.table import Table

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
    return found


def _key_role(table: Table, column: Column) -> RoleProposal | None:
    n = table.n_rows
    if not column.released:
        return RoleProposal(Role.IDENTIFIER, "more labels than categories can be")
    distinct = int(pc.count_distinct(table.column(column.name)).as_py())
    named = bool(_KEY.search(_words(column.name)))
    if n > 1 and distinct == n and not table.n_missing(column.name):
        if column.kind.like_identifier(n, n, n):
            return RoleProposal(Role.IDENTIFIER, "each row has its own value")
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
