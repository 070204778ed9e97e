from __future__ import annotations

import pyarrow as pa
import pytest

from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


@pytest.fixture(scope="session")
def tables_of():
    """Tables under the schema of the first."""

    def make(*frames):
        schema = infer_schema(pa.table(frames[0]))
        return [read_table(pa.table(f), schema, where="table") for f in frames]

    return make


@pytest.fixture(scope="module")
def two_threads():
    """Blocks of work are spread over two threads, whatever the machine and the other tests are told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "2")
        yield
