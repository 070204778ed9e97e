"""Columns in parts: labels that read as numbers, free text, and what sets their scale."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import registry
from synth_audit.encode.codes import codes
from synth_audit.encode.encoded import Encoded, varies
from synth_audit.encode.texts import WIDTH
from synth_audit.neighbours.search import nearest
from synth_audit.plugins.generator import FitContext
from synth_audit.table.kind import LabelPart, NumberPart, VectorPart, kind_named
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

N = 200
WORDS = [
    a + b + c
    for a in ("bra", "ste", "kol", "min", "fu")
    for b in ("ni", "ra", "xo")
    for c in ("l", "t", "sk")
]


def amounts(seed):
    return np.round(np.random.default_rng(seed).uniform(10, 90, N), 1)


def notes(seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 9)).capitalize() + "." for _ in range(N)]


def tables(*frames, **specs):
    data = [pa.table(frame) for frame in frames]
    schema = infer_schema(data[0], {name: ColumnSpec(**spec) for name, spec in specs.items()})
    return [read_table(d, schema, where="t") for d in data]


def kinds_of_parts(table, name):
    return {type(part): part.weight for part in table.schema[name].kind.parts([table.column(name)])}


SPELLINGS = {
    "decimal comma": lambda x: f"{x:.1f}".replace(".", ","),
    "quantity": lambda x: f"{x:.1f} mg",
    "grouped": lambda x: f"{x * 100:,.2f}".replace(",", " ").replace(".", ","),
    "day": lambda x: f"2024-{1 + int(x) // 10:02}-{1 + int(x * 10) % 27:02}T10:00:00",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_text_that_holds_numbers_has_them_beside_its_labels(spelling):
    [table] = tables({"x": list(map(SPELLINGS[spelling], amounts(0)))})
    assert table.schema["x"].kind.name == "categorical"
    assert kinds_of_parts(table, "x") == {LabelPart: 0.1, NumberPart: 0.9}


def test_numbers_that_a_plan_declares_categories_have_both_readings():
    [table] = tables(
        {"x": amounts(0), "grade": np.arange(N) % 7}, x={"kind": "categorical"}, grade={"kind": "categorical"}
    )
    assert kinds_of_parts(table, "x") == {LabelPart: 0.1, NumberPart: 0.9}
    assert kinds_of_parts(table, "grade") == {LabelPart: 0.5, NumberPart: 0.5}
    [part] = [p for p in table.schema["x"].kind.parts([table.column("x")]) if isinstance(p, NumberPart)]
    assert part.read(table.column("x")).tolist() == amounts(0).tolist()


@pytest.mark.parametrize("name", ["true", "sex", "place"])
def test_other_labels_are_labels_alone(name):
    values = {"true": [True, False], "sex": ["1", "2"], "place": ["north", "south"]}[name]
    [table] = tables({name: values * 50})
    assert kinds_of_parts(table, name) == {LabelPart: 1.0}


@pytest.mark.parametrize("spelling", ["decimal comma", "quantity"])
def test_a_copy_with_last_digits_moved_is_near_though_no_label_is_kept(spelling):
    """Before, all these labels differed, and a near copy was as far away as a stranger."""
    spelt = SPELLINGS[spelling]
    frames = [{c: amounts(10 * seed + i) for i, c in enumerate("abcd")} for seed in range(2)]
    moved = {c: x + 0.2 for c, x in frames[0].items()}
    train, control, made = tables(*({c: list(map(spelt, x)) for c, x in f.items()} for f in (*frames, moved)))
    ours, others, theirs = Encoded([train, control, made], train.schema.features).mixed()
    assert np.array_equal(nearest(theirs, ours).index, np.arange(N))
    assert nearest(theirs, ours).first.max() < nearest(others, ours).first.min() * 1.2


def test_notes_in_lower_case_are_equal_and_with_a_word_changed_near():
    frames = [{"note": notes(seed), "x": amounts(seed)} for seed in range(2)]
    shouted = {**frames[0], "note": [note.lower() + "  " for note in frames[0]["note"]]}
    changed = {**frames[0], "note": [f"New {note}" for note in frames[0]["note"]]}
    train, control, copied, near = tables(*frames, shouted, changed)
    column = train.schema["note"]
    assert column.kind.name == "text"
    assert kinds_of_parts(train, "note") == {LabelPart: 0.1, VectorPart: 0.9}
    ours, theirs, altered = codes([train, copied, near], column)
    assert np.array_equal(ours, theirs)
    assert not np.isin(altered, ours).any()
    encoded = Encoded([train, control, copied, near], [column]).mixed()
    found = [nearest(table, encoded[0]).first for table in encoded[1:]]
    assert found[1].max() == 0
    assert np.median(found[2]) < 0.75 * np.median(found[0])


def test_weights_of_one_column_sum_to_one_and_to_that_of_any_other():
    train, _ = tables(
        {"note": notes(0), "x": amounts(0), "t": list(map(SPELLINGS["quantity"], amounts(1)))},
        {"note": notes(1), "x": amounts(2), "t": list(map(SPELLINGS["quantity"], amounts(3)))},
    )
    encoded = Encoded([train], train.schema.features)
    [rows] = encoded.mixed()
    for name in train.names:
        own = [w for w, owner in zip(rows.weights, encoded.order, strict=True) if owner == name]
        assert sum(own) == pytest.approx(1 / 3)


def test_no_release_sets_a_scale_or_decides_what_a_column_is():
    train, honest, absurd = tables(
        {"x": amounts(0), "t": list(map(SPELLINGS["quantity"], amounts(1)))},
        {"x": amounts(2), "t": list(map(SPELLINGS["quantity"], amounts(3)))},
        {"x": np.full(N, 1e12), "t": ["none"] * N},
    )
    columns = train.schema.features
    one, other = (Encoded([train, release], columns).mixed()[0] for release in (honest, absurd))
    assert np.array_equal(one.numbers, other.numbers)


def test_a_label_that_is_no_number_is_none():
    texts = [*(f"{x:.1f} mg" for x in amounts(0)), "unknown", None]
    values = pa.chunked_array([texts])
    [part] = [p for p in kind_named("categorical").parts([values]) if isinstance(p, NumberPart)]
    assert np.isnan(part.read(values)[-2:]).all()
    assert part.read(values)[:-2] == pytest.approx(amounts(0))


def test_trees_see_the_numbers_in_labels_and_the_letters_of_texts():
    x = amounts(0)
    train, _ = tables(
        {"w": [f"{v:.1f} kg" for v in x], "note": notes(0)},
        {"w": [f"{v:.1f} kg" for v in x], "note": notes(1)},
    )
    [found] = Encoded([train], train.schema.features).ranks()
    assert found.shape == (N, 2 + 1 + WIDTH)
    assert np.array_equal(found[:, 1], np.unique(x, return_inverse=True)[1])


@pytest.mark.parametrize("name", ["independent", "resample", "vine"])
def test_generators_draw_texts_as_labels(name):
    [train] = tables({"note": notes(0)[:60], "x": amounts(0)[:60], "k": ["a", "b"] * 30})
    assert train.schema["note"].kind.name == "text"
    generator = registry.build("generator", name, {})
    model = generator.fit(train, FitContext(rng=np.random.default_rng(0), device="cpu"))
    made = model.sample(40, np.random.default_rng(1))
    assert set(made.labels("note")) <= {*train.labels("note"), None}, "no text of one person alone, or texts"


def test_rows_that_are_asked_for_lie_where_they_lie_among_all():
    """Codes and indicators are those of the whole tables, whichever rows are kept."""
    rng = np.random.default_rng(0)
    frames = [
        {
            "x": pa.array(rng.normal(size=N), mask=rng.random(N) < 0.1 * i),
            "n": rng.integers(0, 9, N),
            "amount": [f"{x:.1f} mg" for x in amounts(i)],
            "k": rng.choice(list("abcdef"), N),
            "note": notes(i),
        }
        for i in range(3)
    ]
    kinds = {"note": {"kind": "text"}}
    read = tables(*frames, **kinds)
    columns, some = read[0].schema.features, [None, np.array([3, 5, 80]), np.array([7])]
    encoded = Encoded(read, columns)
    for view in (encoded.mixed, encoded.mixed_by_range, encoded.coordinates, encoded.near):
        for whole, few, rows in zip(view(), view(some), some, strict=True):
            kept = whole if rows is None else whole.take(rows)
            for name in {"numbers", "dense", "labels"} & set(vars(few)):
                assert np.array_equal(getattr(few, name), getattr(kept, name))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.5, 1.5], False),
        ([1.5, 2.5], True),
        ([1.5, None], True),
        ([None, None], False),
        ([0.0, -0.0], False),
        (["a", "A "], False),
        (["a", None], True),
    ],
)
def test_a_column_varies_where_two_cells_differ_missing_ones_among_them(values, expected):
    storage = pa.string() if isinstance(values[0], str) else pa.float64()
    data = pa.table({"x": pa.array(values, storage)})
    kind = "categorical" if pa.types.is_string(storage) else "continuous"
    schema = infer_schema(data, {"x": ColumnSpec(kind=kind)})
    table = read_table(data, schema, where="t")
    assert varies(table, schema["x"]) is expected
    assert bool(np.ptp(codes([table], schema["x"])[0])) is expected
