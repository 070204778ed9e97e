"""Distributions of single columns, from counts made by hand."""

import re

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.datasets import load_wine

from synth_audit.audits.fidelity.marginals import Marginals
from synth_audit.findings.measurement import Direction


def of_labels(counts):
    return {
        "k": [label for label, n in counts.items() for _ in range(n)],
        "x": np.arange(float(sum(counts.values()))),
    }


def test_categories_by_hand(subject_of, measure):
    subject = subject_of(
        of_labels({"a": 60, "b": 40}), of_labels({"a": 50, "b": 50}), of_labels({"a": 30, "b": 50, None: 20})
    )
    found, _ = measure(Marginals(), subject)
    tv = found["total_variation", "k"]
    assert tv.value == pytest.approx(0.3)
    assert tv.reference.value == pytest.approx(0.1)
    expected = np.sqrt(0.5 * ((np.sqrt(0.6) - np.sqrt(0.3)) ** 2 + (np.sqrt(0.4) - np.sqrt(0.5)) ** 2 + 0.2))
    assert found["hellinger", "k"].value == pytest.approx(expected)
    assert ("ks", "k") not in found
    assert found["total_variation"].value == pytest.approx(
        np.mean([0.3, found["total_variation", "x"].value])
    )
    assert tv.interval.low < 0.3 < tv.interval.high


def test_large_tables_are_read_in_part_and_it_is_said(subject_of, measure):
    subject = subject_of(*({"n": np.random.default_rng(seed).normal(size=900)} for seed in range(3)))
    (found, findings), (whole, _) = (measure(Marginals(**s), subject) for s in ({"most_rows": 400}, {}))
    assert findings.notes[0].startswith("Read from 400 random rows of each larger table")
    distance = found["total_variation"]
    assert (distance.n_requested, distance.n_achieved) == (900, 400)
    assert 0 < abs(distance.value - whole["total_variation"].value) < 0.1


def test_a_category_that_train_never_had_counts_in_full(subject_of, measure):
    subject = subject_of(of_labels({"a": 50, "b": 50}), None, of_labels({"c": 100}))
    found, _ = measure(Marginals(), subject)
    assert found["total_variation", "k"].value == 1
    assert found["hellinger", "k"].value == pytest.approx(1)
    assert found["total_variation", "k"].reference is None


def test_a_copy_is_at_distance_zero_and_numbers_far_away_at_one(subject_of, measure):
    x = np.random.default_rng(0).normal(size=200)
    found, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": x[::-1]}))
    assert found["total_variation"].value == found["hellinger"].value == found["ks"].value == 0
    found, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": x + 100}))
    assert found["ks"].value == 1
    assert found["total_variation"].value == pytest.approx(0.9, abs=0.01)


def test_missing_is_a_cell_and_no_part_of_ks(subject_of, measure):
    x = np.arange(100.0)
    gaps = np.where(np.arange(100) % 2, x, np.nan)
    found, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": gaps}))
    assert found["total_variation"].value == pytest.approx(0.5)
    assert found["ks"].value == pytest.approx(0.01)
    found, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": np.full(100, np.nan)}))
    assert found["total_variation"].value == 1
    assert "ks" not in found


def test_a_spike_is_seen(subject_of, measure):
    rng = np.random.default_rng(0)
    spiky = np.where(rng.random(1000) < 0.5, 0.0, rng.exponential(size=1000))
    found, _ = measure(Marginals(), subject_of({"x": spiky}, None, {"x": np.where(spiky == 0, 0.001, spiky)}))
    assert found["total_variation"].value > 0.45


def bars(subject_of, measure, counts, release=None, **more):
    _, findings = measure(
        Marginals(), subject_of(of_labels(counts), None, release or of_labels(counts), **more)
    )
    [series] = [s for s in findings.series if s.id.column == "k"]
    real = dict(zip(series.x, np.array(series.lines["real"]) * sum(counts.values()), strict=True))
    return {label: round(n) for label, n in real.items()}


def test_small_categories_are_drawn_together(subject_of, measure):
    shown = bars(subject_of, measure, {"a": 60, "b": 22, "rare": 9, "rarer": 8, "rarest": 1})
    assert shown == {"a": 60, "b": 22, "all others": 18}


def test_one_small_category_is_not_given_away_by_the_rest(subject_of, measure):
    shown = bars(subject_of, measure, {"a": 60, "b": 25, "c": 12, "rare": 3})
    assert shown == {"a": 60, "b": 25, "all others": 15}
    assert bars(subject_of, measure, {"a": 97, "rare": 3}) == {"all others": 100}
    assert bars(subject_of, measure, {"a": 60, "b": 40}) == {"a": 60, "b": 40}


