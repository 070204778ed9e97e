"""Text of several numbers is compared by each of them, and lists by what they hold in whatever order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy._known_columns import known_columns
from synth_audit.encode.texts import FEWEST_LABELS, Composite
from synth_audit.table.kind import NumberPart, VectorPart
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


@pytest.mark.parametrize(
    ("label", "numbers"),
    [
        ("52.3712,4.9012", (52.3712, 4.9012)),
        ("(-52.5; -4.25)", (-52.5, -4.25)),
        ("132/84", (132, 84)),
        ("132-84", (132, 84)),
        ("2x500 mg", (2, 500)),
        ("{lat: 15, lon: −24}", (15, -24)),
        ("12,5 / 3,25", (12.5, 3.25)),
    ],
)
def test_numbers_are_read_by_their_place(label, numbers):
    others = [label.replace("2", str(d)).replace("5", str(e)) for d in range(1, 9) for e in range(1, 9)]
    form = Composite.of([*others, *(label.replace("4", str(i)) for i in range(11, 50))])
    assert form is not None
    found = form.numbers([label, None, "something else"])
    assert found[0].tolist() == list(numbers)
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize(
    "labels", [[f"{i}-{i + 9}" for i in range(FEWEST_LABELS)], [f"n{i}" for i in range(90)]]
)
def test_few_groups_and_single_numbers_are_no_composites(labels):
    assert Composite.of(labels) is None


def test_a_text_too_long_or_infinite_is_no_number():
    form = Composite("#/#")
    assert np.isnan(form.numbers([f"1/{'9' * 400}", f"1/{'9' * 190}"])[0]).all()
    assert np.isfinite(form.numbers(["1/2"])).all()


def table_of(columns):
    data = pa.table(columns)
    return read_table(data, infer_schema(data, {}), where="train")


def test_each_number_of_a_text_is_a_column_that_somebody_may_know():
    rng = np.random.default_rng(0)
    places = [f"{a:.4f},{b:.4f}" for a, b in rng.normal(size=(200, 2))]
    table = table_of({"place": places, "n": rng.normal(size=200)})
    parts = table.schema["place"].kind.parts([table.column("place")])
    assert [type(p) for p in parts[1:]] == [NumberPart, NumberPart]
    assert sum(p.weight for p in parts) == pytest.approx(1)
    assert [c.name for c in known_columns([table], list(table.schema), [table])] == ["place", "place", "n"]


def test_a_list_in_another_order_is_the_same_and_a_name_misspelt_is_near():
    rng = np.random.default_rng(1)
    drugs = np.array([f"drug{c}{d}" for c in "abcdef" for d in "uvwxyz"])
    held = [list(rng.choice(drugs, 3, replace=False)) for _ in range(300)]
    told = [";".join(x) for x in held] + [";".join(x[::-1]) for x in held[:100]] + ["; ".join(held[0][:2])]
    table = table_of({"drugs": told})
    *_, vector = table.schema["drugs"].kind.parts([table.column("drugs")])
    assert isinstance(vector, VectorPart)
    found = vector.read(table.column("drugs"))
    assert np.abs(found[:100] - found[300:400]).max() < 1e-6
    apart = np.linalg.norm(found[:300] - found[0], axis=1)
    assert np.mean(apart[1:] > np.linalg.norm(found[400] - found[0])) > 0.9
