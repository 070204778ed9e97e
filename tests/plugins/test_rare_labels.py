"""Which labels a generator is handed: those of enough people, unless the plan declares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import registry
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.plugins.fitting import fit
from synth_audit.plugins.generator import FEWEST_PEOPLE, FitContext, GeneratorInfo, minimum_people
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

LABELS = [*["a"] * 40, *["b"] * 40, *["rare"] * 19, None]


@dataclass(frozen=True)
class Handed:
    """A generator whose model is what it was handed."""

    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Handed", summary="Learns nothing.")

    def fit(self, train, context):
        return train

    def load(self, folder):
        raise NotImplementedError


@dataclass(frozen=True)
class HandedAll(Handed):
    """One that sees to rare labels itself."""

    minimum_people: int = 1


def handed(columns, generator=None, specs=None, **context):
    table = pa.table(columns)
    schema = infer_schema(table, {name: ColumnSpec(**spec) for name, spec in (specs or {}).items()})
    train = read_table(table, schema, where="train")
    given = FitContext(rng=np.random.default_rng(0), **context)
    return train, fit(generator or Handed(), train, given).model


def test_labels_of_few_people_give_way_to_others():
    train, seen = handed({"c": LABELS, "x": np.arange(100.0)})
    assert set(seen.labels("c")) == {"a", "b", None}
    kept = train.labels("c") != "rare"
    assert (seen.labels("c")[kept] == train.labels("c")[kept]).all()
    assert seen.data["x"].equals(train.data["x"])


def test_where_no_others_are_nothing_is_left():
    _, seen = handed({"lone": ["x"] * 19 + [None] * 81})
    assert seen.missing("lone").all()


@pytest.mark.parametrize(
    "terms",
    [
        {"specs": {"c": {"categories": ["a", "b", "rare"]}}},
        {"generator": HandedAll()},
        {"accountant": Accountant(Budget(1.0, 1e-6), unit=Unit.ROW)},
    ],
    ids=["declared", "its own rule", "under a budget"],
)
def test_every_label_is_handed_over(terms):
    train, seen = handed({"c": LABELS}, **terms)
    assert seen.data.equals(train.data)


def test_the_rows_of_one_person_are_one():
    people = np.r_[np.arange(40), np.full(40, 40)]
    _, seen = handed({"c": ["a"] * 40 + ["own"] * 40}, entities=lambda: people)
    assert set(seen.labels("c")) == {"a"}


@pytest.mark.parametrize(
    ("name", "people"),
    [*((name, 1) for name in ("resample", "cart", "arf")), *((n, FEWEST_PEOPLE) for n in ("vine", "ctgan"))],
)
def test_who_is_handed_every_label(name, people):
    """Copies are meant, and trees look at it themselves."""
    assert minimum_people(registry.build("generator", name, {})) == people
