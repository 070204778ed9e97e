"""The people behind a table: set aside by a keyed coin, counted, and told from equal rows."""

import hmac
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.errors import DataError
from synth_audit.execution.seeds import Salt, public_key
from synth_audit.hashing import frame, framed
from synth_audit.table import people as entities
from synth_audit.table import people as equal_rows
from synth_audit.table.people import (
    NearRows,
    PeopleSketch,
    chance_equals,
    entities_of,
    in_control,
    key_columns,
    set_aside,
)
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table


def read(columns, **roles):
    return table_of(columns, {name: ColumnSpec(role=role) for name, role in roles.items()})


def visits(n=600, seed=0, people=150):
    rng = np.random.default_rng(seed)
    return {
        "person": [f"P{i}" for i in rng.integers(0, people, n)],
        "row": np.arange(n),
        "cost": rng.normal(size=n),
    }


KEY = bytes(range(32))


def split(table, control, key):
    return table.divided(set_aside(table, control, key))


def sides(source, control=0.3, key=KEY):
    """The position of each row, by side; ``row`` numbers the rows."""
    train, aside = split(source, control, key)
    return (set(t.data.column("row").to_pylist()) for t in (train, aside))


def test_it_loses_no_row_and_keeps_their_order():
    source = read(visits(), person="split_key")
    train, control = split(source, 0.3, KEY)
    rows = [t.data.column("row").to_pylist() for t in (train, control)]
    assert sorted(rows[0] + rows[1]) == list(range(600))
    assert rows == [sorted(r) for r in rows]


def test_the_same_key_gives_the_same_split_and_another_key_another():
    source = read(visits(), person="split_key")
    first, second, other = (split(source, 0.3, key)[1].fingerprint for key in (KEY, bytes(KEY), KEY[::-1]))
    assert first == second
    assert first != other


@pytest.mark.parametrize("roles", [{"person": "split_key"}, {"person": "identifier"}])
def test_all_rows_of_an_entity_are_on_one_side(roles):
    train, control = split(read(visits(), **roles), 0.3, KEY)
    assert not set(train.labels("person")) & set(control.labels("person"))
    assert len(set(control.labels("person"))) > 10


def test_an_entity_may_need_several_columns():
    columns = visits() | {"clinic": ["A", "B"] * 300}
    source = read(columns, person="split_key", clinic="split_key")
    train, control = split(source, 0.3, KEY)
    pairs = [set(zip(t.labels("person"), t.labels("clinic"), strict=True)) for t in (train, control)]
    assert not pairs[0] & pairs[1]
    assert set(train.labels("person")) & set(control.labels("person")), "one person, two clinics, two sides"


def test_which_columns_name_an_entity():
    columns = visits() | {"other": np.arange(600)}

    def keys(**roles):
        return [c.name for c in key_columns(read(columns, **roles).schema)]

    assert keys() == []
    assert keys(person="identifier") == ["person"]
    assert keys(person="identifier", other="identifier") == []
    assert keys(person="split_key", other="identifier") == ["person"]


@pytest.mark.parametrize("roles", [{"person": "split_key"}, {}])
def test_rows_appended_or_shuffled_move_none(roles):
    columns = visits()
    more = {"person": ["P1", "Q1", "Q2"], "row": [1000, 1001, 1002], "cost": [0.5, 1e9, -3.0]}
    longer = {name: list(values) + more[name] for name, values in columns.items()}
    before, control_before = sides(read(columns, **roles))
    after, control_after = sides(read(longer, **roles))
    assert before <= after
    assert control_before <= control_after
    order = np.random.default_rng(0).permutation(600)
    shuffled = {name: np.asarray(values)[order] for name, values in columns.items()}
    assert list(sides(read(shuffled, **roles))) == [before, control_before]


def test_the_type_a_key_is_stored_in_does_not_matter():
    values = np.arange(400) % 97
    stored = [values, values.astype(float), [str(v) for v in values], pa.array(values, pa.int16())]
    rows = np.arange(400)
    found = [list(sides(read({"k": k, "row": rows}, k="split_key"))) for k in stored]
    assert all(f == found[0] for f in found)


def test_rows_without_a_key_stand_for_themselves():
    columns = visits() | {"person": [None] * 600}
    columns["person"][:100] = ["P1"] * 100
    train, control = split(read(columns, person="split_key"), 0.3, KEY)
    keyless = [t.data.filter(pc.is_null(t.data.column("person"))).num_rows for t in (train, control)]
    assert sum(keyless) == 500
    assert 100 < keyless[1] < 200, "rows without a key are not one entity"
    assert ["P1" in set(t.labels("person")) for t in (train, control)].count(True) == 1


