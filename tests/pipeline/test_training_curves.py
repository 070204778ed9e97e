"""What the record of a fit says of its steps: losses without protection, ε with it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.making import fit_plan, real_tables
from synth_audit.report.chapters import guarantee_section
from synth_audit.store.salts import known_salt

SMALL = {"steps": 4, "levels": 2, "hidden": 8, "blocks": 1}
BUDGET = {"epsilon": 1.0, "delta": 1e-5}


@pytest.fixture
def record(fitted):
    """The record of a fit with these settings."""
    return lambda **settings: fitted(**settings).record


@pytest.fixture
def fitted(tmp_path, make_case):
    """A fit with these settings, of one column or of four."""

    def make(n_columns=1, **settings):
        names = "xyzw"[:n_columns]
        columns = {name: {"bounds": [0, 1]} for name in names}
        case = make_case(tmp_path / "case", columns=columns, rules=[], rows=20, **settings)
        x = np.random.default_rng(0).random((n_columns, 120))
        pq.write_table(pa.table(dict(zip(names, x, strict=True))), case.folder / "people.parquet")
        pipeline.split_table(case.plan, case.workspace)
        train = real_tables(case.plan, case.workspace)[0]
        return fit_plan(case.plan, train, known_salt(case.workspace))

    return make


@pytest.mark.parametrize(
    "generator", [{"tvae": {"epochs": 3, "hidden": 8, "latent": 2}}, {"table_diffusion": SMALL}]
)
def test_a_fit_without_protection_shows_its_loss(record, generator):
    [curve] = record(generator=generator).training
    assert curve.id.quantity == "loss"
    assert len(curve.lines["train"]) == len(curve.x) == curve.x[-1] > 1


def test_a_private_fit_shows_what_it_spent_and_no_loss(record):
    found = record(generator={"table_diffusion": {**SMALL, "margins": 0}}, privacy=BUDGET)
    [curve] = found.training
    assert curve.id.quantity == "epsilon"
    assert curve.x == (0, 1, 2, 3, 4)
    assert curve.lines["spent at most"][-1] == found.privacy.guarantee.epsilon


def test_a_generator_without_steps_has_no_curve(record):
    assert record(generator="independent").training == ()


def test_pictures_of_draws_and_what_is_drawn_together_are_in_the_record(fitted, tmp_path):
    validation = {"validator": "gradient_boosting", "tuned": False}
    settings = {"generators": ["independent"], "join": "validated", "validation": validation}
    made = fitted(4, generator={"disjoint": settings})
    before = {s.id.quantity for s in made.record.training}
    assert made.table(tmp_path).n_rows == 20
    shown = {s.id.quantity for s in made.record.training}
    assert shown - before == {"admitted", "thresholds"}
    assert sorted(n for group in made.record.column_groups for n in group) == ["w", "x", "y", "z"]
    assert [len(group) for group in made.record.column_groups] == [2, 2]
    page = guarantee_section(made.record.privacy, (), made.record.training)
    assert len(page["curves"]) == 5
    assert len(page["curves"][0].panels) == 1, "the relations are drawn as a matrix"
