"""One release, one split: what the claims of one half prove, and what may not decide them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy import one_run
from synth_audit.audits.privacy.one_run.claims import (
    Claims,
    Coins,
    allowed_pool,
    beyond_most,
    choose_rule,
    epsilon_at_least,
)
from synth_audit.audits.privacy.one_run.people import (
    ClaimablePeople,
    gather,
    log_density_ratio,
    log_frequency_ratio,
    score,
)
from synth_audit.dp.composition import gaussian_epsilon
from synth_audit.dp.guarantee import Neighbouring, PrivacyGuarantee, Unit
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.findings.measurement import Direction
from synth_audit.neighbours.search import nearest
from synth_audit.plugins.audit import RandomSplit, Subject
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import joined, read_table

KEY = b"k" * 32
QUICK = one_run.OneRun(subsets=12)


def people(n, rng, width=6):
    z = rng.normal(size=n)
    made = {f"m{i}": np.round(z + rng.normal(size=n), 3) for i in range(width)}
    return pa.table(made | {"group": np.array(list("abc"))[rng.integers(0, 3, n)]})


def drawn(release, n=1_500, p=0.8, seed=0, **more):
    """A population whose entities go to train by coins, and the release that is made of train."""
    rng = np.random.default_rng(seed)
    everybody, coins = people(n, rng), rng.random(n) < p
    train, control = (everybody.filter(pa.array(c)) for c in (coins, ~coins))
    return subject_of(train, control, release(train, rng), random_split=RandomSplit(p), **more)


def subject_of(train, control, synthetic, specs=None, **more):
    schema = infer_schema(train, {n: ColumnSpec(**s) for n, s in (specs or {}).items()})
    real = [read_table(t, schema, where="real") for t in (train, control)]
    return Subject(*real, read_table(synthetic, schema, where="synthetic", partial=True), **more)


def fresh(train, rng):
    return people(train.num_rows, rng)


def copies(share):
    def made(train, rng):
        k = round(share * train.num_rows)
        some = train.take(rng.choice(train.num_rows, k, replace=False))
        return pa.concat_tables([some, people(train.num_rows - k, rng)])

    return made


def block(train, rng):
    """Four columns of everybody beside new people's others, in random order."""
    order = rng.permutation(train.num_rows)
    other = people(train.num_rows, rng)
    known = ("m1", "m2", "m4", "group")
    return pa.table({n: train[n].take(order) if n in known else other[n] for n in train.column_names})


def promise(epsilon, delta=0.0, unit=Unit.ENTITY, neighbouring=Neighbouring.ADD_OR_REMOVE):
    return PrivacyGuarantee(unit, neighbouring, epsilon, delta, "test", (), (), ())


def epsilon_of(measure, subject, seed=0):
    return measure(QUICK, subject, seed)[0]["empirical_epsilon"]


@pytest.mark.parametrize("seed", range(3))
def test_of_new_people_little_is_proved_by_chance_and_mostly_nothing(measure, seed):
    """At most one in twenty is above 0 by design; of 300 redrawn coins none was above 0.2."""
    found = epsilon_of(measure, drawn(fresh, seed=seed), seed)
    assert found.value == found.interval.low < 0.3


@pytest.mark.parametrize(("release", "least"), [(copies(0.1), 1.0), (copies(0.3), 2.0), (block, 2.0)])
def test_what_the_release_knows_is_proved(measure, release, least):
    found, _ = measure(QUICK, drawn(release))
    assert least < found["empirical_epsilon"].value <= found["epsilon_ceiling"].value
    assert found["beyond_chance"].interval.low > 0
    assert found["empirical_epsilon"].interval.low == found["empirical_epsilon"].value


