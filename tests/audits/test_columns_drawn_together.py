"""An adversary who knows which columns a generator draws together attacks part by part."""

from dataclasses import replace

import numpy as np
import pytest

from synth_audit.audits.privacy.inference import Inference
from synth_audit.audits.privacy.partial_knowledge import PartialKnowledge
from synth_audit.audits.privacy.partial_knowledge.column_sets import together_sets
from synth_audit.plugins.generator import FitContext
from synth_audit.plugins.plugin_config import build_generator

NAMES = [f"k{i}" for i in range(24)]
GROUPS = tuple(tuple(NAMES[i : i + 6]) for i in range(0, 24, 6))


def people(n, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.choice(list("abcd"), n) for name in NAMES}


def parts_at_random(source, n=400):
    """Rows of each group of columns as they are, put beside one another at random."""
    rng, made = np.random.default_rng(0), {}
    for group in GROUPS:
        rows = rng.permutation(n)
        made |= {name: source[name][rows] for name in group}
    return made


@pytest.fixture(scope="module")
def subjects(subject_of):
    train, control = people(400, 1), people(300, 2)
    leaking = subject_of(train, control, parts_at_random(train))
    honest = subject_of(train, control, parts_at_random(people(400, 3)))
    return {"leaking": leaking, "honest": honest}


def low(measurement):
    return measurement.interval.low


@pytest.mark.parametrize(
    "audit", [PartialKnowledge(max_sets=60), Inference(n_trees=0, max_reconstructed=0)], ids=["few", "all"]
)
def test_who_knows_the_parts_finds_more(audit, subjects, measure):
    blind, _ = measure(audit, subjects["leaking"])
    told, findings = measure(audit, replace(subjects["leaking"], column_groups=GROUPS))
    assert told["excess_people"].value > blind["excess_people"].value + 0.15
    assert low(told["excess_people"]) > 0.3
    assert any("drew together" in note for note in findings.notes)
    if isinstance(audit, PartialKnowledge):
        [cost] = [n for n in findings.notes if "does not know which columns" in n]
        assert float(cost.split("excess of ")[1].split("%")[0]) < 100 * told["excess_people"].value - 10
    honest, _ = measure(audit, replace(subjects["honest"], column_groups=GROUPS))
    assert low(honest["excess_people"]) < 0


def test_trees_down_to_single_rows_in_parts_of_five_columns_give_people_away(subject_of, measure):
    """Joined at random, whole rows are nobody's; the limit of the release suite is 0.04."""
    rng = np.random.default_rng(0)
    train, control = ({f"x{i}": rng.normal(size=n).round(1) for i in range(10)} for n in (250, 250))
    real = subject_of(train, control, train)
    tree = {"cart": {"minimum_leaf": 1, "smooth": False}}
    generator = build_generator({"disjoint": {"generators": [tree], "partition": "random"}})
    model = generator.fit(real.train, FitContext(rng=rng))
    assert [len(group) for group in model.column_groups] == [5, 5]
    release = replace(real, synthetic=model.sample(250, rng), column_groups=model.column_groups)
    found, _ = measure(PartialKnowledge(max_sets=60), release)
    assert low(found["excess_people"]) > 0.1


def test_sets_stay_within_groups_and_the_budget():
    groups = [[0, 1], [2], [3, 4, 5], [6, 7, 8, 9, 10, 11, 12]]
    sets = together_sets(groups, 60, np.random.default_rng(0))
    assert len(set(sets)) == len(sets) <= 60
    assert all(any(set(s) <= set(g) for g in groups) for s in sets)
    assert {(0,), (1,), (3, 4), (3, 5), (4, 5)} <= set(sets), "all but one of each small group"
    assert {len(s) for s in sets} == {1, 2, 3, 4, 5, 6}
    assert together_sets((), 60, np.random.default_rng(0)) == ()
