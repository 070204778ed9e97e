"""Generators and programs: faults that were published are found by the command, and sound ones stand."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from synth_audit import api, cli
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import DataError, PlanError, PluginError
from synth_audit.mechanism_test.examination import Claim, ClaimAnswer
from synth_audit.mechanism_test.subjects import PUBLIC_COLUMNS, declared_schema
from synth_audit.mechanism_test.table_mechanisms import ProgramMaker, TableMechanism, worst_cases
from synth_audit.table.table import assemble

SCHEMA = declared_schema(PUBLIC_COLUMNS)


def rows_of(table):
    return table.to_pandas().astype(object).where(lambda f: f.notna(), None).to_dict("records")


def test_pairs_differ_in_one_row_and_nothing_else():
    for relation in Neighbouring:
        for pair in worst_cases(SCHEMA, Claim(1.0, neighbouring=relation), 10):
            without, having = (sorted(map(str, rows_of(t))) for t in (pair.without, pair.having))
            assert pair.having.n_rows - pair.without.n_rows == (relation is Neighbouring.ADD_OR_REMOVE)
            for row in having:
                if row in without:
                    without.remove(row)
            assert len(without) == (relation is Neighbouring.REPLACE), pair.name


def test_pairs_hold_extremes_an_unseen_label_and_missing_values():
    pairs = {pair.name: pair for pair in worst_cases(SCHEMA, Claim(1.0), 10)}
    assert set(pairs) == {"extremes", "few", "spread", "missing", "one more"}
    extremes = pairs["extremes"]
    assert extremes.having.numbers("age").max() == 100 > extremes.without.numbers("age").max()
    assert set(extremes.having.labels("group")) - set(extremes.without.labels("group")) == {"d"}
    assert pairs["missing"].having.n_missing("income") == 1
    assert pairs["missing"].without.n_missing("income") == 0
    assert pairs["few"].without.n_rows == 3


def test_an_entity_of_several_rows_comes_and_goes_whole():
    for pair in worst_cases(SCHEMA, Claim(1.0, rows=3), 10):
        assert pair.having.n_rows == pair.without.n_rows + 3


@pytest.mark.parametrize("generator", ["resample", "independent"])
def test_generators_without_protection_are_caught(generator):
    found = api.test_mechanism(generator=generator, epsilon=1.0, runs=400, seconds=None)
    assert found.answer is ClaimAnswer.VIOLATED
    assert "claims nothing" in found.notes[0]


def test_priv_bayes_stands():
    """Its noise is the system's: two fits under one seed differ, and no run refutes it."""
    found = api.test_mechanism(generator="priv_bayes", epsilon=1.0, runs=200, rows=5, seconds=None)
    assert found.answer in (ClaimAnswer.NOT_REFUTED, ClaimAnswer.TIGHT)
    assert not found.findings
    assert found.claim.epsilon <= 1.0


@dataclass(frozen=True)
class Noisy:
    """Noisy shares of one column's labels and uniform numbers, with one published fault at most.

    Attributes:
        fault: *range*: exact least and largest values leave (google/dpsynth #34); *domain*: labels are read
            off the rows (dpmm #18 and #24, reprosyn #38); *no bounds*: an unbounded sum gets no noise
            (smartnoise #317); *rows*: as many rows leave as came; *seeded*: noise from the seed; *crash*:
            missing values end the run.
    """

    fault: str = ""

    def __call__(self, table, seed):
        rng = np.random.default_rng(seed if self.fault == "seeded" else None)
        ages, groups = table.numbers("age"), table.labels("group")
        if self.fault == "crash" and np.isnan(ages).any():
            raise PluginError("the generator failed")
        labels = ["a", "b", "c", "d"]
        if self.fault == "domain":
            labels = sorted({label for label in groups if label is not None})
        low, high = 0.0, 100.0
        if self.fault == "range":
            low, high = np.nanmin(ages), np.nanmax(ages)
        n = table.n_rows if self.fault == "rows" else 15
        counts = np.array([(groups == label).sum() for label in labels]) + rng.laplace(0, 2, len(labels))
        shares = np.maximum(counts, 0) + 1e-9
        made = rng.uniform(low, high, n)
        made[:2] = (low, high) if self.fault == "range" else made[:2]
        if self.fault == "no bounds":
            made[0] = np.nansum(ages) / 20
        columns = {
            "age": made,
            "income": rng.uniform(0, 1000, n),
            "group": rng.choice(np.array(labels, dtype=object), n, p=shares / shares.sum()),
            "member": np.full(n, "no", dtype=object),
        }
        return assemble(table.schema, columns)


@pytest.mark.parametrize("fault", ["range", "domain", "no bounds", "rows", "seeded", "crash"])
def test_a_published_fault_is_found(fault, asked):
    pairs = worst_cases(SCHEMA, Claim(1.0), 10)
    found = asked(TableMechanism(Noisy(fault), pairs), runs=700)
    assert found.answer is ClaimAnswer.VIOLATED, found.reason
    assert ("repeats" in found.reason) == (fault == "seeded")