def test_whoever_is_not_there_is_told_too(measure):
    """Everybody in train is copied: who is far from the release was not in train."""
    found, findings = measure(QUICK, drawn(copies(1.0)))
    assert found["empirical_epsilon"].value > 5
    assert "claimed not to be" in findings.notes[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_density_whose_reference_is_control_would_accuse_new_people(seed):
    """Why no score may be told sides: control rows are near control, so others look denser in any release."""
    subject = drawn(fresh, n=1_000, seed=seed)
    real = joined([subject.train, subject.control])
    tables = [real, subject.control, subject.synthetic]
    both, control, made = Encoded(tables, subject.features, [subject.train]).mixed()
    scores = log_density_ratio(nearest(both, made), nearest(both, control), 7)[None]
    members, half = np.arange(1_000) < subject.train.n_rows, np.arange(1_000) % 2 == 0
    rule = choose_rule(scores[:, half], members[half], 0.8, 0.05, 30)
    assert epsilon_at_least(Coins(0.8), rule.counted(scores[:, ~half], members[~half]), 0.05) > 3


def both_ways(train, control, synthetic, specs=None):
    """People and scores of a subject, and of the one in which the sides are exchanged."""
    found = []
    for one, other in ((train, control), (control, train)):
        subject = subject_of(one, other, synthetic, specs)
        who = gather(subject, 400, 100, KEY, single=False)
        found.append((who, score(subject, who, 8, np.random.default_rng(0))))
    return found


def test_no_score_can_tell_which_table_is_train():
    """Also where train alone would show another kind of column than both tables do."""
    rng = np.random.default_rng(0)
    train, control, made = (people(n, rng) for n in (400, 150, 400))
    flags = [rng.integers(0, 2, 400), rng.integers(0, 4, 150), rng.integers(0, 2, 400)]
    few = [t.append_column("few", pa.array(f)) for t, f in zip((train, control, made), flags, strict=True)]
    (who, found), (turned, again) = both_ways(*few)
    assert np.array_equal(who.members, ~turned.members)
    assert np.array_equal(who.known, turned.known)
    assert who.pooled.data.equals(turned.pooled.data)
    assert found.names == again.names
    assert np.array_equal(found.values, again.values)
    assert (np.ptp(found.values, axis=1) > 0).mean() > 0.5


def test_equal_rows_share_a_coin_and_are_not_claimed():
    rng = np.random.default_rng(0)
    train, control = people(300, rng), people(100, rng)
    doubled = pa.concat_tables([train, train.slice(0, 40), control.slice(0, 10)])
    who = gather(subject_of(doubled, control, train), 10_000, 10_000, KEY, single=False)
    assert len(who) == 400 - 50
    assert who.pooled.n_rows == doubled.num_rows + control.num_rows


def keyed(table, keys):
    return table.append_column("who", pa.array(keys))


KEYED = {"who": {"role": "split_key"}}


def test_who_has_a_key_is_one_person_with_all_rows():
    rng = np.random.default_rng(0)
    train = keyed(people(300, rng), [f"p{i // 3}" for i in range(300)])
    control = keyed(people(80, rng), [f"q{i}" for i in range(80)])
    subject = subject_of(train, control, people(300, rng), KEYED)
    who = gather(subject, 10_000, 10_000, KEY, single=False)
    assert (len(who), len(who.rows), int(who.members.sum())) == (180, 380, 100)
    found = score(subject, who, 0, np.random.default_rng(0)).values
    first, last = who.first, np.append(who.first[1:], len(who.rows))
    of_rows = -nearest(*_encoded(subject, who)).first
    slow = [of_rows[a:b].max() for a, b in zip(first, last, strict=True)]
    assert found[0] == pytest.approx(slow)
    assert len(gather(subject, 10_000, 0, KEY, single=True)) == 80


def _encoded(subject, who):
    real, made = Encoded([who.pooled, subject.synthetic], subject.features).mixed()
    return real.take(who.rows), made


def test_a_person_on_both_sides_was_not_divided():
    rng = np.random.default_rng(0)
    train, control = keyed(people(200, rng), range(200)), keyed(people(100, rng), range(150, 250))
    with pytest.raises(NotApplicable, match="entities"):
        gather(subject_of(train, control, people(9, rng), KEYED), 1_000, 0, KEY, single=False)


def test_a_large_table_is_looked_at_in_part():
    subject = drawn(fresh, n=1_000)
    who = gather(subject, 300, 200, KEY, single=False)
    assert (len(who), who.pooled.n_rows) == (300, 500)
    assert abs(int(who.known.sum()) - 150) <= 1
    assert 0.7 < who.members.mean() < 0.9


def test_fewer_people_are_looked_up_in_a_large_release(measure, monkeypatch):
    monkeypatch.setattr("synth_audit.neighbours.search._SEARCHED", 1)  # a thousand queries in any case
    pools = [epsilon_of(measure, drawn(copies(0.5), n=n)).n_requested for n in (900, 1_500)]
    assert pools == [450, 500]


def test_a_division_that_nobody_calls_random_proves_nothing(measure):
    with pytest.raises(NotApplicable, match="made_elsewhere: random"):
        measure(QUICK, replace(drawn(fresh), random_split=None))


def test_too_few_people_prove_nothing(measure):
    with pytest.raises(NotApplicable, match=str(one_run.FEWEST_PEOPLE)):
        measure(QUICK, drawn(fresh, n=one_run.FEWEST_PEOPLE - 1))


def test_sizes_that_were_fixed_are_judged_by_their_own_distribution(measure):
    found, findings = measure(QUICK, replace(drawn(copies(0.3)), random_split=RandomSplit()))
    assert found["empirical_epsilon"].value > 2
    assert "sizes were fixed" in findings.notes[1]


def test_a_guarantee_that_the_claims_refute_is_refuted(measure):
    subject = replace(drawn(copies(0.3)), guarantee=promise(1.0, 1e-6))
    found, findings = measure(QUICK, subject)
    refuted, bound = found["epsilon_refuted"], found["empirical_epsilon"]
    assert refuted.interval.low == pytest.approx(bound.value - 1.0)
    assert refuted.interval.low > 0
    assert refuted.interval.low <= refuted.value <= refuted.interval.high
    assert "δ = 1e-06" in findings.notes[1]
    kept, _ = measure(QUICK, replace(drawn(fresh), guarantee=promise(1.0, 1e-6)))
    assert kept["epsilon_refuted"].interval.low < -0.7


def test_without_a_guarantee_nothing_is_refuted(measure):
    assert "epsilon_refuted" not in measure(QUICK, drawn(fresh))[0]


def test_a_guarantee_of_replacing_is_judged_as_one(measure):
    subject = replace(drawn(copies(0.3)), guarantee=promise(1.0, neighbouring=Neighbouring.REPLACE))
    found, findings = measure(QUICK, subject)
    assert "sizes were fixed" in findings.notes[1]
    assert found["epsilon_refuted"].interval.low > 0


def test_a_guarantee_of_adding_is_not_compared_where_sizes_were_fixed(measure):
    subject = replace(drawn(copies(0.3)), guarantee=promise(1.0), random_split=RandomSplit())
    assert "epsilon_refuted" not in measure(QUICK, subject)[0]


def test_a_large_delta_leaves_fewer_to_claim(measure):
    subject = drawn(copies(0.3))
    all_of_them, fewer = (
        measure(QUICK, replace(subject, guarantee=promise(1.0, d)))[0]["empirical_epsilon"]
        for d in (1e-9, 2e-4)
    )
    assert all_of_them.n_requested == 750
    assert 50 < fewer.n_requested < 500
    assert 0 < fewer.value < all_of_them.value


def test_the_pool_is_as_large_as_delta_allows():
    p, epsilon, delta, most = 0.8, 1.0, 1e-4, 0.01
    n = allowed_pool(p, epsilon, delta, most)
    taken = [Coins(p, delta, n).slack(c, np.array([epsilon]))[0] for c in (Claims(5, 0, 5), Claims(0, 5, 5))]
    assert 0.99 * most < max(taken) <= most


@pytest.mark.parametrize(
    ("most", "kept"), [(2, [3, 4]), (3, [3, 4]), (4, [1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])]
)
def test_those_who_stand_farthest_apart_are_kept_ties_together(most, kept):
    isolation = np.array([0.1, 0.2, 0.2, 0.5, 0.9])
    assert np.flatnonzero(beyond_most(isolation, isolation, most)).tolist() == kept


def test_frequencies_are_compared_without_the_record_itself():
    made, real = np.array([0, 0, 1, 3]), np.array([0, 1, 1, 2])
    found = log_frequency_ratio(made, real)
    slow = [
        np.log((np.sum(made == x) + 0.5) / 4) - np.log((np.sum(np.delete(real, i) == x) + 0.5) / 3)
        for i, x in enumerate(real)
    ]
    assert found == pytest.approx(slow)


def test_mu_is_told_beside_epsilon_and_never_called_so(measure):
    found, findings = measure(QUICK, drawn(copies(0.3)))
    mu, converted = found["gaussian_mu"], found["gaussian_mu_converted"]
    assert mu.value > 0.5
    assert converted.value == pytest.approx(gaussian_epsilon(mu.value, one_run.USUAL_DELTA))
    assert {mu.direction, converted.direction} == {Direction.NEUTRAL}
    assert not any("epsilon" in q.title.lower() for q in (one_run.GAUSSIAN_MU, one_run.GAUSSIAN_MU_CONVERTED))
    assert "for adding or removing one person" in findings.notes[-1]
    assert "no bound on epsilon" in findings.notes[-1]
    assert f"δ = {one_run.USUAL_DELTA:g}" in findings.notes[-1]


def test_the_bound_on_epsilon_is_not_replaced_by_a_larger_mu(measure):
    """At a small δ the converted bound is the larger of the two."""
    subject = replace(drawn(copies(0.3)), guarantee=promise(1.0, 1e-12))
    found, _ = measure(QUICK, subject)
    assert found["gaussian_mu_converted"].value > found["empirical_epsilon"].value
    assert found["empirical_epsilon"].value == found["empirical_epsilon"].interval.low


def test_mu_of_fixed_sizes_is_for_replacing_one_person(measure):
    subject = replace(drawn(copies(0.3)), random_split=RandomSplit())
    assert "for replacing one person" in measure(QUICK, subject)[1].notes[-1]


@pytest.mark.parametrize("split", [RandomSplit(0.8), RandomSplit()])
def test_of_new_people_no_mu_is_shown_and_of_copies_one_is(measure, split):
    of = {
        name: measure(QUICK, replace(drawn(release), random_split=split))[0]["gaussian_mu"].value
        for name, release in (("fresh", fresh), ("all", copies(1.0)))
    }
    assert of["fresh"] < 0.1
    assert of["all"] > 1.0


def test_mu_is_converted_at_the_delta_of_the_guarantee(measure):
    subject = replace(drawn(copies(0.3)), guarantee=promise(1.0, 1e-6))
    found, findings = measure(QUICK, subject)
    assert "converted at δ = 1e-06" in findings.notes[-1]
    assert found["gaussian_mu_converted"].value == pytest.approx(
        gaussian_epsilon(found["gaussian_mu"].value, 1e-6)
    )
    assert found["gaussian_mu"].n_requested == 750


def test_numbers_of_guesses_depend_on_people_alone_and_share_alpha():
    """A score is right about everybody. With 200 people the numbers of guesses are 100, 50, 25 and 12."""
    members = np.tile([True, True, False, False], 100)
    who = ClaimablePeople(None, None, np.arange(400), members, np.arange(400) % 2 == 0)
    found = one_run.gaussian_bound(members[None].astype(float), who, 0.5, 0.05, 0.0)
    assert (found.tried, found.pool, found.guesses) == (8, 200, 100)
    assert found.mu == found.best == one_run.mu_at_least(Coins(0.5, pool=200), Claims(100, 0, 100), 0.05 / 8)
    assert one_run.gaussian_bound(np.zeros((1, 400)), who, 0.5, 0.05, 0.0).mu < 1
