"""What differential privacy costs, against dp-accounting, opacus, closed forms and brute force."""

import copy
import math
import os
import pickle
from dataclasses import dataclass, replace

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.integrate import quad
from scipy.stats import binom, norm

from synth_audit.dp.accountant import Accountant
from synth_audit.dp.composition import by_basic, by_pld, by_rdp, fits, gaussian_epsilon, spent
from synth_audit.dp.guarantee import Budget, Mechanism, MechanismRecord, Neighbouring, PrivacyGuarantee, Unit
from synth_audit.dp.mechanisms import bound_contributions, gaussian_noise
from synth_audit.errors import BudgetSpent, PlanError, PluginError

ADD, REPLACE = Neighbouring.ADD_OR_REMOVE, Neighbouring.REPLACE
DELTA = 1e-5
LARGE = Budget(1e3, DELTA)


def record(mechanism: Mechanism, **parameters) -> MechanismRecord:
    return MechanismRecord(what="a sum", mechanism=mechanism, **parameters)


def sampled(q: float, noise: float, steps: int, rows: int = 1) -> MechanismRecord:
    kind = Mechanism.POISSON_SUBSAMPLED_GAUSSIAN
    return record(kind, sampling_rate=q, noise_multiplier=noise, count=steps, rows=rows)


def gaussian(noise: float, count: int = 1, rows: int = 1) -> MechanismRecord:
    return record(Mechanism.GAUSSIAN, noise_multiplier=noise, count=count, rows=rows)


def accountant(budget: Budget | None = LARGE, **settings_) -> Accountant:
    return Accountant(budget, **({"unit": Unit.ENTITY} | settings_))


@dataclass(frozen=True)
class ToyModel:
    mean: float
    accountant: Accountant

    @property
    def guarantee(self) -> PrivacyGuarantee | None:
        return self.accountant.guarantee()

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(self.mean, 1.0, n)


@dataclass(frozen=True)
class Toy:
    """A generator that releases a noisy mean of numbers declared to lie in [0, 1]."""

    noise_multiplier: float

    def fit(self, train: np.ndarray, accountant: Accountant) -> ToyModel:
        accountant.domain("declared")
        accountant.gaussian(self.noise_multiplier, what="the sum")
        total = np.clip(train, 0, 1).sum() + gaussian_noise(self.noise_multiplier, 1)[0]
        return ToyModel(float(total) / 1000, accountant)


# --- sums ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("q", "noise", "steps", "delta"), [(0.02, 2.0, 100, 1e-5), (1.0, 5.0, 4, 1e-6)])
def test_sums_are_those_of_dp_accounting(q, noise, steps, delta):
    one = [sampled(q, noise, steps)]
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(noise)), steps)
    rdp = RdpAccountant().compose(event).get_epsilon(delta)
    pld = PLDAccountant().compose(event).get_epsilon(delta)
    assert by_rdp(one, delta, ADD).epsilon == pytest.approx(rdp, rel=1e-9)
    assert by_pld(one, delta, ADD).epsilon == pytest.approx(pld, rel=1e-6)
    smallest = spent(one, delta, ADD)
    assert smallest.epsilon == pytest.approx(min(rdp, pld), rel=1e-6)
    assert smallest.accountant.startswith("privacy loss distributions")


# q, noise, steps, delta, and what opacus 1.6.0 says
OPACUS = [(0.01, 1.1, 1000, 1e-5, 1.7117700912203435), (0.2, 4.0, 30, 1e-6, 1.3987679474300683)]


@pytest.mark.parametrize(("q", "noise", "steps", "delta", "theirs"), OPACUS)
def test_the_renyi_sum_is_what_opacus_once_said(q, noise, steps, delta, theirs):
    assert by_rdp([sampled(q, noise, steps)], delta, ADD).epsilon == pytest.approx(theirs, rel=1e-3)


