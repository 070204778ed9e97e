"""What users get wrong: each mistake is named, placed and curable, and no cell value is ever shown."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from synth_audit import cli
from synth_audit.store.workspace import Workspace

CELL = "Zanzibar-7391"
NUMBER = 73917391.5


def people(n=120, seed=0, **more):
    rng = np.random.default_rng(seed)
    cities = rng.choice(["north", "south", CELL], n)
    return pa.table(
        {"age": rng.integers(18, 90, n), "income": rng.normal(NUMBER, 9, n), "city": cities} | more
    )


BASE = {
    "source": {"parquet": {"path": "people.parquet"}},
    "generator": "independent",
    "audits": ["exact_match"],
    "gates": "gates.json",
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, write_suite):
    monkeypatch.chdir(tmp_path)
    pq.write_table(people(), "people.parquet")
    write_suite()
    for seed, name in enumerate(("train", "control", "synthetic")):
        pq.write_table(people(seed=seed), f"{name}.parquet")
    return tmp_path


def run(*words):
    result = CliRunner().invoke(cli.main, [str(w) for w in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert "Traceback" not in result.output
    assert CELL not in result.output
    assert "73917" not in result.output
    return result


def run_plan(**changes):
    Path("plan.yaml").write_text(yaml.safe_dump(BASE | changes))
    return run("run", "plan.yaml")


def run_audit(**tables):
    for name, table in tables.items():
        pq.write_table(table, f"{name}.parquet")
    Path("audit.yaml").write_text(yaml.safe_dump({"audits": ["exact_match"], "gates": "gates.json"}))
    return run("audit", *(f"{n}.parquet" for n in ("train", "control", "synthetic")), "--plan", "audit.yaml")


def refused(result, *says):
    """The message has its parts, says these words, and nothing was printed as a result."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    for part in ("where", "expected", "fix"):
        assert f"\n  {part}: " in result.stderr, result.stderr
    for words in says:
        assert words in result.stderr
    assert not Path("plan-audit").exists() or not list(Path("plan-audit").rglob("evidence.json"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"generater": "vine"}, ("unknown key 'generater'", "plan.yaml", "generator")),
        ({"split": {"share": 0.2}}, ("unknown key 'split.share'",)),
        ({"columns": {"age": {"knd": "integer"}}}, ("unknown key 'columns.age.knd'",)),
        ({"columns": {"age": {"kind": "intger"}}}, ("columns.age.kind", "(did you mean 'integer'?)", "time")),
        ({"columns": {"age": {"role": "secret"}}}, ("columns.age.role", "'sensitive'")),
        ({"columns": {"age": {"bounds": [9, 1]}}}, ("columns.age", "[lowest, highest]")),
        ({"columns": {"age": {"bounds": [18, 20]}}}, ("'age' has values outside its declared bounds",)),
        ({"columns": {"city": {"categories": ["north"]}}}, ("'city' has values outside its declared",)),
        ({"columns": {"city": {"kind": "integer"}}}, ("'city' is declared integer but holds string",)),
        ({"audits": ["exact_match", "exact_match"]}, ("listed more than once",)),
        ({"source": {"parquet": {"file": "a"}}}, ("unknown field 'file'", "source.parquet", "path")),
        ({"source": {"parquet": {}}}, ("path", "source.parquet")),
        ({"source": None}, ("the plan has no source",)),
        ({"generator": None}, ("the plan has no generator",)),
        ({"source": {"parquet": {"path": "nowhere.parquet"}}}, ("does not exist", "nowhere.parquet")),
        ({"source": {"duckdb": {"path": "w.duckdb", "table": "t"}}}, ("the DuckDB file does not exist",)),
        ({"gates": "nowhere.json"}, ("no gate suite 'nowhere.json'",)),
        ({"gates": "helth"}, ("no gate suite 'helth' (did you mean 'health'?)",)),
        ({"split": {"control": 1.5}}, ("split.control",)),
        ({"seed": -1}, ("seed",)),
        ({"rows": 0}, ("rows",)),
    ],
    ids=lambda x: json.dumps(x)[:40] if isinstance(x, dict) else "",
)  # fmt: skip
def test_a_mistake_in_the_plan(changes, says):
    refused(run_plan(**changes), *says)