def test_equal_rows_without_a_key_share_a_side():
    unique = {"a": np.arange(200) % 50, "b": ["x", "y", "z", None] * 50}
    twice = {name: list(values) * 3 for name, values in unique.items()}
    train, control = split(read(twice), 0.3, KEY)
    rows = [{tuple(r.values()) for r in t.data.to_pylist()} for t in (train, control)]
    assert not rows[0] & rows[1]
    assert rows[1]
    keyed = twice | {"id": [None] * 600}
    train, control = split(read(keyed, id="split_key"), 0.3, KEY)
    rows = [{(r["a"], r["b"]) for r in t.data.to_pylist()} for t in (train, control)]
    assert not rows[0] & rows[1]


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.9])
def test_the_share_is_near_the_request(share):
    n = 20_000
    found = in_control([b"%d" % i for i in range(n)], share, KEY).mean()
    assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / n)


def test_a_larger_share_only_adds_to_control():
    every = [b"%d" % i for i in range(2000)]
    small, large = in_control(every, 0.2, KEY), in_control(every, 0.4, KEY)
    assert (large | ~small).all()
    assert large.sum() > small.sum()


@pytest.mark.parametrize(("share", "side"), [(0.999999, "train"), (0.000001, "control")])
def test_a_split_with_an_empty_side_is_refused(share, side):
    with pytest.raises(DataError, match=f"no {side} rows") as caught:
        split(read(visits(), person="split_key"), share, KEY)
    assert caught.value.where
    assert caught.value.fix


def test_one_entity_cannot_be_split():
    with pytest.raises(DataError, match="the split leaves no"):
        split(read(visits() | {"person": ["P1"] * 600}, person="split_key"), 0.5, KEY)


def test_an_entity_is_its_key_and_nothing_that_looks_like_it():
    """By construction: each of these keys has bytes of its own, so none shares a coin with another."""
    texts = ["a", "b", "ab", "a\x1fb", "", "\x00", "\x1f", None]
    pairs = [(one, other) for one in texts for other in texts if (one, other) != (None, None)]
    columns = dict(zip("kl", map(list, zip(*pairs, strict=True)), strict=True))
    two = entities_of(read(columns | {"x": np.arange(len(pairs))}, k="split_key", l="split_key"))
    assert len(set(two)) == len(pairs)
    one = entities_of(read({"k": texts[:-1], "x": range(len(texts) - 1)}, k="split_key"))
    rows = entities_of(read({"k": [None] * 8, "x": texts}, k="split_key"))
    assert len({*two, *one, *rows}) == len(pairs) + len(texts) - 1 + len(texts)


def test_the_bytes_of_an_entity_are_fixed():
    """Another form would make today's control of yesterday's train."""
    [entity] = entities_of(read({"k": ["P1"], "x": [1]}, k="split_key"))

    def part(text):
        return b"\x01" + len(text).to_bytes(8, "big") + text

    assert entity == part(b"entity") + (1).to_bytes(8, "big") + part(b"P1")


def test_an_entity_is_its_labels_in_frames():
    columns = {
        "a": ["ä", "", None, "x" * 300, "ä"],
        "b": [1.0, None, 2.5, 7.0, 1.0],
        "c": [True, None] * 2 + [True],
    }
    rows = read(columns)
    labels = zip(*(rows.labels(name).tolist() for name in sorted(columns)), strict=True)
    assert entities_of(rows) == [frame("row") + framed(each) for each in labels]


def test_the_order_of_columns_moves_none():
    columns = visits() | {"clinic": ["A", "B"] * 300}
    turned = dict(reversed(columns.items()))
    for roles in ({"person": "split_key", "clinic": "split_key"}, {}):
        assert list(sides(read(turned, **roles))) == list(sides(read(columns, **roles)))


def test_who_knows_a_key_and_not_the_salt_knows_nothing():
    """Over many salts each person is in control as often as a coin falls, whatever is public of the plan."""
    people = entities_of(read({"k": [f"P{i}" for i in range(40)], "x": np.arange(40)}, k="split_key"))
    salts = [Salt(n.to_bytes(32, "big")) for n in range(3000)]
    coins = np.array([in_control(people, 0.3, salt.key("split")) for salt in salts])
    spread = np.sqrt(0.3 * 0.7 / len(salts))
    assert np.abs(coins.mean(axis=0) - 0.3).max() < 4.5 * spread, "each person"
    together = np.corrcoef(coins.T.astype(float)) - np.eye(40)
    assert np.abs(together).max() < 5 / np.sqrt(len(salts)), "no two share a coin"
    for seed in (0, 1, 5):
        guess = in_control(people, 0.3, public_key(seed, "split"))
        right = (coins == guess).mean()
        by_chance = 0.3 * guess.mean() + 0.7 * (1 - guess.mean())
        assert abs(right - by_chance) < 4.5 * spread / np.sqrt(40)


