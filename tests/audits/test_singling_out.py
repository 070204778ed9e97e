"""Singling out on tables whose answer is known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from synth_audit.audits.privacy.singling_out import SinglingOut
from synth_audit.errors import NotApplicable

RISKS = ("risk", "worst_risk")


def records(n, seed):
    rng = np.random.default_rng(seed)
    return {
        "money": np.rint(np.exp(rng.normal(5, 1.5, n))),
        "age": rng.integers(18, 90, n),
        "place": rng.choice(list("abcdefgh"), n, p=np.array([40, 25, 15, 8, 6, 3, 2, 1]) / 100),
        "job": rng.choice(list("uvwxyz"), n),
        "flag": rng.random(n) < 0.2,
        "score": rng.normal(size=n),
    }


def rows(frame, which):
    return {name: np.asarray(values)[which] for name, values in frame.items()}


def mixture(train, other, share):
    n = len(train["age"])
    return {c: np.where(np.arange(n) < share * n, train[c], other[c]) for c in train}


QUICK = SinglingOut(n_attacks=500, n_minimum=100, multivariate=(4,))
SETTINGS = ("univariate", "multivariate[4]")


@pytest.mark.parametrize("n_control", [100, 400, 900])
def test_a_copy_is_singled_out_whole_whatever_the_size_of_control(n_control, subject_of, measure):
    train = records(400, 1)
    shuffled = rows(train, np.random.default_rng(0).permutation(400))
    found, findings = measure(QUICK, subject_of(train, records(n_control, 2), shuffled))
    for scope in SETTINGS:
        assert found["train_rate", scope].value == 1
        assert found["risk", scope].value > 0.97
        assert found["risk", scope].interval.low > 0.9
    assert found["worst_risk"].value > 0.97
    assert found["worst_risk"].interval.low > 0.9
    for exposure in findings.exposures:
        assert len(exposure.train_hit) > 100
        assert len(exposure.control_hit) / n_control < len(exposure.train_hit) / 400


@pytest.mark.parametrize("n_control", [150, 600, 1200])
def test_fresh_rows_single_out_strangers_as_often(n_control, subject_of, measure):
    found, _ = measure(QUICK, subject_of(records(600, 1), records(n_control, 2), records(600, 3)))
    for scope in SETTINGS:
        risk = found["risk", scope]
        assert (
            abs(risk.value) < risk.interval.high - risk.interval.low
        )  # two intervals wide: no luck with seeds
    assert found["worst_risk"].interval.low <= 0
    assert found["worst_risk"].reference.value == 0


def test_the_risk_grows_with_the_share_of_copies(subject_of, measure):
    train, other, control = records(600, 1), records(600, 3), records(200, 2)
    shares = (0, 0.25, 0.5, 0.75, 1)
    found = [measure(QUICK, subject_of(train, control, mixture(train, other, s)))[0] for s in shares]
    alone = [f["risk", "univariate"].value for f in found]
    assert alone == pytest.approx(shares, abs=0.12)
    # Training rows that were not copied can stand beside the one that was, so joins lag behind until all are.
    joined = [f["risk", "multivariate[4]"].value for f in found]
    assert (np.diff(joined) > 0.05).all()
    assert joined[-1] > 0.97


def test_few_unique_values_on_a_full_copy_are_near_one(subject_of, measure):
    """Thirty-one predicates exist and all succeed: the denominator is 31, whatever was requested."""
    values = np.r_[np.arange(1000, 1029), np.repeat(np.arange(1029, 1040), 10)]  # 29 single values, one end
    strangers = {"x": np.repeat(np.arange(0, 14), 10)}
    train = {"x": np.r_[values, np.full(1, 1040)]}
    found, _ = measure(SinglingOut(), subject_of(train, strangers, train))
    risk = found["risk", "univariate"]
    assert (risk.n_requested, risk.n_achieved) == (2000, 32)  # 30 values, both extremes
    assert found["train_rate", "univariate"].value == 1
    assert risk.value > 0.8
    assert risk.interval.low > 0.7
    assert risk.short
    assert found["worst_risk"].short
    assert found["worst_risk"].value == risk.value


def labels(n, seed, width=12):
    rng = np.random.default_rng(seed)
    return {f"k{i}": rng.choice(["u", "v"], n) for i in range(width)}


def discrete_with_extremes(n, seed):
    """Labels, and one number whose only unique values are a few extremes."""
    rng = np.random.default_rng(seed)
    return labels(n, seed) | {"x": np.rint(rng.normal(0, 1.5, n))}


def test_a_handful_of_extremes_does_not_block_a_table_of_labels(subject_of, measure):
    audit = SinglingOut(n_attacks=500, n_minimum=100, multivariate=(10,))
    train, control, fresh = (discrete_with_extremes(500, s) for s in (1, 2, 3))
    found, findings = measure(audit, subject_of(train, control, fresh))
    few = found["risk", "univariate"]
    assert few.short
    assert 0 < few.n_achieved < 100
    worst = found["worst_risk"]
    assert not worst.short
    assert worst.n_achieved == found["risk", "multivariate[10]"].n_achieved
    assert worst.interval.high < few.interval.high
    assert any("univariate" in note for note in findings.notes)


def test_a_short_setting_that_proves_a_risk_is_the_worst(subject_of, measure):
    """Forty single values are copied into an otherwise honest release."""
    train, control, fresh = (labels(500, s) for s in (1, 2, 3))
    secret = np.r_[np.arange(40) * 17 + 9_000, np.repeat([1, 2], 230)]
    nothing = np.repeat([1, 2], 250)
    audit = SinglingOut(n_attacks=500, n_minimum=100, multivariate=(6, 10))
    found, _ = measure(
        audit,
        subject_of(train | {"x": secret}, control | {"x": nothing}, fresh | {"x": secret[::-1].copy()}),
    )
    assert found["risk", "univariate"].short
    assert not found["worst_risk"].short
    assert found["worst_risk"].value == found["risk", "univariate"].value > 0.8
    assert found["worst_risk"].interval.low > 0.7


def test_the_worst_is_corrected_for_the_number_of_settings(subject_of, measure):
    subject = subject_of(records(500, 1), records(500, 2), records(500, 3))
    found, _ = measure(SinglingOut(n_attacks=400, n_minimum=100, multivariate=(2, 4, 6)), subject)
    risks = [m for key, m in found.items() if key[0] == "risk"]
    assert len(risks) == 4
    worst = found["worst_risk"]
    assert worst.value == max(m.value for m in risks)
    assert worst.interval.high > max(m.interval.high for m in risks)
    assert worst.interval.level == 0.95
    assert "4 settings" in worst.interval.method


def test_pairing_where_sizes_are_equal(subject_of, measure):
    train = records(300, 1)
    found, _ = measure(QUICK, subject_of(train, records(300, 2), mixture(train, records(300, 3), 0.5)))
    paired, plain = found["paired_risk", "multivariate[4]"], found["risk", "multivariate[4]"]
    assert paired.value == pytest.approx(plain.value, abs=0.02)
    found, _ = measure(QUICK, subject_of(train, records(200, 2), records(300, 3)))
    assert not any(key[0] == "paired_risk" for key in found)


def test_exposures_are_the_records_singled_out(subject_of, measure):
    train, other = records(300, 1), records(300, 3)
    made = mixture(train, other, 0.2)
    _, findings = measure(QUICK, subject_of(train, records(300, 2), made))
    assert [e.measurement.setting for e in findings.exposures] == list(SETTINGS)
    for exposure in findings.exposures:
        assert np.array_equal(exposure.train_tried, np.arange(300))
        assert not len(exposure.control_tried), "their rate among strangers is no rate per record"
        assert (np.diff(exposure.train_hit) > 0).all()
        assert 1 <= len(exposure.columns) <= 5
        assert set(exposure.columns) <= set(train)
    exposed = findings.exposures[0].train_hit
    assert np.mean(exposed < 60) > 0.5  # the copies come first
    assert "score" in findings.exposures[0].columns


def test_columns_drawn_from_real_values_are_named_though_no_row_is_copied(subject_of, measure):
    """Independent columns: `money` and `score` are drawn from train's own values, `age` has few of them."""
    rng, train = np.random.default_rng(0), records(600, 1)
    drawn = {name: rng.permutation(values) for name, values in train.items()}
    _, findings = measure(QUICK, subject_of(train, records(200, 2), drawn))
    by_column = {m.id.column: m for m in findings.measurements if m.id.quantity == "exact_values"}
    assert by_column["score"].value > 0.9
    assert by_column["score"].interval.low > 0.7
    [note] = [n for n in findings.notes if "exact values of real people" in n]
    assert note.index("score") < note.index("Round")
    assert "place" not in note
    rounded = drawn | {"score": drawn["score"].round(1), "money": np.ceil(drawn["money"] / 100) * 100}
    real = [
        t | {"score": t["score"].round(1), "money": np.ceil(t["money"] / 100) * 100}
        for t in (train, records(200, 2))
    ]
    _, mended = measure(QUICK, subject_of(*real, rounded))
    assert not any("exact values" in n and "score" in n for n in mended.notes)