def test_labels_that_only_the_release_has_are_not_drawn(subject_of, measure):
    release = of_labels({"a": 40, "made up": 60})
    assert "made up" not in bars(subject_of, measure, {"a": 60, "b": 40}, release)


def test_the_suppression_limit_is_the_subjects(subject_of, measure):
    counts = {"a": 60, "b": 30, "c": 6, "d": 4}
    assert bars(subject_of, measure, counts, suppression=5) == {"a": 60, "b": 30, "all others": 10}
    assert bars(subject_of, measure, counts, suppression=3) == counts


def test_many_categories_are_drawn_as_twenty(subject_of, measure):
    shown = bars(subject_of, measure, {f"c{i}": 20 + i for i in range(30)})
    assert len(shown) == 21
    assert "c29" in shown
    assert "c0" not in shown


def names_of(subject_of, measure, values, **column):
    _, findings = measure(Marginals(), subject_of({"x": values}, None, {"x": values}, x=column))
    [series] = findings.series
    return [name for name in series.x if name != "all others"]


def test_numeric_pictures_show_rounded_edges_that_enough_rows_share(subject_of, measure):
    values = np.random.default_rng(0).normal(50, 12, size=300)
    names = names_of(subject_of, measure, values, kind="continuous")
    assert names[0].startswith("up to ")
    assert names[-1].startswith("over ")
    edges = sorted({float(text) for name in names for text in re.findall(r"-?\d+\.?\d*", name)})
    assert len(edges) >= 7
    assert not np.isin(edges, values).any()
    assert edges[0] == pytest.approx(np.quantile(values, 0.1), abs=3)
    assert edges[-1] == pytest.approx(np.quantile(values, 0.9), abs=3)
    for edge in edges:  # at least ten rows lie as near as rounding reaches
        step = next(s for s in (5, 2, 1, 0.5, 0.2, 0.1) if abs(edge / s - round(edge / s)) < 1e-9)
        assert np.sum(np.abs(values - edge) <= step / 2) >= 10


def test_a_number_of_few_rows_is_not_written_on_an_axis(subject_of, measure):
    known = np.random.default_rng(0).choice(100_000, size=101, replace=False)  # so that edges are its values
    names = names_of(subject_of, measure, np.r_[known, known], kind="integer")
    told = {int(text) for name in names for text in re.findall(r"\d+", name)}
    assert len(told) >= 7
    assert not told & set(known.tolist())


def test_a_spike_and_dates_have_names_of_their_own(subject_of, measure):
    spike = np.r_[np.full(150, 7.0), np.linspace(10, 90, 150)]
    assert "7" in names_of(subject_of, measure, spike, kind="continuous")
    near = np.r_[np.linspace(118.4, 119.4, 40), np.full(130, 120.0), np.linspace(121, 190, 130)]
    assert len(set(names := names_of(subject_of, measure, near, kind="continuous"))) == len(names)
    days = np.datetime64("2020-01-01") + np.arange(0, 1500)
    names = names_of(subject_of, measure, pa.array(days.astype("datetime64[us]")))
    assert re.fullmatch(r"up to 2020-0[4-7]-01", names[0]), names


def test_control_is_drawn_beside_them_unless_too_few_rows_stand_behind_a_bar(subject_of, measure):
    def lines(control):
        real = of_labels({"a": 60, "b": 40})
        _, findings = measure(Marginals(), subject_of(real, of_labels(control), real))
        return next(s.lines for s in findings.series if s.id.column == "k")

    shown = lines({"a": 30, "b": 10})
    assert shown["control rows"] == (0.75, 0.25)
    assert set(lines({"a": 30, "b": 9})) == {"real", "synthetic"}
    assert set(lines({"a": 30, "b": 10, "c": 1})) == {"real", "synthetic"}


def test_the_worst_column_is_drawn_first(subject_of, measure):
    x = np.arange(200.0)
    made = {"near": np.r_[x[:-1], 0], "far": x + 500, "some": x + 20}
    _, findings = measure(Marginals(), subject_of(dict.fromkeys(made, x), None, made))
    assert [s.id.column for s in findings.series] == ["far", "some", "near"]


def test_wasserstein_counts_in_deviations_of_train(subject_of, measure):
    x = np.random.default_rng(0).normal(50, 7, 300)
    found, _ = measure(Marginals(), subject_of({"x": x}, {"x": x}, {"x": x + 3}))
    w = found["wasserstein", "x"]
    assert w.value == found["wasserstein"].value == pytest.approx(3 / x.std())
    assert w.reference.value == 0
    assert w.interval.low < w.value < w.interval.high


