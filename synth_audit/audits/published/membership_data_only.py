"""The membership attack of disjoint generative models: trees that tell release rows from real ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.audits._shared import at_least, different_people, drawn
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import over_blocks
from synth_audit.findings.measurement import Findings, IntervalEstimate, Quantity, Reference, SampleCounts
from synth_audit.neighbours.search import most_queries
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.proportions import Proportion
from synth_audit.stats.roc import auroc, auroc_interval, precision

AUC = Quantity(
    "auc",
    "AUC of the classifier",
    unit="probability",
    help="Probability that the attack ranks a training row above a control row; 0.5 is guessing.",
)
RECALL = Quantity(
    "recall",
    "Training rows that are named",
    proportional=False,  # the attack's threshold moves with the release
    help="Read it beside its reference, the share of control rows that are named.",
)
PRECISION = Quantity(
    "precision",
    "Named rows that are training rows",
    proportional=False,  # a ratio, which bends
    help="As if as many training rows as control rows had been tested; 0.5 is guessing.",
)

_FEWEST_CONTROL = 20
"""With fewer control rows the interval of the AUC is wider than ±0.12 at chance."""

_FEWEST_TESTED = 50
"""With fewer training or control rows tested the interval of the AUC is wider than ±0.1 at chance."""

_MOST_REFERENCE = 10_000
"""Real rows from which the trees learn at most; the time of growing them is bounded."""


@dataclass(frozen=True, kw_only=True)
class MembershipDataOnly:
    """Ranks training and control rows by how much they look like release rows to randomised trees.

    Real rows, train and control pooled, are halved at random. Trees learn to tell release rows from one half
    and rank the other half, and the other way round: nobody is ranked by trees that learned from the same
    row. Neither side is known to the trees, so that the AUC is ½ in expectation for a release that is
    independent of the split. One row is tested of a person with several rows.

    ``auc = P(training > control) + ½ P(tie)``. A row is named where the release is denser than the real rows,
    that is, where the share of trees is above ``n_s / (n_s + n_r)``. ``recall`` is the share of training rows
    that are named. ``precision`` is that of named rows which are training rows.

    Fields:
        max_members, max_others: training and control rows that are tested at most, drawn at random; fewer in
            a release of more than 800,000 rows.
        max_reference: real rows beside those tested, at most, drawn at random.
        max_learnt: release rows that the trees learn from at most, drawn at random; of real rows 10,000.
        n_trees: randomised trees.

    Raises:
        ValueError: a field is below 1.
        NotApplicable: control has fewer than 20 rows or people, or train or the release fewer than 2 rows.

    Source: disjoint generative models, appendix A; El Emam et al. 2022; Geurts et al. 2006 (trees).
    """

    max_members: int = 5_000
    max_others: int = 5_000
    max_reference: int = 40_000
    max_learnt: int = 100_000
    n_trees: int = 100

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Membership attack of disjoint generative models",
        question="How well do trees that know the release tell training rows from control rows?",
        threat_model=(
            "An adversary holds the release and real records, trains a classifier to tell release rows from "
            "real ones, and names the records that it takes for release rows."
        ),
        not_covered="One way of ranking people; the audit `recognition` compares many.",
        quantities=(AUC, RECALL, PRECISION),
        risk="membership",
        needs=(Need.CONTROL,),
        default=False,
        cost="seconds",
        source="Disjoint generative models, appendix A; El Emam et al. 2022; "
        "Newcombe 2006, DeLong et al. 1988 (intervals)",
    )

    def __post_init__(self) -> None:
        at_least(self, max_members=1, max_others=1, max_reference=1, max_learnt=1, n_trees=1)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Score training and control rows by the trees, and count whom they name."""
        rng = context.rng
        members, others = (
            most_queries(most, subject.synthetic.n_rows) for most in (self.max_members, self.max_others)
        )
        tested, others_of_pool = _pool(subject, members, others, self.max_reference, rng)
        rng.permutation(subject.synthetic.n_rows)  # keeps the draws, and so the numbers, of earlier versions
        scores = _tree_scores(subject, tested, others_of_pool, self.max_learnt, self.n_trees, rng)
        n = len(tested[0])
        return _measured(scores[:n], scores[n:], subject.level)