@pytest.mark.parametrize("made", [{"k": ["a", "a", "b", "b"]}, {"k": ["a"] * 4}, {"k": [None] * 4}])
def test_nothing_unique_is_not_applicable(made, subject_of, measure):
    real = {"k": ["a", "a", "b", "c"]}
    with pytest.raises(NotApplicable, match="exactly one synthetic row"):
        measure(SinglingOut(), subject_of(real, real, made))


@pytest.mark.parametrize("n_made", [320, 440, 2000])
def test_copies_do_not_hide_by_being_repeated_in_a_larger_release(n_made, subject_of, measure):
    train, control = records(200, 1), records(100, 2)
    found, _ = measure(QUICK, subject_of(train, control, rows(train, np.arange(n_made) % 200)))
    assert found["worst_risk"].interval.low > 0.9
    assert found["train_rate", "univariate"].value == 1
    found, _ = measure(QUICK, subject_of(train, control, records(n_made, 3)))
    assert found["worst_risk"].interval.low <= 0


def test_what_repeats_more_often_than_the_size_explains_is_not_guessed_at(subject_of, measure):
    train = records(200, 1)
    with pytest.raises(NotApplicable):
        measure(QUICK, subject_of(train, records(100, 2), rows(train, np.arange(200) % 50)))
    with pytest.raises(NotApplicable):
        measure(QUICK, subject_of(train, records(100, 2), rows(train, np.arange(400) % 100)))