def test_a_wrong_value_and_a_wrong_key_are_answered_at_their_own_level():
    result = run_plan(columns={"age": {"role": "targt", "kin": "integer"}})
    refused(
        result,
        "columns.age.role.0: Input should be 'feature', 'target'",
        "(did you mean 'target'?)",
        "unknown key 'columns.age.kin' (did you mean 'kind'?)",
        "expected: keys of columns.age kind, role, ",
    )
    assert "frontier" not in result.stderr, "a key of another level"


def test_a_misspelt_key_of_the_plan_is_asked_for():
    refused(run_plan(colums={}), "unknown key 'colums' (did you mean 'columns'?)")


def test_all_mistakes_are_told_in_one_run():
    refused(
        run_plan(
            colums={},
            seed="x",
            rules=["age ="],
            generator={"vine": {"truncatoin": 1}},
            audits=["exact_mach", {"singling_out": {"attacks": -1}}],
        ),
        "unknown key 'colums' (did you mean 'columns'?)",
        "seed: Input should be a valid integer",
        "rules.0: the rule 'age =' cannot be read",
        "generator.vine: unknown field 'truncatoin' (did you mean 'truncation'?)",
        "unknown audit 'exact_mach' (did you mean 'exact_match'?)",
        "audits.singling_out: ",
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"columns": {"aeg": {"kind": "integer"}}}, ("'aeg', which the table does not have", "age")),
        ({"columns": {"age": {"role": "target"}, "city": {"role": "target"}}}, ("2 columns have the role",)),
        (
            {"columns": {name: {"role": "identifier"} for name in ("age", "income", "city")}},
            ("no column is left",),
        ),
        ({"generator": "vin"}, ("unknown generator 'vin'", "vine")),
        ({"audits": ["exact"]}, ("unknown audit 'exact'", "exact_match")),
        ({"source": {"mysql": {}}}, ("unknown source 'mysql'",)),
        ({"source": "people.txt"}, ("no source reads the file 'people.txt'",)),
    ],
    ids=lambda x: json.dumps(x)[:40] if isinstance(x, dict) else "",
)
def test_a_name_or_role_that_cannot_be(changes, says):
    refused(run_plan(**changes), *says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "not valid YAML"),
        ("- a list", "not a mapping"),
        ("", "not a mapping"),
        ("1: x", "plan"),
        ("seed: 2020-13-45", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_plan(text, says):
    Path("plan.yaml").write_text(text)
    result = run("run", "plan.yaml")
    assert result.exit_code == 2
    assert says in result.stderr
    assert "where: plan.yaml" in result.stderr


def test_a_plan_that_is_missing_a_folder_or_not_text():
    Path("binary.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("nowhere.yaml", ".", "binary.yaml"):
        refused(run("run", name), "the plan cannot be read", f"where: {name}")


def test_a_missing_table_in_a_database():
    import duckdb

    duckdb.connect("w.duckdb").close()
    result = run_plan(source={"duckdb": {"path": "w.duckdb", "table": "clinical.people"}})
    refused(result, "clinical.people", "cannot be read")


@pytest.mark.parametrize("name", ["people.parquet", "plan.yaml", "gates.json"])
def test_a_file_without_permission(monkeypatch, name):
    Path("plan.yaml").write_text(yaml.safe_dump(BASE))
    if os.geteuid() != 0:
        Path(name).chmod(0)
    real_open, real_file = Path.open, pq.ParquetFile

    def closed(path, *args, **kwargs):
        if Path(path).name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return (real_open if isinstance(path, Path) and path.suffix != ".parquet" else real_file)(
            path, *args, **kwargs
        )

    monkeypatch.setattr(Path, "open", closed)
    monkeypatch.setattr(pq, "ParquetFile", closed)
    result = run("run", "plan.yaml")
    assert result.exit_code == 2
    assert "cannot be read (PermissionError)" in result.stderr
    assert name in result.stderr


def test_a_workspace_that_cannot_be_made():
    Path("out").write_text("a file")
    Path("plan.yaml").write_text(yaml.safe_dump(BASE))
    assert run("run", "plan.yaml", "--out", "out").exit_code == 2
    refused(run("run", "plan.yaml", "--out", "out/deeper"), "workspace cannot be made")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (people().slice(0, 1), ("the source has a single row",)),
        (people(rate=pa.array([np.inf, *[1.0] * 119])), ("'rate' holds infinite values",)),
        (people(rate=pa.array([-np.inf, *[1.0] * 119])), ("'rate' holds infinite values",)),
        (people(tags=pa.array([["a"]] * 120)), ("'tags' has type list",)),
        (
            pa.Table.from_arrays([pa.array([1, 2]), pa.array([1, 2])], names=["age", "age"]),
            ("'age' occurs more than once",),
        ),
        (
            pa.table({"x": np.arange(100_000) % 7, "code": [f"{CELL}{i}" for i in range(100_000)]}),
            ("'code' has 100,000 categories", "identifier"),
        ),
    ],
    ids=["one row", "infinite", "minus infinite", "list", "names", "categories"],
)
def test_a_source_that_cannot_be_audited(table, says):
    pq.write_table(table, "people.parquet")
    refused(run_plan(), *says)


