"""Rules that the plan declares: how often does the release break what real rows obey?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from synth_audit.arrays import Bools, Floats, Labels
from synth_audit.audits._quantities import descriptive
from synth_audit.audits.fidelity._reference import measured
from synth_audit.encode.cells import row_groups
from synth_audit.encode.codes import codes
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import (
    Estimate,
    Findings,
    Interval,
    Measurement,
    MeasurementId,
    Quantity,
)
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.attack_success import corrected_level, worst_interval
from synth_audit.stats.proportions import SOURCE, proportion_interval
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
    help="Told where training rows break a rule themselves: then it is a habit and not a law.",
)


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Share of synthetic rows that break the rules declared in the plan.

    Rules are those under ``rules`` and the bounds and categories under ``columns``. For each,
    ``violations = broken / asked`` over the rows that hold all values it needs; without a rule, the share
    of rows that break any among those that can be asked for at least one. A row breaks ``a -> b`` when its b
    is not one that train holds most often beside its a, whichever of equally frequent ones. The
    interval of the worst rule is corrected for their number (Bonferroni).

    ``train_violations`` of a dependency counts the training rows beside the most frequent b of each a, of
    equally frequent ones a single one: a whose values tie determines nothing, which is a habit.

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
                "the plan declares no rules, bounds or categories: `synth-audit init` proposes some rules"
            )
        tallied: list[_Tallies] = []

        def compare(table: Table, rng: np.random.Generator) -> Mapping[MeasurementId, Estimate]:
            tallied.append(_Tallies.of(rules, table, subject.train))
            return tallied[-1].estimates(subject.level)

        found = measured(subject, compare, self.info.quantities, context.rng)
        release, control = tallied[0], tallied[1] if len(tallied) > 1 else None
        hidden = control.hidden(subject.suppression) if control else frozenset()
        habits, notes = _habits(rules, subject.train, subject.suppression)
        notes += _unasked(release)
        notes += _withheld(hidden, subject.suppression)
        return Findings((*(_told(m, release, hidden) for m in found), *habits), notes=tuple(notes))


@dataclass(frozen=True, eq=False)
class Question:
    """One rule put to the rows of one table.

    Attributes:
        operands: what is compared, one or two arrays of shape (n,): float64 with NaN, or labels with None.
            Of a dependency, code numbers of the value found and of the value expected.
        allowed: what a rule ``in`` allows, of the type of its operand; empty for the others.
        asked: True where all values that the rule needs are there, shape (n,).
        whole: of a dependency, True where the determinants are there, shape (n,); else None.
        unseen: the part of these whose combination train does not hold.
    """

    rule: Rule
    operands: tuple[Floats | Labels, ...]
    allowed: tuple[float | str, ...]
    asked: Bools
    whole: Bools | None = None
    unseen: Bools | None = None

    @property
    def broken(self) -> Bools:
        """True where the rule can be asked and does not hold, shape (n,)."""
        fails: Bools = self.asked & self._fails()
        return fails

    def _fails(self) -> Any:
        first, last = self.operands[0], self.operands[-1]
        match self.rule:
            case Within():
                return ~_inside(self.rule, np.asarray(first, dtype=np.float64))
            case OneOf():
                return ~_among(first, self.allowed)
            case Ordered(operator="<"):
                return first >= last
            case Ordered(operator="<="):
                return first > last
        return first != last


def put(rule: Rule, table: Table, train: Table) -> Question:
    """Ask the rows of a table whether they obey a rule.

    Only a dependency looks at ``train``: a row breaks ``a -> b`` when its b is not one that train holds most
    often beside its a. Rows without the values that a rule needs, or with determinants that train does not
    hold, are not asked.
    """
    match rule:
        case Within():
            return _question(rule, (_numbers(table, rule.column),))
        case OneOf():
            operand, values = _allowed(rule, table)
            return _question(rule, (operand,), values)
        case Ordered():
            names = (rule.left, rule.right)
            ranked = rule.operator != "==" or all(table.schema[n].kind.order for n in names)
            read = _numbers if ranked else Table.labels
            return _question(rule, tuple(read(table, n) for n in names))
    return _determined(rule, table, train)


def _question(
    rule: Rule, operands: tuple[Floats | Labels, ...], allowed: tuple[float | str, ...] = ()
) -> Question:
    from pandas import isna  # here, since a code location must not load it

    missing = np.any([isna(x) for x in operands], axis=0)
    return Question(rule, operands, allowed, ~missing)


def _numbers(table: Table, name: str) -> Floats:
    """A column as numbers; of one that has no type in train nothing can be asked."""
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


def _among(x: Floats | Labels, values: Sequence[float | str]) -> Bools:
    from pandas import factorize

    numbers, distinct = factorize(x)  # missing is −1, and then it does not matter what it is taken for
    allowed = set(values)
    known = np.array([v in allowed for v in distinct.tolist()] + [False])
    return np.asarray(known[numbers], dtype=bool)


def _allowed(rule: OneOf, table: Table) -> tuple[Floats | Labels, tuple[float | str, ...]]:
    kind = table.schema[rule.column].kind
    meant = map(kind.meant, rule.allowed)
    return kind.plain(table.column(rule.column)), tuple(x for x in meant if x is not None)


def _determined(rule: Determines, table: Table, train: Table) -> Question:
    """The dependent values found and expected as code numbers, NaN where there are none."""
    columns = [table.schema[name] for name in rule.determinants]
    of_train, groups = row_groups([train, table], columns)
    learnt, found = codes([train, table], table.schema[rule.dependent])
    complete, whole = (
        ~np.any([t.missing(name) for name in rule.determinants], axis=0) for t in (train, table)
    )
    width = 1 + max(int(v.max(initial=0)) for v in (learnt, found))
    known = complete & (learnt != MISSING)
    pairs, counts = np.unique(of_train[known] * width + learnt[known], return_counts=True)
    most = np.zeros(1 + max(int(g.max(initial=0)) for g in (of_train, groups)), dtype=np.int64)
    np.maximum.at(most, pairs // width, counts)
    usual = pairs[counts == most[pairs // width]]
    expected = np.full(len(most), np.nan)
    expected[usual // width] = usual % width
    # Where train holds several equally often, a row with any of them has what is expected of it.
    fits = (found != MISSING) & np.isin(groups * width + found, usual)
    operands = (
        np.where(found == MISSING, np.nan, found),
        np.where(fits, found, np.where(whole, expected[groups], np.nan)),
    )
    asked = whole & (found != MISSING) & (most[groups] > 0)
    return Question(rule, operands, (), asked, whole, whole & (most[groups] == 0))


@dataclass(frozen=True)
class _Tally:
    """How many rows could be asked, and how many of them were counted."""

    counted: int
    asked: int

    @property
    def share(self) -> float:
        return self.counted / self.asked if self.asked else math.nan

    def estimate(self, level: float) -> Estimate:
        return Estimate(
            self.share, proportion_interval(self.counted, self.asked, level) if self.asked else None
        )

    def small(self, suppression: int) -> bool:
        """True where it sets apart fewer rows than may be told; none and all set nobody apart."""
        return _few(self.counted, suppression) or (
            self.counted > 0 and _few(self.asked - self.counted, suppression)
        )


@dataclass(frozen=True, eq=False)
class _Tallies:
    """What became of every rule in one table, by the rule's text; ``any`` of rows that break any."""

    broken: Mapping[str, _Tally]
    unseen: Mapping[str, _Tally]
    any: _Tally
    n_rows: int

    @classmethod
    def of(cls, rules: Sequence[Rule], table: Table, train: Table) -> _Tallies:
        broken, unseen = {}, {}
        asked_any, broken_any = np.zeros((2, table.n_rows), dtype=bool)
        for rule in rules:
            question = put(rule, table, train)
            fails = question.broken
            broken[rule.text] = _Tally(int(fails.sum()), int(question.asked.sum()))
            if question.whole is not None and question.unseen is not None:
                unseen[rule.text] = _Tally(int(question.unseen.sum()), int(question.whole.sum()))
            asked_any |= question.asked
            broken_any |= fails
        any_rule = _Tally(int(broken_any.sum()), int(asked_any.sum()))
        return cls(broken, unseen, any_rule, table.n_rows)

    @property
    def worst(self) -> _Tally:
        return max(self.broken.values(), key=lambda t: (t.share if t.asked else -1.0, t.asked))

    def by_key(self) -> Iterator[tuple[MeasurementId, _Tally]]:
        yield VIOLATIONS.id(), self.any
        yield WORST.id(), self.worst
        for text, tally in self.broken.items():
            yield VIOLATIONS.id(text), tally
        for text, tally in self.unseen.items():
            yield UNSEEN.id(text), tally

    def estimates(self, level: float) -> dict[MeasurementId, Estimate]:
        found = {key: tally.estimate(level) for key, tally in self.by_key()}
        found[WORST.id()] = Estimate(self.worst.share, self._worst_interval(level))
        return found

    def _worst_interval(self, level: float) -> Interval | None:
        asked = [t for t in self.broken.values() if t.asked]
        corrected = corrected_level(level, len(asked))
        intervals = [proportion_interval(t.counted, t.asked, corrected) for t in asked]
        tried = f"{len(asked)} rule{'s' * (len(asked) > 1)}"
        return worst_interval(intervals, level, tried) if intervals else None

    def hidden(self, suppression: int) -> frozenset[MeasurementId]:
        """Keys whose number would tell of few rows; where a rule's would, so would those of all together.

        A share and its interval tell their denominator too, and so how many rows could not be asked. The rows
        that break any rule, less those that break one, break only others; the sum over the rules, less those
        that break any, tells of rows that break several.
        """
        small = {key for key, tally in self.by_key() if tally.small(suppression)}
        found = small | {key for key, t in self.by_key() if _few(self.n_rows - t.asked, suppression)}
        if any(x.quantity == VIOLATIONS.name for x in found):
            found.add(WORST.id())
        counts = [tally.counted for tally in self.broken.values()]
        told = [*(self.any.counted - n for n in counts), sum(counts) - self.any.counted]
        if any(x.quantity == VIOLATIONS.name for x in small) or any(_few(n, suppression) for n in told):
            found.add(VIOLATIONS.id())
        return frozenset(found)