def test_a_setting_without_a_guess_is_seen_to_have_none(subject_of, measure):
    train, control, made = (
        {"x": np.repeat(np.arange(150), 2) + s, "k": np.tile(["a", "b"], 150)} for s in (0, 1, 0)
    )
    found, _ = measure(
        SinglingOut(n_attacks=200, n_minimum=100, multivariate=(2,)), subject_of(train, control, made)
    )
    risk = found["risk", "univariate"]
    assert (risk.n_achieved, risk.short, risk.finite) == (0, True, False)
    assert math.isinf(risk.interval.high)
    assert found["worst_risk"].finite
    assert found["worst_risk"].interval.method.endswith("1 settings")


def test_settings_wider_than_the_table_are_the_table(subject_of, measure):
    names = ("age", "place", "score")
    narrow = [{c: records(200, s)[c] for c in names} for s in (1, 2, 3)]
    found, _ = measure(SinglingOut(n_attacks=200, n_minimum=100, multivariate=(2, 4, 8)), subject_of(*narrow))
    assert {key[1] for key in found if key[0] == "risk"} == {
        "univariate",
        "multivariate[2]",
        "multivariate[3]",
    }
    one = [{"score": frame["score"]} for frame in narrow]
    found, _ = measure(SinglingOut(n_attacks=200, n_minimum=100), subject_of(*one))
    assert {key[1] for key in found if key[0] == "risk"} == {"univariate"}


