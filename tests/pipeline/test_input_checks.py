"""Tables that audits would misread: seen control rows, empty candidates, row numbers of pandas."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import synth_audit
from synth_audit import api
from synth_audit.errors import DataError
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.making import refuse_seen_control
from synth_audit.table.arrow import index_columns
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table
from synth_audit.verdict.table_checks import fullness


def people(n, seed, missing=0.1):
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < missing, np.nan, rng.normal(50, 10, n).round(1))
    return pa.table({"age": age, "pulse": rng.integers(50, 120, n), "group": rng.choice(list("abc"), n)})


def of_two_bits(n, seed):
    rng = np.random.default_rng(seed)
    return pa.table({"a": rng.choice(["x", "y"], n), "b": rng.choice(["x", "y"], n)})


def read(*tables):
    schema = infer_schema(tables[0], {})
    return [read_table(t, schema, where="table") for t in tables]


def test_a_control_drawn_from_train_is_refused():
    train, rng = people(400, 0), np.random.default_rng(1)
    half = train.take(rng.permutation(400)[:200])
    tenth = pa.concat_tables([people(160, 2), train.take(np.arange(40))])
    for control in (train, train.take(rng.permutation(400)), half, tenth):
        with pytest.raises(DataError, match="control rows occur in train"):
            refuse_seen_control(*read(train, control))


@pytest.mark.parametrize("table", [people, of_two_bits])
@pytest.mark.parametrize("seed", range(20))
def test_tables_divided_at_random_are_not(table, seed):
    whole = pa.concat_tables([table(300, seed), table(20, seed)])  # some people twice
    order = np.random.default_rng(seed).permutation(320)
    refuse_seen_control(*read(whole.take(order[:220]), whole.take(order[220:])))


def test_a_control_that_shares_a_few_rows_is_left_to_the_audits():
    train = people(400, 0)
    refuse_seen_control(*read(train, pa.concat_tables([people(200, 2), train.take(np.arange(8))])))


def test_the_command_stops_before_any_audit(tmp_path, monkeypatch):
    monkeypatch.setattr("synth_audit.pipeline.stages.run_examination", lambda *_: pytest.fail("audited"))
    train, candidate = people(300, 0).to_pandas(), people(300, 1).to_pandas()
    with pytest.raises(DataError, match="more than chance explains"):
        api.audit(train, train.copy(), candidate, out=tmp_path / "out")


def emptied(table, name, share, seed=0):
    gone = np.random.default_rng(seed).random(table.num_rows) < share
    values = [None if g else v for g, v in zip(gone, table[name].to_pylist(), strict=True)]
    return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))


def checked(candidate, declared=()):
    train, made = read(people(400, 0), candidate)
    return fullness(train, made, declared)


def test_a_column_left_empty_is_named_unless_the_plan_says_so():
    wholly = emptied(people(300, 1), "pulse", 1.1)
    assert checked(wholly).met is False
    assert "pulse" in checked(wholly).explanation
    assert checked(emptied(people(300, 1), "pulse", 0.3)).met is False
    assert checked(wholly, ["pulse"]).met is True


def test_a_table_a_little_emptier_everywhere_is_refused():
    candidate = people(4000, 1, missing=0.145)
    for name in ("pulse", "group"):
        candidate = emptied(candidate, name, 0.045)
    assert "The table's cells" in checked(candidate).explanation


@pytest.mark.parametrize("seed", range(20))
def test_a_candidate_of_the_population_is_as_full(seed):
    assert checked(people(200, seed + 1)).met is True
    assert checked(people(200, seed + 1, missing=0.12)).met is True


def test_an_empty_release_does_not_pass(tmp_path):
    train, control = people(300, 0).to_pandas(), people(200, 1).to_pandas()
    nothing = people(300, 2).to_pandas().astype(object)
    nothing[:] = None
    found = api.audit(train, control, nothing, out=tmp_path / "out", only=("exact_match",))
    contract = next(g for g in found.gates.results if g.gate == "schema_contract")
    assert found.verdict != "pass"
    assert "Emptier than in train" in contract.explanation
    with pytest.raises(DataError, match="no rows"):
        api.audit(train, control, train.head(0), out=tmp_path / "none")


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