def test_under_one_salt_every_row_keeps_its_coin():
    """Written down, since what moves a coin makes today's control of yesterday's train."""
    salt = Salt(bytes(range(32)))
    keyed = read({"k": [f"P{i}" for i in range(40)], "x": np.arange(40)}, k="split_key")
    whole = read({"a": [i % 7 for i in range(40)], "b": [f"r{i}" for i in range(40)]})
    held = [set_aside(t, 0.3, salt.key("split")) for t in (keyed, whole)]
    assert [np.flatnonzero(rows).tolist() for rows in held] == [
        [5, 9, 10, 11, 12, 14, 25, 27, 29, 35, 36, 37],
        [10, 15, 19, 25, 27, 30, 32, 36, 38],
    ]


def test_coins_are_the_hmac_of_the_entity(monkeypatch):
    source = read(visits(), person="split_key")
    coins = [
        int.from_bytes(hmac.digest(KEY, e, "sha256")[:8], "big") < 0.3 * 2**64 for e in entities_of(source)
    ]
    assert set_aside(source, 0.3, KEY).tolist() == coins
    monkeypatch.setattr(entities, "BATCH", 7)
    assert set_aside(source, 0.3, KEY).tolist() == coins, "by batch as at once"


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
    found = chance_equals(read(columns))
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
    assert not chance_equals(read(columns)).any()


def test_most_people_twice_are_told_from_chance():
    columns = repeated(survey(1500), 1350)
    assert explained(columns) < 0.2, "rows so common that a stranger's equal is nearly sure"


def test_rare_rows_entered_twice_stay_together_in_a_dense_table():
    dense, rare = survey(3000), {name: values + 100 for name, values in survey(3, 1).items()}
    columns = {name: np.concatenate([dense[name], rare[name], rare[name]]) for name in dense}
    found = chance_equals(read(columns))
    assert found[:3000].mean() > 0.5
    assert not found[3000:].any()


def test_one_row_very_often_is_no_chance_and_hides_no_other():
    dense = survey(3000)
    blank = {name: np.concatenate([values, np.full(300, values[0])]) for name, values in dense.items()}
    found = chance_equals(read(blank))
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
    assert not chance_equals(read(repeated(columns, 135))).any()


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
    found = chance_equals(read(columns))
    order = np.random.default_rng(1).permutation(2400)
    turned = {name: columns[name][order] for name in reversed(columns)}
    assert chance_equals(read(turned)).tolist() == found[order].tolist()


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
    assert chance_equals(table).any()
    monkeypatch.setattr(equal_rows, "_CELLS", 7000)
    assert not chance_equals(table).any()


def people(*numbers, keyed=False, twice=False):
    numbers = [*numbers, *numbers] if twice else list(numbers)
    data = pa.table({"id": pa.array(numbers, pa.int64()), "x": [n % 7 for n in range(len(numbers))]})
    columns = {"id": ColumnSpec(role="split_key")} if keyed else {}
    return read_table(data, infer_schema(data, columns), where="people")


def sketch(*tables, key=KEY):
    return PeopleSketch.of(tables, key)


def test_one_person_more_is_one_and_none_is_none():
    few = sketch(people(*range(300), keyed=True))
    assert few.people == 300
    assert few.differing(sketch(people(*reversed(range(300)), keyed=True)).sums) == 0
    assert few.differing(sketch(people(*range(301), keyed=True)).sums) == 1
    assert few == sketch(people(*range(100), keyed=True), people(*range(100, 300), keyed=True))
    assert few.differing(sketch(people(*range(300), keyed=True), key=bytes(31) + b"1").sums) > 100


@pytest.mark.parametrize("n", [5, 20, 100, 1000])
def test_the_number_that_differ_is_told_to_a_few_standard_errors(n):
    found = sketch(people(*range(2000))).differing(sketch(people(*range(n), *range(5000, 7000 - n))).sums)
    assert found == pytest.approx(2 * (2000 - n), rel=4 * (2 / 256) ** 0.5)
    near = sketch(people(*range(2000), keyed=True))
    assert near.differing(sketch(people(*range(2000 + n), keyed=True)).sums) == pytest.approx(n, rel=0.4)


def test_a_person_with_several_rows_is_one_where_there_is_a_key():
    once, twice = people(*range(50), keyed=True), people(*range(50), keyed=True, twice=True)
    assert sketch(once) == sketch(twice)
    rows = people(*range(50))
    doubled = read_table(pa.concat_tables([rows.data, rows.data]), rows.schema, where="people")
    assert sketch(doubled).people == 100


def test_equal_rows_that_leave_are_as_many_people():
    known = people(*range(200))
    places = np.array([*range(200), *[7] * 12])
    rows = known.take(places)
    assert sketch(rows).people == 212
    assert sketch(rows).differing(sketch(known.take(places[:206])).sums) == pytest.approx(6, rel=0.4)
    assert sketch(rows) == sketch(known.take(places[::-1]))