def _pool(
    subject: Subject, most_members: int, most_others: int, beside: int, rng: np.random.Generator
) -> tuple[Sequence[Positions], Sequence[Positions]]:
    """Rows of train and of control to test, and at most ``beside`` others; each ascending."""
    train, control = subject.real
    if control.n_rows < _FEWEST_CONTROL:
        raise NotApplicable(f"fewer than {_FEWEST_CONTROL} control rows to tell from training rows")
    if train.n_rows < 2 or subject.synthetic.n_rows < 2:
        raise NotApplicable("fewer than two training or synthetic rows")
    tested = [different_people(train, most_members, rng), different_people(control, most_others, rng)]
    if len(tested[1]) < min(_FEWEST_CONTROL, most_others):
        raise NotApplicable(f"fewer than {_FEWEST_CONTROL} control people to tell from those of train")
    left = [np.setdiff1d(np.arange(t.n_rows), x) for t, x in zip(subject.real, tested, strict=True)]
    n = len(left[0])
    some = drawn(np.arange(n + len(left[1])), beside, rng)
    return tested, [left[0][some[some < n]], left[1][some[some >= n] - n]]


def _tree_scores(
    subject: Subject,
    tested: Sequence[Positions],
    others: Sequence[Positions],
    most_learnt: int,
    n_trees: int,
    rng: np.random.Generator,
) -> Floats:
    """Share of trees that take a tested row for a release row, beyond that in equally dense places.

    Args:
        tested, others: of train and of control, which are the pool together.

    Returns:
        Shape (tested rows,), those of train first, in [-1, 1]; higher for likelier training rows.
    """
    learnt = drawn(np.arange(subject.synthetic.n_rows), most_learnt, rng)
    rows = [*map(np.concatenate, zip(tested, others, strict=True)), learnt]
    tables = [*subject.real, subject.synthetic]
    train, control, made = Encoded(tables, subject.features, subject.real).ranks(rows)
    m, o = map(len, tested)
    pool = np.concatenate([train[:m], control[:o], train[m:], control[o:]])
    second = rng.permutation(len(pool)) < len(pool) // 2
    found = np.empty(m + o)
    for half in (second, ~second):
        judged = np.flatnonzero(half[: m + o])
        reference = drawn(np.flatnonzero(~half), min(most_learnt, _MOST_REFERENCE), rng)
        seed = int(rng.integers(2**31))
        share = tree_share(pool[judged], made, pool[reference], -(-n_trees // 2), seed)
        found[judged] = share - round(len(made) / (len(made) + len(reference)), 9)
    return found


def _measured(members: Floats, others: Floats, level: float) -> Findings:
    """AUC, recall and precision; no precision where nobody is named."""
    m, n = len(members), len(others)
    hits, alarms = int(np.sum(members > 0)), int(np.sum(others > 0))
    counts = SampleCounts(n_requested=min(m, n), n_achieved=min(m, n), n_minimum=_FEWEST_TESTED)
    guessing = Reference(0.5, "guessing")
    by_chance = Proportion(alarms, n)
    beside = Reference(by_chance.share, "control rows that are named", by_chance.interval(level))
    area = IntervalEstimate(auroc(members, others), auroc_interval(members, others, level))
    found = [
        AUC.at(area, reference=guessing, **counts),
        RECALL.at(Proportion(hits, m).estimate(level), reference=beside, **counts),
    ]
    if hits + alarms:
        found.append(PRECISION.at(precision(hits, m, alarms, n, level), reference=guessing, **counts))
    return Findings(tuple(found))


def tree_share(
    queries: Floats32, synthetic: Floats32, reference: Floats32, n_trees: int, seed: int
) -> Floats:
    """Share of synthetic among the rows that land where a query lands, over randomised trees.

    Extremely randomised trees, grown without resampling until each leaf is pure: a record that the release
    copied lands on its copy in every tree, where a bootstrap would leave out a third of the copies.
    Under equal densities the expectation is ``n_s / (n_s + n_r)``. Source: Geurts et al. 2006.

    Each tree is asked as soon as it has grown and then forgotten, since a hundred of them take ten times the
    room of the rows; they are those of a forest with this seed.

    Args:
        queries, synthetic, reference: finite, row by row in memory: looking again for every tree whether they
            are takes a tenth of its time.

    Returns:
        Shape (n,), in [0, 1], to nine decimals.
    """
    from sklearn.tree import ExtraTreeClassifier  # here, since a code location must not load it

    seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n_trees)  # as forests draw them
    made = np.repeat([1, 0], [len(synthetic), len(reference)])
    rows = np.concatenate([synthetic, reference])

    def votes(block: slice) -> Floats:
        tree = ExtraTreeClassifier(random_state=int(seeds[block.start])).fit(rows, made, check_input=False)
        found: Floats = tree.predict_proba(queries, check_input=False)[:, 1]
        return found

    total = np.zeros(len(queries))
    for some in over_blocks(n_trees, 1, votes):
        total += some
    share: Floats = np.round(total / n_trees, 9)
    return share
