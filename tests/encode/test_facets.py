"""What statistics, models and attackers ask of every kind, on rows of which some lack a value."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.fidelity._shared_cells import shared_cells
from synth_audit.audits.privacy._attribute_secrets import column_coding
from synth_audit.audits.privacy._secrets import column_secret
from synth_audit.audits.utility._prediction_task import as_predictor, as_target
from synth_audit.encode.cells import anchored_cells, column_grouping
from synth_audit.encode.scales import rank_scale
from synth_audit.encode.univariate import column_margin, outlying_rows, univariate
from synth_audit.generators._model_files import read_model, write_model
from synth_audit.table.schema import nominal, quantitative
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import assemble, read_table

N = 120
WORDS = ("fell", "rode", "slept", "a", "the", "horse", "night", "barn")
KINDS = {
    "continuous": lambda rng: pa.array(rng.normal(50, 9, N)),
    "integer": lambda rng: pa.array(rng.poisson(7, N)),
    "datetime": lambda rng: pa.array(rng.integers(0, 9_000, N).astype(np.int32)).cast(pa.date32()),
    "boolean": lambda rng: pa.array(rng.random(N) < 0.2),
    "categorical": lambda rng: pa.array(rng.choice(list("abcd"), N, p=[0.5, 0.3, 0.17, 0.03])),
    "text": lambda rng: pa.array([" ".join(rng.choice(WORDS, 5)) for _ in range(N)]),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def table(name, seed, schema=None):
    rng = np.random.default_rng(seed)
    values = KINDS[name](rng)
    data = pa.table({"x": pa.array(values.to_pylist(), values.type, mask=rng.random(N) < 0.1)})
    return read_table(data, schema or infer_schema(data, {"x": ColumnSpec(kind=name)}), where="train")


@pytest.fixture
def tables(name):
    train = table(name, 0)
    return train, table(name, 1, train.schema)


@every_kind
def test_a_column_is_selected_by_its_scale_of_measurement(name, tables):
    columns = tables[0].schema.columns
    assert quantitative(columns) + nominal(columns) == columns
    assert bool(nominal(columns)) is (name in ("boolean", "categorical", "text"))


@every_kind
def test_cells_of_train_hold_any_table_and_keep_missing_apart(tables):
    train, _ = tables
    column = train.schema["x"]
    cells = anchored_cells(train, column, most_cells=4, most_labels=2)
    of_missing = set(cells.of(train)[train.missing("x")].tolist())
    assert len(of_missing) == 1
    for part in tables:
        codes, missing = cells.of(part), part.missing("x")
        assert codes.min() >= 0
        assert codes.max() < cells.size <= 6
        assert set(codes[missing].tolist()) == of_missing
        assert not of_missing & set(codes[~missing].tolist())
    assert cells.not_compared in (-1, *of_missing)


@every_kind
def test_shared_cells_have_names_and_the_last_is_of_missing(tables):
    column = tables[0].schema["x"]
    cells = shared_cells(tables, tables[:1], column, most=5, fewest=10)
    assert cells.names[-1] == "missing"
    assert len(set(cells.names)) == len(cells.names) >= cells.size > 2
    for part, codes in zip(tables, cells.codes, strict=True):
        assert np.array_equal(codes == len(cells.names) - 1, part.missing("x"))
    if not cells.ordered:
        named = [cells.names[i] for i in cells.codes[1][~tables[1].missing("x")]]
        assert named == [x for x in tables[1].labels("x") if x is not None]


@every_kind
def test_groups_keep_missing_first(tables):
    train, _ = tables
    column = train.schema["x"]
    grouping = column_grouping(train, column, bins=4)
    for part in tables:
        groups = grouping.of(part)
        assert np.array_equal(groups == 0, part.missing("x"))
        assert groups.max() < grouping.size
    assert np.unique(grouping.of(train)).size > 2


@every_kind
def test_outlying_rows_have_a_value_that_few_rows_are_beyond(tables):
    train, _ = tables
    column = train.schema["x"]
    rows = outlying_rows(train, column, 0.1)
    assert 0 < len(rows) < 0.3 * N
    assert np.all(np.diff(rows) > 0)
    assert not train.missing("x")[rows].any()


def test_the_text_unlike_all_others_is_outlying_though_each_occurs_once():
    texts = [f"fell off a horse in the year {year}" for year in range(1900, 1999)]
    schema = table("text", 0).schema
    notes = read_table(pa.table({"x": ["quartz vying jumbo", None, *texts]}), schema, where="train")
    assert 0 in outlying_rows(notes, schema["x"], 0.05)
    assert not len(outlying_rows(notes.take(np.array([1])), schema["x"], 0.05))


@every_kind
def test_a_distribution_is_drawn_from_and_survives_its_file(tables, tmp_path):
    train, _ = tables
    column = train.schema["x"]
    learnt = univariate(train, column, "kde")
    write_model(tmp_path, learnt)
    copies = learnt, read_model(tmp_path, type(learnt))
    drawn = [d.sample(400, np.random.default_rng(5)) for d in copies]
    made, again = (assemble(train.schema, {"x": values}) for values in drawn)
    assert made.data.equals(again.data)
    assert made.data.schema.field("x").type == train.data.schema.field("x").type
    assert made.missing("x").mean() == pytest.approx(train.missing("x").mean(), abs=0.07)
    assert set(nominal([column])) == set() or set(made.labels("x")) <= {*column.categories, None}


@every_kind
def test_on_the_scale_of_ranks_every_value_of_train_has_a_number(tables):
    train, _ = tables
    column = train.schema["x"]
    response = np.arange(N, dtype=float)
    for given in (None, response):
        scale = rank_scale(train, column, given, own_order=True)
        numbers = scale.of(train)
        assert np.array_equal(np.isnan(numbers), train.missing("x"))
        if scale.labels is not None:
            known = ~np.isnan(numbers)
            assert scale.labels[numbers[known].astype(int)].tolist() == train.labels("x")[known].tolist()
    margin = column_margin(column, numbers, "empirical")
    below, at = margin.interval(numbers[~train.missing("x")])
    assert np.all((below >= 0) & (below <= at) & (at <= 1))
    assert np.all(margin.quantile(np.linspace(0, 1, 9)) <= np.nanmax(numbers))


def test_labels_with_an_order_keep_it_where_asked():
    train = table("boolean", 0)
    column = train.schema["x"]
    frequent = rank_scale(train, column, None, own_order=False)
    turned = np.where(train.labels("x") == "true", 0.0, 1.0)
    for response in (None, turned):
        own = rank_scale(train, column, response, own_order=True)
        assert own.labels.tolist() == ["false", "true"]
    assert frequent.labels.tolist() == ["false", "true"]  # the more frequent first
    by_response = rank_scale(train, column, turned, own_order=False)
    assert by_response.labels.tolist() == ["true", "false"]


@every_kind
def test_models_get_targets_and_predictors_of_as_many_rows(tables):
    train, _ = tables
    column = train.schema["x"]
    known = [part.take(~part.missing("x")) for part in tables]
    y, n_classes = as_target(known, known[0], column, most_classes=3, far=2.0)
    assert [len(part) for part in y] == [part.n_rows for part in known]
    if n_classes:
        assert {int(k) for part in y for k in part} == set(range(n_classes))
        apart = np.bincount(y[0])[:2]  # the third is of all others together
        assert np.all(np.diff(apart) <= 0)
    else:
        assert np.abs(np.concatenate(y)).max() <= 2
        assert np.mean(y[0]) == pytest.approx(0, abs=0.1)
    x = as_predictor(tables, train, column, most_labels=3, far=2.0)
    assert [part.shape[0] for part in x] == [N, N]
    assert x[0].shape[1] == x[1].shape[1] <= 3
    same = train.take(np.flatnonzero(~train.missing("x"))[:1].repeat(9))
    assert not as_predictor([same], same, column, most_labels=3, far=2.0)[0].any()


@every_kind
def test_a_coding_gives_its_width_and_says_who_holds_a_value(tables):
    train, _ = tables
    column = train.schema["x"]
    coding = column_coding(train, column, 7)
    assert coding.numbers(tables[1]).shape == (N, coding.width)
    places = range(7, 7 + coding.width)
    assert set(coding.regressors) <= set(places)
    assert set(coding.responses) <= set(places)
    assert np.array_equal(coding.present(train), ~train.missing("x"))
    for label, n in coding.rare_counts.items():
        assert n == np.sum(train.labels("x") == label)
    same = train.take(np.flatnonzero(~train.missing("x"))[:1].repeat(9))
    assert column_coding(same, column, 0) is None


@every_kind
def test_the_truth_is_a_right_guess_and_nothing_is_a_wrong_one(tables):
    column = tables[0].schema["x"]
    (truth, _), rule = column_secret(tables, column, 0.05)
    missing = tables[0].missing("x")
    assert np.array_equal(rule.right(truth, truth), ~missing)
    assert not rule.right(np.full(N, np.nan), truth).any()
    typical = rule.right(np.full(N, rule.typical(truth)), truth)
    assert 0 < typical.sum() < (~missing).sum()
    classes, guesses = rule.classes(truth[~missing])
    assert classes.max() == len(guesses) - 1


@every_kind
def test_a_kind_says_of_what_it_is_made(tables):
    train, _ = tables
    kind = train.schema["x"].kind
    assert kind.domain_terms in ({"bounds"}, {"categories"})
    assert (kind.order is None) is (kind.domain_terms == {"categories"})
    assert kind.finite(train.column("x"))
    assert kind.too_many_labels(2) == ""
    assert kind.fixed_domain in (None, train.schema["x"].domain)


def test_an_infinite_number_is_told_whatever_its_kind():
    values = pa.chunked_array([[1.0, float("inf")]])
    kind = table("continuous", 0).schema["x"].kind
    assert not kind.finite(values)
    assert kind.finite(values.slice(0, 1))
