"""A mend: the smallest coarsening that passes, every try counted, and no way past the gates for a memory."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from made_tables import table_of  # made importable by conftest.py

from synth_audit import api, cli
from synth_audit.errors import DataError, PlanError
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.plan.plan import load_plan
from synth_audit.store.evidence import read_evidence
from synth_audit.store.ledger import Ledger
from synth_audit.store.workspace import Workspace
from synth_audit.studies import mend as mending
from synth_audit.studies.mend import RUNGS, rung

AUDITS = [
    {"singling_out": {"embedding": False, "multivariate": [3], "n_attacks": 200, "n_minimum": 50}},
    "exact_match",
    {"closest_record": {"distances": ["euclidean"], "n_bootstrap": 100}},
]


def people(n, seed):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "income": np.round(rng.lognormal(10, 0.5, n), 2),
            "height": np.round(rng.normal(170, 9, n), 1),
            **{f"item {i}": rng.integers(0, 5, n) for i in range(6)},
        }
    )


def shuffled(table, seed=0):
    """Every column with its exact values, and nobody's row."""
    rng = np.random.default_rng(seed)
    return pa.table({c: table[c].take(pa.array(rng.permutation(len(table)))) for c in table.column_names})


@pytest.fixture(scope="module")
def finished(tmp_path_factory, with_salt, make_gate):
    """A folder with a plan and a refused release: independent columns with exact values of train."""
    folder = tmp_path_factory.mktemp("mend")
    pq.write_table(people(600, 0), folder / "people.parquet")
    suite = [
        make_gate("singled_out", "singling_out.worst_risk", 0.5),
        make_gate("copies", "exact_match.excess", 0.1),
        make_gate("closest", "closest_record.privacy_score", 0.05),
    ]
    (folder / "gates.json").write_text(json.dumps({"name": "small", "expectations": suite}))
    plan = {
        "source": "people.parquet",
        "split": {"control": 0.4},
        "generator": {"external": {"source": "made.parquet"}},
        "audits": [*AUDITS, "marginals"],
        "known_answer": {"max_rows": 200},
        "gates": "gates.json",
        "release": {"parquet": {"path": "released.parquet"}},
    }
    (folder / "plan.yaml").write_text("# ours\n" + yaml.safe_dump(plan))
    workspace = Workspace(folder / "plan-audit")
    with_salt(workspace)
    pipeline.split_table(load_plan(folder / "plan.yaml"), workspace)
    pq.write_table(shuffled(pq.read_table(workspace.train)), folder / "made.parquet")
    api.run(folder / "plan.yaml", release=False)
    return folder


