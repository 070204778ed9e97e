"""Typical, covered and new rows: closed forms, references, copies, bad input, and what pictures tell."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.fidelity import coverage
from synth_audit.encode.embedding import EmbeddingSettings
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.neighbours.coordinates import Coordinates

AUDIT = coverage.Coverage(n_bootstrap=100)
SCORES = ("alpha_precision", "beta_recall", "auprc")


def people(n, rng):
    z = rng.normal(size=n)
    return {
        "age": np.clip(np.rint(45 + 15 * z), 18, 90),
        "sex": rng.choice(["f", "m"], n),
        "region": rng.choice(list("abcdef"), n, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05]),
        "income": pa.array(np.exp(10 + 0.5 * z + 0.3 * rng.normal(size=n)), mask=rng.random(n) < 0.1),
    }


def normal(n, rng, s=1.0, d=3):
    return {f"x{j}": s * rng.normal(size=n) for j in range(d)}


def taken(columns, rows):
    return {name: pa.array(values).take(pa.array(rows)) for name, values in columns.items()}


def pair(train, other):
    rows = (Coordinates.of(x) for x in (train, other))
    return coverage.RowsInSpace(*rows, np.zeros(len(train), dtype=bool), np.zeros(len(other), dtype=bool))


def test_control_as_the_candidate_is_its_own_reference(subject_of, measure):
    rng = np.random.default_rng(0)
    control = people(150, rng)
    found, _ = measure(AUDIT, subject_of(people(400, rng), control, control))
    assert set(found) == {*SCORES, "authenticity"}
    for m in found.values():
        assert m.value == m.reference.value
        assert m.interval == m.reference.interval
        assert m.reference.candidate is None


@pytest.mark.parametrize("order", ["as it is", "shuffled", "three times"])
def test_a_copy_covers_everything_and_has_nothing_new(order, subject_of, measure):
    rng = np.random.default_rng(1)
    train = people(300, rng)
    rows = {"as it is": np.arange(300), "shuffled": rng.permutation(300), "three times": np.arange(900) % 300}
    found, _ = measure(AUDIT, subject_of(train, people(100, rng), taken(train, rows[order])))
    for name in SCORES:
        assert found[name].value == pytest.approx(1.0, abs=1e-9)
        assert found[name].interval.low < 0.99
    assert found["authenticity"].value == 0.0
    assert 0 < found["authenticity"].interval.high < 0.02
    assert found["authenticity"].reference.interval.low > 0.2


def test_a_fresh_sample_is_at_its_reference_and_a_larger_one_is_compared_at_one_size(subject_of, measure):
    rng = np.random.default_rng(2)
    found, _ = measure(AUDIT, subject_of(people(800, rng), people(200, rng), people(800, rng)))
    for m in found.values():
        beside, alike = m.reference.interval, m.reference.candidate
        assert alike.value != m.value
        assert alike.interval.low <= beside.high
        assert beside.low <= alike.interval.high


@pytest.mark.parametrize("s", [0.6, 1.5])
def test_gaussians_reach_their_closed_form(s, subject_of, measure):
    from scipy.stats import chi2

    rng = np.random.default_rng(3)
    found, _ = measure(AUDIT, subject_of(normal(8000, rng), None, normal(8000, rng, s)))
    grid = (np.arange(2000) + 0.5) / 2000
    inside, covered = (chi2.cdf(chi2.ppf(grid, 3) * f, 3) for f in (1 / s**2, s**2))
    precision, recall = (1 - 2 * np.mean(np.abs(p - grid)) for p in (inside, covered))
    for name, truth in zip(SCORES, (precision, recall, precision * recall), strict=True):
        assert found[name].value == pytest.approx(truth, abs=0.015)
        assert found[name].interval.low <= truth <= found[name].interval.high


def test_each_fault_moves_its_number(subject_of, measure):
    rng = np.random.default_rng(4)
    train, control = normal(500, rng), normal(200, rng)

    def scores(made):
        found, _ = measure(AUDIT, subject_of(train, control, made))
        return {name: m.value for name, m in found.items()}

    honest, narrow = scores(normal(500, rng)), scores(normal(500, rng, 0.4))
    far = scores({name: x + 8 for name, x in normal(500, rng).items()})
    blurred = scores({name: x + rng.normal(0, 0.05, 500) for name, x in train.items()})
    assert narrow["alpha_precision"] < 0.5 < 0.9 < honest["alpha_precision"]
    assert narrow["beta_recall"] < 0.5 < 0.9 < honest["beta_recall"]
    assert far["auprc"] < 0.01
    assert far["authenticity"] > 0.8
    assert blurred["auprc"] > 0.9
    assert blurred["authenticity"] < 0.1 < 0.3 < honest["authenticity"]


def test_shuffled_columns_may_score_well(subject_of, measure):
    """Why a centre's distances are no measure of associations."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=1000)
    train = {"a": z + 0.5 * rng.normal(size=1000), "b": z + 0.5 * rng.normal(size=1000)}
    apart = {name: x[rng.permutation(1000)] for name, x in train.items()}
    found, _ = measure(AUDIT, subject_of(train, None, apart))
    assert found["alpha_precision"].value > 0.75


