"""What every generator must keep; a new file in the room is covered without an edit here."""

import pickletools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from conformance_by_name import by_name  # made importable by conftest.py
from conformance_readme import EXAMPLE_GENERATOR

from synth_audit import registry
from synth_audit.errors import DataError
from synth_audit.execution.context import RunContext
from synth_audit.plugins import generator as generator_needs
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.fitting import fit
from synth_audit.plugins.generator import FitContext, batches
from synth_audit.table.schema import nominal
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table

GENERATORS = tuple(dict.fromkeys((*registry.catalogue("generator"), EXAMPLE_GENERATOR)))
READS = ("external",)
"""Generators that hand out a finished table: neither the number of rows nor the seed is theirs to choose."""

every_generator = by_name(GENERATORS)


@pytest.fixture(scope="module")
def train(population):
    data = population(150, 5)
    data = data.append_column("id", pa.array([f"p{i}" for i in range(150)]))
    specs = {"ill": ColumnSpec(role="target"), "id": ColumnSpec(role="identifier")}
    return read_table(data, infer_schema(data, specs), where="train")


@pytest.fixture
def context_of():
    return lambda seed: FitContext(rng=np.random.default_rng(seed), device="auto")


@pytest.fixture
def generator_of(generator_settings):
    def built(name, table):
        generator = registry.build("generator", name, generator_settings(name, table))
        if generator.info.needs.gpu and not generator_needs.gpu_found():
            pytest.skip("there is no GPU here")
        return generator

    return built


@pytest.fixture
def fitted_anew(generator_of, context_of):
    return lambda name, table: generator_of(name, table).fit(table.released_only(), context_of(0))


@pytest.fixture(scope="module")
def made():
    return {}


@pytest.fixture
def fitted(fitted_anew, made, train):
    """A model; that of ``train`` is fitted once, since drawing leaves it as it was."""

    def fit(name, table):
        if table is not train:
            return fitted_anew(name, table)
        if name not in made:
            made[name] = fitted_anew(name, table)
        return made[name]

    return fit


@dataclass(frozen=True)
class Again:
    """What a second fit of ``train`` draws and says, and ``train`` before and after it."""

    drawn: Table
    before: str
    after: str
    context: FitContext


@pytest.fixture
def again(generator_of, context_of, made, train):
    def fit(name):
        if ("again", name) not in made:
            before, context = train.fingerprint, context_of(0)
            rows = drawn(generator_of(name, train).fit(train.released_only(), context))
            after = read_table(train.data, train.schema, where="train").fingerprint
            made["again", name] = Again(rows, before, after, context)
        return made["again", name]

    return fit


def drawn(model, n=80, seed=1):
    return model.sample(n, np.random.default_rng(seed))


@every_generator
def test_a_release_has_the_features_of_train_and_nothing_else(name, train, fitted):
    made = drawn(fitted(name, train))
    released = train.released_only()
    assert made.names == released.names
    assert made.data.schema.types == released.data.schema.types
    assert read_table(made.data, train.schema, where="synthetic", partial=True).n_rows == made.n_rows
    assert made.n_rows == (150 if name in READS else 80)


@every_generator
def test_the_same_seeds_give_the_same_rows(name, train, fitted, again):
    one = drawn(fitted(name, train))
    assert one.data.equals(again(name).drawn.data)
    other = drawn(fitted(name, train), seed=2)
    assert (other.fingerprint == one.fingerprint) is (name in READS)


@every_generator
def test_sampling_leaves_the_model_as_it_was(name, train, fitted):
    model = fitted(name, train)
    first = drawn(model)
    drawn(model, n=7, seed=3)
    assert drawn(model).fingerprint == first.fingerprint


@every_generator
def test_train_is_not_changed(name, again):
    assert again(name).after == again(name).before


@every_generator
def test_what_may_be_claimed_is_explicit(name, again):
    accountant = again(name).context.accountant
    guarantee, reason = accountant.guarantee(), accountant.why_none
    assert (guarantee is None) is bool(reason)
    assert reason != "no DP guarantee: the generator spent nothing on privacy", "it says why in its own words"


