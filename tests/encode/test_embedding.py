import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from synth_audit.encode import contrastive, embedding
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.errors import NotApplicable, PluginError
from synth_audit.execution.context import Cache, RunContext
from synth_audit.neighbours.search import nearest
from synth_audit.table.schema import quantitative
from synth_audit.table.table import Table

QUICK = EmbeddingSettings(width=32, depth=2, max_epochs=15, batch=128)


def people(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return pa.table(
        {
            "age": np.rint(45 + 15 * z),
            "income": pa.array(np.exp(10 + z + rng.normal(size=n)), mask=rng.random(n) < 0.1),
            "height": rng.normal(170, 10, n),
            "region": pa.array(rng.choice(list("abcde"), n, p=[0.5, 0.25, 0.15, 0.07, 0.03])),
            "ill": pa.array(np.where(z > 0, "yes", "no"), mask=rng.random(n) < 0.1),
        }
    )


@pytest.fixture(scope="module")
def tables(tables_of):
    return tables_of(people(300, 1), people(120, 2))


def points(train, *tables, settings=QUICK, seed=0, cache=None, columns=None, device="cpu"):
    columns = columns or train.schema.features
    return embed(
        train,
        tables,
        columns,
        settings=settings,
        context=RunContext(seed=seed, cache=cache or Cache(), device=device),
    )


def with_values(table, name, values):
    storage = table.data.schema.field(name).type
    position = table.data.column_names.index(name)
    return Table(table.schema, table.data.set_column(position, name, pa.array(values, storage)))


def test_rows_become_unit_vectors_of_the_dimension_asked_for(tables):
    train, other = tables
    found = points(train, train, other, settings=replace(QUICK, dimension=7))
    for table, at in zip(tables, found, strict=True):
        assert at.numbers.shape == (table.n_rows, 7)
        assert at.labels.shape == (table.n_rows, 0)
        assert np.linalg.norm(at.numbers, axis=1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("columns", "dimension"), [(2, 10), (15, 10), (28, 20), (37, 30)])
def test_the_dimension_follows_the_published_ones(columns, dimension):
    assert EmbeddingSettings().dimension_for(columns) == dimension


def test_equal_rows_are_at_distance_zero_in_any_table_block_and_call(tables, monkeypatch):
    train, other = tables
    rng = np.random.default_rng(0)
    shuffled = train.take(rng.permutation(train.n_rows))
    at_train, at_copy, _ = points(train, train, shuffled, other)
    assert nearest(at_copy, at_train).first.max() == 0
    monkeypatch.setattr(contrastive, "_BLOCK", 33)  # another place among other rows
    few, alone = points(train, train.take(np.arange(40, 140)), train.take(np.array([7])))
    assert np.array_equal(few.numbers, at_train.numbers[40:140])
    assert np.array_equal(alone.numbers, at_train.numbers[7:8])


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tables):
    [first], [again], [other] = (points(tables[0], tables[0], seed=s) for s in (3, 3, 4))
    assert np.array_equal(first.numbers, again.numbers)
    assert not np.allclose(first.numbers, other.numbers)


def test_threads_do_not_matter_and_are_given_back(tables):
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(points(tables[0], tables[0])[0].numbers)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*found)


def test_nobody_elses_random_numbers_are_touched(tables):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002  # the global state is what is looked at
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one = points(tables[0], tables[1])[0].numbers
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002
    torch.manual_seed(6)
    assert np.array_equal(one, points(tables[0], tables[1])[0].numbers)


def test_the_order_of_rows_and_columns_and_the_names_of_labels_do_not_matter(tables):
    train, other = tables
    [expected] = points(train, other)
    mixed = train.take(np.random.default_rng(1).permutation(train.n_rows))
    assert np.array_equal(points(mixed, other)[0].numbers, expected.numbers)
    assert np.array_equal(
        points(train, other, columns=train.schema.features[::-1])[0].numbers, expected.numbers
    )
    new = dict(zip("abcde", "zeauq", strict=True))
    renamed = [with_values(t, "region", [new[x] for x in t.labels("region")]) for t in tables]
    assert np.array_equal(points(*renamed)[0].numbers, expected.numbers)


