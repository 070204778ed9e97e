"""Which candidates a plan asks for, how they are named, and by what they are compared."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kendalltau

from synth_audit.errors import DataError, PlanError
from synth_audit.plan.plan import parse_plan
from synth_audit.store.workspace import Workspace
from synth_audit.studies import ranking
from synth_audit.studies.frontier import DIGITS, MOST_COLUMNS, Scales
from synth_audit.studies.ranking import candidates_of
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table


def asked(n_columns=8, **values):
    return candidates_of(parse_plan({"generator": "vine", **values}), n_columns)


def names(*args, **values):
    return [e.name for e in asked(*args, **values)]


def test_a_vine_climbs_its_ladder_as_far_as_the_table_has_columns():
    assert names(8) == [f"vine truncation={t}" for t in ("1", "2", "5", "none")]
    assert names(27)[-3:] == ["vine truncation=15", "vine truncation=20", "vine truncation=none"]
    assert names(2) == ["vine"]


def levels(n_columns, sensitive, vine=None):
    columns = {name: {"role": "sensitive"} for name in sensitive} | {"y": {"role": "target"}}
    return [e.varied["truncation"] for e in asked(n_columns, columns=columns, generator={"vine": vine or {}})]


def test_the_ladder_ends_where_a_sensitive_column_becomes_a_root():
    """t_max = d + 1 − j: of d = 20 columns and the target, the third in the order is root from tree 19 on."""
    assert levels(21, ["a"]) == [1, 2, 5, 10, 15, None]
    assert levels(21, ["a", "b", "c"]) == [1, 2, 5, 10, 15, 18]
    order = [f"x{i}" for i in range(1, 21)]
    assert levels(21, ["x1", "x6", "x11"], {"order": order}) == [1, 2, 5, 10]
    assert levels(21, ["x1"], {"order": order})[-1] is None
    assert levels(21, ["a", "b"], {"topology": "r_vine", "root": "simplified"})[-1] is None
    assert levels(21, ["a", "b"], {"order": "importance"})[-1] is None
    assert levels(3, ["a", "b"]) == [1]


def test_a_grid_runs_its_last_setting_fastest_and_keeps_the_others():
    generator = {"vine": {"margins": "empirical"}}
    got = asked(generator=generator, frontier={"vary": {"truncation": [1, None], "threshold": [0.5, 0.7]}})
    assert [e.varied for e in got] == [
        {"truncation": t, "threshold": x} for t in (1, None) for x in (0.5, 0.7)
    ]
    assert got[1].name == "vine truncation=1, threshold=0.7"
    assert got[1].slug == "vine-truncation-1-threshold-0.7"
    assert got[1].generator.config == {"margins": "empirical", "truncation": 1, "threshold": 0.7}


def test_listed_generators_come_alone_or_after_the_grid():
    listed = ["independent", {"vine": {"truncation": 3}}]
    assert names(frontier={"generators": listed}) == ["independent", "vine"]
    both = {"generators": listed, "vary": {"truncation": [2]}}
    assert names(frontier=both) == ["vine truncation=2", "independent", "vine truncation=3"]
    assert [e.varied for e in asked(frontier=both)] == [{"truncation": 2}, {}, {}]


def test_the_same_generator_is_tried_once_however_it_is_written():
    spec = {"vary": {"truncation": [1, None, 1]}, "generators": ["vine", {"vine": {"truncation": 1}}]}
    assert names(frontier=spec) == ["vine truncation=1", "vine truncation=none"]


def test_names_hold_what_tells_candidates_of_one_generator_apart_and_no_more():
    long = [{"external": {"command": [p, "{train}", "{synthetic}", "{rows}", "key=hunter2"]}} for p in "ab"]
    got = asked(frontier={"generators": [*long, "independent"]})
    assert got[0].name == 'external command=["a", "{train}", "{…'
    assert not any("hunter2" in e.name + e.slug for e in got)
    assert names(frontier={"generators": [long[0]]}) == ["external"]
    assert names(frontier={"vary": {"truncation": [1], "threshold": [0.5, 0.7]}}) == [
        "vine threshold=0.5",
        "vine threshold=0.7",
    ]


def test_a_folder_does_not_end_in_a_mark(monkeypatch):
    monkeypatch.setattr(ranking, "_SLUG_LENGTH", len("vine-truncation-"))
    assert {e.slug for e in asked()} == {"vine-truncation"} | {f"vine-truncation-{i}" for i in (2, 3, 4)}


def test_names_and_folders_differ_even_where_the_words_agree():
    listed = [{"external": {"source": f}} for f in ("a/x.csv", "a-x.csv", "A X.csv")]
    got = asked(frontier={"generators": listed})
    assert len({e.name for e in got}) == len({e.slug for e in got}) == 3
    assert all(e.slug and not e.slug.startswith(".") and "/" not in e.slug for e in got)
    base = {"generator": {"vine": {"margins": "empirical"}}}
    clash = {"vary": {"truncation": [1]}, "generators": [{"vine": {"truncation": 1}}]}
    assert names(**base, frontier=clash) == ["vine margins=empirical", "vine"]
    same = [{"external": {"source": f"{'x' * 30}{i}.csv"}} for i in range(2)]
    cut = f"external source={'x' * 19}…"
    assert names(frontier={"generators": same}) == [cut, f"{cut} (2)"]


def test_long_settings_make_short_folders():
    listed = [{"external": {"source": f"{'x' * 90}{i}.csv"}} for i in range(2)]
    slugs = [e.slug for e in asked(frontier={"generators": listed})]
    assert max(map(len, slugs)) <= 63
    assert len(set(slugs)) == 2


@pytest.mark.parametrize(("level", "n"), [(0.95, 1), (0.95, 5), (0.9, 2), (0.999, 12)])
def test_each_candidate_is_audited_at_a_level_for_their_number(level, n):
    got = asked(level=level, frontier={"vary": {"truncation": list(range(1, n + 1))}})
    assert {e.plan.level for e in got} == {1 - (1 - level) / n}
    assert all(e.plan.frontier is None and e.plan.level < 1 for e in got)


def test_a_candidate_is_a_plan_of_its_own(tmp_path):
    plan = parse_plan({"generator": "vine", "seed": 3, "frontier": {"vary": {"truncation": [1]}}})
    [only] = candidates_of(plan.located(tmp_path), 9)
    same = parse_plan({"generator": {"vine": {"truncation": 1}}, "seed": 3})
    assert only.plan.digest == same.digest
    assert only.plan.base == tmp_path
    assert plan.digest == parse_plan({"generator": "vine", "seed": 3}).digest


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"generator": "independent"}, "no truncation levels"),
        ({"generator": None}, "no generator"),
        ({"generator": None, "frontier": {"vary": {"truncation": [1]}}}, "no generator"),
        ({"frontier": {"vary": {"trunc": [1]}}}, "unknown field 'trunc'"),
        ({"frontier": {"vary": {"truncation": [0]}}}, "at least 1 tree"),
        ({"frontier": {"generators": ["nonsense"]}}, "unknown generator"),
        ({"frontier": {"privacy": "nonsense.share"}}, "unknown audit"),
        ({"frontier": {"privacy": "exact_match.nonsense"}}, "no measurement"),
        ({"frontier": {"privacy": "exact_match"}}, "no measurement"),
        ({"frontier": {"privacy": "exact_match.share[x"}}, "cannot be read"),
        ({"frontier": {"privacy": "exact_match.excess["}}, "cannot be read"),
        ({"frontier": {"privacy": "exact_match.excess[]"}}, "cannot be read"),
        ({"frontier": {"privacy": "exact_match.excess]"}}, "cannot be read"),
        ({"frontier": {"privacy": "exact_match.excess[x]y"}}, "cannot be read"),
    ],
)
def test_what_cannot_be_swept_is_named(values, message):
    with pytest.raises(PlanError, match=message):
        asked(**values)


@pytest.mark.parametrize(
    "spec", [{"vary": {"truncation": []}}, {"vary": {"truncation": 5}}, {"alpha": 1.5}, {"alhpa": 0.5}]
)
def test_a_malformed_key_does_not_parse(spec):
    with pytest.raises(PlanError, match="frontier"):
        parse_plan({"generator": "vine", "frontier": spec})


def audits(**values):
    return [c.name for c in asked(**values)[0].plan.audits]


def test_the_audits_that_decide_are_run():
    assert audits() == []
    wanted = {"privacy": "membership_game.privacy_gain", "utility": "marginals.total_variation"}
    assert {"membership_game", "marginals", "exact_match"} <= set(audits(frontier=wanted))
    few = audits(audits=["exact_match"], frontier=wanted)
    assert set(few) == {"exact_match", "membership_game", "marginals"}


def test_a_sensitive_column_brings_the_attribute_game_unless_the_plan_speaks():
    columns = {"x": {"role": "sensitive"}}
    assert {"attribute_attack", "attribute_game"} <= set(audits(columns=columns))
    assert audits(columns=columns, audits=["exact_match"]) == ["exact_match"]
    named = audits(columns=columns, frontier={"privacy": "closest_record.privacy_score"})
    assert not {"attribute_attack", "attribute_game"} & set(named)
    assert audits(columns={"x": {"role": ["sensitive", "target"]}}) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"vary": {"trunc": [1]}}, "unknown field 'trunc'"),
        ({"vary": {"truncation": [2, 0]}}, "at least 1 tree"),
        ({"generators": ["nonsense"]}, "unknown generator"),
        ({"generators": [{"external": {}}]}, "either source"),
    ],
)
def test_a_candidate_that_cannot_be_built_is_refused_with_the_plan(spec, message):
    with pytest.raises(PlanError, match=message):
        parse_plan({"generator": "vine", "frontier": spec}).check()


def test_a_workspace_that_was_never_swept_says_what_comes_first(tmp_path):
    with pytest.raises(DataError, match="no sweep has audited") as caught:
        ranking.candidate_of(parse_plan({"generator": "vine"}), Workspace(tmp_path), "vine")
    assert "synth-audit frontier" in str(caught.value)


def table(columns, schema=None, **roles):
    data = pa.table(columns)
    specs = {name: ColumnSpec(role=role) for name, role in roles.items()}
    return read_table(data, schema or infer_schema(data, specs), where="train")


def test_numbers_are_those_of_scipy_where_both_are_present():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.round(x + rng.normal(size=200))
    gaps = rng.random(200) < 0.2
    train = table({"x": x, "y": pa.array(y, mask=gaps)})
    got = Scales.of(train, 2).correlations(train)
    assert got.names == ("x", "y")
    assert got.values[0][1] == got.values[1][0] == round(kendalltau(x[~gaps], y[~gaps]).statistic, DIGITS)
    assert got.values[0][0] == got.values[1][1] == 1


def test_labels_stand_in_the_order_of_the_target_and_the_scale_is_trains():
    grades = ["good", "bad", "fair"]
    place = np.tile([2, 0, 1], 60)
    y = place * 10.0 + np.random.default_rng(0).normal(size=180)
    columns = {"grade": [grades[i] for i in np.tile([0, 1, 2], 60)], "y": y}
    train = table(columns, y="target")
    scales = Scales.of(train, 2)
    assert scales.correlations(train).values[0][1] > 0.8
    flipped = table({**columns, "y": -y}, train.schema)
    assert scales.correlations(flipped).values[0][1] < -0.8


def test_without_a_target_labels_stand_by_frequency():
    train = table({"c": ["b"] * 50 + ["a"] * 30 + ["c"] * 20, "x": np.arange(100.0)})
    assert Scales.of(train, 2).scales[0].labels.tolist() == ["b", "a", "c"]
    assert Scales.of(train, 2).correlations(train).values[0][1] > 0.7


def test_an_unseen_label_counts_as_missing():
    train = table({"c": ["a", "b"] * 50, "x": np.tile([0.0, 1.0], 50)})
    odd = table({"c": ["a", "b", "new"] * 30, "x": np.tile([0.0, 1.0, -5.0], 30)}, train.schema)
    assert Scales.of(train, 2).correlations(odd).values[0][1] == 1


def test_constant_and_empty_columns_have_none():
    train = table({"x": [1.0, 2.0, 3.0], "one": [7.0] * 3, "void": pa.nulls(3), "same": ["a"] * 3})
    values = np.array(Scales.of(train, 2).correlations(train).values)
    assert (np.diag(values) == 1).all()
    assert np.isnan(values[np.triu_indices(4, 1)]).all()


def test_identifiers_are_left_out_and_of_many_columns_the_important_ones_stay():
    many = {f"c{i:02d}": np.arange(10.0) for i in range(MOST_COLUMNS + 9)}
    train = table(
        {"id": [f"p{i}" for i in range(10)], **many}, id="identifier", c47="sensitive", c48="target"
    )
    names = Scales.of(train, 2).correlations(train).names
    assert len(names) == MOST_COLUMNS
    assert names == (*(f"c{i:02d}" for i in range(MOST_COLUMNS - 2)), "c47", "c48")


@pytest.mark.parametrize("kind", ["bool", "date"])
def test_every_kind_becomes_a_number(kind):
    values = {
        "bool": [True, False] * 20,
        "date": pa.array(np.tile([18_000, 9_000], 20), pa.int32()).cast(pa.date32()),
    }
    train = table({"k": values[kind], "x": np.tile([2.0, 1.0], 20)})
    assert abs(Scales.of(train, 2).correlations(train).values[0][1]) == 1


def test_what_rests_on_few_rows_is_withheld():
    rng = np.random.default_rng(0)
    few = np.where(np.arange(60) < 59, 0.0, 1.0)
    gone = np.where(np.arange(60) < 55, np.nan, rng.normal(size=60))
    train = table({"x": rng.normal(size=60), "few": few, "gone": pa.array(gone, from_pandas=True)})
    values = np.array(Scales.of(train, 10).correlations(train).values)
    assert np.isnan(values[np.triu_indices(3, 1)]).all()
    assert not np.isnan(np.array(Scales.of(train, 1).correlations(train).values)[0, 1])