def not_utf8():
    values = pa.array([b"\xff" + CELL.encode(), b"x"] * 60)
    return pa.Array.from_buffers(pa.string(), 120, values.buffers())


REFUSED_COLUMNS = {
    "not UTF-8": (not_utf8, "does not hold what its type string says: text that is not UTF-8"),
    "zone": (lambda: pa.array(range(120), pa.timestamp("us", "Mars/Olympus")), "time zone 'Mars/Olympus'"),
    "struct": (lambda: pa.array([{"a": 1}] * 120), "has type struct"),
    "opaque": (
        lambda: pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "n", "v"), pa.array([CELL] * 120)),
        "extension type 'arrow.opaque'",
    ),
    "duration": (lambda: pa.array(range(120), pa.duration("s")), "has type duration[s], which cannot"),
    "bytes": (
        lambda: pa.array([b"x", CELL.encode()] * 60, pa.binary_view()),
        "has type binary, which cannot",
    ),
    "long": (lambda: pa.array([7391739173917391 * 1000 + i for i in range(120)]), "more digits than audits"),
    "far": (lambda: pa.array([10**7 + i for i in range(120)], pa.int32()).cast(pa.date32()), "1 to 9999"),
}


@pytest.mark.parametrize("kind", REFUSED_COLUMNS)
def test_a_column_that_cannot_be_audited_is_named_wherever_it_is(kind):
    made, says = REFUSED_COLUMNS[kind]
    odd, fine = people(odd=made()), people(odd=[1.5, 2.5, 4.5] * 40)
    refused(run_audit(train=odd, control=odd, synthetic=odd), "column 'odd'", says, "where: train")
    for name in ("control", "synthetic"):
        refused(run_audit(**(dict.fromkeys(("train", "control", "synthetic"), fine) | {name: odd})), "'odd'")
    pq.write_table(odd, "people.parquet")
    refused(run_plan(), "column 'odd'", says)


def test_numbers_that_no_generator_can_be_fitted_to():
    pq.write_table(people(odd=[1e300, 0.5, 1.5] * 40), "people.parquet")
    refused(run_plan(), "column 'odd' holds numbers beyond 1e+100")


def test_views_half_floats_and_runs_are_read_and_released():
    texts = pa.array(["a", "b", None] * 40, pa.string_view())
    more = {"view": texts, "half": pa.array(np.arange(120) % 7, pa.float16())}
    pq.write_table(people(**more), "people.parquet")
    result = run_plan(release={"parquet": {"path": "out.parquet"}})
    assert result.exit_code == 0, result.output
    assert pq.read_schema("out.parquet").field("view").type == pa.string()
    assert pq.read_schema("out.parquet").field("half").type == pa.float16()


@pytest.mark.parametrize("keep", [0, 4, 200, -1, -200])
def test_a_truncated_file(keep):
    content = Path("people.parquet").read_bytes()
    Path("people.parquet").write_bytes(content[:keep])
    refused(run_plan(), "the Parquet file cannot be read", "people.parquet")


