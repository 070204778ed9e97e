"""Rules that the plan declares: how often does the release break what real rows obey?"""

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Labels
from synth_audit.audits._shared import descriptive
from synth_audit.audits.fidelity._reference import Found, measured
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Estimate, Findings, Measurement, MeasurementId, Quantity
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.attack_success import worst_estimate
from synth_audit.stats.proportions import SOURCE, Proportion
from synth_audit.table.kind import NumberPart
from synth_audit.table.rules import Determines, OneOf, Ordered, Rule, Within
from synth_audit.table.schema import declared_rules
from synth_audit.table.table import Table

VIOLATIONS = Quantity(
    "violations",
    "Rows that break a rule",
    help="Share of the rows with all values that the rule needs; where no rule is named, share of rows that "
    "break any. 0 is best.",
)

WORST = Quantity(
    "worst_violations",
    "Rows that break the worst rule",
    help="The largest share over the rules, its interval corrected for their number.",
)

UNSEEN = descriptive(
    "unseen",
    "Rows whose determining values no training row holds together",
    help="What such rows determine cannot be compared, so they count neither as kept nor as broken.",
)

TRAIN_VIOLATIONS = descriptive(
    "train_violations",
    "Training rows that break a rule",
    help="Reported where training rows break a rule themselves. Such a rule is a habit and not a law.",
)


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Share of synthetic rows that break the rules declared in the plan.

    Rules are those under ``rules`` and the bounds and categories under ``columns``. For each,
    ``violations = broken / asked`` over the rows that hold all values it needs; without a rule, the share
    of rows that break any, among those with the values for at least one. A row breaks ``a -> b`` when its b
    is not the most frequent b of its a in train. Any of equally frequent ones will do. The interval of the
    worst rule is corrected for their number (Bonferroni).

    For a dependency, ``train_violations`` counts the training rows without the most frequent b of their a. Of
    equally frequent ones only one counts, because an a whose values tie determines nothing.

    Source: g3 of Kivinen & Mannila 1995 (``train_violations`` of a dependency); the rest is ours.
    """

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Rules",
        question="Does the release break rules that real rows obey?",
        threat_model="Someone who works with the release meets rows that cannot be, such as a discharge "
        "before an admission.",
        not_covered="Rules that nobody declared. A rule on values that are missing is not asked.",
        quantities=(VIOLATIONS, WORST, UNSEEN, TRAIN_VIOLATIONS),
        risk="fidelity",
        cost="seconds",
        source=f"Kivinen & Mannila 1995 (broken dependencies); {SOURCE} (intervals)",
    )

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Ask every declared rule of the release, with control rows as reference.

        Raises:
            NotApplicable: the plan declares no rule.
        """
        rules = declared_rules(subject.schema)
        if not rules:
            raise NotApplicable(
                "the plan declares no rules, bounds or categories. `synth-audit init` proposes some rules"
            )
        tallied: list[_Tallies] = []

        def compare(table: Table, rng: np.random.Generator) -> Found:
            tallied.append(_Tallies.of(rules, table, subject.train))
            return tallied[-1].estimates(subject.level)

        found = measured(subject, compare, self.info.quantities, context.rng)
        release, control = tallied[0], tallied[1] if len(tallied) > 1 else None
        hidden = control.hidden(subject.suppression) if control else frozenset()
        habits, notes = _habits(rules, subject.train, subject.suppression)
        if lacking := [text for text, tally in release.broken.items() if not tally.trials]:
            notes.append(f"no synthetic row holds all values that could be asked for: {'; '.join(lacking)}")
        notes += _withheld(hidden, subject.suppression)
        return Findings((*(_told(m, release, hidden) for m in found), *habits), notes=tuple(notes))


@dataclass(frozen=True, eq=False)
class Question:
    """One rule put to the rows of one table.

    Attributes:
        asked: True where all values that the rule needs are there, shape (n,).
        broken: True where these do not obey it.
        whole: of a dependency, True where the determinants are there, shape (n,); else None.
        unseen: the part of these whose combination train does not hold.
    """

    asked: Bools
    broken: Bools
    whole: Bools | None = None
    unseen: Bools | None = None

    @classmethod
    def of(cls, operands: Sequence[Floats | Labels], fails: Any) -> Self:
        """Rows that lack none of the operands, shape (n,) each, and those of them that fail."""
        from pandas import isna  # here, since a code location must not load it

        asked = ~np.any([isna(x) for x in operands], axis=0)
        return cls(asked, asked & fails)