@pytest.mark.parametrize("unit", [1.0, 1e300, 1.7e308])
def test_wasserstein_knows_no_unit_where_a_cell_is_empty(subject_of, measure, unit):
    x = np.tile([1.0, -1.0, 0.1, 0.0, 1e-9], 40) * unit
    found, _ = measure(Marginals(), subject_of({"x": x}, {"x": x}, {"x": np.roll(x, 1)[:-40]}))
    w = found["wasserstein", "x"]
    assert w.value == pytest.approx(0, abs=1e-9)
    assert -0.5 < w.interval.low < 0 < w.interval.high < 0.5


def test_a_column_without_spread_in_train_has_no_unit(subject_of, measure):
    moved = {"c": np.arange(100.0), "x": np.arange(100.0)}
    found, _ = measure(Marginals(), subject_of(moved | {"c": np.ones(100)}, None, moved))
    assert found["total_variation", "c"].value == pytest.approx(0.99)
    assert ("wasserstein", "c") not in found
    assert found["wasserstein"].value == 0


def test_dates_are_numbers(subject_of, measure):
    days = np.datetime64("2020-01-01T00:00:00", "us") + np.arange(200) * np.timedelta64(1, "D")
    found, _ = measure(Marginals(), subject_of({"d": days}, None, {"d": days + np.timedelta64(30, "D")}))
    assert found["ks", "d"].value == pytest.approx(0.15)
    assert found["wasserstein", "d"].value == pytest.approx(30 / np.arange(200).std())


def test_missing_values_have_a_number_of_their_own(subject_of, measure):
    x, k = np.arange(100.0), np.array(["a", "b"] * 50, dtype=object)
    gaps = {"x": np.where(x < 30, np.nan, x), "k": np.where(x < 10, None, k), "z": x}
    found, _ = measure(Marginals(), subject_of({"x": x, "k": k, "z": x}, None, gaps))
    assert found["missingness", "x"].value == pytest.approx(0.3)
    assert found["missingness", "k"].value == pytest.approx(0.1)
    assert ("missingness", "z") not in found
    assert found["missingness"].value == pytest.approx(0.2)
    for m in (found["missingness"], found["missingness", "k"]):
        assert 0 <= m.interval.low < m.value < m.interval.high
    full, _ = measure(Marginals(), subject_of({"x": x}, None, {"x": x}))
    assert (
        full["missingness"].value == full["missingness"].interval.low == 0 < full["missingness"].interval.high
    )


def test_how_few_people_lack_a_value_is_not_told(subject_of, measure):
    x = np.arange(100.0)

    def lacking(n):
        return {"x": np.where(x < n, np.nan, x), "y": x}

    for few, release in ((1, 0), (9, 0), (9, 5)):
        found, _ = measure(Marginals(), subject_of(lacking(few), lacking(few), lacking(release)))
        assert found["missingness"].value == found["missingness"].reference.value == 0
        assert ("missingness", "x") not in found
    told = [
        measure(Marginals(), subject_of(lacking(few), None, lacking(50)))[0]["missingness", "x"].value
        for few in (0, 1, 9)
    ]
    assert told == [0.5] * 3
    full, _ = measure(Marginals(), subject_of(lacking(95), None, lacking(50)))
    assert full["missingness", "x"].value == 0.5


def test_the_marginal_distance_is_ks_for_numbers_and_chi_square_for_labels(subject_of, measure):
    real, made = of_labels({"a": 60, "b": 40}), of_labels({"a": 50, "b": 50})
    made["x"] = made["x"] + 25
    found, _ = measure(Marginals(), subject_of(real, real, made))
    chi = stats.chisquare([50, 50], [60, 40])
    assert found["chi_square", "k"].value == pytest.approx(1 - chi.pvalue)
    assert ("chi_square", "x") not in found
    assert found["marginal_distance"].value == pytest.approx((0.25 + 1 - chi.pvalue) / 2)
    assert found["marginal_distance"].reference.value == 0
    gone, _ = measure(Marginals(), subject_of({"x": np.arange(50.0)}, None, {"x": np.full(50, np.nan)}))
    assert gone["marginal_distance"].value == 1


@pytest.fixture(scope="module")
def wine():
    frame = load_wine(as_frame=True).frame
    frame = frame.assign(target=frame["target"].map(str), gap=frame["ash"].where(frame["ash"] > 2.2))
    return frame.sample(frac=1, random_state=0)


