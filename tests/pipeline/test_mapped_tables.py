"""Tables that lie in mapped files of scratch give the records of those that are held in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.inputs import as_plan
from synth_audit.pipeline import stages
from synth_audit.store.workspace import Workspace
from synth_audit.table import arrow

N = 3000


def test_split_and_candidate_are_the_same_and_no_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_salt: Callable[[Workspace], None]
) -> None:
    rng = np.random.default_rng(1)
    columns = {"id": range(N), "x": rng.normal(size=N), "k": rng.choice(["a", "b"], N)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    plan = {"source": str(tmp_path / "rows.parquet"), "columns": {"id": {"role": "identifier"}}}
    settled = as_plan(plan | {"generator": "resample"})
    found, laid_out = [], []
    for most in (arrow.MOST_HELD, 1000):
        workspace = Workspace(tmp_path / f"out {most}")
        with_salt(workspace)
        with monkeypatch.context() as patch:
            patch.setattr(arrow, "MOST_HELD", most)
            written = arrow.write_arrow
            patch.setattr(
                arrow,
                "write_arrow",
                lambda path, *rows, w=written: laid_out.append(path) or w(path, *rows),
            )
            split = stages.split_table(settled, workspace)
            made = stages.make_synthetic(settled, workspace)
        found.append((split.source, split.train, split.control, made.table))
        assert not list(workspace.scratch.iterdir())
    assert found[0] == found[1]
    assert len(laid_out) == 3, "the source, train and the candidate, the second time"
    assert all(path.is_relative_to(workspace.scratch) for path in laid_out)
