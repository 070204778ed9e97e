"""What a generator hides beside the content of its table does not leave."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.pipeline import stages as pipeline
from synth_audit.table.content_hash import fingerprint

SECRET = "Zanzibar-7391"


def honest(make_people):
    made = make_people(160, seed=9).drop_columns(["person"])
    income = made.column("income").to_numpy().copy()
    income[:40] = 0.0
    missing = np.arange(160) % 8 == 7
    return made.set_column(1, "income", pa.array(income, mask=missing))


def hiding(made):
    """The same content with a secret in the order of rows, signs of zero, payloads, labels and metadata."""
    bits = np.unpackbits(np.frombuffer(SECRET.encode(), dtype=np.uint8))
    income = made.column("income").to_numpy(zero_copy_only=False).copy()
    zeros = np.flatnonzero(income == 0)[: len(bits)]
    income[zeros[bits[: len(zeros)] == 1]] = -0.0
    payload = np.uint64(0x7FF8000000000000) + np.arange(160, dtype=np.uint64)
    lost = np.isnan(income)
    income[lost] = payload.view(np.float64)[lost]
    labels = made.column("city").to_pylist()
    known = [SECRET, *sorted(set(labels))]
    coded = pa.DictionaryArray.from_arrays([known.index(x) for x in labels], known)
    other = made.set_column(1, "income", pa.array(income)).set_column(2, "city", coded)
    other = other.take(np.random.default_rng(list(SECRET.encode())).permutation(160))
    return other.select(other.column_names[::-1]).replace_schema_metadata({"note": SECRET})


@pytest.fixture
def tables(make_people):
    made = honest(make_people)
    other = hiding(made)
    assert fingerprint(other) == fingerprint(made)
    return made, other


def released(case):
    path = case.folder / "out-of-the-house" / "released.parquet"
    return path.read_bytes()


def test_of_a_run(case, tables):
    plan = case.replan(generator={"external": {"source": "made.parquet"}})
    found = []
    for table in tables:
        pq.write_table(table, case.folder / "made.parquet")
        pipeline.produce(plan, case.workspace)
        record = pipeline.release_synthetic(plan, case.workspace)
        assert record.table.sha256 == fingerprint(tables[0])
        found.append(released(case))
    assert found[0] == found[1]
    assert fingerprint(pq.read_table(case.folder / "out-of-the-house" / "released.parquet")) == fingerprint(
        tables[0]
    )


def test_of_a_file_made_elsewhere(case, tables):
    found = []
    for table in tables:
        pq.write_table(table, case.folder / "made.parquet")
        made = case.folder / "made.parquet"
        assert SECRET.encode() in made.read_bytes() or table is tables[0]
        train, control = case.workspace.train, case.workspace.control
        out = case.folder / "elsewhere"
        assert api.audit(train, control, made, case.plan, out=out).verdict == "pass"
        api.release(case.plan, out, made)
        found.append(released(case))
    assert found[0] == found[1]
    assert (
        api.verify(out, {"synthetic": case.folder / "out-of-the-house" / "released.parquet"})[-1].holds
        is not False
    )