@pytest.mark.parametrize("name", ["control", "synthetic"])
def test_tables_that_differ_are_named_with_their_columns(name):
    table = people()
    lacking, extra = table.drop_columns(["income"]), people(shoe=[1] * 120)
    refused(run_audit(**{name: lacking}), f"the columns of {name} differ from train: it lacks income")
    refused(run_audit(**{name: extra}), f"{name} differ from train: it has the unknown shoe")
    other = table.rename_columns(["age", "wages", "city"])
    unknown = "has the unknown wages" if name == "control" else "has 1 unknown column"
    refused(run_audit(**{name: other}), f"lacks income and {unknown}")


def test_a_synthetic_file_without_a_header_shows_no_record():
    headless = people().rename_columns(["71", "123456.78", "Ghent"])
    result = run_audit(synthetic=headless)
    refused(result, "lacks age, income, city and has 3 unknown columns")
    assert "123456" not in result.output


@pytest.mark.parametrize("name", ["control", "synthetic"])
def test_values_of_another_kind_are_named(name):
    text = people().set_column(1, "income", pa.array([CELL] * 120))
    refused(run_audit(**{name: text}), f"'income' is continuous but {name} holds string", "convert 'income'")
    infinite = people().set_column(1, "income", pa.array([np.inf] * 120))
    refused(run_audit(**{name: infinite}), "'income' holds infinite values", f"where: {name}")


@pytest.mark.parametrize("name", ["train", "control", "synthetic"])
def test_an_empty_table(name):
    empty = people().slice(0, 0)
    refused(run_audit(**{name: empty}), f"{name} has no rows")
    pq.write_table(empty, "people.parquet")
    refused(run_plan(), "source has no rows")


def test_a_train_of_one_row():
    refused(run_audit(train=people(1)), "train has a single row")


def test_a_number_column_of_text_in_a_csv_that_the_plan_calls_a_number():
    lines = [f"{i},{i}.5" for i in range(50)]
    Path("people.csv").write_text("\n".join(["age,income", *lines, f"51,{CELL}"]))
    result = run_plan(source="people.csv", columns={"income": {"kind": "continuous"}})
    refused(result, "'income' is declared continuous but holds string")


def test_huge_whole_numbers_are_numbers():
    pq.write_table(people(big=pa.array([1e19, 2e19, 3e19] * 40)), "people.parquet")
    assert run_plan().exit_code == 0


SURVIVED = {
    "constant": (people(odd=["same"] * 120), "column 'odd' is constant in train"),
    "missing": (people(odd=pa.nulls(120, pa.float64())), "column 'odd' is wholly missing in train"),
    "void": (people(odd=pa.nulls(120)), "column 'odd' is wholly missing in train"),
    "identifier": (people(odd=[f"P{i}" for i in range(120)]), "column 'odd' has"),
    "number": (people(odd=list(range(120))), "column 'odd' has a different value in every row"),
}


@pytest.mark.parametrize("kind", sorted(SURVIVED))
def test_what_an_audit_can_live_with_is_warned_of(kind):
    table, warning = SURVIVED[kind]
    pq.write_table(table, "people.parquet")
    result = run_plan()
    assert result.exit_code == 0, result.output
    assert f"warning: {warning}" in result.stdout
    assert warning in Workspace(Path("plan-audit")).evidence.read_text()


def overlapping(shared):
    return pa.concat_tables([people(seed=0).slice(0, shared), people(seed=1).slice(shared)])


@pytest.mark.parametrize(("shared", "says"), [(11, "11 of 120"), (4, "fewer than 10 of 120")])
def test_a_control_that_overlaps_train_by_little_is_warned_of(shared, says):
    result = run_audit(control=overlapping(shared))
    assert result.exit_code in (0, 1)
    assert f"warning: {says} control rows also occur in train" in result.stdout


def test_a_control_that_overlaps_train_by_much_is_refused():
    result = run_audit(control=overlapping(40))
    assert result.exit_code == 2
    assert "33% of the control rows occur in train, more than chance explains" in result.output