def _few(n: int, suppression: int) -> bool:
    """True for a number of rows that may not be told."""
    return 0 < n < suppression


def _told(m: Measurement, release: _Tallies, hidden: frozenset[MeasurementId]) -> Measurement:
    """A measurement with the rows it rests on, and without a reference that would tell of a few people."""
    asked = dict(release.by_key())[m.id].asked
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
        return ["the share of control rows that break any rule is withheld: it would tell of a few rows"]
    return []


def _habits(rules: Sequence[Rule], train: Table, suppression: int) -> tuple[list[Measurement], list[str]]:
    """Rules that training rows break: their share where enough do, and a note in any case."""
    habits, notes, n = [], [], train.n_rows
    for rule in rules:
        tally = _in_train(rule, train)
        if not tally.counted:
            continue
        told = f"{tally.share:.2%}"
        if tally.small(suppression):
            told = f"fewer than {suppression}" if tally.counted < suppression else "nearly all"
        elif _few(n - tally.asked, suppression):
            told = f"about {tally.share:.0%}"  # an exact share tells how many rows lack values
        else:
            habits.append(TRAIN_VIOLATIONS.at(tally.share, setting=rule.text, n_requested=n, n_achieved=n))
        notes.append(f"training rows break {rule.text!r} themselves ({told})")
    return habits, notes


def _in_train(rule: Rule, train: Table) -> _Tally:
    """Training rows that break a rule; of a dependency all but one most frequent value per determinant."""
    if not isinstance(rule, Determines):
        question = put(rule, train, train)
        return _Tally(int(question.broken.sum()), int(question.asked.sum()))
    [groups] = row_groups([train], [train.schema[name] for name in rule.determinants])
    [found] = codes([train], train.schema[rule.dependent])
    known = (found != MISSING) & ~np.any([train.missing(name) for name in rule.determinants], axis=0)
    width = 1 + int(found.max(initial=0))
    pairs, counts = np.unique(groups[known] * width + found[known], return_counts=True)
    most = np.zeros(1 + int(groups.max(initial=0)), dtype=np.int64)
    np.maximum.at(most, pairs // width, counts)
    asked = int(known.sum())
    return _Tally(asked - int(most.sum()), asked)


def _unasked(release: _Tallies) -> list[str]:
    lacking = [text for text, tally in release.broken.items() if not tally.asked]
    if not lacking:
        return []
    return [f"no synthetic row holds all values that could be asked for: {'; '.join(lacking)}"]
