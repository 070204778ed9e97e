"""Identifiability, adversarial accuracy and near hits: naive twins, nulls at any split, copies, coverage."""

import numpy as np
import pytest

from synth_audit.audits.published.closest_record import identifiability as measures

MOST = 10_000


def people(n, rng):
    z = rng.normal(size=n)
    return {
        "age": np.clip(np.rint(45 + 15 * z), 18, 90),
        "sex": rng.choice(["f", "m"], n),
        "region": rng.choice(list("abcdef"), n),
        "income": np.exp(10 + 0.5 * z + 0.6 * rng.normal(size=n)),
    }


def crowded(n, rng):
    return {
        "a": rng.choice(["u", "v"], n),
        "b": rng.choice(list("wxyz"), n),
        "c": rng.choice(list("123456"), n),
    }


def taken(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


def all_of(subject, seed=0, most=MOST):
    rng = np.random.default_rng(seed)
    found = [
        *measures.identifiability(subject, most, rng),
        *measures.adversarial_accuracy(subject, most, rng),
        *measures.hits(subject, most, rng),
    ]
    return {m.id.quantity: m for m in found}


@pytest.mark.parametrize("order", ["same", "shuffled"])
def test_a_copy_gives_the_most_in_any_order(order, subject_of):
    rng = np.random.default_rng(0)
    train, control = people(300, rng), people(100, rng)
    rows = np.arange(300) if order == "same" else rng.permutation(300)
    found = all_of(subject_of(train, control, taken(train, rows)))
    assert found["epsilon_identifiability"].value == 1
    assert found["epsilon_identifiability_loss"].value == 1
    assert found["nnaa"].value == pytest.approx(0, abs=0.01)  # one row in 300 is left out
    assert found["nnaa_loss"].value == pytest.approx(0.25 + 0.25 / 3, abs=0.06)
    assert found["nnaa_loss"].interval.low > 0.15
    assert found["hitting_rate"].value == 1
    assert found["hitting_excess"].interval.low > 0.25


SIZES = [(240, 60, 240), (60, 240, 150), (120, 120, 60)]


@pytest.mark.parametrize(
    ("population", "sizes"),
    [
        (people, SIZES[0]),
        (crowded, SIZES[1]),
        *(pytest.param(people, sizes, marks=pytest.mark.slow) for sizes in SIZES[1:]),
        *(pytest.param(crowded, sizes, marks=pytest.mark.slow) for sizes in (SIZES[0], SIZES[2])),
    ],
)
def test_an_independent_release_is_at_the_null_whatever_the_split(population, sizes, subject_of):
    losses = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        found = all_of(subject_of(*(population(n, rng) for n in sizes)), seed)
        losses.append(
            [found[k].value for k in ("epsilon_identifiability_loss", "nnaa_loss", "hitting_excess")]
            + [found["nnaa"].value - 0.5]
        )
    error = np.std(losses, axis=0, ddof=1) / np.sqrt(len(losses))
    assert (np.abs(np.mean(losses, axis=0)) < 3.5 * error + 1e-9).all()


def test_a_poor_release_is_no_leak_but_easily_told_apart(subject_of):
    rng = np.random.default_rng(1)
    poor = people(300, rng) | {"region": np.full(300, "a"), "age": np.full(300, 40.0)}
    found = all_of(subject_of(people(300, rng), people(150, rng), poor))
    assert found["nnaa"].value > 0.6
    for name in ("epsilon_identifiability_loss", "nnaa_loss", "hitting_excess"):
        assert found[name].interval.low < 0 < found[name].interval.high


def weighted_gower(train, columns, weights):
    """Distances between two rows as plain loops would have them."""
    spans = {k: np.ptp(v) for k, v in train.items() if v.dtype.kind == "f"}

    def distance(one, other):
        total = sum(
            weights[k] * (min(1, abs(one[k] - other[k]) / spans[k]) if k in spans else one[k] != other[k])
            for k in columns
        )
        return round(total / sum(weights.values()), 9)

    return distance


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def entropy(values):
    share = np.unique(values, return_counts=True)[1] / len(values)
    return -np.sum(share * np.log(share))


def test_identifiability_agrees_with_loops(subject_of):
    rng = np.random.default_rng(2)
    train, control, made = people(40, rng), people(30, rng), people(50, rng)
    distance = weighted_gower(train, train, {k: 1 / entropy(v) for k, v in train.items()})
    known, made_rows = rows_of(train), rows_of(made)
    exposed = [
        min(distance(t, s) for s in made_rows) < min(distance(t, u) for j, u in enumerate(known) if j != i)
        for i, t in enumerate(known)
    ]
    found = all_of(subject_of(train, control, made))["epsilon_identifiability"]
    assert found.value == pytest.approx(np.mean(exposed))
    base = [
        min(distance(c, s) for s in made_rows) < min(distance(c, t) for t in known) for c in rows_of(control)
    ]
    assert found.reference.value == pytest.approx(np.mean(base), abs=0.05)  # of train one row is left out


def test_adversarial_accuracy_agrees_with_loops(subject_of):
    rng = np.random.default_rng(3)
    train, control, made = people(40, rng), people(30, rng), people(40, rng)
    distance = weighted_gower(train, train, dict.fromkeys(train, 1))
    known, made_rows = rows_of(train), rows_of(made)

    def term(own, others):
        return np.mean(
            [
                min(distance(x, y) for y in others) > min(distance(x, y) for j, y in enumerate(own) if j != i)
                for i, x in enumerate(own)
            ]
        )

    expected = (term(known, made_rows) + term(made_rows, known)) / 2
    found = all_of(subject_of(train, control, made))["nnaa"].value
    assert found == pytest.approx(expected, abs=0.04)  # one row of each is left out


def test_a_table_without_columns_that_vary_tells_nothing(subject_of):
    same = {"a": ["x"] * 30, "b": [1.0] * 30}
    found = all_of(subject_of(same, same, same))
    assert found["epsilon_identifiability"].value == 0
    assert found["hitting_excess"].value == 0
    assert found["nnaa"].value == pytest.approx(0.5)


def test_a_copy_of_a_crowded_table_does_not_pass_as_ties(subject_of):
    rng = np.random.default_rng(4)
    train = crowded(400, rng) | {"d": rng.integers(0, 60, 400).astype(float)}
    control = crowded(200, rng) | {"d": rng.integers(0, 60, 200).astype(float)}
    found = all_of(subject_of(train, control, taken(train, rng.permutation(400))))
    assert found["nnaa"].interval.high < 0.5
    assert found["epsilon_identifiability_loss"].value > 0.3


def test_samples_are_of_the_size_asked_for_and_seeds_decide(subject_of):
    rng = np.random.default_rng(5)
    subject = subject_of(people(300, rng), people(200, rng), people(250, rng))
    one, two, other = (all_of(subject, seed, most=50) for seed in (1, 1, 2))
    assert one == two != other
    assert all(m.n_achieved == 50 and m.short for m in one.values())


@pytest.mark.slow
@pytest.mark.parametrize("population", [people, crowded])
@pytest.mark.parametrize("sizes", SIZES)
def test_intervals_cover_the_null(population, sizes, subject_of):
    """Nominal 95 %; tables and release are drawn anew each time."""
    names = ("epsilon_identifiability_loss", "nnaa", "nnaa_loss", "hitting_excess")
    covered, n_draws = np.zeros(len(names)), 300
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        found = all_of(subject_of(*(population(n, rng) for n in sizes)), seed)
        covered += [
            found[k].interval.low <= found[k].reference.value <= found[k].interval.high for k in names
        ]
    assert (covered / n_draws > 0.92).all(), dict(zip(names, covered / n_draws, strict=True))


def test_other_visits_of_a_person_are_not_others(subject_of):
    """Three rows that nearly agree are each other's nearest in train, and no stranger has such ones there."""
    rng = np.random.default_rng(5)

    def visits(n, first):
        rows = {name: np.repeat(values, 3) for name, values in people(n, rng).items()}
        moved = rows["income"] * np.exp(rng.normal(0, 0.002, 3 * n))
        return rows | {"income": moved, "who": first + np.arange(3 * n) // 3}

    subject = subject_of(visits(200, 0), visits(100, 10**4), visits(200, 10**5), who={"role": "split_key"})
    found = all_of(subject)
    assert found["epsilon_identifiability_loss"].value == pytest.approx(0, abs=0.12)
    assert found["nnaa_loss"].value == pytest.approx(0, abs=0.12)