def test_a_huge_table_is_learnt_from_in_part_in_any_order(tables):
    train, other = tables
    part = replace(QUICK, max_rows=100)
    [expected] = points(train, other, settings=part)
    mixed = train.take(np.random.default_rng(1).permutation(train.n_rows))
    assert np.array_equal(points(mixed, other, settings=part)[0].numbers, expected.numbers)
    assert not np.array_equal(points(train, other)[0].numbers, expected.numbers)


class Counting(Cache):
    def get(self, *inputs, make):
        made = []
        found = super().get(*inputs, make=lambda: made.append(1) or make())
        object.__setattr__(self, "fits", getattr(self, "fits", 0) + len(made))
        return found


def test_the_cache_is_asked_by_everything_that_the_network_depends_on(tables, tmp_path):
    train, other = tables
    cache = Counting(tmp_path)
    fast = replace(QUICK, max_epochs=2)

    def fits(*args, **more):
        before = getattr(cache, "fits", 0)
        points(*args, cache=cache, **{"settings": fast} | more)
        return cache.fits - before

    assert fits(train, other) == 1
    assert fits(train, other) == 0
    assert fits(train, train, other) == 0  # what is placed is none of the network's business
    assert fits(train.take(np.arange(299)), other) == 1
    ages = train.numbers("age") + np.eye(1, train.n_rows)[0]
    assert fits(with_values(train, "age", ages), other) == 1
    assert fits(train, other, seed=1) == 1
    assert fits(train, other, columns=train.schema.features[1:]) == 1
    for change in ({"width": 16}, {"temperature": 0.2}, {"dropout": 0.0}, {"max_steps": 3}, {"dimension": 4}):
        assert fits(train, other, settings=replace(fast, **change)) == 1, change


def test_the_cache_changes_no_number(tables, tmp_path):
    expected = points(*tables)[0].numbers
    for _ in range(2):
        assert np.array_equal(points(*tables, cache=Cache(tmp_path))[0].numbers, expected)


def test_rows_with_one_column_of_another_person_stay_near(tables_of):
    train, other = tables_of(people(400, 1), people(400, 2))
    changed = [with_values(train, name, np.roll(train.plain(name), 1)) for name in train.schema.names]
    at_train, at_other, *at_changed = points(
        train, train, other, *changed, settings=replace(QUICK, max_epochs=60)
    )
    strangers = np.median(np.linalg.norm(at_other.numbers - at_train.numbers, axis=1))
    for at in at_changed:
        own = np.linalg.norm(at.numbers - at_train.numbers, axis=1)
        every = np.linalg.norm(at.numbers[:, None] - at_train.numbers[None], axis=2)
        assert np.median((every < own[:, None]).sum(axis=1)) < 100  # of 400; 200 by chance
        assert np.median(own) < strangers
    assert np.median(nearest(at_other, at_train).first) < strangers / 2


def drop(frame, **columns):
    return pa.table({n: columns.get(n, frame.column(n)) for n in frame.column_names})


HARD = {
    "constant number": lambda f: drop(f, height=pa.array([0.1] * len(f))),
    "all-missing number": lambda f: drop(f, height=pa.nulls(len(f), pa.float64())),
    "all-missing label": lambda f: drop(f, region=pa.nulls(len(f), pa.string())),
    "column of no type": lambda f: drop(f, region=pa.nulls(len(f))),
    "one value or none": lambda f: drop(
        f, height=pa.array([1e308 if i % 2 else None for i in range(len(f))])
    ),
    "eight rows": lambda f: f.slice(0, 8),
    "numbers only": lambda f: f.select(["age", "income", "height"]),
    "labels only": lambda f: f.select(["region", "ill"]),
    "few distinct rows": lambda f: f.take(np.arange(len(f)) % 3),
    "huge outlier": lambda f: drop(f, height=pa.array([1e300, *f.column("height").to_pylist()[1:]])),
    "a label a row": lambda f: drop(f, region=pa.array([f"c{i}" for i in range(len(f))])),
}


