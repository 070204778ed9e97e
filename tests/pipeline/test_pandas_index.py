"""Row numbers of a pandas index are read in no table, and the reader is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import synth_audit
from synth_audit.table.arrow import index_columns

PLAN = {"audits": ["exact_match"], "gates": "release"}


def frame(rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=rows).round(3), "g": rng.choice(["a", "b"], rows)})


def with_index(path, table, suffix):
    """As pandas writes a cut of a table: the index goes along under a name of pandas'."""
    cut = table[table.index % 5 != 0]
    if suffix == "csv":
        cut.to_csv(path.with_suffix(".csv"))
    else:
        cut.to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(f".{suffix}"), cut


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("which", [("train",), ("synthetic",), ("train", "control", "synthetic")])
def test_an_index_is_left_out_of_whichever_table_has_it(tmp_path, suffix, which):
    plain = {name: frame(100, seed) for seed, name in enumerate(("train", "control", "synthetic"))}
    given, told = {}, {}
    for name, table in plain.items():
        file, cut = with_index(tmp_path / name, table, suffix)
        given[name] = file if name in which else cut
        told[name] = name in which
    found = synth_audit.audit(
        given["train"], given["control"], given["synthetic"], PLAN, only=("exact_match",)
    )
    assert [c.name for c in found.columns] == ["x", "g"]
    for name in plain:
        assert any(w.startswith(f"{name} has the column") for w in found.warnings) == told[name]
    assert any("do not hand out the file" in w for w in found.warnings) == told["synthetic"]
    cut = plain["train"][plain["train"].index % 5 != 0]
    if suffix == "parquet":
        assert found.tables["train"].rows == len(cut)


def test_a_run_leaves_the_index_of_its_source_out_and_the_evidence_says_so(
    tmp_path, monkeypatch, write_suite
):
    monkeypatch.chdir(tmp_path)
    file, _ = with_index(tmp_path / "source", frame(300), "parquet")
    write_suite()  # of one audit: the suites that ship would bring recognition along
    plan = {**PLAN, "gates": "gates.json", "source": str(file), "generator": "independent"}
    plan["release"] = str(tmp_path / "out.parquet")
    found = synth_audit.run(plan, tmp_path / "work", release=False)
    assert any("source has the column '__index_level_0__'" in w for w in found.warnings)
    checks = synth_audit.verify(tmp_path / "work", {"source": file})
    (source,) = [c for c in checks if "source" in c.what]
    assert source.holds is True


def test_a_plan_may_declare_it_as_data():
    assert index_columns(["a", "__index_level_0__", "Unnamed: 0", "index"]) == (
        "__index_level_0__",
        "Unnamed: 0",
    )
    assert index_columns(["__index_level_0__"], {"__index_level_0__": None}) == ()
    table = frame(60)
    table["__index_level_0__"] = np.arange(60) % 7
    plan = {**PLAN, "columns": {"__index_level_0__": {"kind": "integer"}}}
    found = synth_audit.audit(table, None, table, plan, only=("exact_match",))
    assert "__index_level_0__" in [c.name for c in found.columns]
    assert not any("row numbers" in w for w in found.warnings)