@pytest.mark.parametrize(("fault", "seeded", "runs"), [("", True, 500), ("seeded", False, 300)])
def test_the_same_without_a_fault_stands_and_a_secret_seed_may_repeat(fault, seeded, runs, asked):
    pairs = worst_cases(SCHEMA, Claim(1.0), 10)
    found = asked(TableMechanism(Noisy(fault), pairs, seeded=seeded), runs=runs)
    assert found.answer is ClaimAnswer.NOT_REFUTED


PROGRAM = """
import json, sys
train, synthetic, rows, seed, domain = sys.argv[1:]
lines = open(train).read().splitlines()
assert json.load(open(domain))["group"]["categories"] == ["a", "b", "c", "d"]
open(synthetic, "w").write("\\n".join(lines))
"""


def test_a_program_is_told_the_domain_and_read_back(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(PROGRAM)
    words = ("{train}", "{synthetic}", "{rows}", "{seed}", "{domain}")
    maker = ProgramMaker((sys.executable, "-I", "-S", str(path), *words), Claim(1.0), 8)
    table = worst_cases(SCHEMA, Claim(1.0), 8)[0].having
    made = maker(table, 1)
    assert made.numbers("age").tolist() == table.numbers("age").tolist()
    assert made.labels("group").tolist() == table.labels("group").tolist()


@pytest.mark.slow
def test_a_program_is_run_by_its_command(tmp_path):
    """Rows leave as they came: told apart by their number alone, if by nothing else."""
    path = tmp_path / "mine.py"
    path.write_text(PROGRAM)
    words = ("{train}", "{synthetic}", "{rows}", "{seed}", "{domain}")
    command = [sys.executable, "-I", "-S", str(path), *words]
    found = api.test_mechanism(
        command=command, epsilon=0.5, runs=60, rows=8, seconds=None, seed_is_secret=True
    )
    assert found.answer is ClaimAnswer.VIOLATED
    assert found.failed == 0


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, PlanError),
        ({"generator": "resample", "function": "a:b"}, PlanError),
        ({"command": "python x.py {train}", "epsilon": 1.0}, PlanError),
        ({"command": "no-such-program-here {train} {synthetic}", "epsilon": 1.0}, DataError),
        ({"function": "math:sqrt"}, PlanError),
        ({"generator": "resample"}, PlanError),
        ({"plan": {"generator": "resample", "privacy": {"epsilon": 1}}}, PlanError),
    ],
)
def test_what_cannot_be_tested_is_told(given, error):
    with pytest.raises(error):
        api.test_mechanism(**given)


def invoke(*words, code):
    result = CliRunner().invoke(cli.main, ["test-mechanism", *words])
    assert result.exit_code == code, result.output
    return result.stdout


def test_the_command_answers_by_its_exit_code(tmp_path, monkeypatch):
    (tmp_path / "told_by_hand.py").write_text(
        "import numpy as np\n"
        "rng = np.random.default_rng(0)\n"
        "def sound(t, n): return t.sum() + rng.laplace(0, 1, n)\n"
        "def half(t, n): return t.sum() + rng.laplace(0, 0.25, n)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ("--epsilon", "1.2", "--runs", "40000")
    assert "TIGHT" in invoke("--function", "told_by_hand:sound", *words, code=0)
    assert "DOUBTFUL" in invoke("--function", "told_by_hand:sound", "--epsilon", "0.88", *words[2:], code=5)
    assert "VIOLATED" in invoke("--function", "told_by_hand:half", *words, code=1)
    assert "NOT TESTABLE" in invoke("--function", "told_by_hand:sound", "--epsilon", "9", code=4)
    assert json.loads(invoke("--function", "told_by_hand:sound", *words, "--json", code=0))["rules"] >= 1
    assert "ε" in invoke("--step", "marginals", "--noise", "4", "--runs", "2000", code=0)
    invoke("--generator", "{resample: [", "--epsilon", "1", code=2)
    invoke("--function", "told_by_hand:nothing", "--epsilon", "1", code=2)


def test_a_plan_is_tested_under_its_own_budget(tmp_path):
    plan = Path(tmp_path / "plan.yaml")
    plan.write_text(
        "generator: priv_bayes\nprivacy: {epsilon: 2}\ncolumns:\n"
        "  age: {bounds: [0, 100]}\n  group: {categories: [a, b, c]}\n"
    )
    found = api.test_mechanism(plan=plan, runs=60, rows=4, seconds=None)
    assert found.claim.epsilon == pytest.approx(2, rel=1e-6)
    assert found.mechanism == "priv_bayes"


def test_slow_mechanisms_run_less_often(monkeypatch):
    found = api.test_mechanism(generator="resample", epsilon=1.0, runs=100_000, seconds=0.01)
    assert found.pilot + found.tested <= 80
    assert np.isfinite(found.largest)