@every_generator
def test_a_saved_model_draws_the_same_rows_and_holds_no_pickled_code(
    name, train, fitted, generator_of, tmp_path
):
    model = fitted(name, train)
    model.save(tmp_path)
    again = generator_of(name, train).load(tmp_path)
    assert drawn(again).data.equals(drawn(model).data)
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert files
    assert {p.suffix for p in files} <= {".json", ".arrow", ".parquet", ".npz", ".csv"}
    for path in files:
        assert not is_pickle(path.read_bytes())


def is_pickle(content):
    """Whether the unpickler's own reader of instructions gets through; nothing is run."""
    try:
        return any(op.name == "STOP" for op, *_ in pickletools.genops(content))
    except (ValueError, DeprecationWarning):  # no instruction, cut off, or an escape that no pickle has
        return False


@every_generator
def test_batches_are_the_rows_of_one_table(name, train, fitted):
    model = fitted(name, train)
    n = 150 if name in READS else 25
    parts = list(batches(model, n, np.random.default_rng(1), size=10))
    assert [p.n_rows for p in parts] == [10] * (n // 10) + [5] * (n % 10 > 0)
    again = list(batches(model, n, np.random.default_rng(1), size=10))
    assert all(a.data.equals(b.data) for a, b in zip(parts, again, strict=True))
    assert len({str(p.data.schema) for p in parts}) == 1


@every_generator
def test_fewer_rows_than_it_says_it_needs_are_refused(name, train, generator_of, context_of):
    generator = generator_of(name, train)
    few = train.released_only().take(np.arange(generator.info.needs.rows - 1))
    if not few.n_rows:
        return
    with pytest.raises(DataError, match="too few"):
        fit(generator, few, context_of(0))


@every_generator
def test_values_stay_within_what_train_allows(name, train, fitted):
    made = drawn(fitted(name, train), n=300)
    for column in nominal(train.schema.features):
        seen = {x for x in made.labels(column.name) if x is not None}
        assert seen <= set(column.categories)
    assert not made.missing("age").any()
    if registry.find("generator", name).load().info.trial:
        return  # it hardly learnt
    assert np.mean(made.missing("visits")) == pytest.approx(0.1, abs=0.09)


@every_generator
def test_nothing_is_drawn_that_train_cannot_have_had(name, train, fitted):
    """Neither digits nor labels nor times: what it draws passes the audit of novel content."""
    data = train.released_only().data
    tens = pa.array(np.round(np.random.default_rng(0).gamma(2, 300, data.num_rows), -1))
    prices = pa.array(np.round(np.random.default_rng(1).gamma(2, 300, data.num_rows), 2))
    data = data.append_column("tens", tens).append_column("prices", prices)
    known = read_table(data, infer_schema(data), where="train")
    made = read_table(drawn(fitted(name, known), n=150).data, known.schema, where="synthetic")
    found = registry.build("audit", "novel_content", {}).run(Subject(known, None, made), RunContext())
    assert not found.notes
    assert not any(m.value for m in found.measurements)


@every_generator
@pytest.mark.parametrize("case", ["twelve rows", "one column"])
def test_small_tables(name, case, train, fitted):
    data = train.released_only().data
    data = data.slice(0, 12) if case == "twelve rows" else data.select(["income"])
    table = read_table(data, infer_schema(data), where="train")
    assert drawn(fitted(name, table), n=20).data.schema.types == data.schema.types


@every_generator
def test_columns_that_say_nothing(name, train, fitted):
    data = train.released_only().data
    n = data.num_rows
    columns = {
        "constant": pa.array([0.1] * n),
        "all missing": pa.nulls(n, pa.float64()),
        "no type": pa.nulls(n),
    }
    for called, values in columns.items():
        data = data.append_column(called, values)
    table = read_table(data, infer_schema(data), where="train")
    made = drawn(fitted(name, table), n=20)
    assert made.data.schema.types == data.schema.types
    assert {c: set(made.data.column(c).to_pylist()) for c in columns} == {
        "constant": {0.1}, "all missing": {None}, "no type": {None},
    }  # fmt: skip


@every_generator
def test_two_rows_are_modelled_or_refused_in_words(name, train, fitted):
    two = train.take(np.array([0, 1]))
    refusal, made = None, None
    try:
        made = drawn(fitted(name, two), n=5)
    except DataError as error:
        refusal = error
    assert (made is None) is (refusal is not None and "2 rows" in str(refusal) and bool(refusal.fix))
    assert made is None or made.n_rows == (2 if name in READS else 5)