def test_without_control_there_is_no_reference(subject_of, measure):
    rng = np.random.default_rng(6)
    found, findings = measure(AUDIT, subject_of(people(300, rng), None, people(300, rng)))
    assert all(m.reference is None and m.interval is not None for m in found.values())
    assert {label for s in findings.series for label in s.lines} == {"synthetic rows"}


def test_only_so_many_rows_are_asked(subject_of, measure):
    rng = np.random.default_rng(7)
    subject = subject_of(people(400, rng), people(100, rng), people(400, rng))
    found, _ = measure(coverage.Coverage(n_bootstrap=100, max_queries=50), subject)
    assert (found["authenticity"].n_requested, found["authenticity"].n_achieved) == (50, 50)
    assert found["alpha_precision"].n_achieved == 400


def test_balls_of_large_tables_rest_on_a_sample_and_say_so(subject_of, measure):
    rng = np.random.default_rng(11)
    subject = subject_of(people(600, rng), people(200, rng), people(600, rng))
    audit = coverage.Coverage(n_bootstrap=100, max_queries=150, most_rows=150)
    (found, findings), (whole, _) = measure(audit, subject), measure(AUDIT, subject)
    assert [n.partition(";")[0] for n in findings.notes] == [
        "All but authenticity is read from 150 random rows of each larger table"
    ]
    drawn, all_rows = found["alpha_precision"], whole["alpha_precision"]
    assert (drawn.n_requested, drawn.n_achieved) == (600, 150)
    assert drawn.interval.high - drawn.interval.low > 1.3 * (all_rows.interval.high - all_rows.interval.low)
    assert 0 < abs(drawn.value - all_rows.value) < 0.15
    assert measure(audit, subject)[0] == found


def test_all_of_train_is_searched_for_copies_whatever_is_sampled(subject_of, measure):
    rng = np.random.default_rng(12)
    train = {name: x.tolist() for name, x in normal(500, rng).items()}
    copied = {name: [x[i] for i in range(499, -1, -1)] for name, x in train.items()}
    found, _ = measure(coverage.Coverage(n_bootstrap=100, most_rows=100), subject_of(train, None, copied))
    assert found["authenticity"].value == 0


def test_one_absurd_value_does_not_carry_the_centre_off(subject_of, measure):
    rng = np.random.default_rng(9)
    train, made = normal(400, rng), normal(400, rng)
    before, _ = measure(AUDIT, subject_of(train, None, made))
    wild = {**made, "x0": np.concatenate([[1e300], made["x0"][1:]])}
    after, _ = measure(AUDIT, subject_of(train, None, wild))
    for name in SCORES:
        assert after[name].value == pytest.approx(before[name].value, abs=0.05)


