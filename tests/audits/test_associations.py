"""Associations between columns: closed forms, references, floors, tables hard to read, and privacy."""

import math

import numpy as np
import pytest
from scipy import stats

from synth_audit.audits.fidelity import associations
from synth_audit.audits.fidelity.associations import AssociationMatrices, Associations, mean_gap, norm_gap
from synth_audit.encode.cells import ColumnCells, readable_pairs
from synth_audit.errors import NotApplicable
from synth_audit.findings.measurement import Direction


def mixed(n, seed, strength=0.8):
    """Numbers and labels that share one hidden cause, and one column of each that does not."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=n)

    def driven():
        return strength * cause + np.sqrt(1 - strength**2) * rng.normal(size=n)

    return {
        "x": driven(),
        "y": np.exp(driven()),
        "alone": rng.normal(size=n),
        "k": np.array(list("abcd"))[np.digitize(driven(), [-1, 0, 1])].tolist(),
        "m": np.where(driven() > 0, "yes", "no").tolist(),
        "any": rng.choice(list("pqr"), n).tolist(),
    }


def shuffled(columns, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: np.asarray(values)[rng.permutation(len(values))].tolist() for name, values in columns.items()
    }


def matrices(findings):
    return {s.id.setting: np.array([s.lines[name] for name in s.x]) for s in findings.series}


def test_two_numbers_by_peers(subject_of, measure):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 80, 2)).round(1)
    b[:, 1] += b[:, 0] ** 3
    subject = subject_of(*({"x": t[:, 0], "y": t[:, 1]} for t in (a, a, b)))
    found, _ = measure(Associations(), subject)
    rho = [stats.spearmanr(t).statistic for t in (a, b)]
    r = [np.corrcoef(t.T)[0, 1] for t in (a, b)]
    for name in ("difference", "spearman_difference"):
        assert found[name].value == pytest.approx(abs(rho[1] - rho[0]))
    assert found["pearson_difference"].value == pytest.approx(abs(r[1] - r[0]))
    assert found["frobenius"].value == pytest.approx(math.sqrt(2) * abs(rho[1] - rho[0]))
    assert found["no_association"].value == pytest.approx(abs(rho[0]))
    assert found["difference", "x"].value == found["difference", "y"].value == found["difference"].value
    assert found["difference"].reference.value == pytest.approx(0, abs=1e-12)
    assert ("cramers_v_difference", "eta_difference") not in found


def test_the_mean_over_pairs_is_made_of_its_parts(subject_of, measure):
    found, findings = measure(Associations(), subject_of(mixed(500, 1), None, mixed(500, 2, 0.3)))
    kinds = {"spearman_difference": 3, "cramers_v_difference": 3, "eta_difference": 9}
    by_kind = sum(found[name].value * n for name, n in kinds.items()) / 15
    assert found["difference"].value == pytest.approx(by_kind)
    columns = [found["difference", name].value for name in mixed(1, 0)]
    assert found["difference"].value == pytest.approx(np.mean(columns))
    gap = matrices(findings)["difference"]
    assert found["frobenius"].value == pytest.approx(np.linalg.norm(gap), abs=0.02)
    assert found["difference"].value == pytest.approx(np.abs(gap).sum() / 30, abs=0.005)


def test_control_as_the_release_is_its_own_reference(subject_of, measure):
    control = mixed(150, 2)
    found, findings = measure(Associations(), subject_of(mixed(400, 1), control, control))
    for m in findings.measurements:
        if m.direction is not Direction.NEUTRAL:
            assert m.value == m.reference.value
            assert m.interval == m.reference.interval
    assert found["difference"].value > 0


def test_a_copy_in_any_order_differs_in_nothing(subject_of, measure):
    train = mixed(300, 1)
    order = np.random.default_rng(0).permutation(300)
    copy = {name: np.asarray(values)[order].tolist() for name, values in train.items()}
    _, findings = measure(Associations(), subject_of(train, None, copy))
    for m in findings.measurements:
        if m.direction is not Direction.NEUTRAL:
            assert m.value == pytest.approx(0, abs=1e-12)
            assert m.interval.low == 0
            assert m.interval.high > 0.001


def test_independent_columns_score_at_the_floor(subject_of, measure):
    train = mixed(5000, 1)
    found, _ = measure(Associations(), subject_of(train, mixed(2000, 2), shuffled(train)))
    floor = found["no_association"].value
    assert floor > 0.15
    assert found["difference"].value == pytest.approx(floor, rel=0.08)
    assert found["difference"].interval.low > 5 * found["difference"].reference.interval.high
    assert found["mutual_information_difference"].value > 0.02
    assert found["difference", "alone"].value < 0.03


def test_a_relation_that_no_correlation_sees_is_seen_by_information(subject_of, measure):
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    train = {"x": x, "y": x**2 + 0.1 * rng.normal(size=2000)}
    found, _ = measure(Associations(), subject_of(train, None, shuffled(train)))
    assert found["difference"].value < 0.1
    assert found["mutual_information_difference"].value > 0.25


def test_missing_numbers_are_a_cell_and_missing_labels_a_label(subject_of, measure):
    rng = np.random.default_rng(0)
    ill = rng.random(2000) < 0.5
    lab = np.where(ill, rng.normal(size=2000), np.nan)
    train = {"ill": np.where(ill, "yes", "no").tolist(), "lab": lab, "other": rng.normal(size=2000)}
    found, _ = measure(Associations(), subject_of(train, None, shuffled(train)))
    assert found["mutual_information_difference"].value > 0.05
    labels = {**train, "lab": np.where(ill, "seen", None).tolist()}
    found, _ = measure(Associations(), subject_of(labels, None, shuffled(labels)))
    assert found["cramers_v_difference"].value > 0.9


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_numbers_far_apart_move_pearson_and_not_spearman(subject_of, measure, scale):
    train, made = mixed(1000, 1), mixed(1000, 2)
    made["x"] = made["x"].copy()
    made["x"][0] = scale
    found, _ = measure(Associations(), subject_of(train, None, made))
    assert found["spearman_difference"].value < 0.05
    assert (found["pearson_difference"].value > 0.1) == (scale > 1)


HARD = {
    "constant in the release": lambda t: {**t, "x": np.full(len(t["x"]), 0.1), "k": ["a"] * len(t["x"])},
    "missing in the release": lambda t: {**t, "x": np.full(len(t["x"]), np.nan), "k": [None] * len(t["x"])},
    "labels unseen in train": lambda t: {**t, "k": ["new"] * len(t["x"])},
    "ten rows": lambda t: {name: values[:10] for name, values in t.items()},
    "two rows": lambda t: {name: values[:2] for name, values in t.items()},
}


@pytest.mark.parametrize("case", HARD)
def test_hard_releases_are_measured(case, subject_of, measure):
    found, findings = measure(
        Associations(), subject_of(mixed(300, 1), mixed(100, 2), HARD[case](mixed(300, 3)))
    )
    for m in findings.measurements:
        assert math.isfinite(m.value), m
        if m.interval:
            assert m.interval.low <= m.value <= m.interval.high
            assert m.interval.high > m.interval.low
    if "rows" not in case:
        assert found["difference", "k"].value > 2 * found["difference", "k"].reference.value


def test_one_row_tells_no_precision(subject_of, measure):
    one = {name: values[:1] for name, values in mixed(1, 3).items()}
    found, _ = measure(Associations(), subject_of(mixed(300, 1), None, one))
    assert found["difference"].value == pytest.approx(found["no_association"].value)
    assert found["difference"].interval.high == math.inf


def test_dates_and_booleans(subject_of, measure):
    days = np.arange(400)
    table = {"day": np.datetime64("2020-01-01") + days, "late": days > 200}
    found, findings = measure(Associations(), subject_of(table, None, shuffled_dates(table)))
    assert matrices(findings)["train"][0, 1] == pytest.approx(0.87, abs=0.01)  # the square root of 3/4
    assert found["eta_difference"].value > 0.7


def shuffled_dates(table):
    return {**table, "late": np.random.default_rng(0).permutation(table["late"])}


def test_unequal_sizes_do_not_bias_measures_that_chance_makes_large(subject_of, measure):
    """Plain V and η of 40 independent labels are 0.3 in 400 rows and 0.03 in 40,000."""
    rng = np.random.default_rng(0)

    def noise(n):
        return {
            "k": rng.integers(0, 40, n).astype(str),
            "m": rng.integers(0, 40, n).astype(str),
            "x": rng.normal(size=n),
        }

    found, _ = measure(Associations(), subject_of(noise(40_000), None, noise(400)))
    assert found["difference"].value < 0.1
    assert found["mutual_information_difference"].value < 0.05


def test_columns_that_hardly_vary_are_left_out(subject_of, measure):
    def table(n_rare, seed):
        return {
            **mixed(300, seed),
            "rare": ["common"] * (300 - n_rare) + ["odd"] * n_rare,
            "same": ["s"] * 300,
        }

    found, findings = measure(Associations(), subject_of(table(9, 1), None, table(9, 2)))
    assert ("difference", "rare") not in found
    assert findings.notes[0].startswith("2 columns are left out: too few training rows differ")
    drawn = matrices(findings)
    assert all(
        np.isnan(values[6, :6]).all() and np.isfinite(values[:6, :6]).all() for values in drawn.values()
    )
    found, findings = measure(Associations(), subject_of(table(10, 1), None, table(10, 2)))
    assert ("difference", "rare") in found
    assert "1 columns" in findings.notes[0]


def test_a_pair_that_few_people_have_in_common_is_withheld(subject_of, measure):
    def table(n_both, seed):
        held = {"x": np.arange(300) < 150 + n_both, "alone": np.arange(300) >= 150}
        columns = mixed(300, seed)
        return {
            **columns,
            **{name: np.where(here, columns[name], np.nan) for name, here in held.items()},
        }

    for n_both, told in ((9, False), (40, True)):
        _, findings = measure(Associations(), subject_of(table(n_both, 1), None, table(n_both, 2)))
        assert np.isfinite(matrices(findings)["train"][0, 2]) == told


def test_few_rows_apart_in_the_release_are_withheld_but_a_constant_is_shown(subject_of, measure):
    train = mixed(300, 1)
    for n_apart, told in ((0, True), (3, False), (20, True)):
        made = {**mixed(300, 2), "m": ["no"] * (300 - n_apart) + ["yes"] * n_apart}
        _, findings = measure(Associations(), subject_of(train, None, made))
        drawn = matrices(findings)
        assert np.isfinite(drawn["synthetic"][0, 4]) == told
        assert np.isfinite(drawn["difference"][0, 4]) == told
        assert not n_apart or not told or drawn["synthetic"][0, 4] != 0


def test_matrices_are_rounded_symmetric_and_named(subject_of, measure):
    _, findings = measure(Associations(), subject_of(mixed(400, 1), None, mixed(400, 2)))
    assert [(s.id.quantity, s.kind, s.id.setting) for s in findings.series] == [
        ("associations", "matrix", scope) for scope in ("train", "synthetic", "difference")
    ]
    for scope, values in matrices(findings).items():
        assert np.array_equal(values, values.T)
        assert np.array_equal(values, values.round(2))
        assert (np.diag(values) == (scope != "difference")).all()
    assert findings.series[0].x == tuple(mixed(1, 0))


def test_of_many_columns_the_target_the_sensitive_and_the_first_are_drawn(subject_of, measure):
    rng = np.random.default_rng(0)
    table = {f"c{i}": rng.normal(size=50) for i in range(45)}
    subject = subject_of(table, None, table, c44={"role": "target"}, c42={"role": "sensitive"})
    _, findings = measure(Associations(), subject)
    assert findings.series[0].x == (*(f"c{i}" for i in range(38)), "c42", "c44")
    assert set(findings.series[0].lines) == set(findings.series[0].x)


def test_rare_labels_are_one_whatever_they_are_called(subject_of):
    train = {"k": ["a"] * 50 + ["b"] * 30 + ["c"] * 10 + ["d"] * 10, "x": np.arange(100.0)}
    made = {"k": ["b", "d", "new", None, "a", "c"], "x": np.arange(6.0)}
    subject = subject_of(train, None, made)
    scale = ColumnCells.of(subject.train, subject.features, 4, 3)
    assert scale.rows(subject.synthetic).cells[:, 0].tolist() == [1, 2, 3, 4, 0, 2]
    assert scale.sizes.tolist() == [5, 5]
    assert scale.not_compared.tolist() == [-1, 4]


def test_a_large_table_is_read_in_part_and_says_so(subject_of, measure):
    train, control, made = mixed(900, 1), mixed(300, 2), mixed(900, 3)
    found, findings = measure(Associations(most_rows=400), subject_of(train, control, made))
    whole, _ = measure(Associations(), subject_of(train, control, made))
    assert [n.partition(";")[0] for n in findings.notes] == ["Read from 400 random rows of each larger table"]
    assert 0 < abs(found["difference"].value - whole["difference"].value) < 0.05
    again, _ = measure(Associations(most_rows=400), subject_of(train, control, made))
    assert again == found


def test_the_seed_moves_intervals_and_no_value(subject_of, measure):
    subject = subject_of(mixed(300, 1), None, mixed(300, 2))
    one, other = (measure(Associations(), subject, seed=s)[0] for s in (0, 1))
    assert one["difference"].value == pytest.approx(other["difference"].value, abs=1e-12)
    assert one["difference"].interval != other["difference"].interval


@pytest.mark.parametrize(
    "table",
    [
        {"x": np.arange(50.0)},
        {"x": np.arange(50.0), "k": ["same"] * 50},
        {"x": np.arange(9.0), "y": np.arange(9.0)},
    ],
    ids=["one column", "one that varies", "nine rows"],
)
def test_tables_without_a_pair_are_no_case_for_it(table, subject_of, measure):
    with pytest.raises(NotApplicable, match="column"):
        measure(Associations(), subject_of(table, table, table))


def sampled_gaps(subject_of, sizes, strengths, n_draws):
    """Gaps of many samples of two populations, and those of two very large samples."""

    def gap(ns, seeds):
        tables = [mixed(n, seed, s) for n, seed, s in zip(ns, seeds, strengths, strict=True)]
        subject = subject_of(tables[0], None, tables[1])
        scale = ColumnCells.of(subject.train, subject.features, 10, 50)
        rng = np.random.default_rng(0)
        sides = [
            AssociationMatrices.of(scale.rows(t, associations.N_GROUPS, rng), scale.numeric)
            for t in (subject.train, subject.synthetic)
        ]
        pairs = ~np.eye(6, dtype=bool)
        mixed_sides, information = [s.mixed for s in sides], [s.information for s in sides]
        return (
            mean_gap(*mixed_sides, pairs, 0.95),
            norm_gap(*mixed_sides, pairs, 0.95),
            mean_gap(*information, pairs, 0.95),
        )

    return gap((200_000, 200_000), (1, 2)), [gap(sizes, (2 * i, 2 * i + 1)) for i in range(5, n_draws + 5)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "strengths"),
    [
        ((400, 400), (0.8, 0.8)),
        ((400, 400), (0.8, 0.0)),
        ((400, 150), (0.8, 0.5)),
        ((2000, 2000), (0.8, 0.6)),
    ],
)
def test_intervals_cover_what_samples_give_and_their_high_end_the_populations(sizes, strengths, subject_of):
    truth, found = sampled_gaps(subject_of, sizes, strengths, 200)
    for k in range(3):
        ends = np.array([(d[k].interval.low, d[k].interval.high) for d in found])
        usual = np.mean([d[k].value for d in found])
        assert np.mean((ends[:, 0] <= usual) & (usual <= ends[:, 1])) > 0.91
        assert np.mean(truth[k].value <= ends[:, 1]) > 0.94


def crossed(n, both, seed=0, **more):
    """Two columns of two labels each, of which ``both`` rows hold the rarer of either."""
    rng = np.random.default_rng(seed)
    one = np.where(np.arange(n) < 40, "yes", "no")
    other = np.where((np.arange(n) < both) | ((np.arange(n) >= 40) & (np.arange(n) < n // 2)), "F", "M")
    return {"a": one, "b": other, "x": rng.normal(size=n), **more}


@pytest.mark.parametrize(("both", "told"), [(0, True), (1, False), (9, False), (10, True), (31, False)])
def test_a_pair_that_tells_a_count_of_few_rows_is_left_out(both, told, subject_of, measure):
    few, many, made = crossed(300, both), crossed(300, 20, 1), crossed(300, 20, 2)
    for train, control in ((few, many), (many, few), (few, None)):
        found, findings = measure(Associations(), subject_of(train, control, made))
        assert ("cramers_v_difference" in found) is told
        assert all(np.isfinite(m[0, 1]) == told for m in matrices(findings).values())
        said = [note for note in findings.notes if "left out" in note]
        assert (not said) is told
        assert told or said[0].startswith("1 pairs of columns")
        assert not any("'a'" in note for note in said)


@pytest.mark.parametrize(
    "values",
    [lambda c: np.where(c == "F", 1.0, 0.0), lambda c: c == "F", lambda c: np.where(c == "F", "F", None)],
    ids=["numbers", "booleans", "missing"],
)
def test_two_values_of_any_kind_are_levels(values, subject_of, measure):
    tables = [crossed(300, both) for both in (4, 20, 20)]
    tables = [t | {"b": values(t["b"]).tolist()} for t in tables]
    for order in ((0, 1, 2), (1, 0, 2)):
        _, findings = measure(Associations(), subject_of(*(tables[i] for i in order)))
        assert all(np.isnan(m[0, 1]) for m in matrices(findings).values())


def test_tables_with_more_to_them_stay(subject_of, measure):
    train, control, made = (crossed(300, 4, i) for i in range(3))
    three = np.where(np.arange(300) % 7 == 0, "D", train["b"])
    _, findings = measure(Associations(), subject_of(train | {"b": three}, None, made))
    assert np.isfinite(matrices(findings)["train"][0, 1])
    only = [{k: t[k] for k in "ab"} for t in (train, control, made)]
    with pytest.raises(NotApplicable, match="reveal a few rows"):
        measure(Associations(), subject_of(*only))


def test_information_of_two_cells_is_withheld_where_it_tells_a_count():
    here = np.arange(300) < 60
    cells = np.column_stack([~here, (np.arange(300) < 4) | (np.arange(300) >= 250)]).astype(np.int64)
    numbers = np.where(here, 5.0 + np.arange(300), np.nan)[:, None]
    rare = cells[:, 1]
    assert readable_pairs([cells[:, 0], rare], 10)[0, 1]
    assert not readable_pairs([numbers[:, 0], rare], 10)[0, 1]
    assert not readable_pairs([cells[:, 0], rare], 4)[0, 1]


def test_columns_are_given_one_by_one_as_cells_or_as_numbers(subject_of):
    subject = subject_of(mixed(100, 1), None, mixed(100, 2))
    scale = ColumnCells.of(subject.train, subject.features, 4, 3)
    in_cells, compared = (
        [*scale.values(subject.synthetic, missing_counts=counted)] for counted in (True, False)
    )
    rows = scale.rows(subject.synthetic)
    assert np.array_equal(np.column_stack(in_cells), rows.cells)
    numbers = [x for x, number in zip(compared, scale.numeric, strict=True) if number]
    assert np.array_equal(np.column_stack(numbers), rows.numbers, equal_nan=True)


def test_the_published_difference_is_of_r_and_of_squares_uncorrected_over_all_pairs(subject_of, measure):
    rng = np.random.default_rng(0)
    train, made = mixed(400, 0), mixed(400, 1, strength=0.3)
    for table in (train, made):
        table["few"] = rng.integers(3, size=400)
        table["rare"] = (np.arange(400) < 4).tolist()  # too few rows for the pairs that are shown
    found, _ = measure(Associations(published=True), subject_of(train, train, made))
    assert found["published_difference"].value == round(
        float(np.linalg.norm(published_matrix(train) - published_matrix(made))), 2
    )
    assert "published_difference" not in measure(Associations(), subject_of(train, train, made))[0]


def published_matrix(columns):
    """r, V² and η², pair by pair from their definitions."""
    numbers = [name for name, values in columns.items() if len(set(values)) > 10]
    found = np.eye(len(columns))
    for i, a in enumerate(columns):
        for j, b in enumerate(columns):
            x, y = np.asarray(columns[a]), np.asarray(columns[b])
            if i == j:
                continue
            if a in numbers and b in numbers:
                found[i, j] = np.corrcoef(x, y)[0, 1]
            elif a in numbers or b in numbers:
                number, label = (x, y) if a in numbers else (y, x)
                means = {v: (np.mean(number[label == v]), np.sum(label == v)) for v in set(label.tolist())}
                between = sum(n * (m - number.mean()) ** 2 for m, n in means.values())
                found[i, j] = between / np.sum((number - number.mean()) ** 2)
            else:
                table = stats.contingency.crosstab(x, y).count
                found[i, j] = stats.contingency.association(table, method="cramer") ** 2
    return found


def test_lost_is_the_norm_of_the_difference_by_that_of_the_real_matrix(subject_of, measure):
    train = mixed(3000, 1)
    found, findings = measure(Associations(), subject_of(train, mixed(3000, 2), shuffled(train)))
    real = matrices(findings)["train"] - np.eye(6)
    lost, norm = found["lost"], found["frobenius"]
    assert lost.value == pytest.approx(norm.value / np.linalg.norm(real), rel=0.02)
    for end in ("low", "high"):
        assert getattr(lost.interval, end) / lost.value == pytest.approx(
            getattr(norm.interval, end) / norm.value
        )
    assert lost.value == pytest.approx(1, abs=0.06)
    assert lost.reference.value < 0.15
    copy, _ = measure(Associations(), subject_of(train, None, train))
    assert copy["lost"].value == pytest.approx(0, abs=1e-12)


def test_nothing_to_lose_gives_no_share_lost(subject_of, measure):
    # Every combination equally often: the corrected V of both is exactly 0.
    table = {"a": ["u", "v"] * 60, "b": ["p", "p", "q", "q"] * 30}
    found, _ = measure(Associations(), subject_of(table, None, table))
    assert "lost" not in found
    assert found["frobenius"].value == 0