@pytest.mark.slow  # imports torch
@pytest.mark.parametrize(("q", "noise", "steps", "delta", "once"), OPACUS)
def test_the_renyi_sum_is_that_of_opacus(q, noise, steps, delta, once):
    opacus = pytest.importorskip("opacus.accountants.analysis.rdp")
    orders = [1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64))
    rdp = opacus.compute_rdp(q=q, noise_multiplier=noise, steps=steps, orders=orders)
    theirs, _ = opacus.get_privacy_spent(orders=orders, rdp=rdp, delta=delta)
    assert by_rdp([sampled(q, noise, steps)], delta, ADD).epsilon == pytest.approx(theirs, rel=1e-3)
    assert theirs == pytest.approx(once)


def _gaussian_delta(epsilon: float, noise: float) -> float:
    """Balle and Wang 2018, theorem 8."""
    return norm.cdf(0.5 / noise - epsilon * noise) - math.exp(epsilon) * norm.cdf(
        -0.5 / noise - epsilon * noise
    )


@pytest.mark.parametrize("noise", [0.7, 2.0, 8.0])
def test_one_gaussian_has_its_closed_form(noise):
    epsilon = by_pld([gaussian(noise)], DELTA, ADD).epsilon
    assert _gaussian_delta(epsilon, noise) <= DELTA
    assert _gaussian_delta(epsilon - 1e-3, noise) > DELTA
    nine = by_pld([gaussian(3 * noise, count=9)], DELTA, ADD).epsilon
    assert nine == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(
    ("mu", "delta"), [(1e-3, 1e-12), (0.05, 1e-9), (1.5, 1e-5), (8.0, 0.1), (500.0, 1e-5)]
)
def test_what_gaussian_noise_costs_is_rounded_up_and_no_further(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    assert _lost(epsilon, mu) <= delta < _lost(epsilon * (1 - 1e-5), mu)


def _lost(epsilon: float, mu: float) -> float:
    """∫ (p − e^ε q)⁺ for unit normals p and q that are ``mu`` apart, from where the losses exceed ε."""
    first = epsilon / mu + mu / 2
    density = norm(mu).pdf
    lost = quad(lambda x: -density(x) * math.expm1(mu * (first - x)), first, first + 12, epsabs=0, limit=200)
    return lost[0]


def test_noise_that_hides_all_but_delta_costs_nothing():
    assert gaussian_epsilon(2 * norm.ppf(0.5 + 0.99 * DELTA / 2), DELTA) == 0
    assert gaussian_epsilon(2 * norm.ppf(0.5 + 1.01 * DELTA / 2), DELTA) > 0


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_many_gaussians_are_summed_as_their_privacy_losses(relation):
    several = [gaussian(2.0), gaussian(9.0, count=20), gaussian(7.0, count=2, rows=2)]
    exact, convolved = spent(several, DELTA, relation), by_pld(several, DELTA, relation)
    assert exact.epsilon == pytest.approx(convolved.epsilon, rel=1e-4)
    assert exact.accountant == "the exact sum of Gaussian mechanisms"
    assert fits(several, Budget(exact.epsilon, DELTA), relation)
    assert not fits(several, Budget(exact.epsilon * (1 - 1e-9), DELTA), relation)
    more = [*several, record(Mechanism.PURE, epsilon=1e-3)]
    assert spent(more, DELTA, relation).accountant.startswith("privacy loss distributions")


def _worst_delta(upper: np.ndarray, lower: np.ndarray, step: float, epsilon: float) -> float:
    gaps = (
        np.clip(a - math.exp(epsilon) * b, 0, None).sum() * step for a, b in ((upper, lower), (lower, upper))
    )
    return max(gaps)


@pytest.mark.parametrize(("q", "noise", "k"), [(0.1, 2.0, 3), (0.3, 4.0, 2)])
def test_several_rows_of_an_entity_are_the_mixture_that_a_batch_holds(q, noise, k):
    x, step = np.linspace(-30, 40, 100_001, retstep=True)
    absent = norm.pdf(x, 0, noise)
    present = sum(binom.pmf(i, k, q) * norm.pdf(x, i, noise) for i in range(k + 1))
    found = by_pld([sampled(q, noise, 1, rows=k)], DELTA, ADD, grid=1e-2).epsilon
    assert _worst_delta(present, absent, step, found) <= DELTA * (1 + 1e-6)
    assert _worst_delta(present, absent, step, found - 1e-2) > DELTA
    any_of_them = by_rdp([sampled(1 - (1 - q) ** k, noise / k, 1)], DELTA, ADD).epsilon
    assert by_rdp([sampled(q, noise, 1, rows=k)], DELTA, ADD).epsilon == pytest.approx(any_of_them)
    assert any_of_them > found


def test_replacing_a_row_moves_a_sum_twice_as_far():
    assert spent([gaussian(4.0)], DELTA, REPLACE) == spent([gaussian(2.0)], DELTA, ADD)
    assert spent([gaussian(6.0, rows=3)], DELTA, ADD) == spent([gaussian(2.0)], DELTA, ADD)
    for kind in (Mechanism.PURE, Mechanism.EXPONENTIAL):
        assert by_basic([record(kind, epsilon=0.1, rows=2)], 0, REPLACE).epsilon == pytest.approx(0.4)
    assert by_basic([record(Mechanism.LAPLACE, noise_multiplier=10.0)], 0, REPLACE).epsilon == pytest.approx(
        0.2
    )


def test_replacing_a_sampled_row():
    x, step = np.linspace(-30, 30, 100_001, retstep=True)
    one, other = (0.8 * norm.pdf(x, 0, 2) + 0.2 * norm.pdf(x, shift, 2) for shift in (1, -1))
    found = spent([sampled(0.2, 2.0, 1)], DELTA, REPLACE).epsilon
    assert _worst_delta(one, other, step, found) <= DELTA * (1 + 1e-6)
    assert _worst_delta(one, other, step, found - 2e-3) > DELTA
    assert by_rdp([sampled(0.2, 2.0, 1)], DELTA, REPLACE).epsilon > found
    with pytest.raises(PluginError, match="no sum under replacing"):
        spent([sampled(0.2, 2.0, 1, rows=2)], DELTA, REPLACE)


@pytest.mark.parametrize(("epsilon", "runs"), [(0.1, 30), (0.5, 4)])
def test_pure_mechanisms_are_at_worst_randomised_response(epsilon, runs):
    told = 1 / (1 + math.exp(-epsilon))  # a coin that tells the truth with this probability
    right = np.arange(runs + 1)
    upper, lower = binom.pmf(right, runs, told), binom.pmf(right, runs, 1 - told)
    many = [record(Mechanism.PURE, epsilon=epsilon, count=runs)]
    pld, rdp = by_pld(many, DELTA, ADD).epsilon, by_rdp(many, DELTA, ADD).epsilon
    for found in (pld, rdp):
        assert np.clip(upper - math.exp(found) * lower, 0, None).sum() <= DELTA * (1 + 1e-9)
    assert np.clip(upper - math.exp(pld - 0.02) * lower, 0, None).sum() > DELTA
    assert by_basic(many, 0, ADD).epsilon == pytest.approx(runs * epsilon)


def test_an_exponential_mechanism_costs_less_than_what_is_merely_pure():
    pure = by_rdp([record(Mechanism.PURE, epsilon=0.2, count=50)], DELTA, ADD).epsilon
    exponential = by_rdp([record(Mechanism.EXPONENTIAL, epsilon=0.2, count=50)], DELTA, ADD).epsilon
    zcdp = RdpAccountant().compose(dp.ZCDpEvent(0.2**2 / 8), 50).get_epsilon(DELTA)
    assert exponential == pytest.approx(zcdp, rel=1e-9)
    assert exponential < 0.6 * pure


def test_opaque_mechanisms_add_their_deltas_and_grow_with_the_group():
    opaque = record(Mechanism.APPROXIMATE, epsilon=0.3, delta=1e-7, count=2)
    both = by_basic([opaque], 1e-5, ADD)
    assert (both.epsilon, both.delta) == (pytest.approx(0.6), pytest.approx(2e-7))
    assert by_basic([opaque], 1e-7, ADD).epsilon == math.inf
    grouped = by_basic([replace(opaque, count=1, rows=3)], 1e-5, ADD)
    assert grouped.epsilon == pytest.approx(0.9)
    assert grouped.delta == pytest.approx(1e-7 * (1 + math.exp(0.3) + math.exp(0.6)))
    assert by_rdp([opaque], DELTA, ADD).epsilon == math.inf
    assert by_pld([opaque, gaussian(5.0)], DELTA, ADD).epsilon > by_pld([gaussian(5.0)], DELTA, ADD).epsilon


def test_without_delta_only_pure_mechanisms_have_a_sum():
    assert spent([gaussian(100.0)], 0.0, ADD).epsilon == math.inf
    assert spent([record(Mechanism.LAPLACE, noise_multiplier=4.0, count=2)], 0.0, ADD).epsilon == 0.5


_MECHANISMS = st.one_of(
    st.builds(sampled, st.floats(0.001, 1), st.floats(0.5, 20), st.integers(1, 500), st.integers(1, 3)),
    st.builds(gaussian, st.floats(0.5, 20), st.integers(1, 20), st.integers(1, 3)),
    st.builds(lambda e, n: record(Mechanism.PURE, epsilon=e, count=n), st.floats(0.01, 2), st.integers(1, 9)),
    st.builds(lambda s: record(Mechanism.LAPLACE, noise_multiplier=s), st.floats(0.5, 20)),
)


@settings(max_examples=6, deadline=None)
@given(st.lists(_MECHANISMS, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_more_steps_never_cost_less(records, random):
    total = by_rdp(records, DELTA, ADD).epsilon
    shuffled = list(records)
    random.shuffle(shuffled)
    assert by_rdp(shuffled, DELTA, ADD).epsilon == pytest.approx(total, rel=1e-9)
    longer = [replace(records[0], count=records[0].count + 1), *records[1:]]
    assert by_rdp(longer, DELTA, ADD).epsilon >= total
    halves = [replace(r, count=1) for r in records] + [
        replace(r, count=r.count - 1) for r in records if r.count > 1
    ]
    assert by_rdp(halves, DELTA, ADD).epsilon == pytest.approx(total, rel=1e-9)


def test_many_small_spendings_cost_what_one_large_does():
    assert spent([sampled(0.05, 2.0, 1)] * 40, DELTA, ADD) == spent([sampled(0.05, 2.0, 40)], DELTA, ADD)


# --- calibration --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("q", "steps"), [(1.0, 1), pytest.param(0.1, 4, marks=pytest.mark.slow)])
def test_the_least_noise_fits_and_a_little_less_does_not(q, steps):
    budget = Budget(1.0, DELTA)
    noise = accountant(budget).least_noise(sampling_rate=q, steps=steps)
    assert fits([sampled(q, noise, steps)], budget, ADD)
    assert not fits([sampled(q, noise * 0.99, steps)], budget, ADD)
    if q == 1:
        assert _gaussian_delta(1.0, noise) <= DELTA < _gaussian_delta(1.0, noise * 0.99)


def test_no_noise_is_enough_without_delta():
    with pytest.raises(BudgetSpent, match="no amount of Gaussian noise"):
        accountant(Budget(1.0, 0.0)).least_noise()


def test_an_accountant_calibrates_to_what_is_left():
    whole = accountant(Budget(1.0, DELTA))
    half = whole.least_noise(epsilon=0.5)
    whole.gaussian(half, what="bounds")
    rest = whole.least_noise()
    assert half > whole.least_noise() > accountant(Budget(1.0, DELTA)).least_noise()
    whole.gaussian(rest, what="the sum")
    assert 0.98 < whole.spent().epsilon <= 1.0


# --- the accountant -----------------------------------------------------------------------------------------


def test_a_fit_leaves_the_guarantee_it_paid_for():
    handed = accountant(Budget(2.0, DELTA))
    handed.draws(500)
    model = Toy(4.0).fit(np.linspace(0, 1, 1000), handed)
    assert abs(model.mean - 0.5) < 0.1
    assert len(model.sample(500, np.random.default_rng(0))) == 500
    given_ = model.guarantee
    assert given_ is not None
    assert _gaussian_delta(given_.epsilon, 4.0) == pytest.approx(DELTA, rel=1e-2)
    assert (given_.unit, given_.neighbouring, given_.delta) == (Unit.ENTITY, ADD, DELTA)
    assert [m.what for m in given_.mechanisms] == ["the sum"]
    assert given_.mechanisms[0].epsilon_alone == pytest.approx(given_.epsilon)
    text = " ".join(given_.assumptions)
    assert "500, is a public constant" in text
    assert "at most 1 row of any entity" in text
    assert "floating point" in text
    assert "Poisson" not in text
    assert any("report" in part for part in given_.not_protected)
    form = TypeAdapter(PrivacyGuarantee)
    assert form.validate_json(form.dump_json(given_)) == given_


def test_a_mechanism_that_cannot_be_paid_for_never_runs():
    looked = []

    class Spy(np.ndarray):
        def sum(self, *args, **kwargs):
            looked.append(True)
            return super().sum(*args, **kwargs)

    handed = accountant(Budget(0.5, DELTA))
    with pytest.raises(BudgetSpent, match="cannot bear") as caught:
        Toy(4.0).fit(np.zeros(10).view(Spy), handed)
    assert not looked
    assert handed.mechanisms == ()
    assert "0.5" in str(caught.value)
    Toy(20.0).fit(np.zeros(10).view(Spy), handed)
    assert looked


def test_spendings_add_up_until_the_budget_is_gone():
    handed = accountant(Budget(1.0))
    for _ in range(10):
        handed.pure(0.1, what="a count")
    with pytest.raises(BudgetSpent):
        handed.pure(0.001, what="one more")
    assert handed.spent().epsilon == 1.0
    handed.draws(5)
    handed.domain("bought")
    assert handed.guarantee().accountant == "basic composition"
    assert handed.guarantee().delta == 0.0


def test_every_mechanism_is_recorded_with_its_parameters():
    handed = accountant()
    handed.gaussian(5.0, what="a", count=2)
    handed.poisson_subsampled_gaussian(0.1, 5.0, 3, what="b")
    handed.laplace(50.0, what="c")
    handed.exponential(0.01, what="d")
    handed.pure(0.02, what="e")
    handed.approximate(0.03, 1e-9, what="f")
    kinds = [m.mechanism for m in handed.mechanisms]
    other = accountant()
    other.concentrated(0.01, what="g")
    assert kinds + [m.mechanism for m in other.mechanisms] == list(Mechanism)
    assert other.mechanisms[0].noise_multiplier == pytest.approx((2 * 0.01) ** -0.5)
    assert [m.count for m in handed.mechanisms] == [2, 3, 1, 1, 1, 1]
    assert handed.mechanisms[2].epsilon_alone == pytest.approx(1 / 50, abs=1e-3)
    handed.draws(7)
    handed.domain("declared")
    assert any("Poisson" in text for text in handed.guarantee().assumptions)
    assert any("set beforehand" in text for text in handed.guarantee().assumptions)


def test_the_rows_of_an_entity_are_recorded_and_paid_for():
    handed = accountant(rows=3)
    handed.laplace(10.0, what="a count")
    assert handed.mechanisms[0].rows == 3
    assert handed.spent(0.0).epsilon == pytest.approx(0.3)


def test_nothing_spent_is_no_guarantee():
    handed = accountant(None)
    handed.draws(5)
    handed.domain("declared")
    assert handed.guarantee() is None
    assert handed.why_none == "no DP guarantee: the generator spent nothing on privacy"


def test_nothing_can_be_spent_without_a_budget():
    with pytest.raises(BudgetSpent, match="no privacy budget is declared"):
        accountant(None).pure(0.1, what="a count")


def _paid(**settings_) -> Accountant:
    handed = accountant(**settings_)
    handed.pure(0.1, what="a count")
    return handed


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (lambda a: a.domain("declared"), "nobody stated how many rows"),
        (lambda a: a.draws(5), "did not state where bounds"),
        (lambda a: (a.draws(None), a.domain("declared")), "must be a public constant"),
        (lambda a: (a.draws(5), a.domain("declared"), a.domain("inferred")), "inferred bounds"),
        (lambda a: (a.draws(5), a.domain("declared"), a.void("a scaler saw the rows")), "a scaler saw"),
    ],
)
def test_what_was_not_stated_or_not_paid_for_ends_the_claim(state, reason):
    handed = _paid()
    state(handed)
    assert handed.guarantee() is None
    assert handed.why_none.startswith("no DP guarantee: ")
    assert reason in handed.why_none


def test_neighbours_of_equal_size_may_give_their_size_away():
    handed = _paid(neighbouring=REPLACE)
    handed.draws(None)
    handed.domain("declared")
    assert handed.guarantee() is not None
    several = _paid(neighbouring=REPLACE, rows=2)
    several.draws(None)
    several.domain("declared")
    assert several.guarantee() is None


def test_a_gate_sees_that_entities_are_not_covered():
    for unit, covered in ((Unit.ROW, False), (Unit.ENTITY, True)):
        handed = _paid(unit=unit)
        handed.draws(5)
        handed.domain("declared")
        assert handed.guarantee().covers_entities is covered
        assert any("are not" in text for text in handed.guarantee().assumptions) is not covered
    with pytest.raises(PluginError, match="impossible number of rows"):
        accountant(unit=Unit.ROW, rows=2)


def test_a_refusal_elsewhere_refuses_here_too():
    def refuse(_: MechanismRecord) -> None:
        raise BudgetSpent("elsewhere")

    handed = accountant(before=refuse)
    with pytest.raises(BudgetSpent, match="elsewhere"):
        handed.pure(0.1, what="a count")
    assert handed.mechanisms == ()


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_an_accountant_cannot_be_copied(copying):
    with pytest.raises(PluginError, match="cannot be copied"):
        copying(accountant())


def test_a_forked_process_cannot_spend(monkeypatch):
    handed = accountant()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(PluginError, match="another process"):
        handed.pure(0.1, what="a count")


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0, 1e-9])
def test_noise_out_of_range_is_refused(bad):
    with pytest.raises(PluginError, match="cannot be accounted for"):
        accountant().gaussian(bad, what="a sum")


