import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.generators._model_files import read_model, write_model
from synth_audit.generators.vine.copulas import Choice, CVine, fit_cvine, fit_library, fit_rvine, inverse_h


def levels(n=400, d=6, seed=0):
    """Levels of dependent columns, the last of them in two steps."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    at = (np.argsort(np.argsort(z, axis=0), axis=0) + 0.5) / n
    below = at.copy()
    high = at[:, -1] > 0.4
    at[:, -1], below[:, -1] = np.where(high, 1.0, 0.4), np.where(high, 0.4, 0.0)
    return below, at, np.arange(d) == d - 1


PLAIN = Choice()


def both(choice=PLAIN, **kwargs):
    """A C-vine, and the library's own of the same data."""
    from pyvinecopulib.core import CVineStructure

    below, at, discrete = levels(**kwargs)
    structure = CVineStructure(range(1, at.shape[1] + 1))
    return fit_cvine(below, at, discrete, choice), fit_library(below, at, discrete, choice, structure)


def families(vine):
    return {edge.family.name for tree in vine.trees for edge in tree if edge is not None}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("choice", [Choice(), Choice(level=3), Choice(families="nonparametric")])
def test_draws_are_the_librarys_from_the_same_uniforms(choice, rng):
    vine, library = both(choice)
    assert {"gaussian", "tll"} & families(vine)
    w = rng.random((50, 6))
    theirs = library.inverse_rosenblatt(np.asfortranarray(w), num_threads=1)
    numeric = "frank" in families(vine)  # the library bisects there
    assert vine.from_uniforms(w) == pytest.approx(theirs, abs=1e-6 if numeric else 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_without_frank_they_agree_to_rounding(seed, rng):
    from pyvinecopulib.core import Bicop, CVineStructure, Vinecop

    whole, _ = both(seed=seed)
    trees = [[None if e and e.family.name == "frank" else e for e in tree] for tree in whole.trees]
    vine = CVine(6, tuple(tuple(tree) for tree in trees))
    pairs = [[e or Bicop() for e in tree] for tree in trees]
    library = Vinecop.from_structure(CVineStructure(range(1, 7)), pair_copulas=pairs)
    w = rng.random((50, 6))
    theirs = library.inverse_rosenblatt(np.asfortranarray(w), num_threads=1)
    assert vine.from_uniforms(w) == pytest.approx(theirs, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(
    theta=st.floats(-30, 30).filter(lambda x: abs(x) > 1e-4),
    p=st.floats(1e-3, 1 - 1e-3),
    w=st.floats(1e-3, 1 - 1e-3),
)
def test_the_closed_form_of_frank_inverts_its_h_function(theta, p, w):
    from pyvinecopulib.core import Bicop
    from pyvinecopulib.families import frank

    edge = Bicop.from_family(frank, 0, np.array([[theta]]))
    u = inverse_h(edge, np.array([p]), np.array([w]))[0]
    assert 0 < u < 1
    if abs(theta) < 8:  # beyond, the library's own h-function loses up to 1e-5 to cancellation
        assert u == pytest.approx(edge.hinv2(np.array([[p, w]]))[0], abs=1e-6)
    e, f = np.exp(-theta * u), np.exp(-theta * w)  # h = ∂C/∂w of Frank's copula
    h = f * (e - 1) / (e * (f - 1) + np.exp(-theta) - f)
    assert h == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("theta", [1e-12, 1e-6, 0.9999999, 1.0000001, -0.9999999, -1.0000001])
def test_frank_is_smooth_where_its_formula_changes_and_near_independence(theta):
    from pyvinecopulib.core import Bicop
    from pyvinecopulib.families import frank

    p, w = np.random.default_rng(0).random((2, 200))
    edge, other = (Bicop.from_family(frank, 0, np.array([[t]])) for t in (theta, theta * (1 + 1e-7)))
    assert inverse_h(edge, p, w) == pytest.approx(inverse_h(other, p, w), abs=1e-6)
    if abs(theta) < 1e-5:
        assert inverse_h(edge, p, w) == pytest.approx(p, abs=1e-5)


def test_a_naive_inverse_rosenblatt_agrees(rng):
    """Row by row, root by root, with h-functions of the drawn values as the definition has it."""
    vine, _ = both(n=300, d=4)
    w = rng.random((10, 4))
    drawn = vine.from_uniforms(w)
    for row, x in zip(w, drawn, strict=True):
        known = []  # F(root | roots before), from the drawn values
        for variable in (3, 2, 1, 0):
            value = x[variable]
            for tree, root in zip(vine.trees, known, strict=False):
                value = float(tree[variable].hfunc2(np.array([[value, root]]))[0])
            assert value == pytest.approx(row[variable], abs=1e-6)
            known.append(value)


def test_a_truncated_vine_is_the_one_fitted_with_as_many_trees(rng):
    below, at, discrete = levels()
    whole = fit_cvine(below, at, discrete, Choice())
    w = rng.random((20, 6))
    for level in (1, 2, 5, 9):
        fitted = fit_cvine(below, at, discrete, Choice(level=level))
        assert np.array_equal(whole.truncated(level).from_uniforms(w), fitted.from_uniforms(w))
    assert np.array_equal(whole.truncated(0).from_uniforms(w), w)


def test_draws_have_the_dependence_of_the_data(rng):
    from scipy.stats import kendalltau

    below, at, discrete = levels(n=1000, d=5)
    drawn = fit_cvine(below, at, discrete, Choice()).draw(3000, rng)
    for i in range(4):
        for j in range(i):
            real, fake = (kendalltau(x[:, i], x[:, j]).statistic for x in (at, drawn))
            assert fake == pytest.approx(real, abs=0.07)


def test_few_variables(rng):
    none = np.empty((20, 0))
    assert fit_cvine(none, none, np.zeros(0, bool), Choice()).draw(3, rng).shape == (3, 0)
    one = rng.random((20, 1))
    assert fit_cvine(one, one, np.zeros(1, bool), Choice()).draw(3, rng).shape == (3, 1)


def test_aic_relates_unrelated_columns_and_the_default_does_not():
    u = np.random.default_rng(0).random((500, 12))
    share = {}
    for criterion in ("aic", "bic", "mbicv"):
        vine = fit_cvine(u, u, np.zeros(12, bool), Choice(criterion=criterion))
        share[criterion] = np.mean([e is not None for tree in vine.trees for e in tree])
    assert share["aic"] > 0.15
    assert share["bic"] < 0.1
    assert share["mbicv"] < 0.05
    assert Choice().criterion == "mbicv"


@pytest.mark.parametrize("make", ["c", "r", "star"])
def test_files_and_pickle_keep_every_bit(make, tmp_path):
    below, at, discrete = levels()
    vine = (
        fit_cvine(below, at, discrete, Choice())
        if make == "c"
        else fit_rvine(below, at, discrete, Choice(), star=make == "star")
    )
    write_model(tmp_path, vine)
    copies = [read_model(tmp_path, type(vine)), pickle.loads(pickle.dumps(vine))]  # noqa: S301
    copies += [copies[0].truncated(2), vine.truncated(2)]
    drawn = [c.draw(30, np.random.default_rng(1)) for c in (vine, *copies)]
    assert np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn[0], drawn[2])
    assert np.array_equal(drawn[3], drawn[4])
    assert not np.array_equal(drawn[0], drawn[3])


def test_a_function_of_the_roots_leaves_no_nan_behind(rng):
    z = np.random.default_rng(0).normal(size=300)
    same = np.column_stack([z, -z, z**3, np.rint(9 * z), z, np.exp(z), z > 0, z > 1])
    at = (np.argsort(np.argsort(same, axis=0, kind="stable"), axis=0) + 0.5) / 300
    for vine in (
        fit_cvine(at, at, np.zeros(8, bool), Choice()),
        fit_rvine(at, at, np.zeros(8, bool), Choice(), star=False),
    ):
        assert np.isfinite(vine.draw(50, rng)).all()


def test_star1_has_the_last_variable_in_every_pair_of_its_first_tree():
    below, at, discrete = levels(d=7, seed=3)
    star, free = (fit_rvine(below, at, discrete, Choice(), star=s) for s in (True, False))
    assert {tuple(sorted(pair)) for pair in first_pairs(star)} == {(k, 7) for k in range(1, 7)}
    assert sum(7 in pair for pair in first_pairs(free)) < 6
    assert star.truncated(99) is star


def first_pairs(vine):
    return [edge["conditioned"] for edge in vine.copula.get_trees()[0]]
