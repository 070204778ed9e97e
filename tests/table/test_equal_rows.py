from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.table import people as equal_rows
from synth_audit.table.people import NearRows, alike_by_chance, chance_equals, set_aside
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table

KEY = bytes(range(32))


def read(columns, **roles) -> Table:
    data = pa.table(columns)
    specs = {name: ColumnSpec(role=role) for name, role in roles.items()}
    return read_table(data, infer_schema(data, specs), where="source")


def narrow(n, seed=0):
    """People of independent columns: 2,800 cells."""
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(20, 60, n),
        "ward": rng.choice(list("ABCDE"), n),
        "days": rng.integers(1, 15, n),
    }


def survey(n, seed=0):
    """Answers that hang together: six small columns of one latent number."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    answers = {}
    for place, values in enumerate([3, 2, 5, 4, 5, 7]):
        said = 0.8 * latent + rng.normal(size=n)
        answers[f"q{place}"] = np.digitize(said, np.quantile(said, np.arange(1, values) / values))
    return answers


def sparse(n, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=n).round(3), "b": rng.normal(size=n).round(3), "c": rng.integers(0, 3, n)}


def repeated(columns, n):
    """The first n rows once more."""
    return {name: np.concatenate([values, values[:n]]) for name, values in columns.items()}


def explained(columns):
    """The share of the rows with equals that chance explains."""
    rows = list(zip(*(v.tolist() for v in columns.values()), strict=True))
    times = Counter(rows)
    equal = np.array([times[row] > 1 for row in rows])
    found = alike_by_chance(read(columns))
    assert not found[~equal].any(), "a row without an equal needs no coin of its own"
    return found[equal].mean()


@pytest.mark.parametrize("people", [narrow, survey])
@pytest.mark.parametrize("seed", range(3))
def test_in_a_dense_table_chance_explains_equal_rows(people, seed):
    assert explained(people(2400, seed)) > 0.8


@pytest.mark.parametrize(
    "columns",
    [
        repeated(narrow(1200), 1200),
        repeated(survey(1200), 1200),
        repeated(sparse(2000), 100),
        repeated(sparse(2000), 2000),
        {name: np.tile(values, 10) for name, values in narrow(240).items()},
        {"age": narrow(2400)["age"]},
    ],
    ids=["narrow twice", "survey twice", "sparse, 5 %", "sparse twice", "ten times", "a single column"],
)
def test_what_chance_does_not_explain_stays_one_persons(columns):
    assert not alike_by_chance(read(columns)).any()


def test_most_people_twice_are_told_from_chance():
    columns = repeated(survey(1500), 1350)
    assert explained(columns) < 0.2, "rows so common that a stranger's equal is nearly sure"


def test_rare_rows_entered_twice_stay_together_in_a_dense_table():
    dense, rare = survey(3000), {name: values + 100 for name, values in survey(3, 1).items()}
    columns = {name: np.concatenate([dense[name], rare[name], rare[name]]) for name in dense}
    found = alike_by_chance(read(columns))
    assert found[:3000].mean() > 0.5
    assert not found[3000:].any()


def test_one_row_very_often_is_no_chance_and_hides_no_other():
    dense = survey(3000)
    blank = {name: np.concatenate([values, np.full(300, values[0])]) for name, values in dense.items()}
    found = alike_by_chance(read(blank))
    assert not found[3000:].any()
    assert found[:3000].mean() > 0.3


def test_a_product_of_two_columns_is_no_chance():
    """Each person with every value of two columns: near rows foretell an equal, and there is none."""
    people, times = np.arange(300) * 7919 % 1000, 3
    columns = {
        "person": np.repeat(people, times**2),
        "a": np.tile(np.repeat(np.arange(times), times), 300),
        "b": np.tile(np.arange(times), 300 * times),
    }
    assert not alike_by_chance(read(repeated(columns, 135))).any()


def test_expected_equals_are_those_of_independent_columns():
    n = 20_000
    columns = list(narrow(n).values())
    codes = [np.unique(c, return_inverse=True)[1].astype(np.int32) for c in columns]
    assert NearRows.of(codes).expected == pytest.approx(n / (40 * 5 * 14), rel=0.5)
    assert NearRows.of(codes).expected.mean() == pytest.approx(n / (40 * 5 * 14), rel=0.02)


def test_near_rows_are_counted():
    codes = [np.array(c, dtype=np.int32) for c in ([0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [0, 0, 0, 0, 0])]
    near = NearRows.of(codes)
    assert near.equals.tolist() == [1, 1, 0, 0, 0]
    assert near.products.tolist() == [1, 1, 2, 2, 1], (
        "the first: one other in the first column, one in the second"
    )
    assert near.both.tolist() == [1, 1, 1, 1, 2]


def test_the_order_of_rows_and_columns_decides_nothing():
    columns = survey(2400)
    found = alike_by_chance(read(columns))
    order = np.random.default_rng(1).permutation(2400)
    turned = {name: columns[name][order] for name in reversed(columns)}
    assert alike_by_chance(read(turned)).tolist() == found[order].tolist()


def test_equal_rows_by_chance_have_coins_of_their_own():
    table = read(survey(6000))
    apart, together = (set_aside(table, 0.2, KEY, apart=how) for how in (True, False))
    own = chance_equals(table)
    assert (apart == together)[~own].all(), "nobody else moves"
    rows = list(zip(*(table.labels(c.name).tolist() for c in table.schema), strict=True))
    both = {r for r, a in zip(rows, apart, strict=True) if a} & {
        r for r, a in zip(rows, apart, strict=True) if not a
    }
    assert len(both) > 100
    first = {row: place for place, row in reversed(list(enumerate(rows)))}
    firsts = np.array(sorted(first.values()))
    assert (apart == together)[firsts].all(), "the first of equal rows keeps its coin"
    later = np.setdiff1d(np.flatnonzero(own), firsts)
    assert abs(apart[later].mean() - 0.2) < 4 * np.sqrt(0.16 / len(later))
    sizes = np.array([rows.count(row) for row in both])
    assert len(set(sizes)) > 3, "groups of many sizes are divided"


def test_rows_appended_or_shuffled_move_no_coin_of_a_group_that_is_divided():
    columns = survey(6000)
    table, longer = read(columns), read(survey_with_more(columns))
    before, after = (set_aside(t, 0.2, KEY, apart=True) for t in (table, longer))
    same = chance_equals(table) == chance_equals(longer)[:6000]
    assert same.mean() > 0.98
    assert (before == after[:6000])[same].all()
    order = np.random.default_rng(1).permutation(6000)
    shuffled = set_aside(read({name: v[order] for name, v in columns.items()}), 0.2, KEY, apart=True)
    held = [sorted(zip(*(v[rows].tolist() for v in columns.values()), strict=True)) for rows in (before,)]
    other = sorted(zip(*(v[order][shuffled].tolist() for v in columns.values()), strict=True))
    assert held == [other]


def survey_with_more(columns):
    return {
        name: np.concatenate([values, more])
        for (name, values), more in zip(columns.items(), survey(60, 9).values(), strict=True)
    }


@pytest.mark.parametrize(
    "table",
    [
        read(sparse(500)),
        read(repeated(narrow(300), 300)),
        read(narrow(300) | {"id": range(300)}, id="identifier"),
    ],
    ids=["no equal rows", "everybody twice", "a key"],
)
def test_elsewhere_no_row_moves(table):
    apart, together = (set_aside(table, 0.3, KEY, apart=how) for how in (True, False))
    assert apart.tolist() == together.tolist()


def test_huge_tables_are_not_asked(monkeypatch):
    table = read(narrow(2400))
    assert alike_by_chance(table).any()
    monkeypatch.setattr(equal_rows, "_CELLS", 7000)
    assert not alike_by_chance(table).any()