@pytest.mark.parametrize("case", HARD)
def test_it_copes_with_a_hard_train(case, tables_of):
    train, other = tables_of(HARD[case](people(60, 1)), HARD[case](people(60, 2)))
    for at in points(train, train, other, settings=replace(QUICK, max_epochs=3)):
        assert np.isfinite(at.numbers).all()
        assert np.linalg.norm(at.numbers, axis=1) == pytest.approx(1, abs=1e-5)


def test_it_copes_with_values_that_train_never_had(tables):
    train, other = tables
    n = other.n_rows
    strange = with_values(other, "region", [None if i % 2 else "never seen" for i in range(n)])
    strange = with_values(strange, "height", [(-1) ** i * 1e308 for i in range(n)])
    strange = with_values(strange, "age", [None] * n)
    at_train, at_strange = points(train, train, strange)
    assert np.isfinite(at_strange.numbers).all()
    assert nearest(at_strange, at_train).first.min() > 0


def test_beyond_ten_standard_deviations_numbers_still_grow(tables):
    train, _ = tables
    reader = embedding._CellReader.anchored_on(train, train.schema.features)
    centre, scale = reader.scales["height"]
    asked = np.array([-1e9, -20, -10, -9.99, 0, 3, 10, 20, 1e9])
    table = with_values(train.take(np.arange(9)), "height", centre + asked * scale)
    position = [c.name for c in quantitative(reader.columns)].index("height")
    found = reader.read(table).numbers[:, position]
    assert np.all(np.diff(found) > 0)
    assert found[2:7] == pytest.approx(asked[2:7])
    assert found[7] == pytest.approx(10 + math.log(2))


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (people(60, 1).select(["age"]), "two columns"),
        (drop(people(60, 1).select(["age", "region"]), region=pa.array(["a"] * 60)), "two columns"),
        (people(7, 1), "8 training rows"),
    ],
)
def test_what_cannot_be_learnt_is_not_applicable(frame, why, tables_of):
    [train] = tables_of(frame)
    with pytest.raises(NotApplicable, match=why):
        points(train, train)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(tables):
    with pytest.raises(PluginError, match="CUDA"):
        points(*tables, device="cuda")
    auto = points(*tables, device="auto")[0].numbers
    assert np.array_equal(auto, points(*tables)[0].numbers)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_places_rows_where_the_processor_does(tables):
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random((300, 3)) < 0.1, np.nan, rng.normal(size=(300, 3)))
    inputs = contrastive.Inputs(numbers, rng.integers(0, 4, (300, 1)), np.array([4]), 5)
    for device in ("cpu", "cuda"):
        weights = contrastive.fitted(inputs, QUICK, device, np.random.SeedSequence(0))
        here, there = (contrastive.placed(inputs, weights, QUICK.depth, d) for d in ("cpu", "cuda"))
        assert np.abs(here - there).max() <= 1e-6
    for table, at in zip(tables, points(tables[0], *tables, device="cuda"), strict=True):
        assert at.numbers.shape[0] == table.n_rows
        assert np.linalg.norm(at.numbers, axis=1) == pytest.approx(1, abs=1e-5)


def test_without_torch_it_says_what_to_install(tables, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "synth_audit.encode.contrastive")
    monkeypatch.delattr("synth_audit.encode.contrastive")
    with pytest.raises(PluginError, match="torch") as caught:
        points(*tables)
    assert "synth-audit[deep]" in caught.value.fix


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimension": 1},
        {"width": 0},
        {"max_steps": 0},
        {"batch": 7},
        {"learning_rate": 0.0},
        {"temperature": float("inf")},
        {"dropout": 1.0},
        {"validation_share": 0.6},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        EmbeddingSettings(**wrong)


def test_importing_the_module_loads_no_torch():
    code = "import sys, synth_audit.encode.embedding as e; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def inputs_of(table):
    return embedding._CellReader.anchored_on(table, table.schema.features).read(table)


