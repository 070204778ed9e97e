"""Tables that every plug-in must cope with, and what a plug-in needs to be configured here."""

import datetime
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit import registry
from synth_audit.audits.utility import _prediction_task as prediction
from synth_audit.encode.encoded import Encoded
from synth_audit.examination.audit_runner import run_audits
from synth_audit.examination.planted_leaks import PlantedGenerator
from synth_audit.execution.context import RunContext
from synth_audit.generators._deep import network_model
from synth_audit.plugins.audit import Leak, RandomSplit, Subject
from synth_audit.table.rules import parse_rules
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

QUICK = {
    "each_column": {"n_bootstrap": 100},
    "recognition": {"detection": False, "draws": 1},
    "prediction": {"models": ["logistic"], "repeats": 1, "n_bootstrap": 100},
    "closest_record": {"n_bootstrap": 200},
    "coverage": {"n_bootstrap": 100},
    "inference": {"n_trees": 4},
    "marginals": {"n_bootstrap": 100},
    "membership_data_only": {"n_trees": 20},
    "partial_knowledge": {"max_sets": 40},
    "projection": {"n_bootstrap": 50},
    "propensity": {"trees": 10, "folds": 3},
    "singling_out": {"n_attacks": 500},
    "attribute_attack": {"columns": ["income"]},
    "attribute_game": {"columns": ["income"], "iterations": 5, "reference": 200, "sets": 10, "rows": 200},
    "membership_game": {
        "iterations": 5,
        "attacker_rows": 150,
        "evaluation_rows": 100,
        "set_rows": 100,
        "shadows": 2,
        "sets": 3,
        "evaluated": 6,
        "outlying": 1,
        "random": 1,
        "achilles": 1,
        "features": ["target_distance"],
        "classifier": "nearest_neighbours",
    },
}
"""Settings that only save time; an audit that is not named here runs as it comes."""

SMALLER = {
    "each_column": {"most_columns": 4},
    "inference": {"n_trees": 2, "known_sets": 4, "max_reconstructed": 2},
    "propensity": {"trees": 3, "folds": 2},
    "attribute_game": {"iterations": 2, "reference": 80, "sets": 4, "rows": 80},
    "membership_game": {
        "iterations": 2,
        "attacker_rows": 60,
        "evaluation_rows": 40,
        "set_rows": 40,
        "sets": 2,
        "evaluated": 3,
    },
}
"""What an audit is told besides on a small table, of which only its end matters and no number."""

RULES = ("age >= 18", "smoker in [true, false]")
"""What holds of everybody below."""

START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def people(n, seed):
    """A population: few distinct values in most columns, every kind, some of it missing."""
    rng = np.random.default_rng(seed)
    z, other = rng.normal(size=(2, n))
    seconds = np.rint(1e6 * rng.normal(size=n))
    return pa.table(
        {
            "age": pa.array(np.clip(np.rint(45 + 15 * z), 18, 90).astype(np.int64)),
            "visits": pa.array(rng.poisson(2, n), mask=rng.random(n) < 0.1),
            "region": pa.array(rng.choice(list("abcdef"), n, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])),
            "smoker": pa.array(rng.random(n) < 0.3),
            "since": pa.array(
                [START + datetime.timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC")
            ),
            "income": pa.array(np.exp(10 + 0.5 * z + 0.6 * other), mask=rng.random(n) < 0.05),
            "ill": pa.array(np.where(z + 0.5 * rng.normal(size=n) > 0, "yes", "no")),
        }
    )


def subject_from(train, control, synthetic, **more):
    specs = {"ill": ColumnSpec(role="target")} if "ill" in train.column_names else {}
    rules = [r for r in parse_rules(RULES) if set(r.columns) <= set(train.column_names)]
    schema = infer_schema(train, specs, rules=rules)
    other = None if control is None else read_table(control, schema, where="control")
    candidate = read_table(synthetic, schema, where="synthetic", partial=True)
    known = read_table(train, schema, where="train")
    usual = {"generator": generator_behind(known, candidate), "random_split": RandomSplit()}
    return Subject(known, other, candidate, **(usual | more))


def generator_behind(train, synthetic):
    """A generator that copies as large a share of its rows as the release does of train, for games; the rest
    are rows of the release with their columns shuffled, which hold nothing of anybody."""
    columns = [c for c in train.schema.features if c.name in synthetic.names]
    known, made = Encoded([train, synthetic], columns).groups()
    return PlantedGenerator(float(np.isin(made, known).mean()), synthetic, Leak.ASSOCIATIONS)


class Made(dict):
    """What was asked for, made when it is first asked for and kept."""

    def __init__(self, make):
        super().__init__()
        self._make = make

    def __missing__(self, key):
        self[key] = self._make(*key) if isinstance(key, tuple) else self._make(key)
        return self[key]


def _load(name, file):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(file))
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


README = _load("conformance_readme", "readme.py")  # imported by the tests here, which are no package
_load("conformance_by_name", "by_name.py")


@pytest.fixture(scope="session")
def pasted():
    """The handbook's examples by room, each made a plug-in once; not those that somebody has just pasted."""
    return {
        room: (README.entry_point(room),) if name not in registry.catalogue(room) else ()
        for room, name in (("audit", README.README_AUDIT), ("generator", README.EXAMPLE_GENERATOR))
    }


@pytest.fixture(autouse=True)
def _with_the_handbooks_examples(pasted, monkeypatch):
    monkeypatch.setattr(registry, "_entry_points", lambda room: pasted.get(room, ()))


@pytest.fixture(autouse=True)
def _with_margins_of_few_rows(monkeypatch):
    """Hardly trained networks are asked for their margins in passing, of which nothing here is asked."""
    monkeypatch.setattr(network_model, "_DRAWN", 2000)


@pytest.fixture(autouse=True)
def _with_small_forests(monkeypatch):
    """How well a forest predicts is not asked here, and its time goes with its trees."""
    monkeypatch.setattr(prediction, "TREES", 15)


@pytest.fixture(scope="session")
def made_once():
    """Keeps what costs much and several tests look at; a test waits for what it asks for and no more."""
    return Made


@pytest.fixture(scope="session")
def population():
    return people


@pytest.fixture(scope="session")
def as_subject():
    return subject_from


@pytest.fixture(scope="session")
def built():
    """An audit by name, quickly configured."""

    def build(name, more=None):
        return registry.build("audit", name, QUICK.get(name, {}) | (more or {}))

    return build


@pytest.fixture(scope="session")
def outcome_of(built):
    """Run one audit as the runner does, which also checks declared quantities and ranges."""

    def run(name, subject, seed=0):
        [outcome], _ = run_audits({name: built(name)}, subject, RunContext(seed=seed))
        return outcome

    return run


@pytest.fixture(scope="session")
def ending_of(built):
    """Run one audit as the runner does, on a small table and with as few fits as make a game."""

    def run(name, subject):
        [outcome], _ = run_audits({name: built(name, SMALLER.get(name))}, subject, RunContext(seed=0))
        return outcome

    return run


@pytest.fixture(scope="session")
def generator_settings(tmp_path_factory):
    """What a generator cannot do without, beside what makes its fit quick."""
    path = tmp_path_factory.mktemp("made") / "synthetic.parquet"

    def settings(name, table):
        if name != "external":
            return registry.find("generator", name).load().info.trial
        pq.write_table(table.released_only().data, path)
        return {"source": str(path)}

    return settings
