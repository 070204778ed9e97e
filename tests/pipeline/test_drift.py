"""A source that has other columns than the plan was decided on stops the run before anything is fitted."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import DataError
from synth_audit.pipeline import stages as pipeline

ADDED = ("diagnosis", pa.array(["x"] * 240))
CHANGES = {
    "'diagnosis' was added": lambda t: t.append_column(*ADDED),
    "'income' was dropped": lambda t: t.drop_columns(["income"]),
    "'age' was int64 and is double": lambda t: t.set_column(1, "age", t["age"].cast(pa.float64())),
}


@pytest.mark.parametrize("says", CHANGES)
def test_each_change_is_named_and_a_changed_plan_accepts_it(case, says):
    file = case.folder / "people.parquet"
    train = case.workspace.train.read_bytes()
    pq.write_table(CHANGES[says](pq.read_table(file)), file)
    with pytest.raises(DataError) as caught:
        pipeline.split_table(case.plan, case.workspace)
    assert says in caught.value.what
    assert case.workspace.train.read_bytes() == train, "what is there stays as it is"
    pipeline.split_table(case.replan(seed=6), case.workspace)


def test_other_rows_and_more_digits_are_no_drift(case, make_people):
    file = case.folder / "people.parquet"
    for digits in (12, 14):
        paid = make_people(200, seed=digits)["income"].cast(pa.decimal128(digits, 2), safe=False)
        pq.write_table(make_people(200, seed=digits).append_column("paid", paid), file)
        pipeline.split_table(case.replan(seed=7), case.workspace)