@pytest.fixture(scope="module")
def training(tables_of):
    rng = np.random.default_rng(1)
    numbers = {name: rng.normal(size=200) for name in "abc"}
    gaps = pa.array(rng.choice(list("uvw"), 200), mask=rng.random(200) < 0.1)
    [table] = tables_of({**numbers, "d": rng.choice(list("xyz"), 200), "e": gaps})
    inputs = inputs_of(table)
    return contrastive._Training(inputs, QUICK, "cpu", np.random.SeedSequence(1)), inputs


def test_masks_leave_one_to_all_but_one_column():
    masks = contrastive._masks(20_000, 5, torch.Generator().manual_seed(0))
    shown = masks.sum(dim=1).numpy()
    assert set(shown) == {1, 2, 3, 4}
    assert np.bincount(shown)[1:] == pytest.approx(5000, rel=0.06)  # every number as often
    assert masks.double().mean(dim=0).numpy() == pytest.approx(0.5, abs=0.02)  # and every column


def test_a_masked_value_has_no_effect(training):
    model, inputs = training
    changed = inputs.take(np.arange(len(inputs)))
    changed.numbers[:, 0] = np.where(np.isnan(changed.numbers[:, 0]), 3.0, np.nan)
    changed.labels[:, 1] = changed.masked[1] + embedding.UNSEEN
    seen = torch.ones((len(inputs), 5), dtype=torch.bool)
    seen[:, [0, 4]] = False

    def at(rows, seen):
        batch = contrastive._Batch.of(rows, "cpu", torch.float32)
        return contrastive._forward(model.weights, batch, seen, 2)

    assert torch.equal(at(inputs, seen), at(changed, seen))
    assert not torch.allclose(at(inputs, seen | True), at(changed, seen | True))


def test_the_loss_is_that_of_a_slow_twin_and_training_takes_it_below_chance(tables_of):
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    [train] = tables_of({f"c{i}": z + 0.1 * rng.normal(size=300) for i in range(6)})
    inputs = inputs_of(train)
    settings = replace(QUICK, max_epochs=100, validation_share=0.3)
    model = contrastive._Training(inputs, settings, "cpu", np.random.SeedSequence(1))
    n = len(model.held_out.numbers)
    with torch.no_grad():
        one, other = (
            contrastive._forward(model.weights, model.held_out, m, 2).double().numpy()
            for m in model.fixed_masks
        )
    total = 0.0
    for i in range(n):
        cosines = [float(one[i] @ other[j]) / QUICK.temperature for j in range(n)]
        total += math.log(sum(math.exp(c) for c in cosines)) - cosines[i]
    assert model.validation_loss() == pytest.approx(total / n, rel=1e-4)
    with contrastive.one_thread():
        model.run()
    assert model.validation_loss() < math.log(n) - 0.5  # chance: every other row as likely


def test_training_stops_when_the_validation_loss_no_longer_falls(training, monkeypatch):
    _, inputs = training
    patient = replace(QUICK, max_epochs=200, window=5, patience=3)
    model = contrastive._Training(inputs, patient, "cpu", np.random.SeedSequence(1))
    losses = iter([5.0, 4, 3, 2, *[4.0] * 100])
    monkeypatch.setattr(model, "_epoch", lambda: model.weights["out.bias"].data.add_(1))
    monkeypatch.setattr(model, "validation_loss", lambda: next(losses))
    assert model.run()["out.bias"][0] == 4  # the weights of the fourth epoch
    # Means of up to five: 5, 4.5, 4, 3.5, 3.6, 3.4, and then 3.4, 3.6, 4: nothing new after the sixth.
    assert model.weights["out.bias"].detach()[0] == 9


def test_no_more_batches_than_allowed(training):
    _, inputs = training
    model = contrastive._Training(inputs, replace(QUICK, max_steps=5), "cpu", np.random.SeedSequence(1))
    model.run()
    assert model.steps == 5