@pytest.mark.parametrize(
    "parameters",
    [
        {"mechanism": Mechanism.GAUSSIAN},
        {"mechanism": Mechanism.GAUSSIAN, "noise_multiplier": 1.0, "epsilon": 1.0},
        {"mechanism": Mechanism.POISSON_SUBSAMPLED_GAUSSIAN, "noise_multiplier": 1.0, "sampling_rate": 1.5},
        {"mechanism": Mechanism.PURE, "epsilon": math.nan},
        {"mechanism": Mechanism.PURE, "epsilon": 1.0, "count": 0},
        {"mechanism": Mechanism.PURE, "epsilon": 1.0, "rows": 0},
        {"mechanism": Mechanism.PURE, "epsilon": 1.0, "what": ""},
    ],
)
def test_a_record_that_says_too_little_or_too_much_is_refused(parameters):
    with pytest.raises(PluginError):
        MechanismRecord(**({"what": "a sum"} | parameters))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 0), (-1, 0), (math.nan, 0), (math.inf, 0), (1, 1), (1, -1)]
)
def test_a_budget_out_of_range_is_refused(epsilon, delta):
    with pytest.raises(PluginError, match="out of range"):
        Budget(epsilon, delta)


# --- contributions ------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcdef"), max_size=60), st.integers(1, 5), st.integers(0, 99))
def test_contributions_are_bounded_and_nobody_is_lost(keys, most, seed):
    kept = bound_contributions(keys, most, np.random.default_rng(seed))
    assert kept.tolist() == sorted(set(kept.tolist()))
    chosen = [keys[i] for i in kept]
    for key in set(keys):
        assert chosen.count(key) == min(keys.count(key), most)


def test_which_rows_are_kept_is_drawn_evenly():
    rng = np.random.default_rng(0)
    hits = np.zeros(6)
    for _ in range(600):
        hits[bound_contributions(["a", "a", "b", "a", "b", "a"], 1, rng)] += 1
    assert np.all(np.abs(hits[[0, 1, 3, 5]] - 150) < 60)
    assert np.all(np.abs(hits[[2, 4]] - 300) < 75)


def test_an_entity_must_be_allowed_rows():
    with pytest.raises(PlanError):
        bound_contributions(["a"], 0, np.random.default_rng(0))
