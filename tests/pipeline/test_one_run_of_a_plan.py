"""The coins of a plan's own split, a declared split of files, and a guarantee that the release refutes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from synth_audit.api import audit
from synth_audit.cli.terminal import show_evidence
from synth_audit.errors import PlanError
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.plan.plan import parse_plan
from synth_audit.plan.sections import PrivacySpec
from synth_audit.plugins.audit import RandomSplit, Status
from synth_audit.plugins.generator import GeneratorInfo
from synth_audit.table.table import Table
from synth_audit.verdict.criteria import REFUTED

ROWS = 600


@dataclass(frozen=True)
class Reprint:
    """A model that knows its rows by heart."""

    train: Table

    def sample(self, n, rng):
        return self.train.take(np.sort(rng.integers(0, self.train.n_rows, n)))


@dataclass(frozen=True)
class FalseClaim:
    """Buys a guarantee for a sum that it does not use, and hands out its rows."""

    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="False", summary="Claims and copies.", cost="instant")

    def fit(self, train, context):
        context.accountant.domain("declared")
        context.accountant.gaussian(5.0, what="a sum")
        return Reprint(train)


@pytest.fixture
def copied(tmp_path, make_case, plug_in):
    """A case whose generator copies under a guarantee."""
    plug_in("false", FalseClaim)
    case = make_case(tmp_path / "case")
    rng = np.random.default_rng(0)
    columns = {f"x{i}": np.round(rng.uniform(0, 1, ROWS), 4) for i in range(3)}
    pq.write_table(pa.table({"key": np.arange(ROWS)} | columns), case.folder / "people.parquet")
    plan = {
        "source": {"parquet": {"path": "people.parquet"}},
        "columns": {"key": {"role": "identifier"}} | {name: {"bounds": [0, 1]} for name in columns},
        "generator": "false",
        "rows": 500,
        "audits": ["exact_match", {"one_run": {"subsets": 2}}],
        "gates": "gates.json",
        "privacy": {"epsilon": 1.2, "delta": 1e-5, "rows_per_entity": 1},
    }
    (case.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    return case


def test_a_release_that_costs_more_than_is_claimed_stays_in(copied, capsys):
    evidence = pipeline.produce(copied.plan, copied.workspace)
    refuted = next(g for g in evidence.gates.results if g.gate == REFUTED)
    assert refuted.result is Result.FAIL
    assert refuted.measurement.audit == "one_run"
    assert "at least" in refuted.explanation
    show_evidence(evidence, (), as_json=False)
    assert "costs an epsilon of at least" in " ".join(capsys.readouterr().out.split())
    show_evidence(evidence, (), as_json=True)
    assert '"proven_cost": {' in capsys.readouterr().out


def numbers(n, seed):
    rng = np.random.default_rng(seed)
    return pa.table({f"x{i}": rng.normal(size=n) for i in range(3)})


def test_a_plans_own_split_is_made_of_coins():
    plan = parse_plan({"split": {"control": 0.3}, "generator": "independent"})
    table = pipeline.anchored_subject(numbers(40, 0), numbers(20, 1), numbers(40, 2), plan).train
    divided = RandomSplit(0.7, ours=True, apart=True)
    assert pipeline.subject_of(plan, table, table, table).random_split == divided
    under = plan.model_copy(update={"privacy": PrivacySpec(epsilon=1.0)})
    assert not pipeline.subject_of(under, table, table, table).random_split.apart, "one more moves no other"


@pytest.mark.parametrize(
    ("declared", "status"), [({}, "not applicable"), ({"made_elsewhere": "random"}, "measured")]
)
def test_files_are_asked_only_where_the_plan_calls_their_split_random(declared, status):
    evidence = audit(
        numbers(400, 0), numbers(100, 1), numbers(400, 0), {"split": declared}, only=("one_run",)
    )
    [outcome] = evidence.outcomes
    assert outcome.status is Status(status)
    if status == "measured":
        assert outcome.measurements[0].value > 2
        assert outcome.responses[0].sensitivity == "sees"
    else:
        assert "made_elsewhere" in outcome.reason


def test_a_split_is_random_or_nothing_is_said_of_it():
    with pytest.raises(PlanError, match="made_elsewhere"):
        parse_plan({"split": {"made_elsewhere": "by hand"}})