@pytest.fixture
def home(finished, tmp_path, monkeypatch):
    """A copy of it, in which we are."""
    shutil.copytree(finished, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def workspace(home):
    return Workspace(home / "plan-audit")


def remade(home, made, **changes):
    """The run of the plan with another table instead."""
    pq.write_table(made, home / "made.parquet")
    plan = yaml.safe_load((home / "plan.yaml").read_text()) | changes
    (home / "plan.yaml").write_text(yaml.safe_dump(plan))
    return api.run("plan.yaml", release=False)


def test_exact_values_are_mended_verified_and_the_tries_counted(home):
    refused = read_evidence(workspace(home).evidence)
    assert [g.gate for g in refused.gates.results if g.result != "pass"] == ["singled_out"]
    done = CliRunner().invoke(cli.main, ["mend", "plan.yaml", "--tries", "4", "--write", "mended.yaml"])
    assert done.exit_code == 0, done.output
    assert "synth-audit run mended.yaml --out" in done.output
    record = json.loads(workspace(home).mend.read_text())
    assert record["tries_counted"] == 5
    assert [t["verdict"] for t in record["tries"]][-1] == "pass"
    assert {w.split()[0] for w in record["tries"][-1]["words"]} == {"income", "height"}
    assert record["tries"][-1]["total_variation"] > record["total_variation"]
    text = (home / "mended.yaml").read_text()
    assert text.startswith("# ours\n")
    plan = load_plan(home / "mended.yaml")
    assert plan.name == "plan"
    assert (plan.coarsen.chosen_on, plan.coarsen.tries) == ("real data", 5)
    evidence = api.run(plan, workspace(home).root)
    assert evidence.verdict is Result.PASS
    assert evidence.level == pytest.approx(0.99)
    assert evidence.attempt == refused.attempt + len(record["tries"]) + 1
    assert not set(pq.read_table("released.parquet")["income"].to_pylist()) & set(
        pq.read_table(workspace(home).train)["income"].to_pylist()
    )


def test_another_mend_counts_on_also_after_one_that_was_broken_off(home, monkeypatch):
    def broken(*args, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(mending, "climb", broken)
    with pytest.raises(KeyboardInterrupt):
        api.mend("plan.yaml", tries=2)
    identity = read_evidence(workspace(home).evidence).tables["train"].hmac
    ledger = Ledger(workspace(home).restricted)
    assert ledger.chosen_among(identity) == 3
    assert ledger.choice(train="other rows", candidates=2) == 2
    monkeypatch.setattr(mending, "climb", lambda refused, record, *rest: record)
    assert api.mend("plan.yaml", tries=3).tries_counted == 7


@pytest.mark.parametrize("told", [{}, {"chosen_on": "real data", "tries": 2}])
def test_a_plan_cannot_tell_of_fewer_tries_than_mends_have_made(home, told):
    identity = read_evidence(workspace(home).evidence).tables["train"].hmac
    assert Ledger(workspace(home).restricted).choice(train=identity, candidates=3) == 3
    plan = yaml.safe_load((home / "plan.yaml").read_text())
    plan["coarsen"] = {"columns": {"income": {"round_to": 5000}}} | told
    (home / "plan.yaml").write_text(yaml.safe_dump(plan))
    with pytest.raises(PlanError, match="have tried 3 candidates"):
        api.run("plan.yaml")


@pytest.fixture
def climbed(home, monkeypatch):
    """A mend of a table, with nothing that would keep the search from its tries."""
    monkeypatch.setattr(mending.Refused, "hopeless", ())
    monkeypatch.setattr(mending, "_named", lambda evidence: ("income", "height"))

    def run(made):
        assert remade(home, made).verdict is not Result.PASS
        return api.mend("plan.yaml", tries=RUNGS)

    return run


def copies(real, rng):
    return real


def near_copies(real, rng):
    for name in ("income", "height"):
        values = real[name].to_numpy() * (1 + rng.normal(0, 0.002, len(real)))
        real = real.set_column(real.column_names.index(name), name, pa.array(np.round(values, 1)))
    return real


# Of copies the coarser ones are what is seen of near copies too, whose every try is judged in any run.
@pytest.mark.parametrize("make", [pytest.param(copies, marks=pytest.mark.slow), near_copies])
def test_a_memory_is_not_mended_even_where_all_is_tried(climbed, home, make):
    real = pq.read_table(workspace(home).train)
    found = climbed(make(real, np.random.default_rng(1)))
    assert found.mended is None
    assert found.tries
    assert all(t.verdict != "pass" for t in found.tries)
    assert "No coarsening mends a generator that remembers people" in found.reason


def test_where_copies_are_refused_nothing_is_tried(home):
    remade(home, pq.read_table(workspace(home).train))
    found = api.mend("plan.yaml")
    assert found.hopeless == ("copies", "closest")
    assert found.tries == ()
    assert found.tries_counted == 1
    assert "Nothing was tried" in found.reason
    assert CliRunner().invoke(cli.main, ["mend", "plan.yaml"]).exit_code == 1


def test_what_cannot_be_mended_is_told(home):
    plan = load_plan(home / "plan.yaml")
    for changes, says in (
        ({"privacy": {"epsilon": 1}}, "would void"),
        ({"coarsen": {"columns": {"income": {"round_to": 10}}}}, "coarsens already"),
    ):
        with pytest.raises(PlanError, match=says):
            api.mend(yaml.safe_load((home / "plan.yaml").read_text()) | changes, workspace(home).root)
    with pytest.raises(DataError, match="of another plan"):
        api.mend(plan.model_copy(update={"seed": 9}), workspace(home).root)
    elsewhere = CliRunner().invoke(cli.main, ["mend", "plan.yaml", "--write", "made.parquet"])
    assert elsewhere.exit_code == 2
    assert "does not exist" in elsewhere.output
    assert not workspace(home).mend.exists()
    remade(home, people(500, 7))
    with pytest.raises(DataError, match="nothing to mend"):
        api.mend("plan.yaml")


def test_rungs_become_coarser_and_leave_no_row_alone_at_the_ends():
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, 400)
    labels = [f"label {int(i)}" for i in np.minimum(rng.exponential(5, 400), 30)]
    spiky = np.where(rng.random(400) < 0.9, 0, rng.integers(1, 99999, 400))
    release = table_of({"x": np.round(rng.normal(0, 1, 400), 6), "day": days, "k": labels, "gain": spiky})
    rungs = [rung(i, release.names, release) for i in range(RUNGS)]
    steps = [r["x"].round_to for r in rungs]
    assert steps == sorted(set(steps))
    assert all((release.numbers("x") >= r["x"].top - r["x"].round_to).sum() >= 20 for r in rungs)
    assert [r["k"].merge_rarer_than for r in rungs] == [5, 10, 20, 50, 100]
    assert [r["day"].round_to for r in rungs] == ["7 days", "1 month", "1 year", "1 year", "1 year"]
    assert all(r["gain"].bottom is None and (spiky >= r["gain"].top).sum() >= 20 for r in rungs)


def test_what_cannot_be_coarser_has_no_rung():
    release = table_of({"yes": [True, False] * 30, "k": ["a", "b"] * 30, "code": [1] * 59 + [2]})
    assert rung(0, release.names, release) == {}
    assert mending._telling(table_of({"x": [0.5, 0.5, 2.5], "k": ["a", "a", "a"], "y": [1, 1, 1]})) == ("x",)