def bad_input(rng):
    train, control, made = people(120, rng), people(60, rng), people(90, rng)
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)

    def dated(n):
        days = rng.integers(0, 3000, n).tolist()
        when = pa.array([start + datetime.timedelta(days=d) for d in days], pa.timestamp("us", "UTC"))
        return {"when": when, "flag": rng.random(n) < 0.3}

    gone = pa.nulls(120, pa.float64())
    return {
        "unseen category": (train, control, {**made, "region": np.full(90, "new")}),
        "constant in synthetic only": (train, control, {**made, "age": np.full(90, 40.0)}),
        "missing in synthetic only": (train, control, {**made, "income": pa.nulls(90, pa.float64())}),
        "missing in train": ({**train, "income": gone}, control, made),
        "ten rows": tuple(taken(t, np.arange(10)) for t in (train, control, made)),
        "one synthetic row": (train, control, taken(made, [0])),
        "dates and flags": (dated(120), dated(60), dated(90)),
        "more columns than rows": tuple(normal(60, rng, d=80) for _ in range(3)),
        "many labels": tuple({"a": rng.permutation(n).astype(str)[:90]} for n in (300, 200, 250)),
        "doubles": tuple(taken(t, np.arange(80) % 7) for t in (train, control, made)),
    }


@pytest.mark.parametrize("case", bad_input(np.random.default_rng(0)))
def test_bad_input_is_measured(case, subject_of, measure):
    subject = subject_of(*bad_input(np.random.default_rng(10))[case])
    found, findings = measure(AUDIT, subject)
    for m in found.values():
        assert m.finite
        assert 0 <= m.value <= 1 + 1e-9
        assert m.interval.low < m.interval.high
        assert m.interval.low - 1e-9 <= m.value <= m.interval.high + 1e-9
    assert all(np.isfinite(ys).all() for s in findings.series for ys in s.lines.values())


def test_one_row_says_next_to_nothing(subject_of, measure):
    rng = np.random.default_rng(11)
    found, _ = measure(AUDIT, subject_of(people(200, rng), None, taken(people(5, rng), [0])))
    for m in found.values():
        assert m.interval.high - m.interval.low > 0.7


def test_a_table_that_does_not_vary_has_no_centre(subject_of):
    same = {"a": np.ones(50), "b": np.full(50, "x")}
    with pytest.raises(NotApplicable, match="no column varies"):
        AUDIT.run(subject_of(same, same, same), RunContext(draws=np.random.default_rng(0)))


def test_pictures_tell_of_no_fewer_rows_than_they_may(subject_of, measure):
    rng = np.random.default_rng(12)
    n, n_control, k = 230, 170, 20
    subject = subject_of(people(n, rng), people(n_control, rng), people(100, rng), suppression=k)
    _, findings = measure(AUDIT, subject)
    precision, recall = findings.series
    assert (precision.id.quantity, recall.id.quantity) == ("precision_curve", "recall_curve")
    assert min(precision.x) * n >= k
    assert (1 - max(precision.x)) * n >= k
    for series, label, rows in (
        (precision, "control rows", 100),  # as many control rows are compared as the release has
        (recall, "control rows", n),
        (recall, "synthetic rows", n),
    ):
        counts = np.array(series.lines[label]) * rows / k
        assert counts[counts < rows / k] == pytest.approx(np.rint(counts[counts < rows / k]), abs=1e-9)
    assert np.abs(np.array(recall.lines["control rows"]) - np.array(recall.x)).max() < 0.3
    few, _ = people(30, rng), None
    _, nothing = measure(AUDIT, subject_of(few, None, few, suppression=20))
    assert nothing.series == ()


def test_training_rows_with_a_double_are_told_of_unless_they_are_few(subject_of, measure):
    rng = np.random.default_rng(13)
    many = taken(people(100, rng), np.arange(200) % 100)
    _, findings = measure(AUDIT, subject_of(many, None, people(50, rng)))
    assert "100% of the training rows" in findings.notes[0]
    few = taken(people(100, rng), np.r_[np.arange(100), 0, 1])
    _, findings = measure(AUDIT, subject_of(few, None, people(50, rng)))
    assert findings.notes == ()