def part(frame, rows):
    return {name: frame[name].iloc[rows].tolist() for name in frame.columns}


def test_control_as_the_candidate_comes_out_at_its_reference(wine, subject_of, measure):
    train, control = part(wine, slice(0, 100)), part(wine, slice(100, None))
    found, _ = measure(Marginals(), subject_of(train, control, control))
    assert {name for name in found if isinstance(name, str)} == {q.name for q in Marginals.info.quantities}
    for m in found.values():
        assert m.reference.value == m.value
        assert m.reference.candidate is None
        assert (m.interval is None) == (m.direction is Direction.NEUTRAL)
        assert m.reference.interval == m.interval
        if m.interval is not None:
            assert m.interval.low <= m.value <= m.interval.high
            assert m.interval.low < m.interval.high


def test_a_release_larger_than_control_is_compared_at_its_size_too(wine, subject_of, measure):
    train, control = part(wine, slice(0, 100)), part(wine, slice(100, 140))
    found, _ = measure(Marginals(), subject_of(train, control, train))
    assert found["total_variation"].value == 0
    assert found["total_variation"].reference.candidate.value > 0


def test_shuffled_columns_are_as_good_as_real_ones(wine, subject_of, measure):
    rng = np.random.default_rng(0)
    train = part(wine, slice(None))
    shuffled = {name: rng.permutation(np.array(v, dtype=object)).tolist() for name, v in train.items()}
    found, _ = measure(Marginals(), subject_of(train, None, shuffled))
    assert all(m.value == 0 for m in found.values())


def test_more_labels_than_cells_for_resamples(subject_of, measure):
    names = np.repeat([f"n{i}" for i in range(3000)], 10)
    found, _ = measure(Marginals(), subject_of({"k": names[:20000]}, None, {"k": names[10000:]}))
    tv = found["total_variation", "k"]
    assert tv.value == pytest.approx(0.5)
    assert tv.interval.low < 0.5 < tv.interval.high


def test_few_rows_of_other_size_and_a_column_that_is_missing_throughout(subject_of, measure):
    some = {"x": np.arange(20.0), "k": ["a", "b"] * 10, "no": [None] * 20}
    specs = {"no": {"kind": "continuous"}}
    twice = {n: list(v) * 2 for n, v in some.items()}
    found, _ = measure(Marginals(), subject_of(some, {n: v[:3] for n, v in some.items()}, twice, **specs))
    assert {column for quantity, column in (k for k in found if isinstance(k, tuple))} == {"no"}
    found, _ = measure(Marginals(), subject_of(some, None, twice, **specs))
    assert found["total_variation"].value == 0
    assert found["total_variation", "no"].value == 0
    assert found["total_variation"].interval.high > 0
    judged = [m for m in found.values() if m.interval is not None]
    assert all(np.isfinite([m.value, m.interval.low, m.interval.high]).all() for m in judged)


def comparable(found):
    return {key: (m.value, m.reference and m.reference.value) for key, m in found.items()}


def test_how_few_hold_a_label_is_not_told(subject_of, measure):
    control = of_labels({"a": 60, "b": 38, "rare": 2})
    release = of_labels({"a": 110, "b": 85, "rare": 5})

    def numbers(rare, other):
        train = of_labels({"a": 100, "b": 100 - rare - other, "rare": rare, "other": other})
        return comparable(measure(Marginals(), subject_of(train, control, release))[0])

    assert numbers(3, 0) == numbers(7, 0) == numbers(1, 6)
    assert ("total_variation", "k") in numbers(0, 0)  # control holds it, so the release did not invent it


def test_how_few_control_rows_hold_a_label_is_not_told_either(subject_of, measure):
    train, release = (of_labels({"a": 100, "b": 60, "c": 40}), of_labels({"a": 90, "b": 60, "c": 50}))

    def numbers(few):
        control = of_labels({"a": 60, "b": 40 - few, "c": few})
        return comparable(measure(Marginals(), subject_of(train, control, release))[0])

    assert numbers(3) == numbers(7)
    assert numbers(3)["total_variation", "k"] == pytest.approx((0.05, 0.1))
    assert numbers(12)["total_variation", "k"] == pytest.approx((0.05, 0.1))


def test_invented_labels_are_seen_beside_joined_ones(subject_of, measure):
    real = of_labels({"a": 100, "b": 80, "rare": 9, "rarer": 11})
    made = of_labels({"a": 100, "b": 40, "rare": 20, "invented": 40})
    found, _ = measure(Marginals(), subject_of(real, real, made))
    assert found["total_variation", "k"].value == pytest.approx(0.2)
    assert found["chi_square", "k"].value == 1
    assert found["total_variation", "k"].reference.value == 0