def put(rule: Rule, table: Table, train: Table) -> Question:
    """Ask the rows of a table whether they obey a rule.

    Only a dependency needs ``train``: a row breaks ``a -> b`` when its b is not a most frequent b of its a in
    train. Rows without the values that a rule needs, or with determinants that train does not hold, are not
    asked.
    """
    match rule:
        case Within():
            values = _numbers(table, rule.column)
            return Question.of([values], ~_inside(rule, values))
        case OneOf():
            return _among(rule, table)
        case Ordered():
            names = (rule.left, rule.right)
            ranked = rule.operator != "==" or all(table.schema[n].kind.order for n in names)
            left, right = ((_numbers if ranked else Table.labels)(table, n) for n in names)
            fails = {"<": operator.ge, "<=": operator.gt, "==": operator.ne}[rule.operator]
            return Question.of([left, right], fails(left, right))
    return _determined(rule, table, train)


def _numbers(table: Table, name: str) -> Floats:
    """A column as numbers; all NaN for a column without a type in train, so that no row is asked."""
    part = table.schema[name].kind.part
    if isinstance(part, NumberPart):
        return part.read(table.column(name))
    return np.full(table.n_rows, np.nan)


def _inside(rule: Within, x: Floats) -> Bools:
    inside = np.ones(len(x), dtype=bool)
    if rule.low is not None:
        inside &= (x > rule.low) if rule.strict_low else (x >= rule.low)
    if rule.high is not None:
        inside &= (x < rule.high) if rule.strict_high else (x <= rule.high)
    return inside


def _among(rule: OneOf, table: Table) -> Question:
    from pandas import factorize

    kind = table.schema[rule.column].kind
    values = kind.plain(table.column(rule.column))
    allowed = set(map(kind.meant, rule.allowed)) - {None}
    numbers, distinct = factorize(values)  # missing is −1, and then it does not matter what it is taken for
    known = np.array([v in allowed for v in distinct.tolist()] + [False])
    return Question.of([values], ~known[numbers])


