"""The attack on free text that may leave: does it come nearer to the texts of train than to control's?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.core.text_form import column_forms
from synth_audit.encoding.ngrams import greatest_similarity
from synth_audit.kernels.rare_counts import chance_of_more

_MOST = 5_000
"""Real rows of each table whose nearest text is looked for."""

_MOST_RELEASED = 20_000
"""Rows of the release among which it is looked for."""

_NEAR = 0.02
"""Share of control rows whose nearest text counts as near."""


def copied(subject: Subject, column: Column, chance: float, rng: np.random.Generator) -> bool:
    """Whether training rows find their text in the release, or one like it, more often than control rows.

    Two comparisons of rates: of texts that one real row alone holds, how many stand in the release (labels
    equal in standard form); and how many rows have a text as near as 2 % of the control rows have, by the
    cosine of their runs of letters.

    Args:
        chance: of an honest release being accused. rng: draws the rows that are looked up.
    """
    control = subject.control
    assert control is not None
    train, made, name = subject.train, subject.synthetic, column.name
    if _found_once(train, control, made, name) < chance / 2:
        return True
    release = _forms(made.sample(_MOST_RELEASED, rng), name)
    real, strangers = (_forms(table.sample(_MOST, rng), name) for table in (train, control))
    if not (release and strangers and real):
        return False
    of_train, of_control = (greatest_similarity(texts, release) for texts in (real, strangers))
    near = np.quantile(of_control, 1 - _NEAR, method="lower")
    close, strange = int((of_train >= near).sum()), int((of_control >= near).sum())
    return chance_of_more(close, strange, len(of_train), len(of_control)) < chance / 2


def _forms(table: Table, name: str) -> list[str]:
    """The texts of a column in standard form."""
    found: list[str] = column_forms(table.texts(name)).drop_null().to_pylist()
    return found


def _found_once(train: Table, control: Table, made: Table, name: str) -> float:
    """Chance that so many of the texts found in the release are train's, of those that one real row holds."""
    forms = [column_forms(table.texts(name)) for table in (train, control)]
    counted = pa.chunked_array([x for column in forms for x in column.chunks]).drop_null().value_counts()
    once = counted.filter(pc.equal(counted.field("counts"), 1)).field("values")
    taken = once.filter(pc.is_in(once, value_set=column_forms(made.texts(name)).unique()))
    copies, twins = (int(pc.sum(pc.is_in(x, value_set=taken)).as_py() or 0) for x in forms)
    return chance_of_more(copies, twins, train.n_rows, control.n_rows)