def test_a_column_of_which_nothing_can_be_told_is_left_out_and_counted(subject_of, measure):
    real = of_labels({"a": 97, "rare": 3})
    found, findings = measure(Marginals(), subject_of(real, None, of_labels({"a": 50, "rare": 50})))
    assert not {"total_variation", "hellinger", "chi_square"} & {k[0] for k in found if k[1] == "k"}
    assert found["total_variation"].value == found["worst_total_variation"].value
    assert len(findings.notes) == 1
    assert ": 1;" in findings.notes[0]
    _, findings = measure(Marginals(), subject_of({"x": np.arange(100.0)}, None, {"x": np.arange(100.0)}))
    assert not findings.notes


def test_the_value_of_the_few_who_differ_is_not_told(subject_of, measure):
    def found(n_train, n_control):
        train, control = np.zeros(300), np.zeros(200)
        train[:n_train], control[:n_control] = 48213.0, 7.0
        made = np.where(np.arange(300) < 30, 10000.0, 0.0)
        varied = np.arange(300.0)
        subject = subject_of(
            {"award": train, "x": varied},
            {"award": control, "x": varied[:200]},
            {"award": made, "x": varied},
            award={"kind": "continuous"},
        )
        found, findings = measure(Marginals(), subject)
        return {key[0] for key in found if key[1] == "award"}, findings.notes

    for few in ((1, 0), (9, 50), (50, 9)):
        assert found(*few)[0] == set()
        assert len(found(*few)[1]) == 2
    assert found(10, 0) == ({"total_variation", "hellinger", "ks", "wasserstein"}, ())
    assert found(50, 10) == ({"total_variation", "hellinger", "ks", "wasserstein"}, ())


def test_few_control_rows_leave_fewer_cells_and_not_none(subject_of, measure):
    x = np.random.default_rng(0).normal(size=300)
    found, findings = measure(Marginals(), subject_of({"x": x}, {"x": x[:60]}, {"x": x + 100}))
    [series] = findings.series
    assert 4 <= len([label for label in series.x if label not in ("missing", "all others")]) <= 6
    assert found["total_variation", "x"].value > 0.7


def test_missing_values_told_on_their_own_do_not_give_away_a_rare_label(subject_of, measure):
    def numbers(rare):
        real = of_labels({"a": 88 - rare, "b": 100, "rare": rare, None: 12})
        return comparable(measure(Marginals(), subject_of(real, None, of_labels({"a": 150, "b": 50})))[0])

    assert numbers(2) == numbers(8)


def test_one_spoilt_column_of_many_is_the_worst(subject_of, measure):
    rng = np.random.default_rng(0)
    real, control, made = ({f"x{i}": rng.normal(size=300) for i in range(10)} for _ in range(3))
    made["x3"] = np.full(300, np.median(real["x3"]))
    found, _ = measure(Marginals(), subject_of(real, control, made))
    worst, own = found["worst_total_variation"], found["total_variation", "x3"]
    assert worst.value == own.value > 0.85
    assert worst.reference.value == max(found["total_variation", f"x{i}"].reference.value for i in range(10))
    assert worst.interval.low < own.interval.low < own.interval.high < worst.interval.high
    assert "corrected for 10 columns" in worst.interval.method
    assert found["total_variation"].value < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m", "shift"), [(400, 400, 0.0), (400, 400, 0.3), (1000, 200, 0.3)])
def test_intervals_cover_what_such_samples_give_on_average(n, m, shift, subject_of, measure):
    rng = np.random.default_rng(0)

    def people(rows, moved):
        z = rng.normal(size=rows)
        return {
            "x": z + 0.5 * rng.normal(size=rows) + moved,
            "y": np.exp(z + moved),
            "k": rng.choice(list("abcd"), rows, p=[0.4 + moved / 4, 0.3 - moved / 4, 0.2, 0.1]),
            "b": np.where(z + rng.normal(size=rows) + moved > 0, "u", "v"),
            "m": [x if rng.random() > 0.1 + moved / 4 else None for x in rng.poisson(2, rows).tolist()],
        }

    runs = [
        measure(Marginals(), subject_of(people(n, 0.0), None, people(m, shift)), seed)[0]
        for seed in range(300)
    ]
    for name in ("total_variation", "hellinger", "ks", "wasserstein", "missingness"):
        mean = np.mean([r[name].value for r in runs])
        assert np.mean([r[name].interval.low <= mean <= r[name].interval.high for r in runs]) >= 0.9, name