def test_huge_numbers_gaps_and_constants_survive(subject_of, measure):
    def spoilt(seed):
        frame = records(150, seed)
        frame["money"] = np.r_[1e200, -1e200, frame["money"][2:]]
        frame["score"] = np.where(np.arange(150) % 3 == 0, np.nan, frame["score"])
        return frame | {"none": [None] * 150, "same": ["s"] * 150}

    found, _ = measure(QUICK, subject_of(spoilt(1), spoilt(2), spoilt(3)))
    assert all(m.finite for m in found.values())
    found, _ = measure(QUICK, subject_of(spoilt(1), spoilt(2), spoilt(1)))
    assert found["worst_risk"].value > 0.95


def test_naive_guesses_do_not_read_the_release(subject_of, measure):
    train, control = records(400, 1), records(400, 2)
    rates = []
    for made in (train, records(400, 3)):
        found, _ = measure(
            SinglingOut(n_attacks=400, n_minimum=100, multivariate=(4,)), subject_of(train, control, made)
        )
        naive = found["naive_rate", "multivariate[4]"]
        assert naive.n_achieved == found["risk", "multivariate[4]"].n_achieved
        rates.append(naive.value)
    assert max(rates) < 0.2
    assert rates[0] == pytest.approx(rates[1], abs=0.06)


class TestEmbedding:
    pytestmark = pytest.mark.filterwarnings("default")

    @pytest.fixture
    def outliers_only(self, monkeypatch):
        """The attack with a stand-in for the network: standardised numbers."""
        from synth_audit.audits.privacy import singling_out
        from synth_audit.encode.encoded import Encoded

        def embed(train, tables, columns, *, settings, context):
            return Encoded(tables, columns, [train]).coordinates()

        monkeypatch.setattr(singling_out, "embed", embed)
        return SinglingOut(univariate=False, multivariate=(), embedding=True, n_attacks=200, n_minimum=100)

    def test_a_copy_and_a_fresh_sample(self, outliers_only, subject_of, measure):
        train, control, fresh = records(300, 1), records(300, 2), records(300, 3)
        found, _ = measure(outliers_only, subject_of(train, control, train))
        assert found["risk", "embedding"].n_achieved == 200
        assert found["worst_risk"].value > 0.95
        found, _ = measure(outliers_only, subject_of(train, control, fresh))
        interval = found["risk", "embedding"].interval
        assert interval.low <= 0 <= interval.high

    def test_as_published_by_so_many_columns(self, outliers_only, subject_of, measure):
        published = replace(outliers_only, embedding=False, embedding_columns=(3, 4, 99))
        train, control, fresh = records(300, 1), records(300, 2), records(300, 3)
        found, _ = measure(published, subject_of(train, control, train))
        settings = [s for quantity, s in (k for k in found if isinstance(k, tuple)) if quantity == "risk"]
        assert settings == ["embedding[3]", "embedding[4]", f"embedding[{len(train)}]"]
        assert found["worst_risk"].value > 0.95
        found, _ = measure(published, subject_of(train, control, fresh))
        assert found["worst_risk"].interval.low <= 0

    @pytest.mark.slow
    def test_with_the_network(self, subject_of, measure):
        pytest.importorskip("torch")
        train, control = records(400, 1), records(200, 2)
        audit = SinglingOut(univariate=False, multivariate=(), embedding=True, n_attacks=200, n_minimum=100)
        found, _ = measure(audit, subject_of(train, control, train))
        assert found["worst_risk"].value > 0.95