def test_the_embedding_is_learnt_once_and_sees_a_copy(subject_of, measure, monkeypatch):
    pytest.importorskip("torch")
    from synth_audit.encode import embedding

    learnt = []
    in_order = embedding._in_order
    monkeypatch.setattr(embedding, "_in_order", lambda inputs: learnt.append(1) or in_order(inputs))
    rng = np.random.default_rng(14)
    train, control = people(300, rng), people(100, rng)
    found, findings = measure(
        coverage.Coverage(
            spaces=("features", "embedding"),
            embedding_settings=EmbeddingSettings(width=32, max_epochs=5),
            n_bootstrap=100,
        ),
        subject_of(train, control, train),
    )
    assert len(learnt) == 1
    for name in SCORES:
        assert found[name, "embedding"].value == pytest.approx(1.0, abs=1e-9)
    assert found["authenticity", "embedding"].value == 0.0
    assert found["authenticity", "embedding"].reference.value > 0.2
    assert [s.id.setting for s in findings.series] == ["", "", "embedding", "embedding"]
    assert found["auprc"].reference is not None


def test_a_part_of_the_rows_gives_the_precision_of_all():
    """Weights of a part vary as little as the whole table would."""
    rng = np.random.default_rng(15)
    both = pair(rng.normal(size=(4000, 3)), 0.7 + rng.normal(size=(2000, 3)))
    whole = coverage.resampled(both, 4000, 150, rng).std(axis=0)
    part = coverage.resampled(both, 800, 150, rng).std(axis=0)
    assert part == pytest.approx(whole, rel=0.35)
    assert coverage.drawn_part(both.train, 800, rng).numbers.shape == (800, 3)


def test_the_interval_of_scores_grows_where_rows_are_few():
    rng = np.random.default_rng(16)
    both = pair(rng.normal(size=(500, 2)), np.zeros((2, 2)))
    found = coverage.scored(coverage.Curves.of(both), both, coverage.resampled(both, 500, 100, rng), 0.95)
    z = 1.959964
    assert found["alpha_precision"].interval.high - found["alpha_precision"].value >= z**2 / (2 + z**2) - 1e-6


def test_a_row_does_not_draw_its_centre_nearer(subject_of, measure):
    """More labels than rows: from a mean with itself in it every training row is nearer than a stranger."""
    rng = np.random.default_rng(19)

    def labels(n):
        return {f"k{j}": rng.integers(0, 80, n).astype(str) for j in range(30)}

    train, control, made = labels(300), labels(200), labels(300)
    honest, _ = measure(AUDIT, subject_of(train, control, made))
    copied, _ = measure(AUDIT, subject_of(train, control, taken(train, rng.permutation(300))))
    for name in SCORES:
        assert honest[name].value > 0.75
        assert copied[name].value == pytest.approx(1.0, abs=1e-9)


COVERED = {
    "wider": (300, 200, lambda n, rng: 1.3 * rng.normal(size=(n, 4))),
    "shifted": (300, 200, lambda n, rng: 0.8 + rng.normal(size=(n, 4))),
    "few training rows": (100, 600, lambda n, rng: 0.8 + rng.normal(size=(n, 4))),
    "rounded": (300, 300, lambda n, rng: np.round(1.3 * rng.normal(size=(n, 4)))),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", COVERED)
def test_intervals_of_scores_hold_their_level(case):
    n, m, draw = COVERED[case]
    rng = np.random.default_rng(17)
    real = (lambda n: np.round(rng.normal(size=(n, 4)))) if case == "rounded" else (
        lambda n: rng.normal(size=(n, 4))
    )  # fmt: skip
    truth = coverage.Curves.of(pair(real(100_000), draw(100_000, rng))).scores
    held = []
    for _ in range(200):
        both = pair(real(n), draw(m, rng))
        found = coverage.scored(
            coverage.Curves.of(both), both, coverage.resampled(both, 5000, 100, rng), 0.95
        ).values()
        held.append([e.interval.low <= t <= e.interval.high for e, t in zip(found, truth, strict=True)])
    assert np.mean(held, axis=0).min() >= 0.89


@pytest.mark.slow
def test_the_interval_of_authenticity_holds_for_the_training_rows_at_hand():
    rng = np.random.default_rng(18)
    train = rng.normal(size=(200, 3))
    many = pair(train, rng.normal(size=(40_000, 3)))
    truth = coverage.authenticity(many.other, many.train, 0.95, rng).value
    held = []
    for _ in range(300):
        few = pair(train, rng.normal(size=(150, 3)))
        found = coverage.authenticity(few.other, few.train, 0.95, rng)
        held.append(found.interval.low <= truth <= found.interval.high)
    assert np.mean(held) >= 0.93
