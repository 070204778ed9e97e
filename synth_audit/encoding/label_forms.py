"""Labels of a column in the form in which equal ones are equal texts."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Labels
from synth_audit.core.table import Table
from synth_audit.core.text_form import standard_forms


def label_forms(table: Table, name: str) -> Labels:
    """Standard form of each label, None where it is missing, shape (n,)."""
    return np.array(standard_forms(table.labels(name).tolist()), dtype=object)
