"""Whether the source still has the columns that the plan was last run on."""

from __future__ import annotations

import re

from synth_audit.core.errors import DataError
from synth_audit.core.plan import Plan
from synth_audit.core.schema import Schema
from synth_audit.store.stage_records import SplitRecord
from synth_audit.store.workspace import Workspace

_DIGITS = re.compile(r"decimal\d+\(.*?\)")
"""How many digits decimals have follows from their values where a warehouse does not say."""


def refuse_drift(plan: Plan, workspace: Workspace, schema: Schema) -> None:
    """Raise where columns were added, dropped or retyped since the same plan was split here last.

    What the plan says of the columns was decided on another table: a new one may be sensitive, and one that
    changed its type is measured in another way. Another plan is a new decision.

    Raises:
        DataError: naming each column and what became of it; nothing has been fitted.
    """
    if not workspace.split_record.is_file():
        return
    try:
        before = SplitRecord.read(workspace.split_record)
    except DataError:  # of another version, or damaged: it is about to be replaced
        return
    if before.plan_sha256 != plan.digest:
        return
    then = {c.name: _DIGITS.sub("decimal", c.storage) for c in before.columns}
    now = {c.name: _DIGITS.sub("decimal", str(c.storage)) for c in schema.columns}
    found = [
        *(f"{name!r} was added" for name in now if name not in then),
        *(f"{name!r} was dropped" for name in then if name not in now),
        *(f"{n!r} was {then[n]} and is {now[n]}" for n in then if n in now and then[n] != now[n]),
    ]
    if found:
        raise DataError(
            f"the source has changed since this plan was run: {'; '.join(found)}",
            where="source",
            expected="the columns and types of the last run of this plan",
            fix="say in the plan what the column is (`columns:`), or leave it out by `query:`; then run it: "
            "a plan that was changed is a new decision",
        )