@dataclass(frozen=True, eq=False)
class _Habits:
    """What values train holds beside each other, by the determinants' groups.

    Attributes:
        pairs: group and value of rows that hold both, as one number each, ascending; counts: how often.
        most: rows with the most frequent value of each group.
    """

    width: int
    pairs: Codes
    counts: Codes
    most: Codes

    @classmethod
    def of(cls, groups: Codes, values: Codes, known: Bools, others: Sequence[Codes] = ()) -> Self:
        """Of the known rows of train, shape (n,) each.

        Args:
            others: groups and values of another table, which may be higher.
        """
        width = 1 + max(int(v.max(initial=0)) for v in (values, *others[1:]))
        pairs, counts = np.unique(groups[known] * width + values[known], return_counts=True)
        most = np.zeros(1 + max(int(g.max(initial=0)) for g in (groups, *others[:1])), dtype=np.int64)
        np.maximum.at(most, pairs // width, counts)
        return cls(width, pairs, counts, most)


def _held(rule: Determines, table: Table) -> Bools:
    """Rows that hold all determinants, shape (n,)."""
    held: Bools = ~np.any([table.missing(name) for name in rule.determinants], axis=0)
    return held


def _determined(rule: Determines, table: Table, train: Table) -> Question:
    """Rows whose value is not a most frequent one for their determinants in train."""
    encoded = Encoded([train, table], [table.schema[name] for name in rule.determinants])
    of_train, groups = encoded.groups()
    learnt, found = encoded.codes(table.schema[rule.dependent])
    known, whole = _held(rule, train) & (learnt != MISSING), _held(rule, table)
    habits = _Habits.of(of_train, learnt, known, (groups, found))
    # Where train holds several equally often, a row with any of them has what is expected of it.
    usual = habits.pairs[habits.counts == habits.most[habits.pairs // habits.width]]
    seen = habits.most[groups] > 0
    asked = whole & (found != MISSING) & seen
    fits = np.isin(groups * habits.width + found, usual)
    return Question(asked, asked & ~fits, whole, whole & ~seen)


def _tally(counted: Bools, asked: Bools) -> Proportion:
    """How many rows could be asked, and how many of them were counted."""
    return Proportion(int(counted.sum()), int(asked.sum()))


def _small(tally: Proportion, suppression: int) -> bool:
    """True when it singles out fewer rows than the suppression limit; none or all single out no row."""
    return _few(tally.successes, suppression) or (
        tally.successes > 0 and _few(tally.trials - tally.successes, suppression)
    )


@dataclass(frozen=True, eq=False)
class _Tallies:
    """Broken and asked rows of one table, by the text of a rule; ``any`` counts rows that break any rule."""

    broken: Mapping[str, Proportion]
    unseen: Mapping[str, Proportion]
    any: Proportion
    n_rows: int

    @classmethod
    def of(cls, rules: Sequence[Rule], table: Table, train: Table) -> Self:
        broken, unseen = {}, {}
        asked_any, broken_any = np.zeros((2, table.n_rows), dtype=bool)
        for rule in rules:
            question = put(rule, table, train)
            broken[rule.text] = _tally(question.broken, question.asked)
            if question.whole is not None and question.unseen is not None:
                unseen[rule.text] = _tally(question.unseen, question.whole)
            asked_any |= question.asked
            broken_any |= question.broken
        return cls(broken, unseen, _tally(broken_any, asked_any), table.n_rows)

    @property
    def worst(self) -> Proportion:
        return max(self.broken.values(), key=lambda t: (t.share if t.trials else -1.0, t.trials))

    def by_key(self) -> Iterator[tuple[MeasurementId, Proportion]]:
        yield VIOLATIONS.id(), self.any
        yield WORST.id(), self.worst
        for text, tally in self.broken.items():
            yield VIOLATIONS.id(text), tally
        for text, tally in self.unseen.items():
            yield UNSEEN.id(text), tally

    def estimates(self, level: float) -> dict[MeasurementId, Estimate]:
        found = {
            key: Estimate(tally.share, tally.interval(level) if tally.trials else None)
            for key, tally in self.by_key()
        }
        if asked := [t.estimate for t in self.broken.values() if t.trials]:
            tried = f"{len(asked)} rule{'s' * (len(asked) > 1)}"
            found[WORST.id()] = worst_estimate(asked, level, tried).plain
        return found

    def hidden(self, suppression: int) -> frozenset[MeasurementId]:
        """Measurements that would reveal a count of rows below the suppression limit.

        A share and its interval reveal their denominator, and so how many rows could not be asked.
        Differences reveal counts as well: rows that break any rule minus those that break one, and the sum
        over the rules minus the rows that break any.
        """
        small = {key for key, tally in self.by_key() if _small(tally, suppression)}
        found = small | {key for key, t in self.by_key() if _few(self.n_rows - t.trials, suppression)}
        if any(x.quantity == VIOLATIONS.name for x in found):
            found.add(WORST.id())
        counts = [tally.successes for tally in self.broken.values()]
        told = [*(self.any.successes - n for n in counts), sum(counts) - self.any.successes]
        if any(x.quantity == VIOLATIONS.name for x in small) or any(_few(n, suppression) for n in told):
            found.add(VIOLATIONS.id())
        return frozenset(found)


def _few(n: float, suppression: int) -> bool:
    """True for a number of rows below the suppression limit, except 0."""
    return 0 < n < suppression


def _told(m: Measurement, release: _Tallies, hidden: frozenset[MeasurementId]) -> Measurement:
    """A measurement with its number of rows, and without a reference that would reveal a few people."""
    asked = int(dict(release.by_key())[m.id].trials)
    reference = None if m.id in hidden else m.reference
    if reference is not None and math.isnan(reference.value):
        reference = None
    return replace(m, n_achieved=asked, n_minimum=1, reference=reference)


def _withheld(hidden: frozenset[MeasurementId], suppression: int) -> list[str]:
    texts = sorted(x.setting for x in hidden if x.setting and x.quantity == VIOLATIONS.name)
    if texts:
        return [
            f"some control rows, but fewer than {suppression}, break, keep or lack values for "
            f"{'; '.join(texts)}: the shares in control of these rules and of the worst are withheld, and "
            f"that of all together where it would tell of these rows"
        ]
    if VIOLATIONS.id() in hidden:
        return ["the share of control rows that break any rule is withheld: it would reveal a few rows"]
    return []


def _habits(rules: Sequence[Rule], train: Table, suppression: int) -> tuple[list[Measurement], list[str]]:
    """Rules that training rows break: their share where enough do, and a note in any case."""
    habits, notes, n = [], [], train.n_rows
    for rule in rules:
        tally = _in_train(rule, train)
        if not tally.successes:
            continue
        told = f"{tally.share:.2%}"
        if _small(tally, suppression):
            told = f"fewer than {suppression}" if tally.successes < suppression else "nearly all"
        elif _few(n - tally.trials, suppression):
            told = f"about {tally.share:.0%}"  # an exact share tells how many rows lack values
        else:
            habits.append(TRAIN_VIOLATIONS.at(tally.share, setting=rule.text, n=n))
        notes.append(f"training rows break {rule.text!r} themselves ({told})")
    return habits, notes


def _in_train(rule: Rule, train: Table) -> Proportion:
    """Training rows that break a rule; of a dependency all but one most frequent value per determinant."""
    if not isinstance(rule, Determines):
        question = put(rule, train, train)
        return _tally(question.broken, question.asked)
    encoded = Encoded([train], [train.schema[name] for name in rule.determinants])
    [groups], [found] = encoded.groups(), encoded.codes(train.schema[rule.dependent])
    known = (found != MISSING) & _held(rule, train)
    asked = int(known.sum())
    return Proportion(asked - int(_Habits.of(groups, found, known).most.sum()), asked)
